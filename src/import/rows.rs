//! Rows of files, not yet merged with stored rows.

use std::collections::HashSet;
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
    /// How the rows find their records, and what they may change in them.
    pub(super) list: ListOptions,
}

impl ImportRows {
    /// Returns how many rows fill each field, for the kinds that have rows.
    pub fn filled_fields(&self) -> Vec<FilledFields> {
        let mut filled = vec![
            FilledFields::of(&self.organizations),
            FilledFields::of(&self.tags),
            FilledFields::of(&self.conferences),
            FilledFields::of(&self.journals),
        ];
        filled.retain(|of_kind| of_kind.rows > 0);
        filled
    }

    /// Removes rows with faults, and the faults of reading.
    pub(super) fn leave_out(&mut self, bad: &HashSet<FilePosition>) {
        self.organizations
            .retain(|row| !bad.contains(&row.position));
        self.tags.retain(|row| !bad.contains(&row.position));
        self.conferences.retain(|row| !bad.contains(&row.position));
        self.journals.retain(|row| !bad.contains(&row.position));
        self.bad = Findings::default();
    }

    /// Drops the rows, which are merged.
    pub fn forget_rows(&mut self) {
        let effects = std::mem::take(&mut self.effects);
        *self = ImportRows {
            effects,
            ..ImportRows::default()
        };
    }

    /// Returns the last line of a file's header, if it is a table.
    pub(super) fn header_line(&self, file: &str) -> Option<u64> {
        self.effects.header_lines.get(file).copied()
    }
}

/// How the rows of a list of others find their records, and what they may change in them (docs/recipes.md). Fields are
/// named by their columns.
#[derive(Clone, Debug, Default)]
pub(super) struct ListOptions {
    /// Whether the files are lists of others: whether they are read with `match`.
    pub is_list: bool,
    /// The sets of fields that identify records in rows without an id.
    pub matching: Vec<Vec<String>>,
    /// Whether rows without a record are left out.
    pub leaves_out_new: bool,
    /// The fields that known records take, even if only the spelling differs; `None` for all that differ in meaning.
    pub update: Option<Vec<String>>,
    /// The fields that empty cells clear.
    pub clear: Vec<String>,
    /// Whether to create unknown organizations and tags that records link to by name.
    pub creates_links: bool,
}

/// A row of a file.
#[derive(Clone, Debug)]
pub(super) struct ImportRow<F> {
    pub position: FilePosition,
    /// `None` if other fields identify the record.
    pub id: Option<Id>,
    pub edit: RowEdit<F>,
    /// The index of the match set that found the record. `None` for a row with an id, and for a new record.
    pub found_by: Option<usize>,
    /// Whether the row looks like a heading or a note. Such a row changes a stored record, and never makes one.
    pub may_be_note: bool,
    /// Whether a fault of the row is reported. Its valid values still count when other rows are checked, so one mistake
    /// is not reported many times.
    pub is_bad: bool,
}

impl<F: Fields> ImportRow<F> {
    fn new(position: FilePosition, id: Option<Id>, edit: RowEdit<F>) -> ImportRow<F> {
        ImportRow {
            position,
            id,
            edit,
            found_by: None,
            may_be_note: false,
            is_bad: false,
        }
    }

    /// Returns a row that sets all fields.
    pub fn of_fields(position: &FilePosition, id: Id, fields: F) -> ImportRow<F> {
        let edit = RowEdit {
            is_removal: false,
            statement: Arc::new(Statement::of(fields)),
        };
        ImportRow::new(position.clone(), Some(id), edit)
    }
}

/// The fault of a row that may be a note and matches no record.
pub(super) const MAY_BE_NOTE: &str = "matches no record, and has so few values that it may be a heading or a note; remove it, \
                                      leave it out by [where] in a recipe, or fill it in";

/// The number of rows of a kind that fill each field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilledFields {
    /// The stem of the kind's file names.
    pub kind: &'static str,
    /// The number of rows.
    pub rows: u64,
    /// The columns that the files have, each with the number of rows that fill it.
    pub fields: Vec<(&'static str, u64)>,
}

impl FilledFields {
    /// Counts the fields that rows fill.
    fn of<F: Fields>(rows: &[ImportRow<F>]) -> FilledFields {
        let fields = &F::table().fields;
        let mut counts = vec![None; fields.len()];
        for row in rows {
            row.edit.statement.count_filled(&mut counts);
        }
        let filled = fields
            .iter()
            .zip(counts)
            .filter_map(|(field, count)| Some((field.column.as_str(), count?)));
        FilledFields {
            kind: F::STEM,
            rows: rows.len() as u64,
            fields: filled.collect(),
        }
    }
}

/// The change that a row makes.
#[derive(Clone, Debug)]
pub(super) struct RowEdit<F> {
    /// Whether the row removes a record. Otherwise it sets the fields that it contains, and others keep their stored
    /// values.
    pub is_removal: bool,
    /// The values of the row, shared since rows may be merged more than once. A row that removes a record by its id has
    /// none.
    pub statement: Arc<Statement<F>>,
}

/// The members that the service adds to records and to removed ones. They are ignored, so that exports and changes can
/// be imported.
pub(super) const ADDED_TO_RECORDS: [&str; 3] = ["updated_at", "changed_at", FAULT_COLUMN];

/// The column or member with the fault of a bad row, in the file of `--faults`. It is ignored too.
pub(super) const FAULT_COLUMN: &str = "fault";

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

impl<F: Fields> FileRows<'_, F> {
    /// Adds the row that starts at `line`, and returns it. `read` parses it and reports its faults. A row with an invalid id
    /// is not added.
    pub fn add(
        &mut self,
        line: u64,
        read: impl FnOnce(&mut RowFaults<'_>) -> Option<(Option<Id>, RowEdit<F>)>,
    ) -> Option<&mut ImportRow<F>> {
        self.effects.rows_read += 1;
        let position = FilePosition {
            file: self.file.clone(),
            line,
            number: self.effects.rows_read,
        };
        let log = FileLog {
            unknown: &mut self.unknown,
            warnings: self.warnings,
            effects: self.effects,
        };
        let mut faults = RowFaults::new(&position, self.bad).of_file(log);
        let (id, edit) = read(&mut faults)?;
        let is_bad = faults.has_fault();
        self.rows.push(ImportRow {
            is_bad,
            ..ImportRow::new(position, id, edit)
        });
        self.rows.last_mut()
    }

    /// Reports that a file cannot be read as a whole.
    pub fn add_file_fault(&mut self, line: u64, message: impl Into<Message>) {
        self.add_fault(line, message);
        self.bad.mark_file();
    }

    /// Reports a row that cannot be parsed.
    pub fn add_fault(&mut self, line: u64, message: impl Into<Message>) {
        self.bad.push(
            &FilePosition::new(self.file.clone(), line),
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
