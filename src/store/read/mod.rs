//! Reading one committed state.
//!
//! - [`snapshot`]: one committed state; [`history`]: its commits.
//! - [`records`]: the records in memory; [`columns`]: the values that filters read.
//! - [`feed_index`]: a feed in memory; [`entries`]: the entries of one license.
//! - [`cache`]: caches with a limit in bytes.

pub mod cache;
mod columns;
pub mod entries;
pub mod feed_index;
pub mod history;
pub mod records;
pub mod snapshot;
