//! Rows as bytes: MessagePack or JSON after a hash. And reading them, for writing, reading and checking. Each read
//! checks the hash, because redb verifies no checksums then.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use redb::{ReadableTable, TableError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::tables::{HASH_LEN, LogValue, keys_from};
use crate::model::{
    CommitInfo, Curated, Dataset, Fields, Head, Id, KeyHash, KeyRecord, PerDataset, RecordFields,
    ReferenceFields, ReferenceKind, Referenced, References, RowDigest, Timestamp, json,
};
use crate::store::{Result, StoreError};

/// A hash of 128 bits of BLAKE3.
pub type ShortHash = [u8; HASH_LEN];

/// Hashes bytes.
pub fn hash(bytes: &[u8]) -> ShortHash {
    hash_under(&[], bytes)
}

/// The difference between the clocks of writing machines, in seconds, above which a warning is reported.
pub const CLOCK_TOLERANCE_S: i64 = 120;

/// A row of `commits`. The default is the state before the first commit.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredCommit {
    /// The time when the transaction began; never before the time of an earlier commit.
    pub time: Timestamp,
    /// A random value. It distinguishes commits with the same seq in different histories.
    pub lineage: [u8; 16],
    /// The first seq that it took.
    pub first_seq: u64,
    /// The last seq that it took.
    pub last_seq: u64,
    /// The number of records after this commit.
    pub records: PerDataset<u64>,
    /// The last change of each dataset's content.
    pub changed_at: PerDataset<Option<Timestamp>>,
    /// The last seq of the last commit that changed an organization or tag; 0 if there is none.
    pub references_seq: u64,
    /// The row counts after this commit.
    pub counts: TableCounts,
    /// The user who made it.
    pub who: String,
    /// May be empty.
    pub what: String,
    /// The number of rows that an import changed. Optional members are not written while they are empty. So other
    /// commits have the bytes that 0.1.0 wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportCounts>,
    /// The user's note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The numbers of rows of one kind that a batch added, changed, removed or left as they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowCounts {
    /// New rows.
    pub added: u64,
    /// Rows with another content.
    pub changed: u64,
    /// Rows that do not exist any more.
    pub removed: u64,
    /// Rows that the batch has as they are stored.
    pub unchanged: u64,
}

impl RowCounts {
    /// The number of rows that differ now.
    pub fn differing(&self) -> u64 {
        self.added + self.changed + self.removed
    }
}

/// The numbers of rows of each kind, for a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportCounts {
    /// A record counts as changed if an organization or tag that it links to changes.
    pub datasets: PerDataset<RowCounts>,
    /// Organizations.
    pub organizations: RowCounts,
    /// Tags.
    pub tags: RowCounts,
}

impl ImportCounts {
    /// The counts with the names of their kinds.
    pub fn named(&self) -> [(&'static str, RowCounts); 4] {
        [
            ("conferences", self.datasets.conferences),
            ("journals", self.datasets.journals),
            ("organizations", self.organizations),
            ("tags", self.tags),
        ]
    }
}

impl StoredCommit {
    /// Seq, time and lineage.
    pub fn point(&self) -> CommitPoint {
        CommitPoint {
            seq: self.last_seq,
            time: self.time,
            lineage: self.lineage,
        }
    }

    /// Describes the commit for replicas: its previous commit, the digest after it, and its encoded changes.
    pub(crate) fn info(&self, base: Head, digest: RowDigest, changes: &[u8]) -> CommitInfo {
        CommitInfo {
            first_seq: self.first_seq,
            last_seq: self.last_seq,
            lineage: self.lineage,
            time: self.time,
            base,
            digest,
            bytes: changes.len() as u64,
        }
    }
}

/// A commit in the history: its last seq (0 before the first commit), its time and its random lineage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitPoint {
    /// Its last seq; 0 before the first commit.
    pub seq: u64,
    /// Its time.
    pub time: Timestamp,
    /// Its random lineage.
    pub lineage: [u8; 16],
}

impl CommitPoint {
    /// Its time as text; `None` before the first commit.
    pub fn time_text(&self) -> Option<String> {
        (self.seq > 0).then(|| self.time.to_string())
    }

    /// The seq and lineage, which together identify the commit.
    pub fn head(&self) -> Head {
        Head {
            seq: self.seq,
            lineage: self.lineage,
        }
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

/// Whether the history has the commit with this last seq and lineage. Seq 0 is part of every history.
pub fn has_commit(commits: &impl ReadableTable<u64, &'static [u8]>, head: Head) -> Result<bool> {
    if head.seq == 0 {
        return Ok(head == Head::default());
    }
    let Some(bytes) = commits.get(head.seq)? else {
        return Ok(false);
    };
    Ok(unseal_commit(head.seq, bytes.value())?.lineage == head.lineage)
}

/// Decodes a row of `commits`, and compares its seqs with its key.
pub fn unseal_commit(key: u64, bytes: &[u8]) -> Result<StoredCommit> {
    let row: StoredCommit = unseal("commits", bytes)?;
    if row.last_seq != key || !(1..=row.last_seq).contains(&row.first_seq) {
        let detail = format!(
            "the row of seq {key} is of {}..={}",
            row.first_seq, row.last_seq
        );
        return Err(StoreError::damaged("commits", detail));
    }
    Ok(row)
}

/// Fails unless a table has as many rows as the last commit counted.
pub fn expect_count(table: &'static str, found: usize, counted: u64) -> Result<()> {
    if found as u64 == counted {
        return Ok(());
    }
    Err(StoreError::damaged(
        table,
        format!("it holds {found} rows, the last commit counts {counted}"),
    ))
}

pub struct RecordRow<F> {
    pub seq: u64,
    /// The time of the last change of its content.
    pub updated_at: Timestamp,
    pub record: Curated<F>,
}

impl<F: Fields> RecordRow<F> {
    /// Decodes the row of `log` at a seq.
    pub fn open(seq: u64, (id, stored, text): LogValue<'_>) -> Result<RecordRow<F>> {
        let id = Id::try_from(id)
            .map_err(|error| damaged_row(F::STEM, seq, format_args!("id {id}: {error}")))?;
        if hash(text) != stored {
            return Err(damaged_row(F::STEM, seq, "it does not match its hash"));
        }
        let (record, updated_at) =
            json::read_record(id, text).map_err(|detail| damaged_row(F::STEM, seq, detail))?;
        Ok(RecordRow {
            seq,
            updated_at,
            record,
        })
    }
}

pub fn damaged_row(kind: &str, seq: u64, detail: impl Display) -> StoreError {
    StoreError::damaged("log", format!("the row of {kind} at seq {seq}: {detail}"))
}

/// The error of a record that has no row at its seq.
pub fn missing_record(dataset: Dataset, id: Id, seq: u64) -> StoreError {
    StoreError::damaged("log", format!("there is no {dataset} {id} at seq {seq}"))
}

/// Serializes a value, with a hash in front.
pub fn seal<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    seal_under(&[], value)
}

/// Like [`seal`], for a row whose value does not contain its key. The hash is of both.
pub fn seal_under<T: Serialize>(key: &[u8], value: &T) -> Result<Vec<u8>> {
    let mut bytes = vec![0; HASH_LEN];
    rmp_serde::encode::write_named(&mut bytes, value)
        .map_err(|error| StoreError::damaged("(new row)", error.to_string()))?;
    let hash = hash_under(key, &bytes[HASH_LEN..]);
    bytes[..HASH_LEN].copy_from_slice(&hash);
    Ok(bytes)
}

/// Hashes a row's key and its bytes.
pub fn hash_under(key: &[u8], bytes: &[u8]) -> ShortHash {
    let hash = blake3::Hasher::new().update(key).update(bytes).finalize();
    std::array::from_fn(|at| hash.as_bytes()[at])
}

/// Checks the hash, and deserializes the value.
pub fn unseal<T: DeserializeOwned>(table: &'static str, bytes: &[u8]) -> Result<T> {
    unseal_under(table, &[], bytes)
}

/// Like [`unseal`], for rows of [`seal_under`].
pub fn unseal_under<T: DeserializeOwned>(
    table: &'static str,
    key: &[u8],
    bytes: &[u8],
) -> Result<T> {
    let (stored, text) = bytes
        .split_first_chunk::<HASH_LEN>()
        .ok_or_else(|| StoreError::damaged(table, "a row is cut short"))?;
    if *stored != hash_under(key, text) {
        return Err(StoreError::damaged(table, "a row does not match its hash"));
    }
    // The hash is right, so the row is not damaged: another version wrote it.
    rmp_serde::from_slice(text).map_err(|error| StoreError::UnknownRow {
        table,
        detail: error.to_string(),
    })
}

pub fn read_id(table: &'static str, id: u64) -> Result<Id> {
    Id::try_from(id).map_err(|error| StoreError::damaged(table, format!("id {id}: {error}")))
}

/// A table like `log`.
pub trait LogRows: ReadableTable<(u8, u64), LogValue<'static>> {}
impl<T: ReadableTable<(u8, u64), LogValue<'static>>> LogRows for T {}

/// Reads the record with an id.
pub fn find_record<F: RecordFields>(
    records: &impl ReadableTable<(u8, u64), u64>,
    log: &impl LogRows,
    id: Id,
) -> Result<Option<RecordRow<F>>> {
    let Some(seq) = records.get((F::DATASET.code(), id.get()))? else {
        return Ok(None);
    };
    read_record(log, id, seq.value()).map(Some)
}

/// Reads the record at a seq, and checks its id.
pub fn read_record<F: RecordFields>(log: &impl LogRows, id: Id, seq: u64) -> Result<RecordRow<F>> {
    let found = log.get((F::DATASET.code(), seq))?;
    let row = found.map(|found| RecordRow::open(seq, found.value()));
    row.transpose()?
        .filter(|row| row.record.id() == id)
        .ok_or_else(|| missing_record(F::DATASET, id, seq))
}

/// Calls `each` with all records of a dataset, in the order of their ids.
pub fn for_each_record<F: RecordFields, E: From<StoreError>>(
    records: &impl ReadableTable<(u8, u64), u64>,
    log: &impl LogRows,
    mut each: impl FnMut(RecordRow<F>) -> Result<(), E>,
) -> Result<(), E> {
    let rows = records.range(keys_from(F::DATASET.code(), 0));
    for entry in rows.map_err(StoreError::from)? {
        let (key, seq) = entry.map_err(StoreError::from)?;
        let id = read_id("records", key.value().1)?;
        each(read_record(log, id, seq.value())?)?;
    }
    Ok(())
}

/// The last commit, or the state before the first one.
pub fn last_commit(commits: &impl ReadableTable<u64, &'static [u8]>) -> Result<StoredCommit> {
    match commits.last()? {
        Some((seq, bytes)) => unseal_commit(seq.value(), bytes.value()),
        None => Ok(StoredCommit::default()),
    }
}

pub fn load_rows<T: DeserializeOwned>(
    name: &'static str,
    table: &impl ReadableTable<u64, &'static [u8]>,
) -> Result<Vec<T>> {
    table
        .iter()?
        .map(|entry| unseal(name, entry?.1.value()))
        .collect()
}

/// Reads all keys.
pub fn load_keys(
    table: &impl ReadableTable<[u8; 32], &'static [u8]>,
) -> Result<Vec<(KeyHash, KeyRecord)>> {
    let rows = table.iter()?.map(|entry| {
        let (hash, bytes) = entry?;
        Ok((
            KeyHash(hash.value()),
            unseal_under("keys", &hash.value(), bytes.value())?,
        ))
    });
    rows.collect()
}

pub fn load_references(
    organizations: &impl ReadableTable<u64, &'static [u8]>,
    tags: &impl ReadableTable<u64, &'static [u8]>,
) -> Result<References> {
    fn load<F: ReferenceFields>(
        name: &'static str,
        table: &impl ReadableTable<u64, &'static [u8]>,
    ) -> Result<BTreeMap<Id, Referenced<F>>> {
        let rows: Vec<Curated<F>> = load_rows(name, table)?;
        Ok(rows
            .into_iter()
            .map(|row| (row.id(), Referenced::new(row)))
            .collect())
    }
    Ok(References {
        organizations: load("organizations", organizations)?,
        tags: load("tags", tags)?,
    })
}

pub fn load_record_ids(
    records: &impl ReadableTable<(u8, u64), u64>,
    dataset: Dataset,
) -> Result<BTreeSet<Id>> {
    let rows = records.range(keys_from(dataset.code(), 0))?;
    rows.map(|entry| read_id("records", entry?.0.value().1))
        .collect()
}

/// Finds the records that link to an organization or tag.
pub fn find_linked(
    links: &impl ReadableTable<(u8, u64, u8, u64), ()>,
    kind: ReferenceKind,
    id: Id,
) -> Result<Vec<(Dataset, Id)>> {
    let kind = kind.code();
    let id = id.get();
    let mut linked = Vec::new();
    for entry in links.range((kind, id, 0, 0)..=(kind, id, u8::MAX, u64::MAX))? {
        let (_, _, dataset, record) = entry?.0.value();
        let dataset = Dataset::from_code(dataset)
            .ok_or_else(|| StoreError::damaged("links", format!("dataset {dataset}")))?;
        linked.push((dataset, read_id("links", record)?));
    }
    Ok(linked)
}

/// The opened table; `None` if it does not exist. For tables that are created when needed.
pub fn optional_table<T>(opened: Result<T, TableError>) -> Result<Option<T>> {
    match opened {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
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
        let counts = |venues| Counts {
            organizations: 1,
            tags: 2,
            licenses: 3,
            keys: 4,
            feeds: 5,
            venues,
        };
        let known = TableCounts {
            organizations: 1,
            tags: 2,
            licenses: 3,
            keys: 4,
            feeds: 5,
        };
        let read = unseal::<TableCounts>("commits", &seal(&counts(None)).unwrap()).unwrap();
        assert_eq!(read, known);
        let row = seal(&counts(Some(6))).unwrap();
        let refused = unseal::<TableCounts>("commits", &row).unwrap_err();
        assert!(
            matches!(
                &refused,
                StoreError::UnknownRow {
                    table: "commits",
                    ..
                }
            ),
            "{refused}"
        );
        let mut damaged = row.clone();
        damaged[20] ^= 1;
        assert!(matches!(
            unseal::<TableCounts>("commits", &damaged),
            Err(StoreError::Damaged { .. })
        ));
    }

    #[test]
    fn a_dataset_that_a_row_does_not_name_has_the_default() {
        let row = seal(&std::collections::BTreeMap::from([("journals", 7)])).unwrap();
        let read: PerDataset<u64> = unseal("commits", &row).unwrap();
        assert_eq!(
            read,
            PerDataset {
                conferences: 0,
                journals: 7
            }
        );
    }
}
