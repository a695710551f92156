//! The HTTP API as plain functions from a request and a snapshot to a response, without sockets and clocks.
//!
//! In reading order:
//! - [`service`]: the order of checks, and the finishing of every response; `settings`, and `source`: its snapshots.
//! - [`request`]: a request, and its state while it is being answered; `response`, and `problem`: error responses.
//! - `auth`: keys, and the authenticated caller.
//! - `handlers`: parses a request and answers it, for each endpoint.
//! - `answers`: answers, and their cache.
//! - `rate`, `conditional`: single checks; `browsers`: CORS, and a check against DNS rebinding. Routes and parameters
//!   are in [`crate::contract`].
//! - [`observe`]: events for logs and metrics.

pub(crate) mod answers;
pub(crate) mod auth;
pub(crate) mod browsers;
pub(crate) mod conditional;
pub(crate) mod handlers;
pub mod observe;
pub(crate) mod problem;
pub(crate) mod rate;
pub mod request;
pub(crate) mod response;
pub mod service;
pub(crate) mod settings;
pub(crate) mod source;

pub use problem::Problem;
pub use request::{Exchange, Request};
pub use response::Response;
pub use service::Service;
pub use settings::Settings;
pub use source::{SnapshotSource, Unservable};

pub use crate::contract::Code;
