//! Rows without ids. The fields of `--match` identify their records (docs/import.md).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::import::lint::valid_issn;
use crate::import::read::options::{ISSN_COLUMNS, columns_of};
use crate::import::report::faults::{BadRows, FilePosition, shortened};
use crate::import::rows::{ImportRow, RowEdit};
use crate::model::field::Field;
use crate::model::fold::fold;
use crate::model::value::ValueKind;
use crate::model::value::cell::ITEM_SEPARATOR;
use crate::model::{Curated, Dataset, Id, RecordFields};
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

/// A field of `--match`, and its columns in the table of a dataset: both ISSNs for `issn`, else one.
struct MatchField<'a> {
    name: &'a str,
    columns: Vec<usize>,
}

/// The comparable values of a row or record in each field of `--match`. A field without a value is empty.
type MatchValues = Vec<BTreeSet<String>>;

/// An index of records by their values in the fields of `--match`. It includes rows of the files.
struct RecordIndex {
    /// The id and the values of each record. A missing value is empty. A record with two ISSNs is included once for each.
    records: Vec<(Id, Vec<String>)>,
    /// The indexes of the records that have values in exactly these fields.
    by_mask: BTreeMap<FieldMask, Vec<usize>>,
    /// For the records of a mask: their indexes by their values in some of its fields. Two per key are enough to detect
    /// an ambiguous match.
    indexes: HashMap<(FieldMask, FieldMask), HashMap<Vec<String>, Vec<usize>>>,
}

/// A record that shares a value with a row and differs in none, and the fields in which it has values.
type Candidate = (Id, FieldMask);

/// Returns the set of fields that have values.
fn mask_of(values: &[BTreeSet<String>]) -> FieldMask {
    values.iter().enumerate().filter(|(_, value)| !value.is_empty()).map(|(at, _)| 1 << at).sum()
}

/// Returns the values in the fields of `mask`.
fn masked(values: &[String], mask: FieldMask) -> Vec<String> {
    values.iter().enumerate().filter(|(at, _)| mask & (1 << at) != 0).map(|(_, value)| value.clone()).collect()
}

/// Returns every choice of one value per field.
fn choices(values: &[BTreeSet<String>]) -> Vec<Vec<String>> {
    values.iter().fold(vec![Vec::new()], |chosen, field| {
        let empty = field.is_empty().then(String::new);
        let options: Vec<String> = field.iter().cloned().chain(empty).collect();
        chosen.iter().flat_map(|chosen| options.iter().map(|one| [&chosen[..], &[one.clone()]].concat())).collect()
    })
}

impl RecordIndex {
    fn add(&mut self, id: Id, values: &[BTreeSet<String>]) {
        let mask = mask_of(values);
        for values in choices(values) {
            let at = self.records.len();
            self.by_mask.entry(mask).or_default().push(at);
            for ((of, within), index) in &mut self.indexes {
                if *of == mask {
                    push_two(index.entry(masked(&values, *within)).or_default(), at);
                }
            }
            self.records.push((id, values));
        }
    }

    /// Returns the candidates for a row; at most two per mask and choice of values.
    fn find(&mut self, values: &[BTreeSet<String>]) -> Vec<Candidate> {
        let mask = mask_of(values);
        let mut found: Vec<Candidate> = Vec::new();
        for values in choices(values) {
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
                let ids = index.get(&masked(&values, within)).into_iter().flatten().map(|at| self.records[*at].0);
                found.extend(ids.map(|id| (id, *of)));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn push_two(records: &mut Vec<usize>, at: usize) {
    if records.len() < 2 {
        records.push(at);
    }
}

/// Finds the records of rows without ids: a row means the record that is equal in every field of `--match`. A row that
/// agrees with a record in some of them, where the others are empty, is a fault. Rows that match no record get the next
/// free ids and are returned.
pub(super) fn identify<F: RecordFields, C: Curation>(
    rows: &mut [ImportRow<F>],
    matching: &[String],
    curation: &C,
    bad: &mut BadRows,
) -> Result<Vec<AssignedId>, StoreError> {
    if rows.iter().all(|row| row.id.is_some()) {
        return Ok(Vec::new());
    }
    // Fields of the other dataset identify nothing here.
    let fields: Vec<MatchField<'_>> = matching
        .iter()
        .map(|name| MatchField { name, columns: column_indexes::<F>(&columns_of(name)) })
        .filter(|field| !field.columns.is_empty())
        .collect();
    let issn_columns = column_indexes::<F>(&ISSN_COLUMNS);
    let all: FieldMask = (1 << fields.len()) - 1;
    let mut record_index = RecordIndex { records: Vec::new(), by_mask: BTreeMap::new(), indexes: HashMap::new() };
    curation.for_each_record::<F>(&mut |record| {
        let values = record.fields().values();
        record_index.add(record.id(), &match_values::<F>(&fields, &|at| values[at].to_csv(&())));
    })?;
    let mut positions: HashMap<Id, FilePosition> = HashMap::new();
    for row in rows.iter() {
        let Some(id) = row.id else { continue };
        positions.entry(id).or_insert_with(|| row.position.clone());
        if let RowEdit::Set(statement) = &row.edit
            && curation.find_record::<F>(id)?.is_none()
        {
            record_index.add(id, &match_values::<F>(&fields, &|at| statement.value(at)));
        }
    }
    let imported = positions.keys().max().copied();
    let mut largest = curation.largest_id(F::DATASET)?.max(imported).map_or(0, Id::get);
    let quoted = |mask: FieldMask| {
        let names = fields.iter().enumerate().filter(|(at, _)| mask & (1 << at) != 0).map(|(_, field)| field.name);
        format!("`{}`", names.collect::<Vec<_>>().join("`, `"))
    };
    let mut assigned = Vec::new();
    for row in rows.iter_mut().filter(|row| row.id.is_none()) {
        let RowEdit::Set(statement) = &row.edit else {
            bad.push(&row.position, Some("id"), None, "is missing; a row that removes a record needs its id");
            continue;
        };
        let values = match_values::<F>(&fields, &|at| statement.value(at));
        let mask = mask_of(&values);
        if mask == 0 {
            let message = format!("is missing, and so are the fields of --match ({}); fill them in", quoted(all));
            bad.push(&row.position, Some("id"), None, message);
            continue;
        }
        let found = record_index.find(&values);
        let mut equal = found.iter().filter(|(_, of)| of & mask == all).map(|(id, _)| *id);
        let message = match (equal.next(), equal.next()) {
            (Some(one), Some(other)) => format!(
                "is missing, and {} match both {one} and {other} of {}; give the id, or --match more fields",
                quoted(all),
                F::DATASET
            ),
            (Some(id), None) => {
                if let Some(first) = positions.get(&id) {
                    format!(
                        "is missing, and the row means the same record as {first}: they share {}; keep one of them",
                        quoted(all)
                    )
                } else {
                    let record = curation.find_record::<F>(id)?;
                    let of_record = record.as_ref().map(|record| record.fields().values()).unwrap_or_default();
                    let of_record = valid_issns::<F>(&issn_columns, &|at| of_record[at].to_csv(&()));
                    match contradiction(&valid_issns::<F>(&issn_columns, &|at| statement.value(at)), &of_record) {
                        None => {
                            row.id = Some(id);
                            positions.insert(id, row.position.clone());
                            continue;
                        }
                        Some((own, other)) => format!(
                            "is missing, and {} match {}, but its ISSN is {other} and the row has {own}; write {id} as the id if the row \
                             means it, or a new id",
                            quoted(all),
                            described(F::DATASET, id, record.as_ref())
                        ),
                    }
                }
            }
            (None, _) => match found.first() {
                Some((id, of)) => {
                    let record = curation.find_record::<F>(*id)?;
                    let (candidate, remedy) = match (&record, positions.get(id)) {
                        (None, Some(position)) => {
                            (format!("the same as {position}"), "write ids in both rows".to_owned())
                        }
                        _ => (
                            described(F::DATASET, *id, record.as_ref()),
                            format!("write {id} as the id if it does, or a new id"),
                        ),
                    };
                    let lacks = [("the row has no", all & !mask), ("the other has no", all & !of)];
                    let lacks = lacks.into_iter().filter(|(_, lacking)| *lacking != 0);
                    let lacks: Vec<String> = lacks.map(|(who, lacking)| format!("{who} {}", quoted(lacking))).collect();
                    format!(
                        "is missing, and the row may mean {candidate}: {} agrees, but {}; {remedy}, or fill in what is missing",
                        quoted(mask & of),
                        lacks.join(", and ")
                    )
                }
                None => match Id::try_from(largest + 1) {
                    // The fault of a bad row is already reported.
                    _ if row.is_bad => continue,
                    Ok(id) => {
                        largest = id.get();
                        row.id = Some(id);
                        record_index.add(id, &values);
                        positions.insert(id, row.position.clone());
                        let (file, line) = (row.position.file.to_string(), row.position.line);
                        assigned.push(AssignedId { file, line, dataset: F::DATASET, id });
                        continue;
                    }
                    Err(error) => format!("no id is free: {error}"),
                },
            },
        };
        bad.push(&row.position, Some("id"), None, message);
    }
    Ok(assigned)
}

/// Returns the indexes of the columns that the dataset has.
fn column_indexes<F: RecordFields>(names: &[&str]) -> Vec<usize> {
    names.iter().filter_map(|name| F::table().fields.iter().position(|field| field.column == *name)).collect()
}

/// Describes a record by its id and name.
fn described<F: RecordFields>(dataset: Dataset, id: Id, record: Option<&Curated<F>>) -> String {
    let name = record.map(|record| shortened(record.fields().name())).unwrap_or_default();
    format!("{} {id} `{name}`", dataset.as_str().trim_end_matches('s'))
}

/// Returns the comparable values of a row or record. `value` returns a column in CSV form.
fn match_values<'v, F: RecordFields>(fields: &[MatchField<'_>], value: &dyn Fn(usize) -> Cow<'v, str>) -> MatchValues {
    let comparable = |at: &usize| comparable_value(&F::table().fields[*at], &value(*at));
    fields
        .iter()
        .map(|field| field.columns.iter().map(comparable).filter(|value| !value.is_empty()).collect())
        .collect()
}

/// Returns the value as `q` compares it. The spelling of an ISSN does not count, nor the order of a list.
fn comparable_value(field: &Field, csv: &str) -> String {
    let folded = |text: &str| fold(text.trim());
    match field.kind {
        ValueKind::Texts => {
            let items: BTreeSet<String> = csv.split(ITEM_SEPARATOR).map(folded).collect();
            items.into_iter().collect::<Vec<_>>().join(ITEM_SEPARATOR)
        }
        _ => valid_issn(&field.column, csv).unwrap_or_else(|| folded(csv)),
    }
}

/// Returns the valid ISSN of each edition of a journal. `value` returns a column in CSV form.
fn valid_issns<'v, F: RecordFields>(columns: &[usize], value: &dyn Fn(usize) -> Cow<'v, str>) -> Vec<Option<String>> {
    columns.iter().map(|at| valid_issn(&F::table().fields[*at].column, &value(*at))).collect()
}

/// Returns two valid ISSNs of the same edition that differ, unless one of the journals has all ISSNs of the other.
fn contradiction(one: &[Option<String>], other: &[Option<String>]) -> Option<(String, String)> {
    let has_all = |of: &[Option<String>], issns: &[Option<String>]| {
        issns.iter().flatten().all(|issn| of.contains(&Some(issn.clone())))
    };
    if has_all(one, other) || has_all(other, one) {
        return None;
    }
    let mut editions = one.iter().zip(other).filter_map(|(one, other)| Some((one.clone()?, other.clone()?)));
    editions.find(|(one, other)| one != other)
}
