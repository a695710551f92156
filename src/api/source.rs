//! Where the states that answers are made from come from.

use std::sync::Arc;

use crate::store::Snapshot;

/// Where snapshots come from.
pub trait Source: Send + Sync {
    /// The state that answers are made from.
    fn published(&self) -> Arc<Snapshot>;

    /// The newest state, from which keys are taken at once. It is `published` unless commits are held back for a while.
    fn newest(&self) -> Arc<Snapshot>;

    /// Whether the state can still be read.
    fn is_readable(&self) -> bool {
        true
    }

    /// Looks for newer commits, or a newer file, right now. Publishes the newest state if `accept` takes it. Returns what
    /// is published then.
    fn catch_up(&self, accept: &dyn Fn(&Snapshot) -> bool) -> Arc<Snapshot>;
}
