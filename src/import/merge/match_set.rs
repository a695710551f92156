//! The fields that identify records in rows without ids, and an index of the records by their values in them.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::slice;

use url::Url;

use crate::import::lint::valid_issn;
use crate::import::read::options::{ISSN_COLUMNS, columns_of};
use crate::model::field::Field;
use crate::model::fold::match_form;
use crate::model::message::Joined;
use crate::model::value::text::ITEM_SEPARATOR;
use crate::model::value::{FieldValue, ValueKind};
use crate::model::{Id, RecordFields};

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
    /// The values of the rows in each field. Records without any of them are not indexed.
    wanted: HashSet<(usize, String)>,
    /// The id and the values of each record. A record with two ISSNs is included once for each.
    records: Vec<(Id, Vec<String>)>,
    /// The records with these values in all fields.
    by_values: HashMap<Vec<String>, Vec<Id>>,
    /// The indexes of the records with a value in a field. The flag separates records that have values in all fields.
    by_value: HashMap<(bool, usize, String), Vec<usize>>,
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
        let is_issn = |(name, _): &(&str, Vec<usize>)| ISSN_COLUMNS.contains(&columns_of(name)[0]);
        self.fields.iter().any(is_issn)
    }

    /// Returns the comparable values of a row or record.
    pub fn choices<F: RecordFields>(&self, values: &[&dyn FieldValue]) -> Choices {
        let comparable = |at: &usize| comparable_value(&F::table().fields[*at], values[*at]);
        let mut choices = vec![Vec::new()];
        for (_, columns) in &self.fields {
            let mut values: BTreeSet<String> = columns.iter().map(comparable).collect();
            if values.len() > 1 {
                values.remove("");
            }
            let values = &values;
            let extended = choices.iter().flat_map(|chosen: &Vec<String>| {
                let with = |value: &String| [&chosen[..], slice::from_ref(value)].concat();
                values.iter().map(with)
            });
            choices = extended.collect();
        }
        choices
    }

    /// Notes the values of a row.
    pub fn want(&mut self, choices: &Choices) {
        let values = choices.iter().flat_map(|values| filled(values));
        self.wanted
            .extend(values.map(|(field, value)| (field, value.clone())));
    }

    /// Returns true if a row has one of these values in the same field.
    pub fn is_wanted(&self, choices: &Choices) -> bool {
        let mut values = choices.iter().flat_map(|values| filled(values));
        values.any(|(field, value)| self.wanted.contains(&(field, value.clone())))
    }

    /// Adds a record to the index.
    pub fn add(&mut self, id: Id, choices: Choices) {
        for values in choices {
            let is_complete = is_complete(&values);
            for (field, value) in filled(&values) {
                let key = (is_complete, field, value.clone());
                let sharing = self.by_value.entry(key).or_default();
                sharing.push(self.records.len());
            }
            self.by_values.entry(values.clone()).or_default().push(id);
            self.records.push((id, values));
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
            let kinds = if is_complete(values) { 0..=0 } else { 0..=1 };
            let keys = filled(values).flat_map(move |(field, value)| {
                let kinds = kinds.clone();
                kinds.map(move |kind| (kind == 1, field, value.clone()))
            });
            let sharing = keys.filter_map(|key| self.by_value.get(&key)).flatten();
            let sharing = sharing.map(|at| &self.records[*at]);
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
