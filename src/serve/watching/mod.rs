//! Keeps the newest state of the database while the server runs.
//!
//! In reading order:
//! - `watcher`: loads new commits; `fence_watch`: detects that another publisher has taken over; `background`: threads.
//! - `replica_thread`: the thread that follows the origin of a replica.

pub(crate) mod background;
pub(crate) mod fence_watch;
pub(crate) mod replica_thread;
pub(crate) mod watcher;
