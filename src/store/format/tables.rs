//! The file format: every table, its keys and its values. This page is the format's description.
//!
//! Integers in keys are redb tuples, so their order is numeric. `dataset` is [`Dataset::code`], `kind` is
//! [`ReferenceKind::code`], `license` a [`LicenseId`]. `seq` is one monotonic number for the whole database; every
//! commit takes at least one, a key's creation too. A *sealed* value is a 16-byte BLAKE3 hash and the MessagePack text
//! that it covers (`codec`): a map with the names of its fields, so that fields can be added to it (`docs/upgrading.md`).
//!
//! | table | key | value |
//! | --- | --- | --- |
//! | `meta` | name | `schema`: u32 LE; `fields`: the names in the JSON of rows (`fields`); `secret`: the 32 bytes that tokens and cursors are sealed with; `database`: the 16 bytes of the id, once published; *local*: `publish`: sealed `StoredDigest`, once published; `restored`: sealed `Head`, the last commit of what a restore replaced |
//! | `commits` | last seq of the commit | sealed `CommitRow`: time, lineage, seqs, totals, last changes, who and what. Never trimmed |
//! | `records` | (dataset, id) | the seq of the record's row in `log`: the index of `log` by id |
//! | `organizations`, `tags` | id | sealed row. The truth |
//! | `links` | (kind, ref id, dataset, id) | nothing: which records a change of one touches. Derived |
//! | `log` | (dataset, seq) | id, hash of the JSON bytes, the finished JSON: one row per live record. The truth |
//! | `feeds` | feed | sealed `FeedHead`: dataset, counts and digest of the feed's entries |
//! | `feed_entries` | (feed, seq) | id, log seq or [`TOMBSTONE`]: one row per record that the feed's licenses can see, or could. History |
//! | `feed_records` | (feed, id) | seq, log seq or [`TOMBSTONE`]: the index of `feed_entries` by id |
//! | `licenses` | license | sealed `License`, with its subscriptions to feeds |
//! | `keys` | hash of the key | sealed `KeyRecord` |
//! | `outbox` | (last seq of a commit, part) | *local*: part 0 a sealed `OutboxHeader`, then up to 1 MiB each of the commit's changes (`changes`), until they are published |
//! | `replica` | 0 | *local*: sealed `ReplicaMark`; its one row makes the file a replica |
//! | `names` | (hash of a name, dataset, id) | *local*: nothing. Derived: the records that imports compare with theirs (`names`) |
//! | `words` | (vocabulary, word) | *local*: how many records have the word, and the id of one of them, 0 if not known. Derived |
//! | `names_state` | 0 | *local*: sealed `NamesState`: the records that `names` and `words` were made from |
//!
//! A feed is *shared* by all licenses that show the same records of a dataset: its live entries stand at the log seqs of
//! their records. Or it is one license's *baseline*: how the license stood when it joined the shared feed, with entries at
//! seqs of its own, and never changed afterwards. A license's entry of a record is the shared feed's, if its seq is later
//! than when the license joined; else its baseline's (`entries`).
//!
//! What is *local* is the file's own: it goes neither to replicas nor into the digest of all rows (`digest`), and not into
//! backups. All other rows do, `schema`, `secret` and `database` too. The tables `outbox`, `replica`, `names`, `words` and
//! `names_state` are made when they are first needed; a file without them is whole.
//!
//! A record is stored once, as the JSON that answers hold. In it the ids of organizations and tags are the truth; their names
//! and other fields are derived from the tables of organizations and tags.
//!
//! What is derived can be rebuilt from the truth. Tombstones and the seqs at which records entered a license are history:
//! nothing else holds them. Rows of `feed_entries` and `feed_records` carry no hash; the feed's head has their digest.

use std::borrow::Borrow;

use redb::{Key, TableDefinition, Value};

#[cfg(doc)]
use crate::model::{Dataset, LicenseId, ReferenceKind};
use crate::store::StoreError;

/// The version of this format. It changes when the meaning of rows changes. Fields that are added to rows need no other
/// version.
pub const SCHEMA: u32 = 3;

/// The log seq of a tombstone: the record is no longer visible. No commit has seq 0.
pub const TOMBSTONE: u64 = 0;

/// The length of the hash before sealed values and beside JSON texts: 128 bits of BLAKE3.
pub const HASH_LEN: usize = 16;

/// A value of `log`: the record's id, the hash of its JSON, the JSON.
pub type LogValue<'a> = (u64, [u8; HASH_LEN], &'a [u8]);

pub const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");
pub const COMMITS: TableDefinition<u64, &[u8]> = TableDefinition::new("commits");
pub const RECORDS: TableDefinition<(u8, u64), u64> = TableDefinition::new("records");
pub const ORGANIZATIONS: TableDefinition<u64, &[u8]> = TableDefinition::new("organizations");
pub const TAGS: TableDefinition<u64, &[u8]> = TableDefinition::new("tags");
pub const LINKS: TableDefinition<(u8, u64, u8, u64), ()> = TableDefinition::new("links");
pub const LOG: TableDefinition<(u8, u64), LogValue<'static>> = TableDefinition::new("log");
pub const FEEDS: TableDefinition<u64, &[u8]> = TableDefinition::new("feeds");
pub const FEED_ENTRIES: TableDefinition<(u64, u64), (u64, u64)> = TableDefinition::new("feed_entries");
pub const FEED_RECORDS: TableDefinition<(u64, u64), (u64, u64)> = TableDefinition::new("feed_records");
pub const LICENSES: TableDefinition<u64, &[u8]> = TableDefinition::new("licenses");
pub const KEYS: TableDefinition<[u8; 32], &[u8]> = TableDefinition::new("keys");

pub const OUTBOX: TableDefinition<(u64, u32), &[u8]> = TableDefinition::new("outbox");
pub const REPLICA: TableDefinition<u8, &[u8]> = TableDefinition::new("replica");
pub const NAMES: TableDefinition<(u64, u8, u64), ()> = TableDefinition::new("names");
pub const WORDS: TableDefinition<(u8, &str), (u64, u64)> = TableDefinition::new("words");
pub const NAMES_STATE: TableDefinition<u8, &[u8]> = TableDefinition::new("names_state");

/// What bytes must be to be a key or value of a type. The engine's own decoding panics on others.
pub trait StoredType {
    /// Whether they are.
    fn fits(bytes: &[u8]) -> bool;
}

impl StoredType for &'static [u8] {
    fn fits(_bytes: &[u8]) -> bool {
        true
    }
}

impl StoredType for &'static str {
    fn fits(bytes: &[u8]) -> bool {
        std::str::from_utf8(bytes).is_ok()
    }
}

impl StoredType for LogValue<'static> {
    fn fits(bytes: &[u8]) -> bool {
        // The text takes what the id and the hash leave.
        bytes.len() >= size_of::<u64>() + HASH_LEN
    }
}

macro_rules! stored_at_fixed_width {
    ($($type:ty),*) => {$(
        impl StoredType for $type {
            fn fits(bytes: &[u8]) -> bool {
                <$type as Value>::fixed_width() == Some(bytes.len())
            }
        }
    )*};
}
stored_at_fixed_width!((), u64, (u8, u64), (u64, u32), (u64, u64), (u8, u64, u8, u64), [u8; 32]);

/// An action on tables.
pub trait TableVisitor {
    /// How it fails.
    type Error: From<StoreError>;

    /// Runs it on one.
    fn table<K, V>(&mut self, definition: TableDefinition<'static, K, V>) -> Result<(), Self::Error>
    where
        K: Key + StoredType + 'static,
        V: Value + StoredType + 'static,
        for<'a> K::SelfType<'a>: Borrow<K::SelfType<'a>>;
}

/// The tables that every file has, by their codes in changes and in the digest of all rows. A code never changes.
pub const TABLES: [&str; 12] = [
    "meta",
    "commits",
    "records",
    "organizations",
    "tags",
    "links",
    "log",
    "feeds",
    "feed_entries",
    "feed_records",
    "licenses",
    "keys",
];

/// The code of a table; `None` for local ones.
pub fn code_of(name: &str) -> Option<u8> {
    TABLES.iter().position(|other| *other == name).and_then(|code| u8::try_from(code).ok())
}

/// Runs an action on the table of a code. Returns whether there is one.
pub fn visit_table<A: TableVisitor>(code: u8, action: &mut A) -> Result<bool, A::Error> {
    match code {
        0 => action.table(META),
        1 => action.table(COMMITS),
        2 => action.table(RECORDS),
        3 => action.table(ORGANIZATIONS),
        4 => action.table(TAGS),
        5 => action.table(LINKS),
        6 => action.table(LOG),
        7 => action.table(FEEDS),
        8 => action.table(FEED_ENTRIES),
        9 => action.table(FEED_RECORDS),
        10 => action.table(LICENSES),
        11 => action.table(KEYS),
        _ => return Ok(false),
    }
    .map(|()| true)
}

/// Runs an action on all tables that every file has.
pub fn for_each_table<A: TableVisitor>(action: &mut A) -> Result<(), A::Error> {
    let mut code = 0;
    while visit_table(code, action)? {
        code += 1;
    }
    Ok(())
}

/// Whether rows of a table may be the file's own.
pub fn has_local_rows(table: u8) -> bool {
    table == META_CODE
}

/// Whether a row of a table is the file's own.
pub fn is_local(table: u8, key: &[u8]) -> bool {
    has_local_rows(table) && [META_PUBLISH, META_RESTORED].iter().any(|name| name.as_bytes() == key)
}

/// Whether a row tells of which format the rows are.
pub fn is_format(table: u8, key: &[u8]) -> bool {
    table == META_CODE && [META_SCHEMA, META_FIELDS].iter().any(|name| name.as_bytes() == key)
}

/// The code of [`META`].
const META_CODE: u8 = 0;

/// NameCollector in `meta`.
pub const META_SCHEMA: &str = "schema";
pub const META_FIELDS: &str = "fields";
pub const META_SECRET: &str = "secret";
pub const META_DATABASE: &str = "database";
pub const META_PUBLISH: &str = "publish";
pub const META_RESTORED: &str = "restored";

/// The one key in `replica`.
pub const REPLICA_KEY: u8 = 0;

/// The one key in `names_state`.
pub const NAMES_STATE_KEY: u8 = 0;

#[cfg(test)]
mod tests {
    use redb::TableHandle;

    use super::*;

    #[test]
    fn tables_stand_at_their_codes() {
        struct NameCollector(Vec<String>);
        impl TableVisitor for NameCollector {
            type Error = StoreError;

            fn table<K, V>(&mut self, definition: TableDefinition<'static, K, V>) -> Result<(), StoreError>
            where
                K: Key + StoredType + 'static,
                V: Value + StoredType + 'static,
            {
                self.0.push(definition.name().to_owned());
                Ok(())
            }
        }
        let mut names = NameCollector(Vec::new());
        for_each_table(&mut names).unwrap();
        assert_eq!(names.0, TABLES);
        for (code, name) in (0..).zip(TABLES) {
            assert_eq!(code_of(name), Some(code), "{name}");
        }
        let local = [OUTBOX.name(), REPLICA.name(), NAMES.name(), WORDS.name(), NAMES_STATE.name()];
        assert_eq!(local.map(code_of), [None; 5]);
    }

    #[test]
    fn bytes_that_fit_are_decoded() {
        // The engine decodes all of them without a panic; of those that do not fit, some would.
        let bytes: Vec<u8> = (0..40).chain([0xff]).collect();
        for length in 0..bytes.len() {
            let bytes = &bytes[..length];
            if <LogValue<'static>>::fits(bytes) {
                let (_, _, text) = <LogValue<'static>>::from_bytes(bytes);
                assert_eq!(text, &bytes[24..]);
            }
            assert_eq!(u64::fits(bytes), length == 8);
            assert_eq!(<(u8, u64, u8, u64)>::fits(bytes), length == 18);
            assert_eq!(<()>::fits(bytes), length == 0);
        }
        assert!(!<&str>::fits(&[0xff]) && <&str>::fits(b"schema"));
    }
}
