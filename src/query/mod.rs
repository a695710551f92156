//! Queries: functions that take a license's view and request parameters, and return rows and bytes.
//!
//! - [`list`]: a page of records in the order of their ids, filtered.
//! - [`feed`]: a page of the change feed.
//! - [`mod@reference`]: reference lists, with the number of visible records of each item.
//! - [`export`](mod@export): all records as one file. [`page`]: the JSON of a page. [`segments`] compresses both, with
//!   a cache.

pub mod export;
pub mod feed;
pub mod list;
pub mod page;
pub mod reference;
pub mod segments;
