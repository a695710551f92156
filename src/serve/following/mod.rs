//! Following the database while it is served.
//!
//! In reading order:
//! - [`watcher`]: takes over each new commit; [`after_publish`]: or only once it is published; [`fence`]: until another
//!   publisher takes over; [`background`]: its threads.
//! - [`upstream`]: a database that is a replica; `replica`: the thread that follows its origin (feature `bucket`).

pub mod after_publish;
pub mod background;
pub mod fence;
#[cfg(feature = "bucket")]
pub mod replica;
pub mod upstream;
pub mod watcher;
