//! What the endpoints ask of a license's view. Plain functions: a view and parameters in, rows and bytes out.
//!
//! - [`list`]: a page of records by id, filtered.
//! - [`feed`]: a page of the change feed.
//! - [`mod@reference`]: what the visible records carry, counted.
//! - [`export`](mod@export): everything as one file; [`page`]: the JSON of a page; [`segments`]: both compressed, from cached
//!   parts.

pub mod export;
pub mod feed;
pub mod list;
pub mod page;
pub mod reference;
pub mod segments;
