//! Writing commits.
//!
//! - [`edit`]: the rows of an import, and the transaction of a command.
//! - [`records`]: applying a batch, and writing feeds; [`licensing`]: changing licenses and keys.

pub mod edit;
pub mod licensing;
pub mod records;
