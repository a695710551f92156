//! Where the states that answers are made from come from.

use std::sync::Arc;

use crate::store::Snapshot;

/// What is told that the newest or the published state is another one, until it returns false. It must not wait.
pub type Listener = Box<dyn Fn() -> bool + Send + Sync>;

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

    /// How many looks for newer commits have begun so far. Read when a request comes, for [`SnapshotSource::catch_up`].
    fn looks(&self) -> u64;

    /// Tells a listener of every further state. A source whose states never change need not.
    fn subscribe(&self, _listener: Listener) {}

    /// Looks for newer commits, or a newer file, unless a look has begun since `looks` were counted: whoever waits for the
    /// same look shares what it finds. Publishes the newest state if `accept` takes it. Returns what is published then.
    ///
    /// It may wait, for the disk and for a large commit.
    fn catch_up(&self, looks: u64, accept: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot>;
}
