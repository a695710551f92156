//! The database: one redb file, one writer at a time, any number of readers.
//!
//! Only this module names redb. In reading order:
//! - [`mod@format`]: the page that describes the file.
//! - [`mod@file`]: opening, locking and replacing the file.
//! - `write_tx`: the transaction that all rows are written with; [`mod@write`]: imports, licenses and keys.
//! - [`read`]: reading one committed state.
//! - [`replication`]: the changes of commits, and replicas that apply them.
//! - [`check`]: compares every index, hash and count with the records, by code of its own.
//! - [`restore`]: restoring a backup, and upgrading files of older releases.
//! - [`error`]: errors; [`panics`]: panics of redb on damaged files.

pub mod check;
pub mod error;
pub mod file;
pub mod format;
pub mod panics;
pub(crate) mod read;
pub mod replication;
pub mod restore;
#[cfg(test)]
mod tests;
pub mod write;
mod write_tx;

pub use error::{Result, StoreError};
pub use file::open::{Reader, Writer};
pub use format::feed::FeedEntry;
pub use format::rows::{
    CLOCK_TOLERANCE_S, CommitPoint, ImportCounts, RowCounts, ShortHash, StoredCommit, hash,
};
pub use read::snapshot::Snapshot;
pub use write::edit::{Batch, Edit};
