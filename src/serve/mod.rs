//! The server around the API: the only part that knows sockets, hyper and tokio.
//!
//! In reading order:
//! - [`follow`]: the newest state of the database, taken over while it is served.
//! - [`exports`]: exports built once for all who ask, within limits.
//! - [`connection`]: one connection, from its bytes to the API and back.
//! - [`refusal`]: what hyper itself answers becomes a problem too.
//! - [`server`]: the listener and its end.

pub mod connection;
pub mod exports;
pub mod follow;
pub mod refusal;
pub mod server;

pub use exports::Exports;
pub use follow::Follow;
pub use server::{Limits, Server};
