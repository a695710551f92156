//! Rules and their findings.

use crate::import::report::faults::FilePosition;
use crate::import::report::faults::Finding;
use crate::model::{Fault, Fields, Id};

/// A rule about a single text, in any field of any row.
pub(in crate::import) struct TextRule {
    /// The name in reports and in docs/import.md.
    pub name: &'static str,
    /// Returns the problem of a field's text, and its remedy.
    pub find: fn(field: &str, text: &str) -> Option<String>,
}

/// A rule about a row.
pub(in crate::import) struct RowRule<F> {
    /// The name in reports and in docs/import.md.
    pub name: &'static str,
    /// Returns the problem of a row, and its remedy.
    pub find: fn(&F) -> Option<Fault>,
}

/// A finding of a rule, without its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) struct Hit {
    pub rule: &'static str,
    pub field: String,
    pub value: Option<String>,
    pub message: String,
}

/// The location of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowLocation {
    /// A line of a file.
    File(FilePosition),
    /// In the database: the kind of the row, which is the stem of its file names, and its id.
    Database(&'static str, Id),
}

impl RowLocation {
    /// Returns the location of a stored row.
    pub fn of_stored<F: Fields>(id: Id) -> RowLocation {
        RowLocation::Database(F::STEM, id)
    }

    /// Returns the location as part of a sentence.
    pub fn describe(&self) -> String {
        match self {
            RowLocation::File(position) => format!("at {position}"),
            RowLocation::Database(..) => "in the database".to_owned(),
        }
    }

    /// Returns the finding at this location.
    pub(super) fn finding(&self, hit: &Hit) -> Finding {
        let Hit { rule, field, value, message } = hit;
        let finding = match self {
            RowLocation::File(position) => Finding::new(position, Some(field), value.as_deref(), message),
            RowLocation::Database(kind, id) => Finding::of_record(kind, *id, Some(field), value.as_deref(), message),
        };
        finding.of_rule(rule)
    }
}
