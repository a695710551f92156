//! Rows of files, not yet merged with stored rows.

use std::sync::Arc;

use crate::import::findings::{FilePosition, Finding, Findings};
use crate::import::read::options::{OptionEffects, ReadOptions};
use crate::import::read::statement::Statement;
use crate::import::row_faults::{FileLog, RowFaults, UnknownNames};
use crate::model::{
    ConferenceFields, Fields, Id, JournalFields, Message, OrganizationFields, TagFields,
};

/// All rows of an import, with the faults found while reading.
#[derive(Clone, Debug, Default)]
pub struct ImportRows {
    pub(super) organizations: Vec<ImportRow<OrganizationFields>>,
    pub(super) tags: Vec<ImportRow<TagFields>>,
    pub(super) conferences: Vec<ImportRow<ConferenceFields>>,
    pub(super) journals: Vec<ImportRow<JournalFields>>,
    /// The faults so far. Merging adds its own.
    pub bad: Findings,
    pub(super) warnings: Findings,
    /// Effects of the options that the user may want to know.
    pub(super) notes: Vec<Finding>,
    /// The effects of the options so far.
    pub(super) effects: OptionEffects,
    /// The sets of fields that identify records in rows without an id.
    pub(super) matching: Vec<Vec<String>>,
    /// Whether to create unknown organizations and tags that records link to by name.
    pub(super) create_links: bool,
}

impl ImportRows {
    /// Returns the number of rows, and for each field how many of them have a value for it.
    pub fn filled_fields(&self) -> (usize, Vec<(&'static str, usize)>) {
        let mut count = 0;
        let mut filled = Vec::new();
        count_filled(&self.organizations, &mut count, &mut filled);
        count_filled(&self.tags, &mut count, &mut filled);
        count_filled(&self.conferences, &mut count, &mut filled);
        count_filled(&self.journals, &mut count, &mut filled);
        (count, filled)
    }
}

fn count_filled<F: Fields>(
    rows: &[ImportRow<F>],
    count: &mut usize,
    filled: &mut Vec<(&'static str, usize)>,
) {
    *count += rows.len();
    for (index, field) in F::table().fields.iter().enumerate() {
        let has_value = |row: &&ImportRow<F>| match &row.edit {
            RowEdit::Set(statement) => !statement.is_empty(index),
            RowEdit::Remove => false,
        };
        match rows.iter().filter(has_value).count() {
            0 => {}
            with_value => filled.push((&field.column, with_value)),
        }
    }
}

/// A row of a file.
#[derive(Clone, Debug)]
pub(super) struct ImportRow<F> {
    pub position: FilePosition,
    /// `None` if other fields identify the record.
    pub id: Option<Id>,
    pub edit: RowEdit<F>,
    /// Whether the row looks like a heading or a note. Such a row changes a stored record, and never makes one.
    pub may_be_note: bool,
    /// Whether a fault of the row is reported. Its valid values still count when other rows are checked, so one mistake
    /// is not reported many times.
    pub is_bad: bool,
}

/// The fault of a row that may be a note and matches no record.
pub(super) const MAY_BE_NOTE: &str = "matches no record, and has so few values that it may be a heading or a note; remove it, \
                                      leave it out by [where] in a recipe, or fill it in";

/// The change that a row makes.
#[derive(Clone, Debug)]
pub(super) enum RowEdit<F> {
    /// Sets the fields that the row contains. Other fields keep their stored values.
    Set(Box<Statement<F>>),
    Remove,
}

/// The members that the service adds to records and to removed ones. They are ignored, so that exports and changes can
/// be imported.
pub(super) const ADDED_TO_RECORDS: [&str; 2] = ["updated_at", "changed_at"];

/// The output of the reader of one file.
pub(super) struct FileRows<'a, F> {
    pub file: &'a Arc<str>,
    pub options: &'a ReadOptions,
    pub rows: &'a mut Vec<ImportRow<F>>,
    pub bad: &'a mut Findings,
    pub unknown: UnknownNames,
    pub warnings: &'a mut Findings,
    pub effects: &'a mut OptionEffects,
}

impl<F> FileRows<'_, F> {
    /// Adds the row that starts at `line`. `read` parses it and reports its faults. A row with an invalid id is not
    /// added.
    pub fn add(
        &mut self,
        line: u64,
        read: impl FnOnce(&mut RowFaults<'_>) -> Option<(Option<Id>, RowEdit<F>)>,
    ) {
        let position = FilePosition {
            file: self.file.clone(),
            line,
        };
        let log = FileLog {
            unknown: &mut self.unknown,
            warnings: self.warnings,
            effects: self.effects,
        };
        let mut faults = RowFaults::new(&position, self.bad).of_file(log);
        if let Some((id, edit)) = read(&mut faults) {
            let is_bad = faults.has_fault();
            self.rows.push(ImportRow {
                position,
                id,
                edit,
                may_be_note: false,
                is_bad,
            });
        }
    }

    /// Reports a row that cannot be parsed.
    pub fn add_fault(&mut self, line: u64, message: impl Into<Message>) {
        self.bad.push(
            &FilePosition {
                file: self.file.clone(),
                line,
            },
            None,
            None,
            message,
        );
    }

    /// Adds a warning about the unknown names that were ignored. `what` is their kind.
    pub fn warn_of_ignored(&mut self, line: Option<u64>, what: &str) {
        if let Some(message) = self.unknown.ignored(what) {
            self.warn(line, message);
        }
    }

    /// Adds a warning.
    pub fn warn(&mut self, line: Option<u64>, message: Message) {
        let file = Some(self.file.to_string());
        self.warnings.add(Finding {
            file,
            line,
            ..Finding::about(None, None, message)
        });
    }
}
