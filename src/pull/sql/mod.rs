//! The copy in an SQL database, made for people: typed columns, link tables, a full-text index, and views.
//!
//! - [`database`]: the differences between SQLite and PostgreSQL.
//! - [`views`]: the queries of the views.
//! - [`schema`]: the tables, and the statements that create them.
//! - [`rows`]: writing records into all of their tables.
//! - [`layout`]: creates the tables, and replaces those of another version.
//! - [`load`]: makes the records equal to those of an export.
//! - [`check`]: compares everything that is derived from the records with them.
//! - [`copy`]: the copy as a [`Target`](super::Target).

pub mod check;
pub mod copy;
pub mod database;
pub mod layout;
pub mod load;
pub mod rows;
pub mod schema;
pub mod views;

pub use copy::SqlCopy;
