//! The copy in an SQL database, made for people: typed columns, link tables, a full-text index, and views.
//!
//! - [`database`]: the differences between SQLite and PostgreSQL.
//! - [`schema`]: the tables and views, and the statements that create them.
//! - [`rows`]: writes records into all of their tables.
//! - [`layout`]: creates the tables, and replaces those of another version.
//! - [`check`]: compares the derived tables with the records' JSON.
//! - [`copy`]: the copy as a [`PullTarget`](super::PullTarget).

pub mod check;
pub mod copy;
pub mod database;
pub mod dialect;
pub mod layout;
pub mod rows;
pub mod schema;

pub use copy::SqlCopy;
