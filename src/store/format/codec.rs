//! Rows as bytes: MessagePack or JSON after a hash. Each read checks the hash, because redb verifies no checksums then.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::model::{Curated, Fields, Head, Id, PerDataset, Timestamp, json};
use crate::store::StoreError;
use crate::store::format::tables::{HASH_LEN, LogValue};

/// A hash of 128 bits of BLAKE3.
pub type ShortHash = [u8; HASH_LEN];

/// Hashes bytes.
pub fn hash(bytes: &[u8]) -> ShortHash {
    hash_under(&[], bytes)
}

/// The difference between the clocks of writing machines, in seconds, above which a warning is reported.
pub const CLOCK_TOLERANCE_S: i64 = 120;

/// A row of `commits`. The default is the state before the first commit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names explain the other fields")]
pub struct StoredCommit {
    /// The time when the transaction began; never before the time of an earlier commit.
    pub time: Timestamp,
    /// A random value. It distinguishes commits with the same seq in different histories.
    pub lineage: [u8; 16],
    pub first_seq: u64,
    pub last_seq: u64,
    /// The number of records after this commit.
    pub records: PerDataset<u64>,
    /// The last change of each dataset's content.
    pub changed_at: PerDataset<Option<Timestamp>>,
    /// The last seq of the last commit that changed an organization or tag; 0 if there is none.
    pub references_seq: u64,
    pub counts: TableCounts,
    pub who: String,
    /// May be empty.
    pub what: String,
}

impl StoredCommit {
    /// Seq, time and lineage.
    pub fn point(&self) -> CommitPoint {
        CommitPoint { seq: self.last_seq, time: self.time, lineage: self.lineage }
    }
}

/// A commit in the history: its last seq (0 before the first commit), its time and its random lineage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "described above")]
pub struct CommitPoint {
    pub seq: u64,
    pub time: Timestamp,
    pub lineage: [u8; 16],
}

impl CommitPoint {
    /// The seq and lineage, which together identify the commit.
    pub fn head(&self) -> Head {
        Head { seq: self.seq, lineage: self.lineage }
    }
}

/// The row counts of the tables that are always read whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "named as the tables")]
pub struct TableCounts {
    pub organizations: u64,
    pub tags: u64,
    pub licenses: u64,
    pub keys: u64,
    pub feeds: u64,
}

/// Decodes a row of `commits`, and compares its seqs with its key.
pub(in crate::store) fn unseal_commit(key: u64, bytes: &[u8]) -> Result<StoredCommit, StoreError> {
    let row: StoredCommit = unseal("commits", bytes)?;
    if row.last_seq != key || !(1..=row.last_seq).contains(&row.first_seq) {
        let detail = format!("the row of seq {key} is of {}..={}", row.first_seq, row.last_seq);
        return Err(StoreError::damaged("commits", detail));
    }
    Ok(row)
}

/// Fails unless a table has as many rows as the last commit counted.
pub(in crate::store) fn expect_count(table: &'static str, found: usize, counted: u64) -> Result<(), StoreError> {
    if u64::try_from(found).is_ok_and(|found| found == counted) {
        return Ok(());
    }
    Err(StoreError::damaged(table, format!("it holds {found} rows, the last commit counts {counted}")))
}

#[derive(Clone, Debug)]
pub(in crate::store) struct RecordRow<F> {
    pub seq: u64,
    /// The time of the last change of its content.
    pub updated_at: Timestamp,
    pub record: Curated<F>,
}

impl<F: Fields> RecordRow<F> {
    /// Decodes the row of `log` at a seq.
    pub fn open(seq: u64, (id, stored, text): LogValue<'_>) -> Result<RecordRow<F>, StoreError> {
        let damaged =
            |detail: String| StoreError::damaged("log", format!("the row of {} at seq {seq}: {detail}", F::STEM));
        let id = Id::try_from(id).map_err(|error| damaged(format!("id {id}: {error}")))?;
        if hash(text) != stored {
            return Err(damaged("it does not match its hash".to_owned()));
        }
        let (record, updated_at) = json::read_record(id, text).map_err(|error| damaged(error.to_string()))?;
        Ok(RecordRow { seq, updated_at, record })
    }
}

/// Serializes a value, with a hash in front.
pub(in crate::store) fn seal<T: Serialize>(value: &T) -> Result<Vec<u8>, StoreError> {
    seal_under(&[], value)
}

/// Like [`seal`], for a row whose value does not contain its key. The hash is of both.
pub(in crate::store) fn seal_under<T: Serialize>(key: &[u8], value: &T) -> Result<Vec<u8>, StoreError> {
    let mut bytes = vec![0; HASH_LEN];
    rmp_serde::encode::write_named(&mut bytes, value)
        .map_err(|error| StoreError::damaged("(new row)", error.to_string()))?;
    let hash = hash_under(key, &bytes[HASH_LEN..]);
    bytes[..HASH_LEN].copy_from_slice(&hash);
    Ok(bytes)
}

/// Hashes a row's key and its bytes.
pub(in crate::store) fn hash_under(key: &[u8], bytes: &[u8]) -> ShortHash {
    let mut short = [0; HASH_LEN];
    short.copy_from_slice(&blake3::Hasher::new().update(key).update(bytes).finalize().as_bytes()[..HASH_LEN]);
    short
}

/// Checks the hash, and deserializes the value.
pub(in crate::store) fn unseal<T: DeserializeOwned>(table: &'static str, bytes: &[u8]) -> Result<T, StoreError> {
    unseal_under(table, &[], bytes)
}

/// Like [`unseal`], for rows of [`seal_under`].
pub(in crate::store) fn unseal_under<T: DeserializeOwned>(
    table: &'static str,
    key: &[u8],
    bytes: &[u8],
) -> Result<T, StoreError> {
    let (stored, text) =
        bytes.split_first_chunk::<HASH_LEN>().ok_or_else(|| StoreError::damaged(table, "a row is cut short"))?;
    if *stored != hash_under(key, text) {
        return Err(StoreError::damaged(table, "a row does not match its hash"));
    }
    // The hash is right, so the row is not damaged: another version wrote it.
    rmp_serde::from_slice(text).map_err(|error| StoreError::UnknownRow { table, detail: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Counts {
        organizations: u64,
        tags: u64,
        licenses: u64,
        keys: u64,
        feeds: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        venues: Option<u64>,
    }

    #[test]
    fn an_unknown_member_is_rejected_but_not_damage() {
        let counts = |venues| Counts { organizations: 1, tags: 2, licenses: 3, keys: 4, feeds: 5, venues };
        let known = TableCounts { organizations: 1, tags: 2, licenses: 3, keys: 4, feeds: 5 };
        assert_eq!(unseal::<TableCounts>("commits", &seal(&counts(None)).unwrap()).unwrap(), known);
        let row = seal(&counts(Some(6))).unwrap();
        let refused = unseal::<TableCounts>("commits", &row).unwrap_err();
        assert!(matches!(&refused, StoreError::UnknownRow { table: "commits", .. }), "{refused}");
        let mut damaged = row.clone();
        damaged[20] ^= 1;
        assert!(matches!(unseal::<TableCounts>("commits", &damaged), Err(StoreError::Damaged { .. })));
    }

    #[test]
    fn a_dataset_that_a_row_does_not_name_has_the_default() {
        let row = seal(&std::collections::BTreeMap::from([("journals", 7)])).unwrap();
        let read: PerDataset<u64> = unseal("commits", &row).unwrap();
        assert_eq!(read, PerDataset { conferences: 0, journals: 7 });
    }
}
