//! Answers that have to wait: for the disk, for what is built at its first use, for newer commits, for their turn.
//!
//! A service is asked on threads that many callers share, so it answers at once what needs no waiting. The rest is returned,
//! checked and counted, to be resumed on a thread that may wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::answers::{CachedAnswer, Making};
use super::caller::Caller;
use super::rate::Window;
use super::representation::Representation;
use super::request::Request;
use super::response::Response;
use crate::contract::Route;
use crate::model::{Dataset, KeyHash, KeyRecord, LicenseId, Witness};
use crate::store::StoreError;
use crate::view::View;

/// What the making of an answer may wait for. Whoever may wait for one may wait for those before it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// For nothing: what it takes is in memory, and little.
    Nothing,
    /// For the disk, and for a page that nobody asked for before.
    Reading,
    /// For what filters run over, which is built at its first use.
    Building,
    /// For a look at the file, and for the commit that it finds.
    Looking,
    /// For an export, which takes one of few permits.
    Exporting,
}

/// What becomes of a request.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all answers are ready, and are moved on at once")]
pub enum Answer {
    /// The whole answer.
    Ready(Response),
    /// An answer that has to wait: [`super::Service::join`], then [`super::Service::resume`] go on with it.
    Deferred(Box<Deferred>),
    /// An answer that waits for news, as its caller wants: [`super::Service::wake`] goes on with it.
    Held(Box<Held>),
    /// An answer to a key that may be new: [`super::Service::seek`] goes on with it.
    Seeking(Box<Seeking>),
}

/// A request that passed all checks up to the rate, and waits. It is counted, and must not be counted again.
#[derive(Debug)]
pub struct Deferred {
    pub(super) asked: Asked,
    pub(super) passed: Passed,
    pub(super) wait: Wait,
}

impl Deferred {
    /// What it has to wait for.
    pub fn wait(&self) -> Wait {
        self.wait
    }

    /// The id of the key that it counts for.
    pub fn key_id(&self) -> &str {
        self.asked.key.as_ref().map_or("", |key| &key.id)
    }
}

/// A request for what comes next in a change feed, where nothing has come yet. It passed all checks, is counted, and holds
/// nothing but itself.
#[derive(Debug)]
pub struct Held {
    pub(super) asked: Asked,
    pub(super) interest: Interest,
    pub(super) until: Instant,
}

/// A request whose key is not known here, and may be new. Nothing is counted yet.
#[derive(Debug)]
pub struct Seeking {
    pub(super) asked: Asked,
    /// Whether its address has used up its unusable keys.
    pub is_over_limit: bool,
}

/// What the answer to a held request rests on: while it is current, the answer would be the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Interest {
    /// The hash of the caller's key.
    pub key_hash: KeyHash,
    pub(super) key: Arc<KeyRecord>,
    pub(super) dataset: Dataset,
    pub(super) witness: Witness,
}

impl Held {
    /// What it waits for to change.
    pub fn interest(&self) -> &Interest {
        &self.interest
    }

    /// When it has waited as long as its caller wants.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// When it has to be looked at again, whatever happens: at the end of its time, or of its key's.
    pub fn wake_at(&self) -> Instant {
        let key = &self.interest.key;
        let end = [key.expires_at, key.revoked_at].into_iter().flatten().min();
        let left_s = end.and_then(|end| u64::try_from(end.unix_s() - self.asked.request.wall.unix_s()).ok());
        let end = left_s.filter(|left_s| *left_s > 0).map(|left_s| self.asked.since + Duration::from_secs(left_s));
        end.map_or(self.until, |end| end.min(self.until))
    }
}

/// The turn of a request among those that wait for the same answer.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub enum Turn<'s> {
    /// Another one has made the answer.
    Answered(Answer),
    /// The answer is to be made, for all who wait for it.
    Make(Box<Deferred>, Shared<'s>),
}

/// Where a made answer goes.
#[derive(Debug)]
pub struct Shared<'s>(pub(super) Option<Making<'s>>);

/// What came of resuming a request.
#[derive(Debug)]
pub struct Resumed {
    /// The answer, or the request that has to wait for more.
    pub answer: Answer,
    /// What others may be given.
    pub(super) made: Option<Made>,
}

/// An answer to be cached, and the request that it answers.
#[derive(Debug)]
pub(super) struct Made {
    pub license: LicenseId,
    pub target: String,
    pub answer: Arc<CachedAnswer>,
}

/// A request, and what the finishing of its answer needs to know, filled in as checks pass.
#[derive(Debug)]
pub(super) struct Asked {
    pub request: Request,
    pub request_id: String,
    pub window: RateHeaders,
    pub key: Option<Arc<KeyRecord>>,
    pub pattern: &'static str,
    /// From when on the making of its answer takes time: since it came, or was woken.
    pub since: Instant,
    /// Whether it may be held back, if it wants to be.
    pub may_hold: bool,
    /// Whether it may wait for a look for new keys.
    pub may_seek: bool,
}

/// What the rate headers of an answer tell of.
#[derive(Clone, Copy, Debug)]
pub(super) enum RateHeaders {
    /// The window of the address, where the target lies under `/v1`.
    OfAddress,
    /// A window that the request was counted in.
    Of(Window),
    /// There are none.
    None,
}

/// Who passed key, address and rate, and what they ask for.
#[derive(Debug)]
pub(super) struct Passed {
    pub caller: Caller,
    pub route: Route,
    /// The looks at the file that had begun when the request came.
    pub looks: u64,
}

/// What a route answers.
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(super) enum Outcome {
    /// An answer, and what it rests on.
    Made((Dataset, Witness), Representation),
    /// It would have to wait for more than it may.
    Later(Wait),
}

impl Outcome {
    /// An answer made of a view.
    pub fn made(view: &View<'_>, representation: Representation) -> Result<Outcome, StoreError> {
        Ok(Outcome::Made((view.dataset(), view.witness()?), representation))
    }
}
