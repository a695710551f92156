//! Reading rows, for writing, reading and checking.

use std::collections::{BTreeMap, BTreeSet};

use redb::{ReadableTable, TableError};

use crate::model::reference::{ReferenceFields, Referenced};
use crate::model::{Curated, Dataset, Id, KeyHash, KeyRecord, RecordFields, ReferenceKind, References};
use crate::store::StoreError;
use crate::store::format::codec::{RecordRow, StoredCommit, unseal, unseal_commit, unseal_under};
use crate::store::format::tables::LogValue;

pub(in crate::store) fn read_id(table: &'static str, id: u64) -> Result<Id, StoreError> {
    Id::try_from(id).map_err(|error| StoreError::damaged(table, format!("id {id}: {error}")))
}

/// A table like `log`.
pub(in crate::store) trait LogRows: ReadableTable<(u8, u64), LogValue<'static>> {}
impl<T: ReadableTable<(u8, u64), LogValue<'static>>> LogRows for T {}

/// Reads the record with an id.
pub(in crate::store) fn find_record<F: RecordFields>(
    records: &impl ReadableTable<(u8, u64), u64>,
    log: &impl LogRows,
    id: Id,
) -> Result<Option<RecordRow<F>>, StoreError> {
    let Some(seq) = records.get((F::DATASET.code(), id.get()))? else { return Ok(None) };
    read_record(log, id, seq.value()).map(Some)
}

/// Reads the record at a seq, and checks its id.
pub(in crate::store) fn read_record<F: RecordFields>(
    log: &impl LogRows,
    id: Id,
    seq: u64,
) -> Result<RecordRow<F>, StoreError> {
    let missing = || StoreError::damaged("log", format!("there is no {} {id} at seq {seq}", F::DATASET));
    let found = log.get((F::DATASET.code(), seq))?.ok_or_else(missing)?;
    let row = RecordRow::open(seq, found.value())?;
    if row.record.id() == id { Ok(row) } else { Err(missing()) }
}

/// Calls `each` with all records of a dataset, in the order of their ids.
pub(in crate::store) fn for_each_record<F: RecordFields, E: From<StoreError>>(
    records: &impl ReadableTable<(u8, u64), u64>,
    log: &impl LogRows,
    mut each: impl FnMut(RecordRow<F>) -> Result<(), E>,
) -> Result<(), E> {
    let code = F::DATASET.code();
    for entry in records.range((code, 0)..=(code, u64::MAX)).map_err(StoreError::from)? {
        let (key, seq) = entry.map_err(StoreError::from)?;
        each(read_record(log, read_id("records", key.value().1)?, seq.value())?)?;
    }
    Ok(())
}

/// The last commit, or the state before the first one.
pub(in crate::store) fn last_commit(
    commits: &impl ReadableTable<u64, &'static [u8]>,
) -> Result<StoredCommit, StoreError> {
    let last = commits.last()?.map(|(seq, bytes)| unseal_commit(seq.value(), bytes.value()));
    Ok(last.transpose()?.unwrap_or_default())
}

pub(in crate::store) fn load_rows<T: serde::de::DeserializeOwned>(
    name: &'static str,
    table: &impl ReadableTable<u64, &'static [u8]>,
) -> Result<Vec<T>, StoreError> {
    table.iter()?.map(|entry| unseal(name, entry?.1.value())).collect()
}

/// Reads all keys.
pub(in crate::store) fn load_keys(
    table: &impl ReadableTable<[u8; 32], &'static [u8]>,
) -> Result<Vec<(KeyHash, KeyRecord)>, StoreError> {
    let rows = table.iter()?.map(|entry| {
        let (hash, bytes) = entry?;
        Ok((KeyHash(hash.value()), unseal_under("keys", &hash.value(), bytes.value())?))
    });
    rows.collect()
}

pub(in crate::store) fn load_references(
    organizations: &impl ReadableTable<u64, &'static [u8]>,
    tags: &impl ReadableTable<u64, &'static [u8]>,
) -> Result<References, StoreError> {
    fn load<F: ReferenceFields>(
        name: &'static str,
        table: &impl ReadableTable<u64, &'static [u8]>,
    ) -> Result<BTreeMap<Id, Referenced<F>>, StoreError> {
        let rows: Vec<Curated<F>> = load_rows(name, table)?;
        Ok(rows.into_iter().map(|row| (row.id(), Referenced::new(row))).collect())
    }
    Ok(References { organizations: load("organizations", organizations)?, tags: load("tags", tags)? })
}

pub(in crate::store) fn load_record_ids(
    records: &impl ReadableTable<(u8, u64), u64>,
    dataset: Dataset,
) -> Result<BTreeSet<Id>, StoreError> {
    let code = dataset.code();
    let rows = records.range((code, 0)..=(code, u64::MAX))?;
    rows.map(|entry| read_id("records", entry?.0.value().1)).collect()
}

/// Finds the records that link to an organization or tag.
pub(in crate::store) fn find_linked(
    links: &impl ReadableTable<(u8, u64, u8, u64), ()>,
    kind: ReferenceKind,
    id: Id,
) -> Result<Vec<(Dataset, Id)>, StoreError> {
    let (kind, id) = (kind.code(), id.get());
    let mut linked = Vec::new();
    for entry in links.range((kind, id, 0, 0)..=(kind, id, u8::MAX, u64::MAX))? {
        let (_, _, dataset, record) = entry?.0.value();
        let dataset =
            Dataset::from_code(dataset).ok_or_else(|| StoreError::damaged("links", format!("dataset {dataset}")))?;
        linked.push((dataset, read_id("links", record)?));
    }
    Ok(linked)
}

/// The opened table; `None` if it does not exist. For tables that are created when needed.
pub(in crate::store) fn optional_table<T>(opened: Result<T, TableError>) -> Result<Option<T>, StoreError> {
    match opened {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
