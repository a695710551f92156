//! The database as a file.
//!
//! - [`open`]: opening for reading and writing; `open_error`: its errors.
//! - [`links`]: symbolic and hard links; `metadata`: identity and owner of files.
//! - [`draft`]: files without a name until they are complete; `new_file`: a draft that is put in its place;
//!   [`fill`]: databases in new files.
//! - `locked`: a file that is about to be replaced.
//! - [`writer_note`]: names the process that writes; [`published_note`]: the last published commit.
//! - [`publish`]: marking a database as published.
//! - `backend`: the file under the database.
//! - [`replace`]: backup and compaction.

#[doc(hidden)]
mod backend;
pub mod draft;
pub mod fill;
pub mod links;
pub(in crate::store) mod locked;
pub mod metadata;
pub(in crate::store) mod new_file;
pub mod open;
mod open_error;
pub mod publish;
pub mod published_note;
pub mod replace;
pub mod writer_note;
