//! What the endpoints ask of a license's view. Plain functions: a view and parameters in, rows and bytes out.
//!
//! - [`list`]: a page of records by id, filtered.
//! - [`feed`]: a page of the change feed.
//! - [`mod@reference`]: what the visible records carry, counted.
//! - [`export`]: everything as one file; [`member`] compresses it, and takes what did not change from an earlier one.

pub mod export;
pub mod feed;
pub mod list;
pub mod member;
pub mod reference;
