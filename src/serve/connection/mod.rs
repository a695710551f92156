//! Connections, between the socket and the API.
//!
//! In reading order:
//! - [`exchange`]: serves one connection; [`dispatch`]: from a request to its response; [`permits`]: limits on blocking
//!   threads; [`long_polls`]: requests that wait for changes.
//! - [`address`]: the caller's address behind trusted proxies.
//! - [`state`]: the phase of a connection; [`limiter`]: the limits of connections, and which one is closed for another.
//! - [`guard`]: read timeouts; [`pace`]: the least rate of writing; [`tls`]: HTTPS.
//! - [`refusal`]: turns hyper's own errors into problems; [`host`]: validates the `Host` header.
//! - [`workers`]: the threads that serve connections.
//! - [`server`]: accepts connections, and stops; [`listen`]: opens the listener.

pub mod address;
pub mod dispatch;
pub mod exchange;
pub mod guard;
pub mod host;
pub mod limiter;
pub mod listen;
pub mod long_polls;
pub mod pace;
pub mod permits;
pub mod refusal;
pub mod server;
pub mod state;
pub mod tls;
pub mod workers;
