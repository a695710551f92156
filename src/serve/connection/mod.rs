//! Connections, between the socket and the API.
//!
//! The path of a request:
//! 1. Accept: `server` takes a connection from the listener (`listen`).
//! 2. Limits: [`limits`] gives it a slot, and closes connections that cost too much.
//! 3. TLS: `tls` performs the handshake.
//! 4. Parse: hyper reads a request from `stream` (`http`). A request that is no HTTP is refused (`malformed`).
//! 5. Check: `http` passes the request to [`dispatch`], with the caller's [`address`]. The API checks it
//!    ([`Service`](crate::api::Service), whose head lists the checks), and makes a job of it (`api/handlers.rs`).
//! 6. Answer: from memory, on a blocking thread ([`permits`]), or after a wait for changes ([`long_polls`]). The job
//!    runs its handler, in the same file. A page of the feed asks `query/mod.rs` for the entries of the license
//!    ([`store::read`](crate::store::read)), and makes an `Answer` of them.
//! 7. Observe: the API reports the response, and `server` the end of the connection, to `api/observe.rs`.
//!
//! Steps 3 to 7 run on the threads that [`resources`] starts; slow answers are made on blocking threads.

pub mod address;
pub mod dispatch;
pub(crate) mod http;
pub mod limits;
pub mod listen;
pub mod long_polls;
pub(crate) mod malformed;
pub mod permits;
pub mod resources;
pub(crate) mod server;
pub(crate) mod stream;
pub(crate) mod tls;
