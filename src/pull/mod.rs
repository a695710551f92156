//! A customer's copy of the licensed datasets: `medfeed pull`. It knows the service only by the contract.
//!
//! The steps of a pull (`cli/commands/pull.rs` begins it):
//! 1. [`location`] reads `--to`, and the address of the service.
//! 2. The copy is opened: a [`folder`] of JSON lines and CSV, or tables ([`sql`]) in an [`sqlite`] file or in
//!    [`postgres`]. [`files`] creates what only its owner can read, and [`target`] is what all copies have in common.
//! 3. [`catch_up`] runs one round, or endless ones, and retries after an [`error`] that may pass.
//! 4. It begins with the protocol on one page: load the export, then apply the pages of the feed. With `--verify`, it
//!    compares the copy with the service, and repairs it.
//! 5. [`client`] sends the requests. [`body`] bounds what arrives in bytes and time, and resumes an interrupted
//!    download.
//! 6. [`export`] checks what arrived: ids, order, count and digest.
//! 7. The copy writes the records and their token, each record also as the cells of a flat table ([`columns`]). In a
//!    database that is one transaction. A folder replaces its files one after the other, the token last.
//!
//! A load compares the export with the copy, so readers never see less than a whole state, and only what differs is
//! reported. A download continues below the decoder, in the same transaction. The changes that an export brings are
//! printed once it has come whole and matches its digest. PostgreSQL is written in batches, one statement per table,
//! because each statement crosses the network.

pub mod body;
pub mod catch_up;
pub mod client;
pub mod columns;
pub mod error;
pub mod export;
pub mod files;
pub mod folder;
pub mod location;
pub mod postgres;
pub mod sql;
pub mod sqlite;
pub mod target;

pub use client::PullClient;
pub use error::PullError;
pub use folder::FolderCopy;
pub use postgres::PostgresCopy;
pub use sqlite::SqliteCopy;
pub use target::{Events, PullTarget};
