//! The database: one redb file, one writer at a time, any number of read-only followers.
//!
//! Only this module names redb. In reading order:
//! - [`tables`]: the file format, in one page.
//! - [`codec`]: how rows become bytes, each with a hash that is checked when it is read.
//! - [`file`]: opening for reading and writing, waiting for another writer, repair after a killed one.
//!   [`place`]: where the file really stands; [`draft`]s: files without a name until they are whole; `note`: who writes;
//!   [`panics`] on damaged files.
//! - [`feed`]: what a feed is; [`feed_index`]: a feed in memory; [`entries`]: a license's entries; [`feed_cache`]: which feeds are in
//!   memory.
//! - [`snapshot`]: one committed state, for readers; [`columns`] is what filters run over, [`bodies`] what answers are put
//!   together from, as [`rope`]s.
//! - [`batch`]: what an import hands over; [`edit`]: the one write transaction; [`records`] brings a batch in,
//!   [`feeds`] writes what licenses learn, [`licensing`] changes licenses and keys.
//! - [`check`]: every index, hash and count compared with the records.
//! - [`replace`]: backup, restore and compaction; `copy` writes a database anew, row by row.

pub mod batch;
pub mod bodies;
pub mod check;
pub mod codec;
pub mod columns;
mod copy;
pub mod draft;
pub mod edit;
pub mod entries;
pub mod error;
pub mod feed;
pub mod feed_cache;
pub mod feed_index;
pub mod feeds;
pub mod file;
pub mod licensing;
mod load;
mod note;
pub mod panics;
pub mod place;
pub mod records;
pub mod replace;
pub mod rope;
pub mod snapshot;
mod tables;

pub use batch::{Batch, Curation};
pub use edit::{CLOCK_TOLERANCE_S, Edit};
pub use error::StoreError;
pub use file::{Follower, Writer};
pub use rope::{Rope, RopeWriter};
pub use snapshot::{CommitEntry, CommitPoint, Patience, Snapshot};
