//! Follows the database while the server runs.
//!
//! In reading order:
//! - `watcher`: loads new commits; `fence`: detects that another publisher has taken over; `background`: threads.
//! - `upstream`: the origin of a replica; `replica`: the thread that follows it.

pub(crate) mod background;
pub(crate) mod fence;
pub(crate) mod replica;
pub(crate) mod upstream;
pub(crate) mod watcher;
