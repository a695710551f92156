//! What a commit does.
//!
//! - [`batch`]: what an import hands over; [`edit`]: the one write transaction.
//! - [`records`] applies a batch, [`feeds`] writes what licenses see of it, [`licensing`] changes licenses and keys;
//!   `publication` is what a commit leaves for replicas.

pub mod batch;
pub mod edit;
pub mod feeds;
pub mod licensing;
mod publication;
pub mod records;
