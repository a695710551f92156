//! The tools of operators: log, metrics, health check, and a page.
//!
//! In reading order:
//! - `log`: lines on standard error.
//! - `metrics`: the server's metrics; `registrar`: registers them and those of the process, and writes their text.
//! - [`usage`]: the last use of each key.
//! - [`admin`]: the listener for metrics, readiness and the operators' page.
//! - `health`: the client of a health check.
//!
//! # Observers
//!
//! `api::observe::Observer` receives every response. Three observers exist: the request log, the metrics, and the
//! usage record. The usage record says when each key was used, and since when it lacks an entry. That time is noted
//! when a page is sent and when a commit is shown. So the lag of a key that sends nothing grows. A position in a
//! history that the database no longer contains has no lag, and is not shown.
//!
//! - `serve/operators/log.rs` writes the log, panics included, on its own thread. Lines that cannot be written are
//!   dropped and counted.
//! - `serve/operators/usage.rs` keeps one small file per running server, locked while the server lives. The next
//!   server takes over the file of a dead one.
//! - `serve/operators/admin` builds the operators' page from these and a snapshot, with a template, on a thread that
//!   may block.

pub mod admin;
pub(crate) mod health;
pub(crate) mod log;
pub(crate) mod metrics;
pub(crate) mod registrar;
pub mod usage;
