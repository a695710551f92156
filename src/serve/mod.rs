//! The server around the API: the only part that knows sockets, hyper and tokio.
//!
//! In reading order:
//! - [`watcher`]: the newest state of the database, taken over while it is served; [`after_publish`]: or only once it is published;
//!   [`fence`]: until another publisher takes over; [`background`]: its threads.
//! - [`upstream`]: a database that is a replica; `following`: the thread that follows its origin (feature `bucket`).
//! - [`connection`]: one connection, from its bytes to the API and back.
//! - [`dispatch`]: from a request to its response; [`permits`]: how many threads may block at once; [`long_polls`]: requests that
//!   wait for news.
//! - [`address`]: whose request it is, behind trusted proxies.
//! - [`state`]: what a connection is doing; [`limiter`]: how many there may be, and which one is given up for another.
//! - [`guard`]: how long a caller may take to ask; [`pace`]: how fast it must take its answers; [`tls`]: HTTPS.
//! - [`refusal`]: what hyper itself answers becomes a problem too; [`host`]: what HTTP demands of a request.
//! - [`workers`]: the threads that serve connections.
//! - [`server`]: the listener and its end; [`listen`]: where the listener comes from.
//! - [`log`], [`metrics`] in a `registrar` and an [`exposition`], [`process`], [`usage`] and [`admin`]: what the operator sees.
//! - `publishing`: what the operator sees of a publisher (feature `bucket`).
//! - [`health`]: what a health check asks of a running server.
//! - [`assembly`]: all of it put together, and run until it is told to stop.

pub mod address;
pub mod admin;
pub mod after_publish;
pub mod assembly;
pub mod background;
pub mod connection;
pub mod dispatch;
pub mod exposition;
pub mod fence;
#[cfg(feature = "bucket")]
pub mod following;
pub mod guard;
pub mod health;
pub mod host;
pub mod limiter;
pub mod listen;
pub mod log;
pub mod long_polls;
pub mod metrics;
pub mod pace;
pub mod permits;
pub mod process;
#[cfg(feature = "bucket")]
pub mod publishing;
pub mod refusal;
mod registrar;
pub mod server;
pub mod state;
pub mod tls;
pub mod upstream;
pub mod usage;
pub mod watcher;
pub mod workers;

pub use assembly::{Setup, notify, run_to_end, serve};
pub use server::{Limits, Server};
pub use watcher::Watcher;
