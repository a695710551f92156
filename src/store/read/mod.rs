//! Reading one committed state.
//!
//! - [`snapshot`]: one committed state; [`history`]: its commits.
//! - [`feed_index`]: a feed in memory; [`entries`]: the entries of one license; [`feed_cache`]: the cached feeds.
//! - [`columns`]: packed columns for filters; [`record_cache`]: cached JSON of records; [`cache`]: caches with a limit
//!   in bytes.

pub mod cache;
pub mod columns;
pub mod entries;
pub mod feed_cache;
pub mod feed_index;
pub mod history;
pub mod record_cache;
pub mod snapshot;
