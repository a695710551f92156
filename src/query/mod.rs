//! Queries: functions that take a license's view and request parameters, and return rows and bytes.
//!
//! - [`page`]: a page of records in the order of their ids, filtered, and the JSON of every page.
//! - [`feed`]: a page of the change feed.
//! - [`mod@reference`]: reference lists, with the number of visible records of each item.
//! - [`export`](mod@export): all records as one file. [`segments`] compresses pages and exports, with a cache.

pub mod export;
pub mod feed;
pub mod page;
pub mod reference;
pub mod segments;
