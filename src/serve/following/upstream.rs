//! The origin of a replica, as the server uses it.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::api::SnapshotSource;
use crate::api::source::{SnapshotCallback, Unservable};
use crate::replicate::follower::status::ReplicaProgress;
use crate::serve::following::watcher::Watcher;
use crate::store::Snapshot;

/// The maximum time for which a request waits for a poll of the origin.
const POLL_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause between polls for tokens that are ahead. Only the origin can have issued them.
const TOKEN_PAUSE: Duration = Duration::from_millis(50);
/// The pause between polls for unknown keys. Anybody can invent them.
const KEY_PAUSE: Duration = Duration::from_secs(1);
/// The response while the replica may be outdated, including its keys.
const OUTDATED: Unservable = Unservable {
    retry_after_s: 10,
    reason: "This server has not received changes of the data for too long, so its data may be outdated.",
};

/// The origin of a replica, and the state of following it.
pub trait Upstream: Debug + Send + Sync {
    fn url(&self) -> String;

    /// Whether the data is new enough to be served. Called on every request.
    fn is_fresh(&self) -> bool;

    /// The reason why the data is not fresh, or why the origin cannot be followed now.
    fn failure(&self) -> Option<String>;

    /// Waits until `until` for a poll of the origin that begins after `since`. Concurrent callers share a poll. The
    /// next poll begins `pause` after the end of the last one, or earlier if it is due.
    fn wait_for_poll(&self, since: Instant, until: Instant, pause: Duration);

    /// Whether a seq that is ahead of the replica belongs to a history that the origin no longer has.
    fn is_lost(&self, seq: u64) -> bool;

    fn stats(&self) -> ReplicaStats;
}

/// The numbers of a replica for monitoring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaStats {
    pub progress: ReplicaProgress,
    /// Seconds since the end of the log was reached, or since the start.
    pub stale_s: u64,
    /// Seconds since the publisher's last heartbeat, or since the start.
    pub silence_s: u64,
}

/// The snapshots of a replica.
#[derive(Debug)]
pub struct ReplicaSource {
    watcher: Arc<Watcher>,
    upstream: Arc<dyn Upstream>,
}

impl ReplicaSource {
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

    fn unservable(&self) -> Option<Unservable> {
        (!self.upstream.is_fresh()).then_some(OUTDATED)
    }

    fn polls(&self) -> u64 {
        self.watcher.polls()
    }

    fn subscribe(&self, callback: SnapshotCallback) {
        self.watcher.subscribe(callback);
    }

    fn catch_up(&self, polls: u64, accept: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        self.watcher.catch_up(polls, accept)
    }

    fn catch_up_with_origin(&self, since: Instant, accept: &dyn Fn(&Snapshot) -> bool) -> Option<Arc<Snapshot>> {
        self.upstream.wait_for_poll(since, since + POLL_TIMEOUT, TOKEN_PAUSE);
        Some(self.watcher.catch_up(self.watcher.polls(), accept))
    }

    fn is_lost(&self, seq: u64) -> bool {
        self.upstream.is_lost(seq)
    }

    fn may_lack_keys(&self) -> bool {
        true
    }

    fn poll_for_keys(&self, since: Instant) {
        self.upstream.wait_for_poll(since, since + POLL_TIMEOUT, KEY_PAUSE);
        // Loads keys even if commits are held back.
        self.watcher.catch_up(self.watcher.polls(), &|_| false);
    }
}
