//! The HTTP API as plain functions from a request and a snapshot to a response, without sockets and clocks.
//!
//! In reading order:
//! - `request`, `response`, and `problem`: error responses.
//! - `source`: the source of snapshots; `caller`: an authenticated caller.
//! - [`service`]: the order of checks; [`exchange`]: a request while it is being answered; `job`: the handler to run.
//! - `cors`: requests of browser applications; `own_host`: checks `Host` against DNS rebinding.
//! - `representation`: the content of an answer; `answers`: the cache of answers.
//! - [`observe`]: events for logs and metrics.
//! - `auth`, `rate`, `etag`, `range`: single checks. Routes and parameters are in [`crate::contract`].
//! - `records` (lists and single records), `changes`, `exports`, `reference`, `status`: one file per resource;
//!   `explorer`: the page at `/`.

pub(crate) mod answers;
pub(crate) mod auth;
mod caller;
pub(crate) mod changes;
pub(crate) mod cors;
pub(crate) mod etag;
pub mod exchange;
mod explorer;
pub(crate) mod exports;
pub(crate) mod job;
pub mod observe;
pub(crate) mod own_host;
pub(crate) mod problem;
pub(crate) mod range;
pub(crate) mod rate;
pub(crate) mod records;
mod reference;
pub(crate) mod representation;
pub(crate) mod request;
pub(crate) mod response;
pub mod service;
pub(crate) mod source;
pub(crate) mod status;

pub use crate::contract::Code;
pub use problem::Problem;
pub use request::Request;
pub use response::Response;
pub use service::{Service, Settings};
pub use source::{SnapshotSource, Unservable};
