//! The copy as an SQLite file, made for people: typed columns, link tables, a full-text index, and views.
//!
//! - [`schema`]: the tables and views.
//! - [`failure`]: errors, by what can be done about them.
//! - [`rows`]: writing a record into all of its tables.
//! - [`magic`]: recognizes SQLite files.
//! - [`open`]: which files are taken, and for whom they are kept.
//! - [`check`]: comparing what is derived from the records with them.
//! - [`copy`]: the copy as a [`Target`](super::Target).

pub mod check;
pub mod copy;
pub mod failure;
pub mod magic;
pub mod open;
pub mod rows;
pub mod schema;

pub use copy::SqliteCopy;
