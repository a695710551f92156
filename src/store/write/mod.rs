//! What a commit does.
//!
//! - [`batch`]: what an import hands over; [`edit`]: the one write transaction.
//! - [`records`] applies a batch, [`feeds`] writes what licenses see of it, [`licensing`] changes licenses and keys;
//!   `publication` is what a commit leaves for replicas; [`names`] keeps the index that imports compare their rows with;
//!   [`prepare`]: the states that imports are prepared from.

pub mod batch;
pub mod edit;
pub mod feeds;
pub mod licensing;
pub mod names;
pub mod prepare;
mod publication;
pub mod records;
