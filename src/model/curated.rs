//! A row whose rules hold: the only form in which rows reach the store.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::field::{Field, Slot, Value};
use super::json::Layout;
use super::{Dataset, Id, Scope};

/// What is wrong with a row, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The field's name, such as `formats.oral`.
    pub field: &'static str,
    /// The offending value, where there is one to show.
    pub value: Option<String>,
    /// The rule and the remedy, a sentence without a full stop.
    pub message: String,
}

impl Fault {
    /// A fault of a field that has no value to show.
    pub fn of(field: &'static str, message: impl Into<String>) -> Fault {
        Fault { field, value: None, message: message.into() }
    }

    /// A fault of a field's value.
    pub fn of_value(field: &'static str, value: impl ToString, message: impl Into<String>) -> Fault {
        Fault { field, value: Some(value.to_string()), message: message.into() }
    }
}

/// The fields of a kind of row, apart from its id.
pub trait Fields: Default + Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The stem of its import and export files, and its name in reports.
    const STEM: &'static str;

    /// The table of its fields, in the order of JSON keys and CSV columns.
    fn table() -> &'static [Field<Self>];

    /// The JSON text around its values, worked out once.
    fn layout() -> &'static Layout;

    /// The rules of this kind of row that one row alone can break.
    fn faults(&self) -> Vec<Fault>;
}

/// The fields of a kind of record: a row with links that licenses decide about.
pub trait RecordFields: Fields {
    /// The dataset of these records.
    const DATASET: Dataset;

    /// The record's name.
    fn name(&self) -> &str;

    /// The record's abbreviation.
    fn abbv(&self) -> Option<&str>;

    /// The linked organizations, by id.
    fn organizations(&self) -> &[Id];

    /// The linked tags, by id.
    fn tags(&self) -> &[Id];

    /// Whether a license of this scope shows the record (README, "Licenses").
    fn is_in(&self, scope: &Scope) -> bool;
}

/// A row whose rules hold, with its id. It can only be made by [`Curated::new`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "F: Fields")]
pub struct Curated<F> {
    id: Id,
    fields: F,
}

impl<F: Fields> Curated<F> {
    /// Brings the fields into their stored form (lists ordered, each item once; empty texts null) and checks every
    /// rule that one row alone can break.
    ///
    /// # Errors
    /// All faults of the row, in the order of its fields' rules.
    pub fn new(id: Id, mut fields: F) -> Result<Curated<F>, Vec<Fault>> {
        for field in F::table() {
            match (field.slot)(&mut fields) {
                Slot::Text(place) if place.as_deref() == Some("") => *place = None,
                Slot::Texts(items) => {
                    items.sort_unstable();
                    items.dedup();
                }
                Slot::Organizations(ids) | Slot::Tags(ids) => {
                    ids.sort_unstable();
                    ids.dedup();
                }
                _ => {}
            }
        }
        let faults = fields.faults();
        if faults.is_empty() { Ok(Curated { id, fields }) } else { Err(faults) }
    }

    /// The row's id.
    pub fn id(&self) -> Id {
        self.id
    }

    /// The row's fields.
    pub fn fields(&self) -> &F {
        &self.fields
    }

    /// The row's fields, to be edited and checked anew.
    pub fn into_fields(self) -> F {
        self.fields
    }
}

/// The fault of a missing name.
pub(super) fn require_text<F>(fields: &F, field: &Field<F>, faults: &mut Vec<Fault>) {
    if let Value::Text(None) = (field.get)(fields) {
        faults.push(Fault::of(field.name, "is required; give a text"));
    }
}

/// Faults of a text that stands in lists of the CSV, where `separator` has a meaning of its own.
pub(super) fn forbid_separator(field: &'static str, text: &str, separator: &str, faults: &mut Vec<Fault>) {
    if text.contains(separator) {
        faults.push(Fault::of_value(
            field,
            text,
            format!("must not contain `{separator}`, which separates items in the CSV export; use another sign"),
        ));
    }
}
