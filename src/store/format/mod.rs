//! The file format: what every row is, and how it becomes bytes.
//!
//! - [`tables`]: every table with its keys and values, in one page.
//! - [`codec`]: sealed rows, each with a hash that is checked when it is read; [`rows`]: tables that are read whole.
//! - [`feed`]: entries of feeds, and what is sealed of all of a feed's entries together.
//! - [`changes`]: changes of rows as bytes; [`digest`]: all rows in one number; [`outbox`]: changes that wait to be published;
//!   [`publish`]: what `meta` says of a published database; [`replica`]: what makes a file a replica.
//! - [`version`]: of which format a file is, and which fields the JSON of its rows has.
//! - [`names`]: the index that imports compare their rows with.

pub mod changes;
pub mod codec;
pub(in crate::store) mod digest;
pub mod feed;
pub(in crate::store) mod names;
pub(in crate::store) mod outbox;
pub(in crate::store) mod publish;
pub mod replica;
pub(in crate::store) mod rows;
pub(in crate::store) mod tables;
pub(in crate::store) mod version;
