//! The server around the API: the only part that uses sockets, hyper and tokio.
//!
//! In reading order:
//! - `watching`: keeps the newest state of the database while the server runs.
//! - [`connection`]: connections, between the socket and the API. It lists the path of a request.
//! - [`operators`]: log, metrics, health check and the operators' page.
//! - `publishing`: metrics and readiness of a publisher.
//! - `assembly`: builds a server from these parts and runs it.

pub(crate) mod assembly;
pub mod connection;
pub mod operators;
pub(crate) mod publishing;
pub(crate) mod watching;

pub use assembly::{Setup, StopSignals, notify, run_to_end, serve};
pub use connection::limits::Limits;
pub use connection::server::Server;
pub use watching::watcher::Watcher;
