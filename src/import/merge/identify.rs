//! Rows without ids. The fields of `--match` identify their records (docs/import.md).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::import::lint::comparable;
use crate::import::report::faults::BadRows;
use crate::import::rows::{ImportRow, RowEdit};
use crate::model::value::ValueKind;
use crate::model::value::cell::ITEM_SEPARATOR;
use crate::model::{Dataset, Id, RecordFields};
use crate::store::StoreError;
use crate::store::write::batch::Curation;

/// The id that was assigned to a row without a matching record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AssignedId {
    /// The name of the file, as in the command.
    pub file: String,
    /// The line of the row.
    pub line: u64,
    /// The dataset.
    pub dataset: Dataset,
    /// The assigned id: the next free one of the dataset.
    pub id: Id,
}

/// A set of the fields of `--match`: bit 0 is the first one. There are at most eight (`ReadOptions::check`).
type FieldMask = u32;

/// An index of records by their values in the fields of `--match`. It includes rows with assigned ids.
struct RecordIndex {
    /// The id and the comparable values of each record. A missing value is empty.
    records: Vec<(Id, Vec<String>)>,
    /// The indexes of the records that have values in exactly these fields.
    by_mask: BTreeMap<FieldMask, Vec<usize>>,
    /// For the records of a mask: their indexes by their values in some of its fields. Two per key are enough to detect
    /// an ambiguous match.
    indexes: HashMap<(FieldMask, FieldMask), HashMap<Vec<String>, Vec<usize>>>,
}

/// Returns the set of fields that have values.
fn mask_of(values: &[String]) -> FieldMask {
    values.iter().enumerate().filter(|(_, value)| !value.is_empty()).map(|(at, _)| 1 << at).sum()
}

/// Returns the values in the fields of `mask`.
fn masked(values: &[String], mask: FieldMask) -> Vec<String> {
    values.iter().enumerate().filter(|(at, _)| mask & (1 << at) != 0).map(|(_, value)| value.clone()).collect()
}

impl RecordIndex {
    fn add(&mut self, id: Id, values: Vec<String>) {
        let (at, mask) = (self.records.len(), mask_of(&values));
        self.by_mask.entry(mask).or_default().push(at);
        for ((of, within), index) in &mut self.indexes {
            if *of == mask {
                push_two(index.entry(masked(&values, *within)).or_default(), at);
            }
        }
        self.records.push((id, values));
    }

    /// Returns the records that share a value with `values` and differ in none; at most two per mask.
    fn find(&mut self, values: &[String]) -> Vec<Id> {
        let mask = mask_of(values);
        let mut found = Vec::new();
        for (of, records) in &self.by_mask {
            let within = of & mask;
            if within == 0 {
                continue;
            }
            let index = self.indexes.entry((*of, within)).or_insert_with(|| {
                let mut index: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
                for at in records {
                    push_two(index.entry(masked(&self.records[*at].1, within)).or_default(), *at);
                }
                index
            });
            found.extend(index.get(&masked(values, within)).into_iter().flatten().map(|at| self.records[*at].0));
        }
        found
    }
}

fn push_two(records: &mut Vec<usize>, at: usize) {
    if records.len() < 2 {
        records.push(at);
    }
}

/// Finds the records of rows without ids. Rows that match no record get the next free ids and are returned.
pub(super) fn identify<F: RecordFields, C: Curation>(
    rows: &mut [ImportRow<F>],
    matching: &[String],
    curation: &C,
    bad: &mut BadRows,
) -> Result<Vec<AssignedId>, StoreError> {
    if rows.iter().all(|row| row.id.is_some()) {
        return Ok(Vec::new());
    }
    let columns = &F::table().fields;
    let matched: Vec<usize> =
        matching.iter().filter_map(|name| columns.iter().position(|field| field.column == *name)).collect();
    let mut record_index = RecordIndex { records: Vec::new(), by_mask: BTreeMap::new(), indexes: HashMap::new() };
    curation.for_each_record::<F>(&mut |record| {
        let values = record.fields().values();
        let value = |at: &usize| comparable_value(columns[*at].kind, &values[*at].to_csv(&()));
        record_index.add(record.id(), matched.iter().map(value).collect());
    })?;
    let imported = rows.iter().filter_map(|row| row.id).max();
    let mut largest = curation.largest_id(F::DATASET)?.max(imported).map_or(0, Id::get);
    let names = matching.join("`, `");
    let mut assigned = Vec::new();
    for row in rows.iter_mut().filter(|row| row.id.is_none()) {
        let RowEdit::Set(statement) = &row.edit else {
            bad.push(&row.position, Some("id"), None, "is missing; a row that removes a record needs its id");
            continue;
        };
        let value = |at: &usize| comparable_value(columns[*at].kind, &statement.value(*at));
        let values: Vec<String> = matched.iter().map(value).collect();
        if mask_of(&values) == 0 {
            let message = format!("is missing, and so are the fields of --match (`{names}`); fill in one of them");
            bad.push(&row.position, Some("id"), None, message);
            continue;
        }
        match *record_index.find(&values) {
            [id] => row.id = Some(id),
            [] => match Id::try_from(largest + 1) {
                // The fault of a bad row is already reported.
                _ if row.is_bad => {}
                Ok(id) => {
                    largest = id.get();
                    row.id = Some(id);
                    record_index.add(id, values);
                    let (file, line) = (row.position.file.to_string(), row.position.line);
                    assigned.push(AssignedId { file, line, dataset: F::DATASET, id });
                }
                Err(error) => bad.push(&row.position, Some("id"), None, format!("no id is free: {error}")),
            },
            [one, other, ..] => {
                let message = format!(
                    "is missing, and `{names}` match both {one} and {other} of {}; give the id, or --match more fields",
                    F::DATASET
                );
                bad.push(&row.position, Some("id"), None, message);
            }
        }
    }
    Ok(assigned)
}

/// Returns the form in which values are compared. The order of a list does not count.
fn comparable_value(kind: ValueKind, csv: &str) -> String {
    if kind != ValueKind::Texts {
        return text_of(csv);
    }
    let items: BTreeSet<String> = csv.split(ITEM_SEPARATOR).map(text_of).collect();
    items.into_iter().collect::<Vec<_>>().join(ITEM_SEPARATOR)
}

/// Returns the value without case, diacritics, blanks and punctuation, unless nothing else remains.
fn text_of(value: &str) -> String {
    let comparable = comparable(value);
    if comparable.is_empty() { value.trim().to_owned() } else { comparable }
}
