//! Rows without ids: their fields tell which record is meant (docs/import.md).

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::import::lint::comparable;
use crate::import::report::BadRows;
use crate::import::rows::{ImportRow, RowEdit};
use crate::model::{Dataset, Id, RecordFields};
use crate::store::StoreError;
use crate::store::write::batch::Curation;

/// A row that no record matches, and the id that it gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AssignedId {
    /// The file as the caller named it.
    pub file: String,
    /// The row's line.
    pub line: u64,
    /// The dataset.
    pub dataset: Dataset,
    /// The next free id of the dataset.
    pub id: Id,
}

/// The fields by which rows are matched, as bits: the first one is 1. There are at most eight (`ReadOptions::check`).
type FieldMask = u32;

/// The values of all records of a dataset in the fields that match rows, and those of rows that got an id.
struct RecordIndex {
    /// Each record's id and comparable values; empty where it has none.
    records: Vec<(Id, Vec<String>)>,
    /// The records by the fields in which they have values.
    by_mask: BTreeMap<FieldMask, Vec<usize>>,
    /// The records of a mask by their values in some of its fields. Of equal ones two are enough.
    indexes: HashMap<(FieldMask, FieldMask), HashMap<Vec<String>, Vec<usize>>>,
}

/// The fields in which there are values.
fn mask_of(values: &[String]) -> FieldMask {
    values.iter().enumerate().filter(|(_, value)| !value.is_empty()).map(|(at, _)| 1 << at).sum()
}

/// The values in some of the fields.
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

    /// The records that have one of the values and contradict none; two where there are more.
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

/// Finds the records that rows without ids mean, and gives the next free ids to rows that match none. Returns those rows.
///
/// # Errors
/// When the database cannot be read.
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
    let indexes: Vec<usize> =
        matching.iter().filter_map(|name| columns.iter().position(|field| field.column == *name)).collect();
    let mut known = RecordIndex { records: Vec::new(), by_mask: BTreeMap::new(), indexes: HashMap::new() };
    curation.for_each_record::<F>(&mut |record| {
        let values = record.fields().values();
        known.add(record.id(), indexes.iter().map(|at| text_of(&values[*at].to_csv(&()))).collect());
    })?;
    let stated = rows.iter().filter_map(|row| row.id).max();
    let mut largest = curation.largest_id(F::DATASET)?.max(stated).map_or(0, Id::get);
    let names = matching.join("`, `");
    let mut assigned = Vec::new();
    for row in rows.iter_mut().filter(|row| row.id.is_none()) {
        let RowEdit::Set(statement) = &row.edit else {
            bad.push(&row.position, Some("id"), None, "is missing; a row that removes a record names its id");
            continue;
        };
        let values: Vec<String> = indexes.iter().map(|at| text_of(&statement.value(*at))).collect();
        if mask_of(&values) == 0 {
            let message =
                format!("is missing, and so is `{names}`, by which --match finds the record; fill in one of them");
            bad.push(&row.position, Some("id"), None, message);
            continue;
        }
        match *known.find(&values) {
            [id] => row.id = Some(id),
            [] => match Id::try_from(largest + 1) {
                // A bad row is reported already.
                _ if row.is_bad => {}
                Ok(id) => {
                    largest = id.get();
                    row.id = Some(id);
                    known.add(id, values);
                    let (file, line) = (row.position.file.to_string(), row.position.line);
                    assigned.push(AssignedId { file, line, dataset: F::DATASET, id });
                }
                Err(error) => bad.push(&row.position, Some("id"), None, format!("no id is free: {error}")),
            },
            [one, other, ..] => {
                let message = format!(
                    "is missing, and `{names}` fit both {one} and {other} of {}; give the id, or --match more fields",
                    F::DATASET
                );
                bad.push(&row.position, Some("id"), None, message);
            }
        }
    }
    Ok(assigned)
}

/// A value without case, diacritics, blanks and signs, unless it is nothing but those.
fn text_of(value: &str) -> String {
    let comparable = comparable(value);
    if comparable.is_empty() { value.trim().to_owned() } else { comparable }
}
