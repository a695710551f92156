//! What a commit does.
//!
//! - [`batch`]: what an import hands over; [`edit`]: the one write transaction.
//! - [`records`] brings a batch in, [`feeds`] writes what licenses learn of it, [`licensing`] changes licenses and keys.

pub mod batch;
pub mod edit;
pub mod feeds;
pub mod licensing;
pub mod records;
