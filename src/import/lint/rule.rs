//! What a rule is, and what it finds.

use crate::import::report::FilePosition;
use crate::import::report::Finding;
use crate::model::{Fault, Fields, Id};

/// A rule about one text, in whatever field of whatever row it stands.
pub(in crate::import) struct TextRule {
    /// Its name in reports and in docs/import.md.
    pub name: &'static str,
    /// What is wrong with the text of a field, and what to do about it.
    pub find: fn(field: &str, text: &str) -> Option<String>,
}

/// A rule about one row.
pub(in crate::import) struct RowRule<F> {
    /// Its name in reports and in docs/import.md.
    pub name: &'static str,
    /// What is wrong with the row, and what to do about it.
    pub find: fn(&F) -> Option<Fault>,
}

/// What a rule found in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) struct Hit {
    pub rule: &'static str,
    pub field: String,
    pub value: Option<String>,
    pub message: String,
}

/// Where a row stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowLocation {
    /// In a file.
    File(FilePosition),
    /// In the database: its kind (the stem of its files), and its id.
    Database(&'static str, Id),
}

impl RowLocation {
    /// The place of a row of the database.
    pub fn of_stored<F: Fields>(id: Id) -> RowLocation {
        RowLocation::Database(F::STEM, id)
    }

    /// The place in a message about another row.
    pub fn describe(&self) -> String {
        match self {
            RowLocation::File(position) => format!("at {position}"),
            RowLocation::Database(..) => "in the database".to_owned(),
        }
    }

    /// The finding of a rule at this place.
    pub(super) fn finding(&self, hit: &Hit) -> Finding {
        let Hit { rule, field, value, message } = hit;
        let finding = match self {
            RowLocation::File(position) => Finding::new(position, Some(field), value.as_deref(), message),
            RowLocation::Database(kind, id) => Finding::of_record(kind, *id, Some(field), value.as_deref(), message),
        };
        finding.of_rule(rule)
    }
}
