//! The database as a file.
//!
//! - [`open`]: opening for reading and writing.
//! - [`metadata`]: symbolic and hard links, identity and owner of files.
//! - [`draft`]: files without a name until they are complete; [`fill`]: databases in new files.
//! - [`writer_note`]: names the process that writes; [`published_note`]: the last published commit.
//! - [`publish`]: marking a database as published.
//! - `backend`: the file under the database.
//! - [`replace`]: the lock of a file that is replaced; backup and compaction.

#[doc(hidden)]
mod backend;
pub mod draft;
pub mod fill;
pub mod metadata;
pub mod open;
pub mod publish;
pub mod published_note;
pub mod replace;
pub mod writer_note;
