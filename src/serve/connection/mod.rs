//! Connections, from their bytes to the API and back.
//!
//! In reading order:
//! - [`exchange`]: one connection; [`dispatch`]: from a request to its response; [`permits`]: limits on threads that block;
//!   [`long_polls`]: requests that wait for changes.
//! - [`address`]: the caller's address, behind trusted proxies.
//! - [`state`]: what a connection is doing; [`limiter`]: how many there may be, and which one is closed for another.
//! - [`guard`]: time limits of reading; [`pace`]: the least rate of writing; [`tls`]: HTTPS.
//! - [`refusal`]: turns hyper's own errors into problems; [`host`]: the rules of HTTP for a request's host.
//! - [`workers`]: the threads that serve connections.
//! - [`server`]: the listener and its end; [`listen`]: where the listener comes from.

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
