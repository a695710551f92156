//! The HTTP API as plain functions from a request and a snapshot to a response, without sockets and clocks.
//!
//! In reading order:
//! - [`request`], [`response`], and [`problem`]: error responses.
//! - [`source`]: the source of snapshots; `caller`: an authenticated caller.
//! - [`service`]: the order of checks; [`exchange`]: a request while it is being answered; [`job`]: the handler to run.
//! - [`cors`]: requests of browser applications; [`own_host`]: checks `Host` against DNS rebinding.
//! - [`representation`]: the content of an answer; [`answers`]: the cache of answers.
//! - [`observe`]: events for logs and metrics.
//! - [`auth`], [`rate`], [`etag`], [`range`]: single checks. Routes and parameters are in [`crate::contract`].
//! - [`records`] (lists and single records), [`changes`], [`exports`], `reference`, [`status`]: one file per resource;
//!   `explorer`: the page at `/`.

pub mod answers;
pub mod auth;
mod caller;
pub mod changes;
pub mod cors;
pub mod etag;
pub mod exchange;
mod explorer;
pub mod exports;
pub mod job;
pub mod observe;
pub mod own_host;
pub mod problem;
pub mod range;
pub mod rate;
pub mod records;
mod reference;
pub mod representation;
pub mod request;
pub mod response;
pub mod service;
pub mod source;
pub mod status;

pub use crate::contract::Code;
pub use problem::Problem;
pub use request::Request;
pub use response::Response;
pub use service::{Service, Settings};
pub use source::SnapshotSource;
