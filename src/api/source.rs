//! Where the states that answers are made from come from.

use std::sync::Arc;
use std::time::Instant;

use crate::store::Snapshot;

/// What is told that the newest or the published state is another one, until it returns false. It must not wait.
pub type Listener = Box<dyn Fn() -> bool + Send + Sync>;

/// Why no answer can be given from a state that is there, although the file can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOld {
    /// When it makes sense to ask again, in seconds.
    pub retry_after_s: u64,
    /// Why, as a sentence for callers.
    pub why: &'static str,
}

/// Where snapshots come from.
pub trait SnapshotSource: Send + Sync {
    /// The state that answers are made from.
    fn published(&self) -> Arc<Snapshot>;

    /// The newest state, from which keys are taken at once. It is `published` unless commits are held back for a while.
    fn newest(&self) -> Arc<Snapshot>;

    /// Whether the state can still be read.
    fn is_readable(&self) -> bool {
        true
    }

    /// Whether the states must not be shown: those of another database that was not heard of for too long, or those that are to
    /// be published first. It is asked with every request.
    fn is_too_old(&self) -> Option<TooOld> {
        None
    }

    /// How many looks for newer commits have begun so far. Read when a request comes, for [`SnapshotSource::catch_up`].
    fn looks(&self) -> u64;

    /// Tells a listener of every further state. A source whose states never change need not.
    fn subscribe(&self, _listener: Listener) {}

    /// Looks for newer commits, or a newer file, unless a look has begun since `looks` were counted: whoever waits for the
    /// same look shares what it finds. Publishes the newest state if `accept` takes it. Returns what is published then.
    ///
    /// It may wait, for the disk and for a large commit.
    fn catch_up(&self, looks: u64, accept: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot>;

    /// Looks for newer commits where the database itself gets them from, for a token that is ahead of all states here. `since`
    /// is when its request came: whoever waits shares a look that begins later. Returns what is published then; `None` where
    /// commits are made in this very database and shown at once, so that nothing can be ahead of it.
    ///
    /// It may wait, for two seconds at most.
    fn catch_up_with_origin(&self, _since: Instant, _accept: &dyn Fn(&Snapshot) -> bool) -> Option<Arc<Snapshot>> {
        None
    }

    /// Whether a seq that is ahead of all states here is known to be of a history that the origin no longer has.
    fn is_lost(&self, _seq: u64) -> bool {
        false
    }

    /// Whether other processes make keys, so that a key that is not known here may be new.
    fn may_lack_keys(&self) -> bool {
        false
    }

    /// Waits for a look for new keys that begins after `since`, when the request came. All who wait share it. Made-up keys cause
    /// no further looks at a file, and at most one a second at a bucket.
    ///
    /// It may wait, for two seconds at most.
    fn look_for_keys(&self, _since: Instant) {}
}
