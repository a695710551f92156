//! What an answer may ask of one committed state.
//!
//! - [`snapshot`]: one committed state; [`history`]: what it still knows of its past.
//! - [`feed_index`]: a feed in memory; [`entries`]: a license's entries; [`feed_cache`]: which feeds are in memory.
//! - [`columns`]: what filters run over; [`record_cache`]: records' finished JSON in memory; [`cache`]: their bounds.

pub mod cache;
pub mod columns;
pub mod entries;
pub mod feed_cache;
pub mod feed_index;
pub mod history;
pub mod record_cache;
pub mod snapshot;
