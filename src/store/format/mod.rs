//! The file format: tables, and their rows as bytes.
//!
//! - [`tables`]: all tables with their keys and values.
//! - [`rows`]: rows with a hash, and reading them.
//! - [`feed`]: the entries of feeds, and the sums that seal them.
//! - [`changes`]: encoded changes of rows; [`outbox`]: changes that are not published yet, and the digest of all
//!   rows.
//! - [`meta`]: the format of a file and the fields in the JSON of its rows; the rows of a published database, the mark
//!   of a replica, and the secret of tokens.

pub mod changes;
pub(super) mod feed;
pub(super) mod meta;
pub(super) mod outbox;
pub(super) mod rows;
pub(super) mod tables;
