//! The HTTP API as plain functions from a request and a snapshot to a response, without sockets and clocks.
//!
//! In reading order:
//! - [`settings`]: what an operator chooses. [`service`]: the order of checks, and the finishing of every response.
//! - [`request`]: a request, and its state while it is being answered; `response`, and `problem`: error responses.
//! - `source`: the source of snapshots; `auth`: keys, and the authenticated caller.
//! - `handlers`: parses a request and answers it, for each endpoint but the change feed, which is in `changes`;
//!   `public`: answers that need no key.
//! - `answers`: answers, and their cache.
//! - `rate`, `conditional`: single checks; `browsers`: CORS, and a check against DNS rebinding. Routes and parameters
//!   are in [`crate::contract`].
//! - [`observe`]: events for logs and metrics.

pub(crate) mod answers;
pub(crate) mod auth;
pub(crate) mod browsers;
pub(crate) mod changes;
pub(crate) mod conditional;
pub(crate) mod handlers;
pub mod observe;
pub(crate) mod problem;
mod public;
pub(crate) mod rate;
pub mod request;
pub(crate) mod response;
pub mod service;
pub mod settings;
pub(crate) mod source;

pub use crate::contract::Code;
pub use problem::Problem;
pub use request::{Exchange, Request};
pub use response::Response;
pub use service::Service;
pub use settings::Settings;
pub use source::{SnapshotSource, Unservable};
