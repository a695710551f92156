//! The database as a file.
//!
//! - [`open`]: opening for reading and writing.
//! - [`metadata`]: symbolic and hard links, identity and owner of files.
//! - [`draft`]: files without a name until they are complete; [`fill`]: databases in new files.
//! - [`notes`]: the process that writes, and the last published commit.
//! - [`published`]: marking a database as published, and the end of its commits.
//! - [`replace`]: the lock of a file that is replaced; backup and compaction.

pub mod draft;
pub(super) mod fill;
pub mod metadata;
pub mod notes;
pub mod open;
pub(super) mod published;
pub mod replace;
