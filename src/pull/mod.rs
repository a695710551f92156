//! A customer's copy of the licensed datasets, kept by export and change feed: `medfeed pull`.
//!
//! It speaks to a service over HTTP only, and knows of it what the contract says. In reading order:
//! - [`entry`]: what the feed and the export consist of.
//! - [`digest`]: what content comes to.
//! - [`error`]: why a pull ends, by what can be done about it.
//! - [`limits`]: bounds on all that is read from a service.
//! - [`pause`]: how long to wait before trying again; [`download`]: a file that goes on where it broke off; [`export`]: its
//!   records.
//! - [`server_url`]: the service's address.
//! - [`client`]: the requests, and what their answers mean.
//! - [`target`]: what a copy can do, and who hears of it.
//! - [`catch_up`]: the protocol itself: load the export, then apply page after page, over changes of the license.
//! - [`verify`]: comparing the copy with the service's content, and mending it.
//! - [`follow`]: going on, through limits, failures and restarts.
//! - [`columns`]: a record's JSON as the cells of a flat table.
//! - [`tables`]: the tables of a copy in a database.
//! - [`files`]: files that nobody else can read or replace.
//! - [`sql`]: the copy in a database; [`sqlite`]: an SQLite file; [`postgres`]: PostgreSQL.
//! - [`folder`]: the copy as JSON lines and CSV.
//! - [`place`]: which of them `--to` names.

pub mod catch_up;
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
