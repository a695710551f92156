//! Moves commits into the past, also those of the program, which has no clock but the real one. This rewrites the rows
//! of the table `commits` (`store::format::tables` describes them).

use std::collections::BTreeMap;
use std::time::Duration;

use medfeed::model::{PerDataset, Timestamp};
use medfeed::store::Writer;
use redb::{ConcurrencyMode, Database, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::World;

const COMMITS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("commits");
const HASH_LEN: usize = 16;

/// A commit: a map of named values, of which these two are times.
#[derive(Serialize, Deserialize)]
struct Commit {
    time: Timestamp,
    changed_at: PerDataset<Option<Timestamp>>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

impl World {
    /// Moves all commits into the past by `seconds`.
    pub fn pass_s(&self, seconds: i64) {
        // The format is the present one, and no other process writes.
        drop(Writer::open(&self.database(), Duration::from_secs(20)).unwrap());
        let mut builder = Database::builder();
        builder.set_concurrency_mode(ConcurrencyMode::SingleWriter);
        let database = builder.open(self.database()).unwrap();
        let transaction = database.begin_write().unwrap();
        {
            let mut table = transaction.open_table(COMMITS).unwrap();
            let rows = table.iter().unwrap().map(|row| {
                row.map(|(seq, bytes)| (seq.value(), bytes.value().to_vec()))
                    .unwrap()
            });
            let rows: Vec<(u64, Vec<u8>)> = rows.collect();
            for (seq, bytes) in rows {
                let mut commit: Commit = rmp_serde::from_slice(&bytes[HASH_LEN..]).unwrap();
                commit.time = commit.time.plus_s(-seconds);
                commit.changed_at = PerDataset::of(|dataset| {
                    commit.changed_at[dataset].map(|time| time.plus_s(-seconds))
                });
                let text = rmp_serde::to_vec_named(&commit).unwrap();
                let hash = blake3::hash(&text);
                table
                    .insert(
                        seq,
                        [&hash.as_bytes()[..HASH_LEN], &text].concat().as_slice(),
                    )
                    .unwrap();
            }
        }
        transaction.commit().unwrap();
        drop(database);
        self.catch_up();
    }
}
