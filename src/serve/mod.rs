//! The server around the API: the only part that knows sockets, hyper and tokio.
//!
//! In reading order:
//! - [`following`]: the newest state of the database, taken over while it is served.
//! - [`connection`]: connections, from their bytes to the API and back.
//! - [`operators`]: log, metrics, health check and the operators' page.
//! - `publishing`: what operators see of a publisher (feature `bucket`).
//! - [`assembly`]: all of it put together, and run until it is stopped.

pub mod assembly;
pub mod connection;
pub mod following;
pub mod operators;
#[cfg(feature = "bucket")]
pub mod publishing;

pub use assembly::{Setup, notify, run_to_end, serve};
pub use connection::server::{Limits, Server};
pub use following::watcher::Watcher;
