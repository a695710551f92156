//! The HTTP API as plain functions: a request and a snapshot in, an answer out; no sockets, no clock of their own.
//!
//! In reading order:
//! - [`request`] and [`response`]: what comes in and what goes out; [`problem`]: every error.
//! - [`source`]: where snapshots come from; `caller`: who passed the first checks.
//! - [`service`]: the order of checks, from the body to the record; [`exchange`]: a request on its way to its answer; [`job`]: the
//!   handler to run.
//! - [`cors`]: what browsers ask and are told; [`own_host`]: whether a page of another name asks.
//! - [`representation`]: what an answer says; [`answers`]: the cache of finished ones.
//! - [`observe`]: what is told of each answer.
//! - [`auth`], [`rate`], [`etag`], [`range`]: its steps; routes and parameters are those of [`crate::contract`].
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
