//! Connections, between the socket and the API.
//!
//! In reading order:
//! - `exchange`: serves one connection; [`dispatch`]: from a request to its response; [`permits`]: limits on blocking
//!   threads; [`long_polls`]: requests that wait for changes.
//! - [`address`]: the caller's address behind trusted proxies.
//! - [`state`]: the phase of a connection; `limiter`: the limits of connections, and which one is closed for another.
//! - `guard`: read timeouts; `pace`: the least rate of writing; `tls`: HTTPS.
//! - `refusal`: turns hyper's own errors into problems; `host`: validates the `Host` header.
//! - [`workers`]: the threads that serve connections.
//! - `server`: accepts connections, and stops; `listen`: opens the listener.

pub mod address;
pub mod dispatch;
pub(crate) mod exchange;
pub(crate) mod guard;
pub(crate) mod host;
pub(crate) mod limiter;
pub(crate) mod listen;
pub mod long_polls;
pub(crate) mod pace;
pub mod permits;
pub(crate) mod refusal;
pub(crate) mod server;
pub mod state;
pub(crate) mod tls;
pub mod workers;
