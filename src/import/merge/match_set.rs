//! The fields that identify records in rows without ids, and an index of the records by their values in them.

use std::collections::{BTreeSet, HashMap};

use url::Url;

use crate::import::findings::shortened;
use crate::import::lint::valid_issn;
use crate::import::read::options::{ISSN_COLUMNS, columns_of};
use crate::model::value::text::ITEM_SEPARATOR;
use crate::model::{Field, FieldValue, Id, Joined, RecordFields, ValueKind, country, match_form};

/// The comparable values of a row or record in each field of a match set: none, one, or two ISSNs.
pub type MatchValues = Vec<Vec<String>>;

/// A field of a match set.
#[derive(Default)]
struct MatchField<'a> {
    name: &'a str,
    /// The columns in the table of a dataset: both ISSNs for `issn`, else one.
    columns: Vec<usize>,
    /// For each value of a row, the indexes of the records with this value: of those with gaps in other fields, and of
    /// complete ones.
    records: HashMap<String, [Vec<usize>; 2]>,
}

/// A set of fields that identifies records, and an index of the records that share a value with a row.
#[derive(Default)]
pub struct MatchSet<'a> {
    /// The index of the set in the options.
    pub number: usize,
    fields: Vec<MatchField<'a>>,
    /// The values of the rows without ids, by their indexes.
    rows: HashMap<usize, MatchValues>,
    /// The records that share a value with a row.
    records: Vec<(Id, MatchValues)>,
}

/// Returns true if there is a value in each field.
fn is_complete(values: &MatchValues) -> bool {
    values.iter().all(|values| !values.is_empty())
}

/// Returns true if no field has different values.
fn agree(one: &MatchValues, other: &MatchValues) -> bool {
    one.iter().zip(other).all(|(one, other)| {
        let is_shared = one.iter().any(|value| other.contains(value));
        is_shared || one.is_empty() || other.is_empty()
    })
}

impl MatchField<'_> {
    /// Returns the records that share a value with a row, one list for each value: complete ones, or those with gaps.
    fn sharing(
        &self,
        values: &[String],
        are_complete: bool,
    ) -> impl Iterator<Item = &Vec<usize>> + Clone {
        values
            .iter()
            .filter_map(|value| self.records.get(value))
            .map(move |records| &records[usize::from(are_complete)])
    }
}

impl MatchSet<'_> {
    /// Returns the match sets of a dataset. Fields of the other dataset identify nothing here.
    pub fn all<F: RecordFields>(matching: &[Vec<String>]) -> Vec<MatchSet<'_>> {
        let sets = matching.iter().enumerate().map(|(number, names)| {
            let fields = names.iter().map(|name| {
                let columns = columns_of(name).into_iter();
                MatchField {
                    name,
                    columns: columns
                        .filter_map(|column| F::table().index_of(column))
                        .collect(),
                    ..MatchField::default()
                }
            });
            MatchSet {
                number,
                fields: fields.filter(|field| !field.columns.is_empty()).collect(),
                ..MatchSet::default()
            }
        });
        sets.filter(|set| !set.fields.is_empty()).collect()
    }

    /// Returns the indexes of all columns of the set.
    pub fn columns(&self) -> Vec<usize> {
        self.fields
            .iter()
            .flat_map(|field| field.columns.clone())
            .collect()
    }

    /// Returns the quoted names of the fields whose index is named.
    pub fn names(&self, is_named: impl Fn(usize) -> bool) -> String {
        let named = self
            .fields
            .iter()
            .enumerate()
            .filter(|(at, _)| is_named(*at));
        format!("`{}`", named.map(|(_, field)| field.name).joined("`, `"))
    }

    /// Returns true if a field of the set is an ISSN.
    pub fn has_issn(&self) -> bool {
        self.fields
            .iter()
            .any(|field| field.name.starts_with("issn"))
    }

    fn values<F: RecordFields>(&self, row: &[&dyn FieldValue]) -> MatchValues {
        self.fields
            .iter()
            .map(|field| {
                let values = field
                    .columns
                    .iter()
                    .map(|at| comparable_value(&F::table().fields[*at], row[*at]));
                let mut values: Vec<String> = values.filter(|value| !value.is_empty()).collect();
                values.dedup();
                values
            })
            .collect()
    }

    /// Adds a row. Only records with one of its values are added later. Returns false if the row has no value.
    pub fn add_row<F: RecordFields>(&mut self, at: usize, row: &[&dyn FieldValue]) -> bool {
        let values = self.values::<F>(row);
        for (field, values) in self.fields.iter_mut().zip(&values) {
            for value in values {
                field.records.entry(value.clone()).or_default();
            }
        }
        let is_begun = values.iter().any(|values| !values.is_empty());
        self.rows.insert(at, values);
        is_begun
    }

    /// Adds a record to the index, if it shares a value with a row.
    pub fn add<F: RecordFields>(&mut self, id: Id, record: &[&dyn FieldValue]) {
        let values = self.values::<F>(record);
        let kind = usize::from(is_complete(&values));
        let mut is_shared = false;
        for (field, values) in self.fields.iter_mut().zip(&values) {
            for value in values {
                if let Some(sharing) = field.records.get_mut(value) {
                    sharing[kind].push(self.records.len());
                    is_shared = true;
                }
            }
        }
        if is_shared {
            self.records.push((id, values));
        }
    }

    /// Returns the records that equal a row in every field.
    pub fn find_equal(&self, row: usize) -> BTreeSet<Id> {
        let values = &self.rows[&row];
        if !is_complete(values) {
            return BTreeSet::new();
        }
        let fewest = self
            .fields
            .iter()
            .zip(values)
            .map(|(field, values)| field.sharing(values, true))
            .min_by_key(|lists| lists.clone().map(Vec::len).sum::<usize>());
        let equal = fewest
            .into_iter()
            .flatten()
            .flatten()
            .map(|at| &self.records[*at])
            .filter(|(_, others)| agree(values, others));
        equal.map(|(id, _)| *id).collect()
    }

    /// Returns the record that has values and gaps in the same fields as a row, and equals it there. There is none if
    /// other records agree with the row, or if it has two values in a field.
    pub fn find_same_gaps(&self, row: usize) -> Option<Id> {
        let values = &self.rows[&row];
        let mut agreeing = self.find_partial(row);
        let (id, others) = agreeing.next()?;
        let mut fields = values.iter().zip(others);
        let is_same =
            fields.all(|(one, other)| one.len() < 2 && one.is_empty() == other.is_empty());
        (is_same && agreeing.all(|(other, _)| other == id)).then_some(*id)
    }

    /// Returns the records that agree with a row in some fields, where the others are empty in the row or in the
    /// record.
    pub fn find_partial(&self, row: usize) -> impl Iterator<Item = &(Id, MatchValues)> {
        let values = &self.rows[&row];
        // A complete record equals a complete row, or differs from it.
        let kinds = if is_complete(values) {
            &[false][..]
        } else {
            &[false, true]
        };
        let records = self
            .fields
            .iter()
            .zip(values)
            .flat_map(|(field, values)| {
                kinds
                    .iter()
                    .flat_map(move |kind| field.sharing(values, *kind))
            })
            .flatten()
            .map(|at| &self.records[*at]);
        records.filter(|(_, others)| agree(values, others))
    }

    /// Returns true if two rows without ids fill the set, and differ in it.
    pub fn distinguishes(&self, one: usize, other: usize) -> bool {
        self.rows
            .get(&one)
            .zip(self.rows.get(&other))
            .is_some_and(|(one, other)| {
                is_complete(one) && is_complete(other) && !agree(one, other)
            })
    }

    /// Describes in which fields a row agrees with a record, and which are missing on either side.
    pub fn describe_gaps(&self, row: usize, others: &MatchValues) -> String {
        let values = &self.rows[&row];
        let agreeing = self.names(|at| !values[at].is_empty() && !others[at].is_empty());
        let lacking = [("the row has no", values), ("the other has no", others)]
            .into_iter()
            .filter(|(_, values)| !is_complete(values))
            .map(|(who, values)| format!("{who} {}", self.names(|at| values[at].is_empty())));
        format!("{agreeing} agrees, but {}", lacking.joined(", and "))
    }

    /// Returns the fields of the set with the values of a row.
    pub fn describe_values(&self, row: &[&dyn FieldValue]) -> String {
        self.fields
            .iter()
            .map(|MatchField { name, columns, .. }| {
                let filled = columns
                    .iter()
                    .map(|at| row[*at].to_csv(&()))
                    .filter(|text| !text.is_empty());
                format!(
                    "`{name}` `{}`",
                    filled.map(|text| visible(&text)).joined(", ")
                )
            })
            .joined(", ")
    }
}

/// Returns a text, or its escaped form if it is blank.
fn visible(text: &str) -> String {
    let mut letters = text.chars();
    if letters.all(|letter| !letter.is_alphanumeric() && !letter.is_ascii_graphic()) {
        return text.escape_default().to_string();
    }
    shortened(text)
}

/// Returns the form by which values are compared. The spelling of an ISSN does not count, nor the order of a list. Only
/// a valid ISSN has a form.
fn comparable_value(field: &Field, value: &dyn FieldValue) -> String {
    let csv = value.to_csv(&());
    match field.kind {
        ValueKind::Texts => {
            let items = value.texts().iter().map(|text| match_form(text));
            let items: BTreeSet<String> = items.collect();
            items.iter().joined(ITEM_SEPARATOR)
        }
        _ if field.column == "url" => comparable_address(csv.trim()),
        _ if ISSN_COLUMNS.contains(&field.column.as_str()) => {
            valid_issn(&field.column, &csv).unwrap_or_default()
        }
        ValueKind::Text => match_form(&csv),
        _ => csv.into_owned(),
    }
}

/// Returns the meaning of a value: a text without differences of spelling. The names of a country mean the same.
pub fn meaning(field: &Field, value: &dyn FieldValue) -> String {
    let text = value.to_csv(&());
    let form = match field.kind {
        ValueKind::Text if field.column == "country" => country::comparable(&text),
        ValueKind::Text => comparable_value(field, value),
        _ => String::new(),
    };
    if form.is_empty() {
        text.into_owned()
    } else {
        form
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
