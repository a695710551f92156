//! The file format: every table, its keys and its values. This page is the format's description.
//!
//! Integers in keys are redb tuples, so their order is numeric. `dataset` is [`Dataset::code`], `kind` is
//! [`ReferenceKind::code`], `license` a [`LicenseId`]. `seq` is one monotonic number for the whole database; every
//! commit takes at least one, a key's creation too. A *sealed* value is a 16-byte BLAKE3 hash and the MessagePack text
//! that it covers (`codec`).
//!
//! | table | key | value |
//! | --- | --- | --- |
//! | `meta` | name | `schema`: u32 LE; `secret`: the 32 bytes that tokens and cursors are sealed with |
//! | `commits` | last seq of the commit | sealed `CommitRow`: time, lineage, first seq, totals, last changes. Never trimmed |
//! | `removals` | (dataset, seq) | id: the records that commits removed. Never trimmed |
//! | `records` | (dataset, id) | sealed `RecordRow`: the curated record with links by id, seq, updated_at. The truth |
//! | `organizations`, `tags` | id | sealed row. The truth |
//! | `links` | (kind, ref id, dataset, id) | nothing: which records a change of one touches. Derived |
//! | `log` | (dataset, seq) | id, hash of the JSON bytes, the finished JSON: one row per live record. Derived |
//! | `feed` | (feed, dataset, seq) | id, whether it is live: one row per record that licenses of one rule can see, at its log seq, or could since one of them came, at the seq at which it left. History |
//! | `feed_records` | (feed, dataset, id) | seq, whether it is live: the index of `feed` by id |
//! | `license_feed` | (license, dataset, seq) | id, the record's log seq or [`GONE`]: how a license stood when it came to the feed that it follows. History |
//! | `license_records` | (license, dataset, id) | seq, log seq or [`GONE`]: the index of `license_feed` by id |
//! | `licenses` | license | sealed `License`, with the feeds that it follows |
//! | `keys` | hash of the key | sealed `KeyRecord` |
//!
//! A license's entry of a record is the row of the feed that it follows, if its seq is later than when the license came;
//! else its own row (`entries`).
//!
//! What is derived can be rebuilt from the truth. Gone rows and the seqs at which records entered a license are
//! history: nothing else holds them.

use redb::TableDefinition;

#[cfg(doc)]
use crate::model::{Dataset, LicenseId, ReferenceKind};

/// The version of this format, of how rows are encoded and of how JSON is rendered. A file with a larger one is
/// refused untouched.
pub const SCHEMA: u32 = 1;

/// Stands for a log seq where the record is gone from the license. No commit has seq 0.
pub const GONE: u64 = 0;

/// The length of the hash before sealed values and beside JSON texts: 128 bits of BLAKE3.
pub const HASH_LEN: usize = 16;

/// A value of `log`: the record's id, the hash of its JSON, the JSON.
pub type LogValue<'a> = (u64, [u8; HASH_LEN], &'a [u8]);

pub const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");
pub const COMMITS: TableDefinition<u64, &[u8]> = TableDefinition::new("commits");
pub const REMOVALS: TableDefinition<(u8, u64), u64> = TableDefinition::new("removals");
pub const RECORDS: TableDefinition<(u8, u64), &[u8]> = TableDefinition::new("records");
pub const ORGANIZATIONS: TableDefinition<u64, &[u8]> = TableDefinition::new("organizations");
pub const TAGS: TableDefinition<u64, &[u8]> = TableDefinition::new("tags");
pub const LINKS: TableDefinition<(u8, u64, u8, u64), ()> = TableDefinition::new("links");
pub const LOG: TableDefinition<(u8, u64), LogValue<'static>> = TableDefinition::new("log");
pub const FEED: TableDefinition<(u64, u8, u64), (u64, bool)> = TableDefinition::new("feed");
pub const FEED_RECORDS: TableDefinition<(u64, u8, u64), (u64, bool)> = TableDefinition::new("feed_records");
pub const LICENSE_FEED: TableDefinition<(u64, u8, u64), (u64, u64)> = TableDefinition::new("license_feed");
pub const LICENSE_RECORDS: TableDefinition<(u64, u8, u64), (u64, u64)> = TableDefinition::new("license_records");
pub const LICENSES: TableDefinition<u64, &[u8]> = TableDefinition::new("licenses");
pub const KEYS: TableDefinition<[u8; 32], &[u8]> = TableDefinition::new("keys");

/// Names in `meta`.
pub const META_SCHEMA: &str = "schema";
pub const META_SECRET: &str = "secret";
