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
//! | `commits` | last seq of the commit | sealed `CommitRow`: time, lineage, seqs, totals, last changes, who and what. Never trimmed |
//! | `records` | (dataset, id) | sealed `RecordRow`: the curated record with links by id, seq, updated_at. The truth |
//! | `organizations`, `tags` | id | sealed row. The truth |
//! | `links` | (kind, ref id, dataset, id) | nothing: which records a change of one touches. Derived |
//! | `log` | (dataset, seq) | id, hash of the JSON bytes, the finished JSON: one row per live record. Derived |
//! | `feeds` | feed | sealed `FeedHead`: dataset, counts and digest of the feed's entries |
//! | `feed_entries` | (feed, seq) | id, log seq or [`TOMBSTONE`]: one row per record that the feed's licenses can see, or could. History |
//! | `feed_records` | (feed, id) | seq, log seq or [`TOMBSTONE`]: the index of `feed_entries` by id |
//! | `licenses` | license | sealed `License`, with its subscriptions to feeds |
//! | `keys` | hash of the key | sealed `KeyRecord` |
//!
//! A feed is *shared* by all licenses that show the same records of a dataset: its live entries stand at the log seqs of
//! their records. Or it is one license's *baseline*: how the license stood when it joined the shared feed, with entries at
//! seqs of its own, and never changed afterwards. A license's entry of a record is the shared feed's, if its seq is later
//! than when the license joined; else its baseline's (`entries`).
//!
//! What is derived can be rebuilt from the truth. Tombstones and the seqs at which records entered a license are history:
//! nothing else holds them. Rows of `feed_entries` and `feed_records` carry no hash; the feed's head has their digest.

use std::borrow::Borrow;

use redb::{Key, TableDefinition, Value};

#[cfg(doc)]
use crate::model::{Dataset, LicenseId, ReferenceKind};
use crate::store::StoreError;

/// The version of this format, of how rows are encoded and of how JSON is rendered. Files of another version are refused
/// untouched.
pub const SCHEMA: u32 = 2;

/// The log seq of a tombstone: the record is no longer visible. No commit has seq 0.
pub const TOMBSTONE: u64 = 0;

/// The length of the hash before sealed values and beside JSON texts: 128 bits of BLAKE3.
pub const HASH_LEN: usize = 16;

/// A value of `log`: the record's id, the hash of its JSON, the JSON.
pub type LogValue<'a> = (u64, [u8; HASH_LEN], &'a [u8]);

pub const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");
pub const COMMITS: TableDefinition<u64, &[u8]> = TableDefinition::new("commits");
pub const RECORDS: TableDefinition<(u8, u64), &[u8]> = TableDefinition::new("records");
pub const ORGANIZATIONS: TableDefinition<u64, &[u8]> = TableDefinition::new("organizations");
pub const TAGS: TableDefinition<u64, &[u8]> = TableDefinition::new("tags");
pub const LINKS: TableDefinition<(u8, u64, u8, u64), ()> = TableDefinition::new("links");
pub const LOG: TableDefinition<(u8, u64), LogValue<'static>> = TableDefinition::new("log");
pub const FEEDS: TableDefinition<u64, &[u8]> = TableDefinition::new("feeds");
pub const FEED_ENTRIES: TableDefinition<(u64, u64), (u64, u64)> = TableDefinition::new("feed_entries");
pub const FEED_RECORDS: TableDefinition<(u64, u64), (u64, u64)> = TableDefinition::new("feed_records");
pub const LICENSES: TableDefinition<u64, &[u8]> = TableDefinition::new("licenses");
pub const KEYS: TableDefinition<[u8; 32], &[u8]> = TableDefinition::new("keys");

/// An action on every table.
pub trait EachTable {
    /// Runs it on one.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    fn table<K, V>(&mut self, definition: TableDefinition<'static, K, V>) -> Result<(), StoreError>
    where
        K: Key + 'static,
        V: Value + 'static,
        for<'a> K::SelfType<'a>: Borrow<K::SelfType<'a>>;
}

/// Runs an action on all tables.
///
/// # Errors
/// The first failure.
pub fn for_each_table(action: &mut impl EachTable) -> Result<(), StoreError> {
    action.table(META)?;
    action.table(COMMITS)?;
    action.table(RECORDS)?;
    action.table(ORGANIZATIONS)?;
    action.table(TAGS)?;
    action.table(LINKS)?;
    action.table(LOG)?;
    action.table(FEEDS)?;
    action.table(FEED_ENTRIES)?;
    action.table(FEED_RECORDS)?;
    action.table(LICENSES)?;
    action.table(KEYS)
}

/// Names in `meta`.
pub const META_SCHEMA: &str = "schema";
pub const META_SECRET: &str = "secret";
