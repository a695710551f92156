//! What the endpoints ask of a license's view. Plain functions: a view and parameters in, rows and bytes out.
//!
//! - [`list`]: a page of records by id, filtered.
//! - [`feed`]: a page of the change feed.
//! - [`mod@reference`]: what the visible records carry, counted.
//! - [`export`]: everything as one file; [`packed`] compresses it, and pages too, from parts that are kept.
//! - [`recent`]: how results are kept.

pub mod export;
pub mod feed;
pub mod list;
pub mod packed;
pub mod recent;
pub mod reference;
