//! The real program: its file, its sockets, its signals.
//!
//! In reading order: `site` (a folder with a database, and commands on it), `client` (a small HTTP client), then the
//! tests, one file per theme.

mod client;
mod commands;
mod demo;
mod foreign_files;
mod killed;
mod malformed;
mod real_lists;
mod serving;
pub mod site;
mod stopping;
mod waiting;
