//! Rules and their findings.

use crate::import::report::faults::FilePosition;
use crate::import::report::faults::Finding;
use crate::model::{Fault, Fields, Id, Message};

/// A rule about a single text, in any field of any row.
pub(in crate::import) struct TextRule {
    /// The name in reports and in docs/import.md.
    pub name: &'static str,
    /// Returns the problem of a field's text, and its remedy.
    pub find: fn(field: &str, text: &str) -> Option<Message>,
}

/// A rule about a row.
pub(in crate::import) struct RowRule<F> {
    /// The name in reports and in docs/import.md.
    pub name: &'static str,
    /// Returns the problem of a row, and its remedy.
    pub find: fn(&F) -> Option<Fault>,
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

    /// Returns the finding of a rule at this location.
    pub(super) fn finding(
        &self,
        rule: &'static str,
        field: &str,
        value: Option<&str>,
        message: impl Into<Message>,
    ) -> Finding {
        let finding = match self {
            RowLocation::File(position) => Finding::new(position, Some(field), value, message.into()),
            RowLocation::Database(kind, id) => {
                Finding { kind: Some(kind), id: Some(*id), ..Finding::about(Some(field), value, message.into()) }
            }
        };
        Finding { rule: Some(rule), ..finding }
    }
}
