//! The contract, tested through the library: no sockets, no sleeps, no clock but the tests' own.
//!
//! In reading order:
//! - `harness`: a database in a temporary folder with a service over it; every answer passes one central check.
//! - `routes`: laid out as the URL tree, then what goes across it.
//! - `layers`: which module may use which.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod harness;
mod layers;
mod routes;
