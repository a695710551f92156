//! A server whose database is a replica: where its commits come from, and when it must not answer.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::api::SnapshotSource;
use crate::api::source::{Listener, TooOld};
use crate::serve::following::watcher::Watcher;
use crate::store::Snapshot;

/// How long a request waits at most for a look at the origin.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);
/// The least time between two looks for tokens that are ahead, which only the origin can have given.
const TOKEN_REST: Duration = Duration::from_millis(50);
/// The least time between two looks at the bucket for keys, which anybody can make up.
const KEY_REST: Duration = Duration::from_secs(1);
/// What is answered while the state is too old, revoked keys in it too.
const TOO_OLD: TooOld = TooOld {
    retry_after_s: 10,
    why: "This server has not heard of changes of the data for too long to answer from what it has.",
};

/// Where the commits of a replica come from.
pub trait Upstream: Debug + Send + Sync {
    /// What it follows, as a URL.
    fn url(&self) -> String;

    /// Whether what the server has is new enough to answer from. It is asked with every request.
    fn is_fit(&self) -> bool;

    /// Why it is not, or cannot follow at present.
    fn trouble(&self) -> Option<String>;

    /// Waits for a look at the origin that begins after an instant, until another. There is one look at a time, for all who
    /// wait, and the next one begins when the last has been over for `rest`, or earlier if it is time for it anyway.
    fn look(&self, since: Instant, until: Instant, rest: Duration);

    /// Whether a seq ahead of what the server has is of a history that the origin no longer has.
    fn is_lost(&self, seq: u64) -> bool;

    /// What monitoring shows.
    fn figures(&self) -> Figures;
}

/// What monitoring shows of a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The last entry of the log that was applied.
    pub slot: u64,
    /// The last seq after it.
    pub seq: u64,
    /// Seconds since the end of the log was seen, or since the start.
    pub stale_s: u64,
    /// Seconds since the publisher's last sign of life, or since the start.
    pub silence_s: u64,
    /// Entries applied so far.
    pub applied: u64,
    /// Whole states loaded so far.
    pub loads: u64,
    /// How often the rows were not the origin's.
    pub digest_failures: u64,
    /// How often an object could not be used.
    pub unusable_objects: u64,
}

/// The states of a replica's file.
#[derive(Debug)]
pub struct ReplicaSource {
    watcher: Arc<Watcher>,
    upstream: Arc<dyn Upstream>,
}

impl ReplicaSource {
    /// The states of a watched file that follows an origin.
    pub fn new(watcher: Arc<Watcher>, upstream: Arc<dyn Upstream>) -> ReplicaSource {
        ReplicaSource { watcher, upstream }
    }
}

impl SnapshotSource for ReplicaSource {
    fn published(&self) -> Arc<Snapshot> {
        self.watcher.published()
    }

    fn newest(&self) -> Arc<Snapshot> {
        self.watcher.newest()
    }

    fn is_readable(&self) -> bool {
        self.watcher.is_readable()
    }

    fn is_too_old(&self) -> Option<TooOld> {
        (!self.upstream.is_fit()).then_some(TOO_OLD)
    }

    fn looks(&self) -> u64 {
        self.watcher.looks()
    }

    fn subscribe(&self, listener: Listener) {
        self.watcher.subscribe(listener);
    }

    fn catch_up(&self, looks: u64, accept: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        self.watcher.catch_up(looks, accept)
    }

    fn catch_up_with_origin(&self, since: Instant, accept: &dyn Fn(&Snapshot) -> bool) -> Option<Arc<Snapshot>> {
        self.upstream.look(since, since + LOOK_PATIENCE, TOKEN_REST);
        Some(self.watcher.catch_up(self.watcher.looks(), accept))
    }

    fn is_lost(&self, seq: u64) -> bool {
        self.upstream.is_lost(seq)
    }

    fn may_lack_keys(&self) -> bool {
        true
    }

    fn look_for_keys(&self, since: Instant) {
        self.upstream.look(since, since + LOOK_PATIENCE, KEY_REST);
        // Keys count at once, whatever is held back.
        self.watcher.catch_up(self.watcher.looks(), &|_| false);
    }
}
