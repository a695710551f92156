//! Reading rows that writing, reading and checking share.

use std::collections::{BTreeMap, BTreeSet};

use redb::{ReadableTable, TableError};

use crate::model::reference::{ReferenceFields, Referenced};
use crate::model::{Curated, Dataset, Id, RecordFields, ReferenceKind, References};
use crate::store::StoreError;
use crate::store::format::codec::{RecordRow, unseal};

/// Decodes an id.
pub(in crate::store) fn read_id(table: &'static str, id: u64) -> Result<Id, StoreError> {
    Id::try_from(id).map_err(|error| StoreError::damaged(table, format!("id {id}: {error}")))
}

/// Reads a record's row, and checks that it is of that record.
pub(in crate::store) fn find_record<F: RecordFields>(
    records: &impl ReadableTable<(u8, u64), &'static [u8]>,
    id: Id,
) -> Result<Option<RecordRow<F>>, StoreError> {
    let found = records.get((F::DATASET.code(), id.get()))?;
    let row: Option<RecordRow<F>> = found.map(|bytes| unseal("records", bytes.value())).transpose()?;
    match row {
        Some(row) if row.record.id() != id => {
            Err(StoreError::damaged("records", format!("{} {id} holds the record {}", F::DATASET, row.record.id())))
        }
        row => Ok(row),
    }
}

/// Reads all rows of a table.
pub(in crate::store) fn load_rows<T: serde::de::DeserializeOwned>(
    name: &'static str,
    table: &impl ReadableTable<u64, &'static [u8]>,
) -> Result<Vec<T>, StoreError> {
    table.iter()?.map(|entry| unseal(name, entry?.1.value())).collect()
}

/// Reads all organizations and tags.
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

/// The ids of all records of a dataset.
pub(in crate::store) fn load_record_ids(
    records: &impl ReadableTable<(u8, u64), &'static [u8]>,
    dataset: Dataset,
) -> Result<BTreeSet<Id>, StoreError> {
    let code = dataset.code();
    let rows = records.range((code, 0)..=(code, u64::MAX))?;
    rows.map(|entry| read_id("records", entry?.0.value().1)).collect()
}

/// The records that link to an organization or tag.
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

/// A table that is made when it is first needed; `None` before.
pub(in crate::store) fn if_there<T>(opened: Result<T, TableError>) -> Result<Option<T>, StoreError> {
    match opened {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
