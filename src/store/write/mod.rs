//! What a commit does.
//!
//! - [`batch`]: what an import hands over; [`edit`]: the one write transaction.
//! - [`records`] applies a batch, [`feeds`] writes what licenses see of it, [`licensing`] changes licenses and keys; `insert`
//!   writes rows in runs.

pub mod batch;
pub mod edit;
pub mod feeds;
mod insert;
pub mod licensing;
pub mod records;
