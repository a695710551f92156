//! The HTTP API as plain functions from a request and a snapshot to a response, without sockets and clocks.
//!
//! In reading order:
//! - `request`, `response`, and `problem`: error responses.
//! - `source`: the source of snapshots; `auth`: keys, and the authenticated caller.
//! - [`settings`]: what an operator chooses.
//! - [`service`]: the order of checks; [`exchange`]: a request while it is being answered; `job`: the handler to run.
//! - `representation`: the content of an answer; `answers`: the cache of answers.
//! - `records` (lists, single records, exports and reference lists), `changes`: the handlers; `public`: answers that
//!   need no key.
//! - `rate`, `conditional`: single checks; `browsers`: CORS, and a check against DNS rebinding. Routes and parameters
//!   are in [`crate::contract`].
//! - [`observe`]: events for logs and metrics.

pub(crate) mod answers;
pub(crate) mod auth;
pub(crate) mod browsers;
pub(crate) mod changes;
pub(crate) mod conditional;
pub mod exchange;
pub(crate) mod job;
pub mod observe;
pub(crate) mod problem;
mod public;
pub(crate) mod rate;
pub(crate) mod records;
pub(crate) mod representation;
pub(crate) mod request;
pub(crate) mod response;
pub mod service;
pub mod settings;
pub(crate) mod source;

pub use crate::api::request::Request;
pub use crate::contract::Code;
pub use problem::Problem;
pub use response::Response;
pub use service::Service;
pub use settings::Settings;
pub use source::{SnapshotSource, Unservable};
