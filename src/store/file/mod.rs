//! The database as a file: who opens it, and how it is replaced.
//!
//! - [`open`]: opening for reading and writing, waiting for another writer, repair after a killed one;
//!   `open_error`: why that fails.
//! - [`links`]: the file that a path leads to; [`draft`]: files without a name until they are complete; [`writer_note`]: who
//!   is writing; [`published_note`]: what is published.
//! - [`publish`]: making a database one that is published.
//! - [`replace`]: backup and compaction; `copy` writes a database anew, row by row; `older`: files that are read to be
//!   upgraded.

pub(in crate::store) mod copy;
pub mod draft;
pub mod links;
pub(in crate::store) mod older;
pub mod open;
mod open_error;
pub mod publish;
pub mod published_note;
pub mod replace;
pub mod writer_note;
