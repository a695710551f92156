//! Rows without ids. The fields of `--match` identify their records (docs/import.md).

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use url::Url;

use crate::import::findings::{FilePosition, Finding, Findings, shortened};
use crate::import::lint::valid_issn;
use crate::import::read::options::{ISSN_COLUMNS, columns_of};
use crate::import::rows::{ImportRow, MAY_BE_NOTE, RowEdit};
use crate::model::field::Field;
use crate::model::fold::match_form;
use crate::model::message::message;
use crate::model::value::ValueKind;
use crate::model::value::text::ITEM_SEPARATOR;
use crate::model::{Curated, Dataset, Id, RecordFields};
use crate::store::{Snapshot, StoreError};

/// A set of fields that identifies records, and an index of the records by their values in these fields. It includes
/// rows of the files.
struct MatchSet<'a> {
    /// The fields, each with its columns in the table of a dataset: both ISSNs for `issn`, else one.
    fields: Vec<(&'a str, Vec<usize>)>,
    /// The id and the comparable values of each record. A missing value is empty. A record with two ISSNs is included
    /// once for each.
    records: Vec<(Id, Vec<String>)>,
    /// The records with these values in all fields.
    by_values: HashMap<Vec<String>, Vec<Id>>,
    /// The indexes of the records with a value in a field. The flag separates records that have values in all fields.
    by_value: HashMap<(bool, usize, String), Vec<usize>>,
}

fn is_complete(values: &[String]) -> bool {
    values.iter().all(|value| !value.is_empty())
}

impl MatchSet<'_> {
    /// Returns the quoted names of fields.
    fn names(&self, is_named: &dyn Fn(usize) -> bool) -> String {
        let names = self
            .fields
            .iter()
            .enumerate()
            .filter(|(at, _)| is_named(*at))
            .map(|(_, (name, _))| *name);
        format!("`{}`", names.collect::<Vec<_>>().join("`, `"))
    }

    fn add(&mut self, id: Id, choices: Vec<Vec<String>>) {
        for values in choices {
            for (field, value) in values
                .iter()
                .enumerate()
                .filter(|(_, value)| !value.is_empty())
            {
                let key = (is_complete(&values), field, value.clone());
                self.by_value
                    .entry(key)
                    .or_default()
                    .push(self.records.len());
            }
            self.by_values.entry(values.clone()).or_default().push(id);
            self.records.push((id, values));
        }
    }

    /// Returns the records that equal a row in every field. If it is the only choice, a record with the same gaps as
    /// the row counts, as long as no other record agrees with it.
    fn find_equal(&self, values: &[String], is_only: bool) -> &[Id] {
        let equal = self.by_values.get(values).map_or(&[][..], Vec::as_slice);
        let is_clear = is_complete(values)
            || is_only && self.find_partial(values).all(|(id, _)| equal == [*id]);
        if is_clear { equal } else { &[] }
    }

    /// Returns the records that agree with a row in some fields, where the others are empty in the row or in the
    /// record.
    fn find_partial<'r>(
        &'r self,
        values: &'r [String],
    ) -> impl Iterator<Item = &'r (Id, Vec<String>)> {
        let kinds = if is_complete(values) {
            &[false][..]
        } else {
            &[false, true]
        };
        let differ =
            |one: &String, other: &String| one != other && !one.is_empty() && !other.is_empty();
        let fields = values.iter().enumerate();
        let lists = fields.flat_map(move |(field, value)| {
            kinds
                .iter()
                .filter_map(move |kind| self.by_value.get(&(*kind, field, value.clone())))
        });
        let sharing = lists.flatten().map(|at| &self.records[*at]);
        sharing.filter(move |(_, other)| {
            !values
                .iter()
                .zip(other)
                .any(|(one, other)| differ(one, other))
        })
    }
}

fn add_to<F: RecordFields>(sets: &mut [MatchSet<'_>], id: Id, fields: &F) {
    let values = fields.values();
    for set in sets {
        set.add(
            id,
            match_values::<F>(&set.fields, &|at| values[at].to_csv(&())),
        );
    }
}

/// Finds the records of rows without ids. A row uses the first of the `matching` sets that it fills, and means the
/// record that is equal in every field of it. A row that agrees with a record in some of them, where the others are
/// empty, is a fault. Rows that match no record get the next free ids and are returned.
pub(super) fn identify<F: RecordFields>(
    rows: &mut [ImportRow<F>],
    matching: &[Vec<String>],
    state: &Snapshot,
    bad: &mut Findings,
) -> Result<Vec<Finding>, StoreError> {
    if rows.iter().all(|row| row.id.is_some()) {
        return Ok(Vec::new());
    }
    let mut sets = match_sets::<F>(matching);
    let issn_columns = column_indexes::<F>(&ISSN_COLUMNS);
    // Records count with the values that they have after the run.
    let mut positions: HashMap<Id, FilePosition> = HashMap::new();
    for row in rows.iter() {
        let Some(id) = row.id else { continue };
        positions.entry(id).or_insert_with(|| row.position.clone());
        let RowEdit::Set(statement) = &row.edit else {
            continue;
        };
        let mut fields = state
            .find_stored::<F>(id)?
            .map(Curated::into_fields)
            .unwrap_or_default();
        statement.clone().apply_to(&mut fields);
        add_to(&mut sets, id, &fields);
    }
    state.for_each_record::<F, StoreError>(|record, _, _| {
        if !positions.contains_key(&record.id()) {
            add_to(&mut sets, record.id(), record.fields());
        }
        Ok(())
    })?;
    let imported = positions.keys().max().copied();
    let mut largest = state
        .largest_id(F::DATASET)?
        .max(imported)
        .map_or(0, Id::get);
    let one = F::STEM.trim_end_matches('s');
    let mut assigned = Vec::new();
    for row in rows.iter_mut().filter(|row| row.id.is_none()) {
        let RowEdit::Set(statement) = &row.edit else {
            bad.push(
                &row.position,
                Some("id"),
                None,
                "is missing; a row that removes a record needs its id",
            );
            continue;
        };
        let choices_of =
            |set: &MatchSet<'_>| match_values::<F>(&set.fields, &|at| statement.value(at));
        let filled = |set: &&MatchSet<'_>| is_complete(&choices_of(set)[0]);
        let begun = |set: &&MatchSet<'_>| choices_of(set)[0].iter().any(|value| !value.is_empty());
        let Some(set) = sets.iter().find(filled).or_else(|| sets.iter().find(begun)) else {
            let names: Vec<String> = sets.iter().map(|set| set.names(&|_| true)).collect();
            let message = message!(
                "is missing, and so are the fields of --match ({}); fill them in",
                names.join(" or ")
            );
            // The fault of a bad row is already reported.
            if !row.is_bad {
                bad.push(&row.position, Some("id"), None, message);
            }
            continue;
        };
        let (choices, all_names) = (choices_of(set), set.names(&|_| true));
        let is_only = choices.len() == 1;
        let equal: BTreeSet<Id> = choices
            .iter()
            .flat_map(|values| set.find_equal(values, is_only))
            .copied()
            .collect();
        let partial = choices
            .iter()
            .find_map(|values| Some((values, set.find_partial(values).next()?)));
        let message = match (equal.first().copied(), equal.last().copied(), partial) {
            (Some(one), Some(other), _) if one != other => message!(
                "is missing, and {all_names} match both {one} and {other} of {}; give the id, or --match more fields",
                F::DATASET
            ),
            (Some(id), ..) => {
                let record = state.find_stored::<F>(id)?;
                let of_record = record
                    .as_ref()
                    .map(|record| record.fields().values())
                    .unwrap_or_default();
                let of_record = |at: usize| {
                    of_record
                        .get(at)
                        .map_or(Cow::Borrowed(""), |value| value.to_csv(&()))
                };
                let of_record = valid_issns::<F>(&issn_columns, &of_record);
                let of_row = valid_issns::<F>(&issn_columns, &|at| statement.value(at));
                if let Some(first) = positions.get(&id) {
                    let message = message!(
                        "means the same {one} as the row at {first}: they share {all_names}, but are not equal; keep \
                         one of them, or correct one"
                    );
                    bad.push(&row.position, None, None, message);
                    continue;
                } else if let Some((own, other)) = contradiction(&of_row, &of_record) {
                    message!(
                        "is missing, and {all_names} match {}, but its ISSN is {other} and the row has {own}; write {id} as the id if \
                         the row means it, or a new id",
                        described(F::DATASET, id, record.as_ref())
                    )
                } else {
                    row.id = Some(id);
                    positions.insert(id, row.position.clone());
                    continue;
                }
            }
            (None, _, Some((values, (id, other)))) => {
                let record = state.find_stored::<F>(*id)?;
                let (candidate, remedy) = match (&record, positions.get(id)) {
                    (None, Some(position)) => (
                        format!("the same as {position}"),
                        "write ids in both rows".to_owned(),
                    ),
                    _ => (
                        described(F::DATASET, *id, record.as_ref()),
                        format!("write {id} as the id if it does, or a new id"),
                    ),
                };
                let lacks = [("the row has no", values), ("the other has no", other)];
                let lacks = lacks.into_iter().filter(|(_, values)| !is_complete(values));
                let lacks = lacks.map(|(who, values)| {
                    format!("{who} {}", set.names(&|at| values[at].is_empty()))
                });
                message!(
                    "is missing, and the row may mean {candidate}: {} agrees, but {}; {remedy}, or fill in what is missing",
                    set.names(&|at| !values[at].is_empty() && !other[at].is_empty()),
                    lacks.collect::<Vec<_>>().join(", and ")
                )
            }
            (None, _, None) => match Id::try_from(largest + 1) {
                // The fault of a bad row is already reported.
                _ if row.is_bad => continue,
                _ if row.may_be_note => {
                    bad.push(&row.position, None, None, MAY_BE_NOTE);
                    continue;
                }
                Ok(id) => {
                    largest = id.get();
                    row.id = Some(id);
                    for set in &mut sets {
                        let choices = match_values::<F>(&set.fields, &|at| statement.value(at));
                        set.add(id, choices);
                    }
                    positions.insert(id, row.position.clone());
                    assigned.push(Finding::assigned(&row.position, F::STEM, id, None));
                    continue;
                }
                Err(error) => message!("no id is free: {error}"),
            },
        };
        bad.push(&row.position, Some("id"), None, message);
    }
    Ok(assigned)
}

/// Returns the match sets of a dataset. Fields of the other dataset identify nothing here.
fn match_sets<F: RecordFields>(matching: &[Vec<String>]) -> Vec<MatchSet<'_>> {
    let sets = matching.iter().map(|names| {
        let fields = names
            .iter()
            .map(|name| (name.as_str(), column_indexes::<F>(&columns_of(name))));
        let fields = fields.filter(|(_, columns)| !columns.is_empty()).collect();
        MatchSet {
            fields,
            records: Vec::new(),
            by_values: HashMap::new(),
            by_value: HashMap::new(),
        }
    });
    sets.filter(|set| !set.fields.is_empty()).collect()
}

/// Returns the indexes of the columns that the dataset has.
fn column_indexes<F: RecordFields>(names: &[&str]) -> Vec<usize> {
    names
        .iter()
        .filter_map(|name| {
            F::table()
                .fields
                .iter()
                .position(|field| field.column == *name)
        })
        .collect()
}

/// Describes a record by its id and name.
fn described<F: RecordFields>(dataset: Dataset, id: Id, record: Option<&Curated<F>>) -> String {
    let name = record
        .map(|record| shortened(record.fields().name()))
        .unwrap_or_default();
    format!("{} {id} `{name}`", dataset.as_str().trim_end_matches('s'))
}

/// Returns the comparable values of a row or record in each field, for every choice among two ISSNs. A missing value is
/// empty. `value` returns a column in CSV form.
fn match_values<'v, F: RecordFields>(
    fields: &[(&str, Vec<usize>)],
    value: &dyn Fn(usize) -> Cow<'v, str>,
) -> Vec<Vec<String>> {
    let comparable = |at: &usize| comparable_value(&F::table().fields[*at], &value(*at));
    fields
        .iter()
        .fold(vec![Vec::new()], |choices, (_, columns)| {
            let mut values: BTreeSet<String> = columns.iter().map(comparable).collect();
            if values.len() > 1 {
                values.remove("");
            }
            choices
                .iter()
                .flat_map(|chosen| {
                    values
                        .iter()
                        .map(|value| [&chosen[..], std::slice::from_ref(value)].concat())
                })
                .collect()
        })
}

/// Returns the form by which values are compared. The spelling of an ISSN does not count, nor the order of a list.
fn comparable_value(field: &Field, csv: &str) -> String {
    match field.kind {
        ValueKind::Texts => {
            let items: BTreeSet<String> = csv.split(ITEM_SEPARATOR).map(match_form).collect();
            items.into_iter().collect::<Vec<_>>().join(ITEM_SEPARATOR)
        }
        _ if field.column == "url" => comparable_address(csv.trim()),
        _ => valid_issn(&field.column, csv).unwrap_or_else(|| match_form(csv)),
    }
}

/// Returns an address with `https` for `http`, and with its host in lower case. The rest is exact.
fn comparable_address(address: &str) -> String {
    let Ok(mut url) = Url::parse(address) else {
        return address.to_owned();
    };
    if url.scheme() == "http" {
        // Any `http` address may become an `https` one.
        let _ = url.set_scheme("https");
    }
    url.into()
}

/// Returns the valid ISSN of each edition of a journal. `value` returns a column in CSV form.
fn valid_issns<'v, F: RecordFields>(
    columns: &[usize],
    value: &dyn Fn(usize) -> Cow<'v, str>,
) -> Vec<Option<String>> {
    columns
        .iter()
        .map(|at| valid_issn(&F::table().fields[*at].column, &value(*at)))
        .collect()
}

/// Returns two valid ISSNs of the same edition that differ, unless one of the journals has all ISSNs of the other.
fn contradiction(one: &[Option<String>], other: &[Option<String>]) -> Option<(String, String)> {
    let has_all = |of: &[Option<String>], issns: &[Option<String>]| {
        issns
            .iter()
            .flatten()
            .all(|issn| of.contains(&Some(issn.clone())))
    };
    if has_all(one, other) || has_all(other, one) {
        return None;
    }
    let mut editions = one
        .iter()
        .zip(other)
        .filter_map(|(one, other)| Some((one.clone()?, other.clone()?)));
    editions.find(|(one, other)| one != other)
}
