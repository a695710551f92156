//! Writing commits.
//!
//! - [`edit`]: the rows of an import, and the transaction of a command.
//! - [`records`]: applying a batch; [`feeds`]: writing feeds; [`licensing`]: changing licenses and keys.

pub mod edit;
mod feeds;
pub mod licensing;
pub mod records;
