//! The real program: its file, its sockets, its signals.
//!
//! In reading order: `site` (a folder with a database, and commands on it), `client` (a small HTTP client), then the
//! tests, one file per theme.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "what goes wrong in a test is told by a panic")]

mod backups;
mod client;
mod commands;
mod compaction;
mod deferred;
mod demo;
mod faults;
mod first_import;
mod foreign_files;
mod https;
mod killed;
mod limits;
mod logs;
mod malformed;
mod monitoring;
mod proxies;
mod races;
mod real_lists;
mod restarts;
mod restores;
mod secrets;
mod serving;
pub mod site;
mod stopping;
mod usage;
mod waiting;
