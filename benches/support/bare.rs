//! The finished rows of a database, and their insertion into an empty redb file: what an import cannot be faster than.

use std::ops::Bound;
use std::path::Path;

use redb::{Builder, ConcurrencyMode, Database, ReadableDatabase, ReadableTable, TableDefinition};

type LogKey = (u8, u64);
type FeedKey = (u64, u64);
type FeedValue = (u64, u64);
type Hash = [u8; 16];

// The shapes of the tables that an import writes, as the file format has them.
const COMMITS: TableDefinition<u64, &[u8]> = TableDefinition::new("commits");
const RECORDS: TableDefinition<(u8, u64), u64> = TableDefinition::new("records");
const ORGANIZATIONS: TableDefinition<u64, &[u8]> = TableDefinition::new("organizations");
const TAGS: TableDefinition<u64, &[u8]> = TableDefinition::new("tags");
const LINKS: TableDefinition<(u8, u64, u8, u64), ()> = TableDefinition::new("links");
const LOG: TableDefinition<LogKey, (u64, Hash, &[u8])> = TableDefinition::new("log");
const FEEDS: TableDefinition<u64, &[u8]> = TableDefinition::new("feeds");
const FEED_ENTRIES: TableDefinition<FeedKey, FeedValue> = TableDefinition::new("feed_entries");
const FEED_RECORDS: TableDefinition<FeedKey, FeedValue> = TableDefinition::new("feed_records");

/// The page cache of the bare file, in bytes: that of a writing command.
const CACHE_BYTES: usize = 256 << 20;

/// The rows of every table that an import writes, sorted.
#[derive(Debug)]
pub struct FinishedRows {
    commits: Vec<(u64, Vec<u8>)>,
    records: Vec<((u8, u64), u64)>,
    organizations: Vec<(u64, Vec<u8>)>,
    tags: Vec<(u64, Vec<u8>)>,
    links: Vec<((u8, u64, u8, u64), ())>,
    log: Vec<(LogKey, LogRow)>,
    feeds: Vec<(u64, Vec<u8>)>,
    feed_entries: Vec<(FeedKey, FeedValue)>,
    feed_records: Vec<(FeedKey, FeedValue)>,
}

#[derive(Debug)]
struct LogRow {
    id: u64,
    hash: Hash,
    json: Vec<u8>,
}

impl LogRow {
    fn value(&self) -> (u64, Hash, &[u8]) {
        (self.id, self.hash, &self.json)
    }
}

fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_concurrency_mode(ConcurrencyMode::SingleWriter);
    builder.set_cache_size(CACHE_BYTES);
    builder
}

// Macros, since functions over any table's types would be longer than what they replace.

/// All rows of a table, each value turned into what is kept of it.
macro_rules! read {
    ($transaction:ident, $table:ident, $keep:expr) => {{
        let table = $transaction.open_table($table).expect("the finished table opens");
        let rows = table.iter().expect("the finished table can be read");
        rows.map(|row| {
            let (key, value) = row.expect("the finished row can be read");
            (key.value(), $keep(value.value()))
        })
        .collect()
    }};
}

/// Appends rows to an empty table.
macro_rules! append {
    ($transaction:ident, $table:ident, $rows:expr, $value:expr) => {{
        let mut table = $transaction.open_table($table).expect("the table opens");
        let mut cursor = table.upper_bound_mut(Bound::Unbounded::<&_>).expect("the table has an end");
        for (key, value) in $rows {
            cursor.insert_before(*key, $value(value)).expect("the row is inserted");
        }
        cursor.close().expect("the rows are in their order");
    }};
}

impl FinishedRows {
    /// Takes the rows out of a database.
    pub fn of(path: &Path) -> FinishedRows {
        let database = builder().open_read_only(path).expect("the finished database opens");
        let transaction = database.begin_read().expect("the finished database can be read");
        FinishedRows {
            commits: read!(transaction, COMMITS, <[u8]>::to_vec),
            records: read!(transaction, RECORDS, |seq| seq),
            organizations: read!(transaction, ORGANIZATIONS, <[u8]>::to_vec),
            tags: read!(transaction, TAGS, <[u8]>::to_vec),
            links: read!(transaction, LINKS, |()| ()),
            log: read!(transaction, LOG, |(id, hash, json): (u64, Hash, &[u8])| LogRow {
                id,
                hash,
                json: json.to_vec()
            }),
            feeds: read!(transaction, FEEDS, <[u8]>::to_vec),
            feed_entries: read!(transaction, FEED_ENTRIES, |value| value),
            feed_records: read!(transaction, FEED_RECORDS, |value| value),
        }
    }

    /// How many rows there are.
    pub fn count(&self) -> usize {
        let small = self.commits.len() + self.organizations.len() + self.tags.len() + self.links.len();
        let feeds = self.feeds.len() + self.feed_entries.len() + self.feed_records.len();
        small + self.records.len() + self.log.len() + feeds
    }

    /// Inserts the rows into an empty database, each table in its order, and commits as the store commits.
    pub fn insert_into(&self, database: &Database) {
        let mut transaction = database.begin_write().expect("the write transaction begins");
        transaction.set_quick_repair(true);
        append!(transaction, COMMITS, &self.commits, Vec::as_slice);
        append!(transaction, RECORDS, &self.records, |seq: &u64| *seq);
        append!(transaction, ORGANIZATIONS, &self.organizations, Vec::as_slice);
        append!(transaction, TAGS, &self.tags, Vec::as_slice);
        append!(transaction, LINKS, &self.links, |value: &()| *value);
        append!(transaction, LOG, &self.log, LogRow::value);
        append!(transaction, FEEDS, &self.feeds, Vec::as_slice);
        append!(transaction, FEED_ENTRIES, &self.feed_entries, |value: &FeedValue| *value);
        append!(transaction, FEED_RECORDS, &self.feed_records, |value: &FeedValue| *value);
        transaction.commit().expect("the rows are committed");
    }
}

/// An empty redb database.
pub fn create(path: &Path) -> Database {
    builder().create(path).expect("the bare database is created")
}
