//! A row whose rules hold: the only form in which rows reach the store.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::dataset::Dataset;
use super::field::{Member, Table};
use super::id::Id;
use super::license::{Rule, Scope};
use super::value::{FieldValue, ReferenceKind};

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
pub trait Fields: Member + Default + Clone + PartialEq + DeserializeOwned + Send + Sync + 'static {
    /// The stem of its import and export files, and its name in reports.
    const STEM: &'static str;

    /// The table of its fields, in the order of JSON keys and CSV columns.
    fn table() -> &'static Table;

    /// The rules of this kind of row that one row alone can break.
    fn faults(&self) -> Vec<Fault>;

    /// The row's name.
    fn name(&self) -> &str;
}

/// Implements [`Fields`] for a struct of [`fields!`](super::field::fields): its stem, and the rules that it can break.
macro_rules! row {
    ($row:ty, $stem:literal, |$fields:ident, $faults:ident| $rules:expr) => {
        impl $crate::model::curated::Fields for $row {
            const STEM: &'static str = $stem;

            fn table() -> &'static $crate::model::field::Table {
                static TABLE: std::sync::LazyLock<$crate::model::field::Table> =
                    std::sync::LazyLock::new($crate::model::field::Table::of::<$row>);
                &TABLE
            }

            fn faults(&self) -> Vec<$crate::model::curated::Fault> {
                let ($fields, mut found) = (self, Vec::new());
                let $faults = &mut found;
                $rules;
                found
            }

            fn name(&self) -> &str {
                self.name.as_deref().unwrap_or_default()
            }
        }
    };
}
pub(super) use row;

/// The fields of a kind of record: a row with links that licenses decide about.
pub trait RecordFields: Fields {
    /// The dataset of these records.
    const DATASET: Dataset;

    /// The linked rows of a kind, by id.
    fn links(&self, kind: ReferenceKind) -> &[Id] {
        Self::table().links(kind).map_or(&[], |field| self.values()[field].ids())
    }

    /// Replaces the links to rows of a kind.
    fn set_links(&mut self, kind: ReferenceKind, ids: Vec<Id>) {
        if let Some(field) = Self::table().links(kind) {
            self.values_mut()[field].set_ids(ids);
        }
    }

    /// Whether a license of this scope shows the record (docs/licenses.md). The dataset is not asked for here.
    fn is_in(&self, scope: &Scope) -> bool {
        !scope.is_restricted() || self.blocking_rules(scope).is_empty()
    }

    /// The sets of a scope that do not match the record, each with the value that it has. A kind of record without such
    /// fields is shown as a whole or not at all.
    fn blocking_rules(&self, scope: &Scope) -> Vec<(Rule, &dyn FieldValue)> {
        let fields = Self::table().fields.iter().zip(self.values());
        let scoped = fields.filter_map(|(field, value)| Some((field.uses.rule?, value)));
        let mut blocking: Vec<_> =
            scoped.filter(|(rule, value)| scope.set(*rule).is_some_and(|set| !set.matches(*value))).collect();
        blocking.sort_by_key(|(rule, _)| *rule);
        blocking
    }
}

/// A row whose rules hold, with its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
        fields.values_mut().into_iter().for_each(|value| value.normalize());
        let faults = fields.faults();
        if faults.is_empty() { Ok(Curated { id, fields }) } else { Err(faults) }
    }

    /// A row as it was stored.
    pub(super) fn stored(id: Id, fields: F) -> Curated<F> {
        Curated { id, fields }
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

/// The fault of a missing text.
pub(super) fn require(field: &'static str, text: &Option<String>, faults: &mut Vec<Fault>) {
    if text.is_none() {
        faults.push(Fault::of(field, "is required; give a text"));
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
