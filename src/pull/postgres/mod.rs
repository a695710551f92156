//! The copy in a PostgreSQL database, with the tables and views that [`super::sqlite`] has: a schema of its own.
//!
//! - [`address`]: the URL of a copy, and how it is connected to.
//! - [`password`]: passwords, from where `psql` takes them.
//! - [`failure`]: errors, by what can be done about them.
//! - [`session`]: a connection that holds the copy's lock.
//! - [`schema`]: the tables and views.
//! - [`rows`]: writing a batch of records into all of their tables.
//! - [`open`]: which schemas are taken.
//! - [`check`]: comparing what is derived from the records with them.
//! - [`copy`]: the copy as a [`Target`](super::Target).

pub mod address;
pub mod check;
pub mod copy;
pub mod failure;
pub mod open;
pub mod password;
pub mod rows;
pub mod schema;
pub mod session;

pub use address::Address;
pub use copy::PostgresCopy;
