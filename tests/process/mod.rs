//! The real program: its file, its sockets, its signals.
//!
//! In reading order: `site` (a folder with a database, and commands on it), `client` (a small HTTP client), `s3` (an object
//! store), then the tests, one file per theme.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "what goes wrong in a test is told by a panic")]

#[cfg(feature = "bucket")]
mod added_fields;
#[cfg(feature = "bucket")]
mod after_publish;
mod answer_faults;
mod answer_memory;
mod backups;
#[cfg(feature = "bucket")]
mod beliefs;
mod bounds;
mod browsers;
#[cfg(feature = "bucket")]
mod bucket_losses;
#[cfg(feature = "bucket")]
mod bucket_requests;
#[cfg(feature = "bucket")]
mod buckets;
mod caches;
pub mod client;
#[cfg(feature = "bucket")]
mod clocks;
mod commands;
mod compaction;
mod curating;
mod damage;
mod damaged_commands;
mod demo;
#[cfg(feature = "bucket")]
mod deploy_files;
mod examples;
mod exports;
mod fault_relay;
mod faults;
mod first_import;
#[cfg(feature = "bucket")]
mod fixtures;
mod foreign_files;
mod full_disks;
mod giving_way;
mod half_closed;
mod health;
mod hostile_workbooks;
mod https;
#[cfg(feature = "bucket")]
mod kill_steps;
mod killed;
mod limits;
mod links;
mod logs;
mod malformed;
mod manuals;
mod monitoring;
mod monitoring_files;
#[cfg(feature = "bucket")]
mod new_keys;
mod news;
mod operators_page;
#[cfg(feature = "bucket")]
pub mod origin;
mod other_users;
mod postgres_server;
mod promises;
#[cfg(feature = "bucket")]
mod promotion;
mod proxies;
#[cfg(feature = "bucket")]
pub mod published;
#[cfg(feature = "bucket")]
mod publishing;
#[cfg(feature = "bucket")]
mod publishing_damage;
#[cfg(feature = "bucket")]
mod publishing_doubles;
#[cfg(feature = "bucket")]
mod publishing_faults;
#[cfg(feature = "bucket")]
mod publishing_network;
#[cfg(feature = "bucket")]
mod publishing_states;
#[cfg(feature = "bucket")]
pub mod publishing_watched;
mod pull;
mod pull_accidents;
mod pull_bounds;
mod pull_copies;
mod pull_folder;
mod pull_kills;
mod pull_licenses;
mod pull_network;
mod pull_places;
mod pull_postgres;
mod pull_postgres_connections;
mod pull_proofs;
mod pull_requests;
mod pull_resuming;
mod pull_rounds;
pub mod pulled;
mod races;
mod readers;
mod readme;
mod real_lists;
mod recorded;
mod relay;
#[cfg(feature = "bucket")]
mod replica_faults;
mod replica_files;
#[cfg(feature = "bucket")]
mod replica_instants;
#[cfg(feature = "bucket")]
mod replica_kills;
#[cfg(feature = "bucket")]
mod replica_network;
#[cfg(feature = "bucket")]
mod replica_troubles;
#[cfg(feature = "bucket")]
mod replica_walks;
#[cfg(feature = "bucket")]
mod replicas;
#[cfg(feature = "bucket")]
mod replicated;
mod restarts;
mod restores;
mod resuming;
#[cfg(feature = "bucket")]
mod revocation;
#[cfg(feature = "bucket")]
pub mod s3;
mod scripted;
#[cfg(feature = "bucket")]
mod sealed_replicas;
mod secrets;
mod serving;
#[cfg(feature = "bucket")]
mod shared_replicas;
mod shell_example;
mod shown_numbers;
pub mod site;
#[cfg(feature = "bucket")]
mod soak;
mod spreadsheets;
mod stalled;
mod stopping;
mod strays;
mod terminals;
mod upgrades;
#[cfg(feature = "bucket")]
mod upgrading_replicas;
mod usage;
mod waiting;
pub mod workbook_parts;
mod workbooks;
mod wrong_commands;
