//! A row that follows all rules. Only such rows reach the store.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::dataset::{Dataset, Id};
use super::field::{FieldTable, RowMember};
use super::license::{Rule, Scope};
use super::message::{Message, message};
use super::value::{FieldValue, ReferenceKind};

/// A broken rule of a row, and what to write instead.
#[derive(Debug)]
pub struct Fault {
    /// The field's name, such as `formats.oral`.
    pub field: &'static str,
    /// The offending value, if there is one to show.
    pub value: Option<String>,
    /// The rule and the remedy.
    pub message: Message,
}

impl Fault {
    /// Returns a fault without a value to show.
    pub fn of(field: &'static str, message: impl Into<Message>) -> Fault {
        Fault {
            field,
            value: None,
            message: message.into(),
        }
    }

    /// Returns a fault of a field's value.
    pub fn of_value(
        field: &'static str,
        value: impl ToString,
        message: impl Into<Message>,
    ) -> Fault {
        Fault {
            field,
            value: Some(value.to_string()),
            message: message.into(),
        }
    }
}

/// The fields of a kind of row, apart from its id.
pub trait Fields:
    RowMember + Default + Clone + PartialEq + DeserializeOwned + Send + Sync + 'static
{
    /// The stem of the import and export files, and the name in reports.
    const STEM: &'static str;

    /// Returns the table of the fields, in the order of JSON keys and CSV columns.
    fn table() -> &'static FieldTable;

    /// Checks the rules of this kind of row that need only the row itself.
    fn faults(&self) -> Vec<Fault>;

    /// Returns the row's name.
    fn name(&self) -> &str;
}

/// Implements [`Fields`] for a struct of [`fields!`](super::field::fields), with its stem and its rules.
macro_rules! row {
    ($row:ty, $stem:literal, |$fields:ident, $faults:ident| $rules:expr) => {
        impl $crate::model::curated::Fields for $row {
            const STEM: &'static str = $stem;

            fn table() -> &'static $crate::model::field::FieldTable {
                static TABLE: std::sync::LazyLock<$crate::model::field::FieldTable> =
                    std::sync::LazyLock::new($crate::model::field::FieldTable::of::<$row>);
                &TABLE
            }

            fn faults(&self) -> Vec<$crate::model::curated::Fault> {
                let $fields = self;
                let mut found = Vec::new();
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

/// The fields of a kind of record: a row that licenses show or hide.
pub trait RecordFields: Fields {
    /// The dataset of these records.
    const DATASET: Dataset;

    /// Returns the ids of the linked rows of a kind.
    fn links(&self, kind: ReferenceKind) -> &[Id] {
        Self::table()
            .links(kind)
            .map_or(&[], |field| self.values()[field].ids())
    }

    /// Replaces the links to rows of a kind.
    fn set_links(&mut self, kind: ReferenceKind, ids: Vec<Id>) {
        if let Some(field) = Self::table().links(kind) {
            self.values_mut()[field].set_ids(ids);
        }
    }

    /// Whether a license of this scope shows the record (docs/licenses.md). Does not check the dataset.
    fn is_in(&self, scope: &Scope) -> bool {
        !scope.is_restricted() || self.blocking_rules(scope).is_empty()
    }

    /// Returns the sets of a scope that do not match the record, each with the record's value. Journals have no such
    /// fields, so they are never blocked.
    fn blocking_rules(&self, scope: &Scope) -> Vec<(Rule, &dyn FieldValue)> {
        let fields = Self::table().fields.iter().zip(self.values());
        let scoped = fields.filter_map(|(field, value)| Some((field.uses.rule?, value)));
        let mut blocking: Vec<_> = scoped
            .filter(|(rule, value)| scope.set(*rule).is_some_and(|set| !set.matches(*value)))
            .collect();
        blocking.sort_by_key(|(rule, _)| *rule);
        blocking
    }
}

/// A row that follows all rules, with its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curated<F> {
    id: Id,
    /// Apart, since maps of rows have empty places.
    fields: Box<F>,
}

impl<F: Fields> Curated<F> {
    /// Normalizes the fields (lists ordered and deduplicated, empty texts null) and checks the rules that need only
    /// this row.
    ///
    /// # Errors
    /// All broken rules.
    pub fn new(id: Id, mut fields: F) -> Result<Curated<F>, Vec<Fault>> {
        fields
            .values_mut()
            .into_iter()
            .for_each(|value| value.normalize());
        let mut faults = fields.faults();
        faults.extend(nul_faults(&fields));
        if faults.is_empty() {
            Ok(Curated::stored(id, fields))
        } else {
            Err(faults)
        }
    }

    /// Returns a stored row, without checks.
    pub(super) fn stored(id: Id, fields: F) -> Curated<F> {
        let fields = Box::new(fields);
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

    /// Returns the fields, to edit them and check them again.
    pub fn into_fields(self) -> F {
        *self.fields
    }
}

/// Returns a fault for each field with a text that contains U+0000. Many databases and programs cannot store it.
fn nul_faults<F: Fields>(fields: &F) -> impl Iterator<Item = Fault> {
    let values = F::table().fields.iter().zip(fields.values());
    values.filter_map(|(field, value)| {
        let text = value.texts().iter().find(|text| text.contains('\0'))?;
        Some(Fault::of_value(
            &field.name,
            text,
            "contains the character U+0000, which many databases cannot store; remove it",
        ))
    })
}

/// Reports a missing text.
pub(super) fn require(field: &'static str, text: &Option<String>, faults: &mut Vec<Fault>) {
    if text.is_none() {
        faults.push(Fault::of(field, "is required; give a text"));
    }
}

/// Reports a text that contains `separator`, which separates items in CSV lists.
pub(super) fn forbid_separator(
    field: &'static str,
    text: &str,
    separator: &str,
    faults: &mut Vec<Fault>,
) {
    if text.contains(separator) {
        faults.push(Fault::of_value(
            field,
            text,
            message!("must not contain `{separator}`, which separates items in the CSV export; use another sign"),
        ));
    }
}
