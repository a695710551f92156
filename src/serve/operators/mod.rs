//! The tools of operators: log, metrics, health check, and a page.
//!
//! In reading order:
//! - `log`: lines on standard error.
//! - `metrics`: the server's metrics; `process`: those of the process; `registrar`: registers metrics;
//!   `exposition`: text formats.
//! - [`usage`]: the last use of each key.
//! - [`admin`]: the listener for metrics, readiness and the operators' page.
//! - `health`: the client of a health check.

pub mod admin;
pub(crate) mod exposition;
pub(crate) mod health;
pub(crate) mod log;
pub(crate) mod metrics;
pub(crate) mod process;
pub(in crate::serve) mod registrar;
pub mod usage;
