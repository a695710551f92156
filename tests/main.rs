//! Tests of the contract. Most use the library, without sockets, sleeps or a clock other than the tests' own. Tests of
//! the things that users run use the real program, with a real file and real sockets.
//!
//! In reading order:
//! - `cases`: tables of cases, in the unit tests too.
//! - `harness`: a database in a temporary folder with a service over it; every answer passes one central check.
//! - `routes`: in the order of the URL tree, then tests across all routes.
//! - `properties`: rules that hold for any world and any sequence of edits.
//! - `power`: the database after power losses.
//! - `process`: the program itself: commands, servers, signals, killed imports.
//! - `browser`: the explorer in a real browser, where there is one.
//! - `explorer`: the explorer's model, by Node where there is one.
//! - `sources`: the program's own sources, as `layers` (the modules that each module may use) and `circles` (no files use
//!   each other) read them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "long runs print their counts, and skipped tests the reason"
)]

#[macro_use]
mod cases;

mod browser;
mod circles;
mod explorer;
mod harness;
mod layers;
mod power;
mod process;
mod properties;
mod routes;
mod sources;
