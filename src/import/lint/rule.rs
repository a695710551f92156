//! Rules, the locations of their findings, and the rows that share a value.

use crate::import::findings::{FilePosition, Finding};
use crate::model::{Fault, Id, Message};

/// A rule: its name in reports and in docs/import.md, and a function that returns a problem and its remedy.
pub(crate) type Rule<F> = (&'static str, F);

/// A rule about a single text, in any field of any row.
pub(crate) type TextRule = Rule<fn(field: &str, text: &str) -> Option<Message>>;

/// A rule about a row.
pub(crate) type RowRule<F> = Rule<fn(&F) -> Option<Fault>>;

/// The location of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowLocation {
    /// A line of a file. For the full object of a link, also the field that contains it.
    File(FilePosition, Option<&'static str>),
    /// In the database: the kind of the row, which is the stem of its file names, and its id.
    Database(&'static str, Id),
}

impl RowLocation {
    /// Returns the location as part of a sentence.
    pub fn describe(&self) -> String {
        match self {
            RowLocation::File(position, _) => format!("at {position}"),
            RowLocation::Database(..) => "in the database".to_owned(),
        }
    }

    /// Returns the finding of a rule at this location.
    pub fn finding(
        &self,
        rule: &'static str,
        field: &str,
        value: Option<&str>,
        message: impl Into<Message>,
    ) -> Finding {
        let finding = match self {
            RowLocation::File(position, within) => {
                let within = within
                    .map(|within| format!("{within}."))
                    .unwrap_or_default();
                let field = within + field;
                Finding::new(position, Some(&field), value, message.into())
            }
            RowLocation::Database(kind, id) => Finding {
                kind: Some(kind),
                id: Some(*id),
                ..Finding::about(Some(field), value, message.into())
            },
        };
        Finding {
            rule: Some(rule),
            ..finding
        }
    }
}

/// The rows that have a value.
#[derive(Debug, Default)]
pub struct Uses {
    /// The number of rows that have it after the import.
    pub total: usize,
    /// The number of rows to which the import brings it.
    pub brought: usize,
    /// The location of the first of these.
    pub first: Option<RowLocation>,
    /// Whether the database has it before the import.
    pub is_stored: bool,
}

impl Uses {
    /// Adds a row of the import.
    pub fn add(&mut self, location: &RowLocation, is_brought: bool) {
        self.total += 1;
        if is_brought {
            self.brought += 1;
            self.first.get_or_insert_with(|| location.clone());
        }
    }

    /// Adds a record of the database. `is_kept` says that the import neither sets nor removes it.
    pub fn add_stored(&mut self, is_kept: bool) {
        self.is_stored = true;
        self.total += usize::from(is_kept);
    }
}
