//! Rows as bytes: MessagePack behind a hash that is checked when the row is read, since redb checks none.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[cfg(doc)]
use crate::model::Dataset;
use crate::model::{Curated, Fields, Timestamp};
use crate::store::StoreError;
use crate::store::format::tables::HASH_LEN;

/// A hash of bytes: 128 bits of BLAKE3.
pub type Hash = [u8; HASH_LEN];

/// The hash of bytes.
pub fn hash(bytes: &[u8]) -> Hash {
    let mut short = [0; HASH_LEN];
    short.copy_from_slice(&blake3::hash(bytes).as_bytes()[..HASH_LEN]);
    short
}

/// The largest difference, in seconds, between the clocks of writing machines that goes unreported.
pub const CLOCK_TOLERANCE_S: i64 = 120;

/// A commit, in table `commits`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct CommitRow {
    /// When its writing began; never before an earlier commit's.
    pub time: Timestamp,
    /// A random value that tells this commit from one of another history with the same seq.
    pub lineage: [u8; 16],
    /// The first seq of the commit.
    pub first_seq: u64,
    /// The last seq of the commit, which is its key too.
    pub last_seq: u64,
    /// How many records each dataset holds after it, in the order of [`Dataset::ALL`].
    pub records: [u64; 2],
    /// When each dataset's content last changed.
    pub changed_at: [Option<Timestamp>; 2],
    /// The last seq of the commit that last changed an organization or tag; 0 before the first.
    pub references_seq: u64,
    /// How many rows other tables hold after it.
    pub counts: TableCounts,
    /// Who made it.
    pub who: String,
    /// What was done, in words.
    pub what: String,
}

/// The row counts of the tables that are always read whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named as the tables")]
pub(in crate::store) struct TableCounts {
    pub organizations: u64,
    pub tags: u64,
    pub licenses: u64,
    pub keys: u64,
    pub feeds: u64,
}

/// Decodes a row of `commits` and checks its seqs against its key.
pub(in crate::store) fn unseal_commit(key: u64, bytes: &[u8]) -> Result<CommitRow, StoreError> {
    let row: CommitRow = unseal("commits", bytes)?;
    if row.last_seq != key || !(1..=row.last_seq).contains(&row.first_seq) {
        let detail = format!("the row of seq {key} is of {}..={}", row.first_seq, row.last_seq);
        return Err(StoreError::damaged("commits", detail));
    }
    Ok(row)
}

/// Fails if a table holds another number of rows than the last commit says.
pub(in crate::store) fn expect_count(table: &'static str, found: usize, counted: u64) -> Result<(), StoreError> {
    if u64::try_from(found).is_ok_and(|found| found == counted) {
        return Ok(());
    }
    Err(StoreError::damaged(table, format!("it holds {found} rows, the last commit counts {counted}")))
}

/// A record, in table `records`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "F: Fields")]
pub(in crate::store) struct RecordRow<F> {
    /// The seq of its `log` row.
    pub seq: u64,
    /// When its content last changed.
    pub updated_at: Timestamp,
    /// The record.
    pub record: Curated<F>,
}

/// The sealed bytes of a value.
pub(in crate::store) fn seal<T: Serialize>(value: &T) -> Result<Vec<u8>, StoreError> {
    let mut bytes = vec![0; HASH_LEN];
    rmp_serde::encode::write(&mut bytes, value).map_err(|error| StoreError::damaged("(new row)", error.to_string()))?;
    let hash = hash(&bytes[HASH_LEN..]);
    bytes[..HASH_LEN].copy_from_slice(&hash);
    Ok(bytes)
}

/// The value of sealed bytes.
pub(in crate::store) fn unseal<T: DeserializeOwned>(table: &'static str, bytes: &[u8]) -> Result<T, StoreError> {
    let (stored, text) =
        bytes.split_first_chunk::<HASH_LEN>().ok_or_else(|| StoreError::damaged(table, "a row is cut short"))?;
    if *stored != hash(text) {
        return Err(StoreError::damaged(table, "a row does not match its hash"));
    }
    rmp_serde::from_slice(text).map_err(|error| StoreError::damaged(table, error.to_string()))
}
