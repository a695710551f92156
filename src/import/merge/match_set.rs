//! The fields that identify records in rows without ids, and an index of the records by their values in them.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::slice;

use url::Url;

use crate::import::lint::valid_issn;
use crate::import::read::options::{ISSN_COLUMNS, columns_of};
use crate::model::value::text::ITEM_SEPARATOR;
use crate::model::{Field, FieldValue, Id, Joined, RecordFields, ValueKind, match_form};

/// The comparable values of a row or record in the fields of a match set, for each choice among two ISSNs. A missing
/// value is empty.
pub(super) type Choices = Vec<Vec<String>>;

/// A set of fields that identifies records, and an index of the records that share a value with a row.
#[derive(Default)]
pub(super) struct MatchSet<'a> {
    /// The index of the set in the options.
    pub number: usize,
    /// The fields, each with its columns in the table of a dataset: both ISSNs for `issn`, else one.
    pub fields: Vec<(&'a str, Vec<usize>)>,
    /// The id and the values of each record that shares a value with a row. A record with two ISSNs is included once for
    /// each.
    records: Vec<(Id, Vec<String>)>,
    /// The records with these values in all fields.
    by_values: HashMap<Vec<String>, Vec<Id>>,
    /// For each field and value of a row, the indexes of the records with this value: of those with gaps in other
    /// fields, and of those with values in all fields.
    by_value: HashMap<(usize, String), [Vec<usize>; 2]>,
}

/// Returns true if there is a value in each field.
pub(super) fn is_complete(values: &[String]) -> bool {
    values.iter().all(|value| !value.is_empty())
}

/// Returns the values that are not missing, with the indexes of their fields.
fn filled(values: &[String]) -> impl Iterator<Item = (usize, &String)> {
    let values = values.iter().enumerate();
    values.filter(|(_, value)| !value.is_empty())
}

/// Returns true if there is a value in a field.
pub(super) fn is_begun(choices: &Choices) -> bool {
    choices[0].iter().any(|value| !value.is_empty())
}

impl MatchSet<'_> {
    /// Returns the match sets of a dataset. Fields of the other dataset identify nothing here.
    pub fn all<F: RecordFields>(matching: &[Vec<String>]) -> Vec<MatchSet<'_>> {
        let sets = matching.iter().enumerate().map(|(number, names)| {
            let fields = names
                .iter()
                .map(|name| (name.as_str(), column_indexes::<F>(&columns_of(name))));
            MatchSet {
                number,
                fields: fields.filter(|(_, columns)| !columns.is_empty()).collect(),
                ..MatchSet::default()
            }
        });
        sets.filter(|set| !set.fields.is_empty()).collect()
    }

    /// Returns the indexes of all columns of the set.
    pub fn columns(&self) -> Vec<usize> {
        let fields = self.fields.iter();
        fields.flat_map(|(_, columns)| columns.clone()).collect()
    }

    /// Returns the quoted names of the fields whose index is named.
    pub fn names(&self, is_named: &dyn Fn(usize) -> bool) -> String {
        let fields = self.fields.iter().enumerate();
        let named = fields.filter(|(at, _)| is_named(*at));
        format!("`{}`", named.map(|(_, (name, _))| name).joined("`, `"))
    }

    /// Returns true if a field of the set is an ISSN.
    pub fn has_issn(&self) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|(name, _)| ISSN_COLUMNS.contains(&columns_of(name)[0]))
    }

    /// Returns the comparable values of a row or record.
    pub fn choices<F: RecordFields>(&self, values: &[&dyn FieldValue]) -> Choices {
        let mut choices: Choices = vec![Vec::new()];
        for (_, columns) in &self.fields {
            let columns = columns.iter();
            let mut own: BTreeSet<String> = columns
                .map(|at| comparable_value(&F::table().fields[*at], values[*at]))
                .collect();
            if own.len() > 1 {
                own.remove("");
            }
            let extended = choices.iter().flat_map(|chosen| {
                own.iter()
                    .map(|value| [&chosen[..], slice::from_ref(value)].concat())
            });
            choices = extended.collect();
        }
        choices
    }

    /// Notes the values of a row. Only records with one of them are added later.
    pub fn want(&mut self, choices: &Choices) {
        for (field, value) in choices.iter().flat_map(|values| filled(values)) {
            self.by_value.entry((field, value.clone())).or_default();
        }
    }

    /// Adds a record to the index, if it shares a value with a row.
    pub fn add(&mut self, id: Id, choices: &Choices) {
        for values in choices {
            let kind = usize::from(is_complete(values));
            let mut is_shared = false;
            for (field, value) in filled(values) {
                if let Some(sharing) = self.by_value.get_mut(&(field, value.clone())) {
                    sharing[kind].push(self.records.len());
                    is_shared = true;
                }
            }
            if is_shared {
                self.by_values.entry(values.clone()).or_default().push(id);
                self.records.push((id, values.clone()));
            }
        }
    }

    /// Returns the records that equal a row in every field.
    pub fn find_equal(&self, choices: &Choices) -> BTreeSet<Id> {
        let complete = choices.iter().filter(|values| is_complete(values));
        complete
            .flat_map(|values| self.by_values.get(values))
            .flatten()
            .copied()
            .collect()
    }

    /// Returns the records that have values and gaps in the same fields as a row, and equal it there. There are none if
    /// other records agree with the row.
    pub fn find_same_gaps(&self, choices: &Choices) -> BTreeSet<Id> {
        let [values] = &choices[..] else {
            return BTreeSet::new();
        };
        let equal = self.by_values.get(values).map_or(&[][..], Vec::as_slice);
        let is_clear = self.find_partial(choices).all(|(_, id, _)| equal == [id]);
        let equal = equal.iter().filter(|_| is_clear);
        equal.copied().collect()
    }

    /// Returns the records that agree with a row in some fields, where the others are empty in the row or in the
    /// record. Each has the values of the row and its own.
    pub fn find_partial<'r>(
        &'r self,
        choices: &'r Choices,
    ) -> impl Iterator<Item = (&'r [String], Id, &'r [String])> {
        choices.iter().flat_map(|values| {
            // A complete record equals a complete row, or differs from it.
            let kinds = if is_complete(values) { 1 } else { 2 };
            let sharing = filled(values)
                .filter_map(|(field, value)| self.by_value.get(&(field, value.clone())))
                .flat_map(move |sharing| sharing.iter().take(kinds).flatten())
                .map(|at| &self.records[*at]);
            let agreeing = sharing.filter(|(_, other)| agree(values, other));
            agreeing.map(|(id, other)| (values.as_slice(), *id, other.as_slice()))
        })
    }
}

/// Returns true if no field has different values.
fn agree(values: &[String], others: &[String]) -> bool {
    let mut pairs = values.iter().zip(others);
    pairs.all(|(one, other)| one == other || one.is_empty() || other.is_empty())
}

/// Returns the indexes of the columns that the dataset has.
pub(super) fn column_indexes<F: RecordFields>(names: &[&str]) -> Vec<usize> {
    let columns = names.iter();
    columns
        .filter_map(|name| F::table().index_of(name))
        .collect()
}

/// Returns the form by which values are compared. The spelling of an ISSN does not count, nor the order of a list. Only
/// a valid ISSN has a form.
pub(super) fn comparable_value(field: &Field, value: &dyn FieldValue) -> String {
    let csv = value.to_csv(&());
    match field.kind {
        ValueKind::Texts => {
            let items: BTreeSet<String> =
                value.texts().iter().map(|text| match_form(text)).collect();
            items.into_iter().collect::<Vec<_>>().join(ITEM_SEPARATOR)
        }
        _ if field.column == "url" => comparable_address(csv.trim()),
        _ if ISSN_COLUMNS.contains(&field.column.as_str()) => {
            valid_issn(&field.column, &csv).unwrap_or_default()
        }
        ValueKind::Text => match_form(&csv),
        _ => Cow::into_owned(csv),
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
