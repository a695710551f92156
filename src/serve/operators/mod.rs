//! What operators see: log, metrics, health check, and a page.
//!
//! In reading order:
//! - [`log`]: lines on standard error.
//! - [`metrics`], in a `registrar` and an [`exposition`]; [`process`]: those of the process itself.
//! - [`usage`]: when each key was last used.
//! - [`admin`]: the listener of metrics, readiness and the operators' page.
//! - [`health`]: the question of a health check.

pub mod admin;
pub mod exposition;
pub mod health;
pub mod log;
pub mod metrics;
pub mod process;
pub(in crate::serve) mod registrar;
pub mod usage;
