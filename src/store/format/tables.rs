//! The file format: all tables with their keys and values.
//!
//! Integers in keys are redb tuples, so their order is numeric. `dataset` is [`Dataset::code`], `kind` is
//! [`ReferenceKind::code`], `license` is a [`LicenseId`]. `seq` is one number for the whole database that only grows.
//! Every commit takes at least one seq.
//!
//! A *sealed* value is a 16-byte BLAKE3 hash and the MessagePack bytes that it covers (`rows`). They encode a map with
//! the names of its fields, so that fields can be added (`docs/upgrading.md`).
//!
//! | table | key | value |
//! | --- | --- | --- |
//! | `meta` | name | `schema`: u32 LE; `fields`: the names of the fields in the JSON of rows; `secret`: the sealed key of tokens and cursors, 32 bytes; `database`: the id, 16 bytes, if ever published; *local*: `publish`: sealed `RowDigest` of all rows, if published; `restored`: sealed `Head`, the last commit of the database that a restore replaced |
//! | `commits` | last seq of the commit | sealed `StoredCommit`: time, lineage, seqs, totals, last changes, user and description; optional: what an import changed, a note. Never deleted |
//! | `records` | (dataset, id) | the seq of the record in `log`: the index of `log` by id |
//! | `organizations`, `tags` | id | sealed row. Source |
//! | `links` | (kind, ref id, dataset, id) | nothing: the records that link to an organization or tag. Derived |
//! | `log` | (dataset, seq) | id, hash of the JSON, JSON: one row per live record. Source |
//! | `feeds` | feed | sealed `FeedSum`: dataset, counts and digest of the feed's entries |
//! | `feed_entries` | (feed, seq) | id, log seq or [`TOMBSTONE`]: one row per record that the feed's licenses can see, or could see once. History |
//! | `feed_records` | (feed, id) | seq, log seq or [`TOMBSTONE`]: the index of `feed_entries` by id |
//! | `licenses` | license | sealed `License`, with its subscriptions to feeds |
//! | `keys` | hash of the key | sealed `KeyRecord` |
//! | `outbox` | (last seq of a commit, part) | *local*: part 0 is a sealed `OutboxHeader`; the others are the commit's changes (`changes`), up to 1 MiB each. Until they are published |
//! | `replica` | 0 | *local*: sealed `ReplicaMark`. This row makes the file a replica |
//!
//! A feed is *shared* by all licenses that show the same records of a dataset. Its live entries have the log seqs of
//! their records. Each other feed is the *baseline* of one license: its entries when it joined a shared feed. They have
//! seqs of their own and never change. A license's entry of a record is the one of the shared feed if that is later than
//! the joining, or else the one of the baseline (`feed_index`).
//!
//! *Local* rows are not part of replicas, backups and the digest of all rows (`RowDigest`). All other rows are. The tables
//! `outbox` and `replica` are created when needed.
//!
//! *Derived* rows can be rebuilt from *source* rows. In a record's JSON, the ids of organizations and tags are source;
//! their other fields are derived. *History* is stored nowhere else: tombstones, and the seqs at which records entered
//! a license. Rows of `feed_entries` and `feed_records` have no hash. The row of the feed has their sum.

use std::ops::RangeInclusive;

use redb::{TableDefinition, TableHandle, Value};

#[cfg(doc)]
use crate::model::{Dataset, LicenseId, ReferenceKind};

/// The version of this format. It changes if the meaning of rows changes, but not for added fields. No release wrote
/// formats before this one.
pub const SCHEMA: u32 = 5;

/// The log seq of a tombstone. No commit has seq 0.
pub const TOMBSTONE: u64 = 0;

/// The length of the hash before sealed values and of JSON: 128 bits of BLAKE3.
pub const HASH_LEN: usize = 16;

/// A value of `log`: the record's id, the hash of its JSON, and its JSON.
pub type LogValue<'a> = (u64, [u8; HASH_LEN], &'a [u8]);

pub const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");
pub const COMMITS: TableDefinition<u64, &[u8]> = TableDefinition::new("commits");
pub const RECORDS: TableDefinition<(u8, u64), u64> = TableDefinition::new("records");
pub const ORGANIZATIONS: TableDefinition<u64, &[u8]> = TableDefinition::new("organizations");
pub const TAGS: TableDefinition<u64, &[u8]> = TableDefinition::new("tags");
pub const LINKS: TableDefinition<(u8, u64, u8, u64), ()> = TableDefinition::new("links");
pub const LOG: TableDefinition<(u8, u64), LogValue<'static>> = TableDefinition::new("log");
pub const FEEDS: TableDefinition<u64, &[u8]> = TableDefinition::new("feeds");
pub const FEED_ENTRIES: TableDefinition<(u64, u64), (u64, u64)> =
    TableDefinition::new("feed_entries");
pub const FEED_RECORDS: TableDefinition<(u64, u64), (u64, u64)> =
    TableDefinition::new("feed_records");
pub const LICENSES: TableDefinition<u64, &[u8]> = TableDefinition::new("licenses");
pub const KEYS: TableDefinition<[u8; 32], &[u8]> = TableDefinition::new("keys");

pub const OUTBOX: TableDefinition<(u64, u32), &[u8]> = TableDefinition::new("outbox");
pub const REPLICA: TableDefinition<u8, &[u8]> = TableDefinition::new("replica");

/// The keys that begin with a dataset's code or a feed's number, from a second part on.
pub fn keys_from<T: Copy>(first: T, second: u64) -> RangeInclusive<(T, u64)> {
    (first, second)..=(first, u64::MAX)
}

/// Whether bytes can be decoded as a type of keys or values. redb's own decoding panics on others.
pub fn fits<T: Value>(bytes: &[u8]) -> bool {
    match T::fixed_width() {
        Some(width) => bytes.len() == width,
        None if T::type_name() == <&str>::type_name() => std::str::from_utf8(bytes).is_ok(),
        // The JSON takes the rest, of any length.
        None if T::type_name() == LogValue::type_name() => {
            bytes.len() >= size_of::<u64>() + HASH_LEN
        }
        None => T::type_name() == <&[u8]>::type_name(),
    }
}

/// Runs code on the table that has a code; `None` if there is none. All files have these tables. Codes are stored in
/// changes and digests, so they never change.
macro_rules! on_table {
    ($code:expr, $table:ident => $run:expr) => {
        on_table!($code, $table => $run,
            0 META, 1 COMMITS, 2 RECORDS, 3 ORGANIZATIONS, 4 TAGS, 5 LINKS, 6 LOG, 7 FEEDS, 8 FEED_ENTRIES,
            9 FEED_RECORDS, 10 LICENSES, 11 KEYS)
    };
    ($code:expr, $table:ident => $run:expr, $($of:literal $name:ident),*) => {
        match $code {
            $($of => {
                let $table = $crate::store::format::tables::$name;
                Some($run)
            })*
            _ => None,
        }
    };
}
pub(crate) use on_table;

/// The number of tables that have codes.
pub const CODED_TABLES: u8 = 12;

/// The code of a table; `None` for local tables.
pub fn code_of(name: &str) -> Option<u8> {
    (0..CODED_TABLES).find(|code| on_table!(code, table => table.name() == name) == Some(true))
}

pub fn is_local(table: u8, key: &[u8]) -> bool {
    table == META_CODE && META_LOCAL.iter().any(|name| name.as_bytes() == key)
}

/// The code of the only coded table that can have local rows.
pub const META_CODE: u8 = 0;

/// Keys of `meta`.
pub const META_SCHEMA: &str = "schema";
pub const META_FIELDS: &str = "fields";
pub const META_SECRET: &str = "secret";
pub const META_DATABASE: &str = "database";
pub const META_PUBLISH: &str = "publish";
pub const META_RESTORED: &str = "restored";
/// The keys of local rows.
pub const META_LOCAL: [&str; 2] = [META_PUBLISH, META_RESTORED];

/// The only key of `replica`.
pub const REPLICA_KEY: u8 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_has_a_fixed_code() {
        let names = words![
            "meta" "commits" "records" "organizations" "tags" "links" "log" "feeds" "feed_entries"
            "feed_records" "licenses" "keys"
        ];
        assert_eq!(names.len(), usize::from(CODED_TABLES));
        for (code, name) in (0..).zip(names) {
            assert_eq!(code_of(name), Some(code), "{name}");
        }
        assert!(on_table!(CODED_TABLES, _table => ()).is_none());
        assert_eq!([OUTBOX.name(), REPLICA.name()].map(code_of), [None; 2]);
    }

    #[test]
    fn valid_bytes_are_decoded() {
        // redb decodes these without a panic.
        let bytes: Vec<u8> = (0..40).chain([0xff]).collect();
        for length in 0..bytes.len() {
            let bytes = &bytes[..length];
            assert_eq!(fits::<LogValue<'static>>(bytes), length >= 24);
            assert!(fits::<&[u8]>(bytes));
            if length >= 24 {
                let (_, _, text) = <LogValue<'static>>::from_bytes(bytes);
                assert_eq!(text, &bytes[24..]);
            }
            assert_eq!(fits::<u64>(bytes), length == 8);
            assert_eq!(fits::<(u8, u64, u8, u64)>(bytes), length == 18);
            assert_eq!(fits::<()>(bytes), length == 0);
        }
        assert!(!fits::<&str>(&[0xff]) && fits::<&str>(b"schema"));
        assert!(!fits::<String>(b"schema"), "a type that no table has");
    }
}
