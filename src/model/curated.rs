//! A row whose rules hold: the only form in which rows reach the store.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::dataset::Dataset;
use super::field::{Member, Table};
use super::id::Id;
use super::license::Scope;
use super::value::ReferenceKind;

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
pub trait Fields: Member + Default + Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {
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

    /// The record's abbreviation.
    fn abbv(&self) -> Option<&str>;

    /// The linked organizations, by id.
    fn organizations(&self) -> &[Id] {
        self.links(ReferenceKind::Organization)
    }

    /// The linked tags, by id.
    fn tags(&self) -> &[Id] {
        self.links(ReferenceKind::Tag)
    }

    /// The linked rows of a kind, by id.
    fn links(&self, kind: ReferenceKind) -> &Vec<Id>;

    /// The linked rows of a kind, to be edited.
    fn links_mut(&mut self, kind: ReferenceKind) -> &mut Vec<Id>;

    /// Whether a license of this scope shows the record (README, "Licenses").
    fn is_in(&self, scope: &Scope) -> bool;
}

/// Implements [`RecordFields`] for a kind of row: its dataset, and whether a scope shows the record.
macro_rules! record {
    ($row:ty, $dataset:expr, |$record:ident, $scope:ident| $is_in:expr) => {
        impl $crate::model::RecordFields for $row {
            const DATASET: $crate::model::Dataset = $dataset;

            fn abbv(&self) -> Option<&str> {
                self.abbv.as_deref()
            }

            fn links(&self, kind: $crate::model::ReferenceKind) -> &Vec<$crate::model::Id> {
                match kind {
                    $crate::model::ReferenceKind::Organization => &self.organizations,
                    $crate::model::ReferenceKind::Tag => &self.tags,
                }
            }

            fn links_mut(&mut self, kind: $crate::model::ReferenceKind) -> &mut Vec<$crate::model::Id> {
                match kind {
                    $crate::model::ReferenceKind::Organization => &mut self.organizations,
                    $crate::model::ReferenceKind::Tag => &mut self.tags,
                }
            }

            fn is_in(&self, $scope: &$crate::model::Scope) -> bool {
                let $record = self;
                $is_in
            }
        }
    };
}
pub(super) use record;

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
        fields.values_mut().into_iter().for_each(|value| value.normalize());
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
