//! A customer's copy of the licensed datasets, kept by export and change feed: `medfeed pull`.
//!
//! It uses only the service's public HTTP API. In reading order:
//! - [`entry`]: the entries of the feed and the export.
//! - [`digest`]: digests that compare two copies.
//! - [`error`]: the errors of a pull.
//! - [`limits`]: bounds on all that is read from a service.
//! - [`pause`]: pauses between attempts; [`download`]: resumable downloads; [`export`]: the records of an export.
//! - [`server_url`]: the service's address.
//! - [`client`]: the requests and their responses.
//! - [`target`]: the traits of a copy and of its observers.
//! - [`changes`]: the changes of an export, held back until it is proved.
//! - [`catch_up`]: the protocol: load the export, then apply the pages of the feed.
//! - [`verify`]: compares the copy with the service's content, and repairs it.
//! - [`follow`]: single rounds and endless following, with retries.
//! - [`columns`]: a record's JSON as the cells of a flat table.
//! - [`tables`]: the tables of a copy in a database.
//! - [`files`]: files that only their owner can read or replace.
//! - [`sql`]: the copy in a database; [`sqlite`]: an SQLite file; [`postgres`]: PostgreSQL.
//! - [`folder`]: the copy as JSON lines and CSV.
//! - [`location`]: the location that `--to` names.

pub mod catch_up;
pub mod changes;
pub mod client;
pub mod columns;
pub mod digest;
pub mod download;
pub mod entry;
pub mod error;
pub mod export;
pub mod files;
pub mod folder;
pub mod follow;
pub mod limits;
pub mod location;
pub mod pause;
pub mod postgres;
pub mod server_url;
pub mod sql;
pub mod sqlite;
pub mod tables;
pub mod target;
pub mod verify;

pub use client::PullClient;
pub use error::PullError;
pub use folder::FolderCopy;
pub use postgres::PostgresCopy;
pub use sqlite::SqliteCopy;
pub use target::{Events, PullTarget};
