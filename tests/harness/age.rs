//! Time that passes: what is committed is moved into the past. The library gives a commit the present time and has no
//! other clock, so this rewrites the rows of the table `commits` (their form is told in `store::format::tables`).

use std::time::Duration;

use medfeed::model::Timestamp;
use medfeed::store::Writer;
use redb::{ConcurrencyMode, Database, ReadableTable, TableDefinition};

use super::World;

const COMMITS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("commits");
const HASH_LEN: usize = 16;

/// A commit: time, lineage, first and last seq, totals and times of the datasets' last changes, seq of the references' last
/// one, counts, who, what.
type Commit =
    (Timestamp, [u8; 16], u64, u64, [u64; 2], [Option<Timestamp>; 2], u64, (u64, u64, u64, u64, u64), String, String);

impl World {
    /// Lets so many seconds pass since everything that was committed.
    pub fn pass_s(&self, seconds: i64) {
        // No other writer is there, and the format is the present one.
        drop(Writer::open(&self.database(), Duration::from_secs(20)).unwrap());
        let mut builder = Database::builder();
        builder.set_concurrency_mode(ConcurrencyMode::SingleWriter);
        let database = builder.open(self.database()).unwrap();
        let transaction = database.begin_write().unwrap();
        {
            let mut table = transaction.open_table(COMMITS).unwrap();
            let rows: Vec<(u64, Vec<u8>)> = table
                .iter()
                .unwrap()
                .map(|row| row.map(|(seq, bytes)| (seq.value(), bytes.value().to_vec())).unwrap())
                .collect();
            for (seq, bytes) in rows {
                let mut commit: Commit = rmp_serde::from_slice(&bytes[HASH_LEN..]).unwrap();
                commit.0 = commit.0.plus_s(-seconds);
                commit.5 = commit.5.map(|time| time.map(|time| time.plus_s(-seconds)));
                let text = rmp_serde::to_vec(&commit).unwrap();
                let hash = blake3::hash(&text);
                table.insert(seq, [&hash.as_bytes()[..HASH_LEN], &text].concat().as_slice()).unwrap();
            }
        }
        transaction.commit().unwrap();
        drop(database);
        self.catch_up();
    }
}
