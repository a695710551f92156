//! The file format: what every row is, and how it becomes bytes.
//!
//! - [`tables`]: every table with its keys and values, in one page.
//! - [`codec`]: sealed rows, each with a hash that is checked when it is read; [`rows`]: tables that are read whole.
//! - [`feed`]: entries of feeds, and what is sealed of all of a feed's entries together.

pub mod codec;
pub mod feed;
pub(in crate::store) mod rows;
pub(in crate::store) mod tables;
