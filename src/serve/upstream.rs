//! A server whose database is a replica: where its commits come from, and when it must not answer.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::watcher::Watcher;
use crate::api::SnapshotSource;
use crate::api::source::{Listener, TooOld};
use crate::store::Snapshot;

/// How long a request waits at most for a look at the origin.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);
/// When to ask a server again whose state is too old, in seconds.
const RETRY_AFTER_S: u64 = 10;

/// Where the commits of a replica come from.
pub trait Upstream: Debug + Send + Sync {
    /// What it follows, as a URL.
    fn url(&self) -> String;

    /// Whether what the server has is new enough to answer from. It is asked with every request.
    fn is_fit(&self) -> bool;

    /// Why it is not, or cannot follow at present.
    fn trouble(&self) -> Option<String>;

    /// Waits for a look at the origin that begins after an instant, until another. There is one look at a time, for all who
    /// wait.
    fn look(&self, since: Instant, until: Instant);

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
        (!self.upstream.is_fit()).then_some(TooOld { retry_after_s: RETRY_AFTER_S })
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
        self.upstream.look(since, since + LOOK_PATIENCE);
        Some(self.watcher.catch_up(self.watcher.looks(), accept))
    }
}
