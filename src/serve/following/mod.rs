//! Follows the database while the server runs.
//!
//! In reading order:
//! - [`watcher`]: loads new commits; [`after_publish`]: finds out which are published; [`fence`]: detects that another
//!   publisher has taken over; [`background`]: threads.
//! - [`upstream`]: the origin of a replica; `replica`: the thread that follows it (feature `bucket`).

pub mod after_publish;
pub mod background;
pub mod fence;
#[cfg(feature = "bucket")]
pub mod replica;
pub mod upstream;
pub mod watcher;
