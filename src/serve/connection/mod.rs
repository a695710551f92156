//! Connections, between the socket and the API.
//!
//! The path of a request:
//! 1. Accept: `server` takes a connection from the listener (`listen`).
//! 2. Limits: [`limits`] gives it a slot, and closes connections that cost too much.
//! 3. TLS: `tls` performs the handshake.
//! 4. Parse: hyper reads a request from `stream` (`http`), which also answers what hyper cannot parse.
//! 5. Check: `http` passes the request to [`dispatch`], with the caller's [`address`]. The API checks it.
//! 6. Answer: from memory, on a blocking thread ([`permits`]), or after a wait for changes ([`long_polls`]).
//! 7. Observe: the API reports the response, and `server` the end of the connection, to `api/observe.rs`.
//!
//! All of this happens on the threads that `listen` starts.

pub mod address;
pub mod dispatch;
pub(crate) mod http;
pub mod limits;
pub mod listen;
pub mod long_polls;
pub mod permits;
pub(crate) mod server;
pub(crate) mod stream;
pub(crate) mod tls;
