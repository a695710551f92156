//! medfeed: a licensed feed of medical conference and journal records.
//!
//! The work happens when data is written. Every read is a short range scan of an index, on an immutable snapshot.
//! ARCHITECTURE.md explains the design. The modules, in reading order:
//!
//! - [`model`]: the plain types and their rules.
//! - [`disk`]: durable files, observable by tests of power losses.
//! - [`store`]: the database file: one writer, any number of readers.
//! - [`view`]: a license's view of a snapshot, the only access to records.
//! - [`token`]: sync tokens and cursors.
//! - [`query`]: lists, the feed, reference lists and exports of a view.
//! - [`bucket`]: objects in an object store or a folder.
//! - [`replicate`]: publishes a database to a bucket, and follows it from there.
//! - [`contract`]: endpoints, parameters and error codes, declared once.
//! - [`docs`]: the documentation pages.
//! - [`explorer`]: the page at `/` that shows the records of a license.
//! - [`api`]: the endpoints as plain functions.
//! - [`serve`]: sockets, connections, and polls of the file.
//! - [`transport`]: outgoing HTTP requests, and TLS settings.
//! - [`import`]: reads curated files, validates them, and writes them to the database.
//! - [`pull`]: a customer's copy, kept over HTTP.
//! - [`cli`]: the command line.

#[cfg(test)]
#[macro_use]
#[path = "../tests/cases.rs"]
mod cases;

pub mod api;
pub mod bucket;
pub mod cli;
pub mod contract;
pub mod disk;
pub mod docs;
pub mod explorer;
pub mod import;
pub mod model;
pub mod pull;
pub mod query;
pub mod replicate;
pub mod serve;
pub mod store;
pub mod token;
pub mod transport;
pub mod view;
