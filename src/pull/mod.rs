//! A customer's copy of the licensed datasets, kept by export and change feed: `medfeed pull`.
//!
//! It uses only the service's public HTTP API. In reading order:
//! - [`entry`]: the entries of the feed and the export.
//! - [`error`]: the errors of a pull, and the pauses after them.
//! - [`body`]: bounds on all that is read from a service, and downloads that resume; [`export`]: the records of an
//!   export, and their digest.
//! - [`server_url`]: the service's address; [`client`]: the requests and their responses.
//! - [`target`]: the traits of a copy and of its observers.
//! - [`catch_up`]: the protocol: load the export, then apply the pages of the feed; compare the copy, and repair it.
//! - [`follow`]: single rounds and endless following, with retries.
//! - [`columns`]: a record's JSON as the cells of a flat table.
//! - [`files`]: files that only their owner can read or replace.
//! - [`sql`]: the copy in a database; [`sqlite`]: an SQLite file; [`postgres`]: PostgreSQL.
//! - [`folder`]: the copy as JSON lines and CSV.
//! - [`location`]: the location that `--to` names.
//!
//! It knows the service only by the contract. `pull/catch_up.rs` is the protocol on one page. Columns and links that
//! are derived from a record are written in the record's transaction. A load compares the export with the copy in one
//! transaction, so readers never see less than a whole state. A broken download continues below the decoder
//! (`Download`), in the same transaction. The changes that an export brings are printed once it has come whole and matches
//! its digest (`Changes`). A repaired copy is compared again before it counts as repaired. PostgreSQL is written in
//! batches, one statement per table, because each statement crosses the network.

pub mod body;
pub mod catch_up;
pub mod client;
pub mod columns;
pub mod entry;
pub mod error;
pub mod export;
pub mod files;
pub mod folder;
pub mod follow;
pub mod location;
pub mod postgres;
pub mod server_url;
pub mod sql;
pub mod sqlite;
pub mod target;

pub use client::PullClient;
pub use error::PullError;
pub use folder::FolderCopy;
pub use postgres::PostgresCopy;
pub use sqlite::SqliteCopy;
pub use target::{Events, PullTarget};
