//! The database as a file.
//!
//! - [`open`]: opening for reading and writing.
//! - [`metadata`]: symbolic and hard links, identity and owner of files.
//! - [`draft`]: files without a name until they are complete.
//! - [`notes`]: the process that writes, and the last published commit.
//! - [`published`]: marking a database as published; [`publication`]: the changes of its commits.
//! - [`replace`]: databases in new files; the lock of a file that is replaced; backup and compaction.

pub(crate) mod draft;
pub(crate) mod metadata;
pub mod notes;
pub mod open;
pub(super) mod publication;
pub(super) mod published;
pub mod replace;
