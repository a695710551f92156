//! The database as a file.
//!
//! - [`open`]: opening for reading and writing; `open_error`: its errors.
//! - [`links`]: symbolic and hard links; `metadata`: identity and owner of files.
//! - [`draft`]: files without a name until they are complete.
//! - [`writer_note`]: names the process that writes; [`published_note`]: the last published commit.
//! - [`publish`]: marking a database as published.
//! - `backend`: the file under the database.
//! - [`replace`]: backup and compaction; `copy`: copying row by row; `older`: reading older files to upgrade them.

#[doc(hidden)]
mod backend;
pub(in crate::store) mod copy;
pub mod draft;
pub mod links;
pub mod metadata;
pub(in crate::store) mod older;
pub mod open;
mod open_error;
pub mod publish;
pub mod published_note;
pub mod replace;
pub mod writer_note;
