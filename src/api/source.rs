//! The source of snapshots.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use crate::store::Snapshot;

/// The reason why the shown snapshot must not be served, although the file can be read.
#[derive(Clone, Copy)]
pub struct Unservable {
    /// The value of `Retry-After`, in seconds.
    pub retry_after_s: u64,
    /// The detail of the response.
    pub reason: &'static str,
}

/// A source of snapshots.
pub trait SnapshotSource: Send + Sync {
    /// The snapshot for all responses.
    fn shown(&self) -> Arc<Snapshot>;

    /// The newest snapshot, for keys. It differs from `shown` while commits are held back.
    fn newest(&self) -> Arc<Snapshot>;

    /// Whether the database can be read.
    fn is_readable(&self) -> bool {
        true
    }

    /// The reason why no snapshot may be served: it may be outdated, or not there yet. Called on every request.
    fn unservable(&self) -> Option<Unservable> {
        None
    }

    /// Receives a message for every new or newly shown snapshot.
    fn changes(&self) -> watch::Receiver<()>;

    /// Polls for newer commits, unless a poll has begun after `since`; concurrent callers share a poll. Shows the
    /// newest snapshot to requests if `accept` returns true. Returns the shown snapshot. It may block.
    fn catch_up(&self, since: Instant, accept: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot>;

    /// Polls the origin of the database, for a token that is ahead of all local snapshots. `since` is the time of the
    /// request: concurrent callers share a poll that begins later. Returns the shown snapshot. `None` if there is
    /// no origin and commits are shown at once, so no token can be ahead. It may block for two seconds.
    fn catch_up_with_origin(
        &self,
        _since: Instant,
        _accept: &dyn Fn(&Snapshot) -> bool,
    ) -> Option<Arc<Snapshot>> {
        None
    }

    /// Asks whether a seq ahead of all local snapshots is known to be of a history that the origin no longer has.
    fn ask_if_lost(&self, _seq: u64) -> bool {
        false
    }

    /// Waits for a poll for new keys, which other processes create. It begins after `since`, the time of the request.
    /// Concurrent callers share it. Invalid keys cause no additional polls of a file, and at most one per second of a
    /// bucket. It may block for two seconds. Returns false if the file or the origin of the database could not be
    /// polled in time: then a key that is unknown here may be valid.
    fn poll_for_keys(&self, _since: Instant) -> bool {
        true
    }
}
