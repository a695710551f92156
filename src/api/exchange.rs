//! A request on its way to its answer.

use std::time::{Duration, Instant};

use super::answers::AnswerResult;
use super::auth::UsableKey;
use super::rate::Window;
use super::request::Request;
use crate::model::{Dataset, Timestamp, Witness};

/// A request, and what is needed to finish its answer, filled in as checks pass.
#[derive(Debug)]
pub struct Exchange {
    pub(super) request: Request,
    pub(super) request_id: String,
    pub(super) window: RateHeaders,
    pub(super) key: Option<UsableKey>,
    /// The pattern of the endpoint.
    pub(super) pattern: &'static str,
    /// When it came or was last woken: the start of its duration.
    pub(super) since: Instant,
    /// Whether an unknown key was looked for.
    pub(super) has_looked_for_key: bool,
    /// Whether its key's rate window has counted it.
    pub(super) is_counted: bool,
    /// Whether an empty page of a feed may be held back.
    pub(super) may_wait: bool,
}

/// The rate window that the headers of an answer carry.
#[derive(Clone, Copy, Debug)]
pub(super) enum RateHeaders {
    /// The window of the address, where the target lies under `/v1`.
    OfAddress,
    /// A window that the request was counted in.
    Of(Window),
    /// None.
    None,
}

/// The state that an empty page of a feed depends on. While it is current, the page would be the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Interest {
    /// The caller's key.
    pub key: UsableKey,
    pub(super) dataset: Dataset,
    pub(super) witness: Witness,
}

impl Exchange {
    /// The beginning of an exchange.
    pub fn new(request: Request) -> Exchange {
        Exchange {
            request_id: new_request_id(),
            window: RateHeaders::OfAddress,
            key: None,
            pattern: "(none)",
            since: request.at,
            has_looked_for_key: false,
            is_counted: false,
            may_wait: true,
            request,
        }
    }

    /// The request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The id of its key; empty without a usable one.
    pub fn key_id(&self) -> &str {
        self.key.as_ref().map_or("", |key| &key.record.id)
    }

    /// The state to wait for and the deadline, if the answer is an empty page that the caller wants held back.
    pub fn interest(&self, answer: &AnswerResult) -> Option<(Interest, Instant)> {
        let answer = answer.as_ref().ok().filter(|_| self.may_wait && !self.request.is_head())?;
        let time = answer.representation.hold?;
        let ((dataset, witness), key) = (answer.rests_on?, self.key.clone()?);
        Some((Interest { key, dataset, witness }, self.request.at + time))
    }

    /// When its key expires, or is revoked.
    pub fn key_ends_at(&self) -> Option<Instant> {
        let key = &self.key.as_ref()?.record;
        let end = [key.expires_at, key.revoked_at].into_iter().flatten().min()?;
        let left_s = u64::try_from(end.unix_s() - self.request.wall.unix_s()).ok().filter(|left_s| *left_s > 0)?;
        Some(self.since + Duration::from_secs(left_s))
    }

    /// Goes on after a wait, at a time on both clocks. Unless `is_over`, it may wait again.
    pub fn wake(&mut self, at: Instant, wall: Timestamp, is_over: bool) {
        (self.since, self.request.wall, self.may_wait) = (at, wall, !is_over);
        (self.window, self.key, self.has_looked_for_key) = (RateHeaders::OfAddress, None, true);
    }
}

/// A new id: unique across processes, and in the order of time for those who search logs.
pub fn new_request_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
