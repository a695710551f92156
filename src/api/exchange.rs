//! A request while it is being answered.

use std::time::{Duration, Instant};

use super::answers::AnswerResult;
use super::auth::UsableKey;
use super::rate::Window;
use super::request::Request;
use crate::model::{Dataset, Timestamp, Witness};

/// A request, and the state for its response, set as checks pass.
#[derive(Debug)]
pub struct Exchange {
    pub(super) request: Request,
    pub(super) request_id: String,
    pub(super) window: RateHeaders,
    pub(super) key: Option<UsableKey>,
    pub(super) pattern: &'static str,
    /// The time of its arrival or of its last wake-up, from which its duration counts.
    pub(super) since: Instant,
    pub(super) has_polled_for_key: bool,
    /// Whether it was counted in the rate window of its key.
    pub(super) is_counted: bool,
    pub(super) may_wait: bool,
}

/// The rate window for the response headers.
#[derive(Clone, Copy, Debug)]
pub(super) enum RateHeaders {
    /// The window of the address, if the path is under `/v1`.
    OfAddress,
    Of(Window),
    None,
}

/// The change for which a long poll waits: of the key, or of the witness of its license in a dataset.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names explain the fields")]
pub struct Interest {
    pub key: UsableKey,
    pub(super) dataset: Dataset,
    pub(super) witness: Witness,
}

impl Exchange {
    /// Starts an exchange.
    pub fn new(request: Request) -> Exchange {
        Exchange {
            request_id: new_request_id(),
            window: RateHeaders::OfAddress,
            key: None,
            pattern: "(none)",
            since: request.at,
            has_polled_for_key: false,
            is_counted: false,
            may_wait: true,
            request,
        }
    }

    /// The request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The id of its key; empty without a usable key.
    pub fn key_id(&self) -> &str {
        self.key.as_ref().map_or("", |key| &key.record.id)
    }

    /// The interest and the deadline, if the request should long-poll instead of getting this answer.
    pub fn interest(&self, answer: &AnswerResult) -> Option<(Interest, Instant)> {
        let answer = answer.as_ref().ok().filter(|_| self.may_wait && !self.request.is_head())?;
        let time = answer.representation.wait?;
        let ((dataset, witness), key) = (answer.depends_on?, self.key.clone()?);
        Some((Interest { key, dataset, witness }, self.request.at + time))
    }

    /// The time at which its key expires or is revoked.
    pub fn key_ends_at(&self) -> Option<Instant> {
        let key = &self.key.as_ref()?.record;
        let end = [key.expires_at, key.revoked_at].into_iter().flatten().min()?;
        let left_s = u64::try_from(end.unix_s() - self.request.wall.unix_s()).ok().filter(|left_s| *left_s > 0)?;
        Some(self.since + Duration::from_secs(left_s))
    }

    /// Resets the exchange after a wait, at a time on both clocks. Unless `is_over`, it may wait again.
    pub fn wake(&mut self, at: Instant, wall: Timestamp, is_over: bool) {
        (self.since, self.request.wall, self.may_wait) = (at, wall, !is_over);
        (self.window, self.key, self.has_polled_for_key) = (RateHeaders::OfAddress, None, true);
    }
}

/// A new request id, unique across processes and ordered by time.
pub fn new_request_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
