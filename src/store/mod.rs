//! The database: one redb file, one writer at a time, any number of read-only followers.
//!
//! Only this module names redb. In reading order:
//! - [`mod@format`]: the page that describes the file.
//! - [`mod@file`]: who may touch the file, and when.
//! - `tx`: the way to write a row; [`mod@write`]: what a commit does.
//! - [`read`]: what an answer may ask.
//! - [`replication`]: what commits changed, for other files that follow.
//! - [`check`]: every index, hash and count compared with the records, without the code that it checks.
//! - [`upgrade`]: files of older versions; [`restore`]: taking a backup's state.
//! - [`error`]: what can go wrong; [`panics`] of the engine on damaged files.

pub mod check;
pub mod error;
pub mod file;
pub mod format;
pub mod panics;
pub mod read;
pub mod replication;
pub mod restore;
pub mod upgrade;
pub mod write;
mod write_tx;

pub use error::StoreError;
pub use file::open::{Follower, Writer};
pub use format::codec::CLOCK_TOLERANCE_S;
pub use format::names::{ContentState, NameEntry, WordCount};
pub use read::history::CommitEntry;
pub use read::snapshot::{CommitPoint, Snapshot};
pub use write::batch::{Batch, Curation};
pub use write::edit::Edit;
