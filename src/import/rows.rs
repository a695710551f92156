//! Rows as the files state them, before they meet what is stored.

use std::io;
use std::sync::Arc;

use super::read_options::ReadOptions;
use super::report::{BadRows, FilePosition, Finding, RowFaults};
use super::statement::Statement;
use crate::model::{ConferenceFields, Fields, Id, JournalFields, OrganizationFields, TagFields};

/// All rows of a run, with the faults found while reading.
#[derive(Debug, Default)]
pub struct ImportRows {
    pub(super) organizations: Vec<ImportRow<OrganizationFields>>,
    pub(super) tags: Vec<ImportRow<TagFields>>,
    pub(super) conferences: Vec<ImportRow<ConferenceFields>>,
    pub(super) journals: Vec<ImportRow<JournalFields>>,
    pub(super) bad: BadRows,
    pub(super) warnings: Vec<Finding>,
    /// The fields that tell which record is meant by a row without an id.
    pub(super) matching: Vec<String>,
}

impl ImportRows {
    /// The faults so far. Merging finds more, and reports all together.
    pub fn bad(&self) -> &BadRows {
        &self.bad
    }
}

/// A row of a file.
#[derive(Debug)]
pub(super) struct ImportRow<F> {
    pub position: FilePosition,
    /// `None` for a row whose fields tell which record is meant.
    pub id: Option<Id>,
    pub edit: RowEdit<F>,
    /// Whether a fault of it is reported. What could be read still counts for the checks of other rows, so that one
    /// mistake does not look like many.
    pub is_bad: bool,
}

/// What a row does.
#[derive(Debug)]
pub(super) enum RowEdit<F> {
    /// Sets the fields that it names; the others keep their stored values.
    Set(Box<Statement<F>>),
    /// Removes the row.
    Remove,
}

/// The rows of one file, as a format's reader adds to them.
pub(super) struct FileRows<'a, F> {
    pub file: &'a Arc<str>,
    pub options: &'a ReadOptions,
    /// The names that may stand in a row without a meaning.
    pub ignored: &'static [&'static str],
    pub rows: &'a mut Vec<ImportRow<F>>,
    pub bad: &'a mut BadRows,
    pub warnings: &'a mut Vec<Finding>,
}

/// Something whose rows are all of one kind.
pub(super) trait ReadRows {
    /// Reads them; returns how many there are, bad ones included.
    fn read<F: Fields>(self, rows: &mut FileRows<'_, F>) -> io::Result<usize>;
}

impl<F> FileRows<'_, F> {
    /// Adds the row that begins on the line. `read` reports what is wrong with it; a row with a bad id is no row.
    pub fn add(&mut self, line: u64, read: impl FnOnce(&mut RowFaults<'_>) -> Option<(Option<Id>, RowEdit<F>)>) {
        let position = FilePosition { file: self.file.clone(), line };
        let mut faults = RowFaults::new(&position, self.bad);
        if let Some((id, edit)) = read(&mut faults) {
            let is_bad = faults.found();
            self.rows.push(ImportRow { position, id, edit, is_bad });
        }
    }

    /// Reports a row that cannot be read at all.
    pub fn add_fault(&mut self, line: u64, message: impl AsRef<str>) {
        self.bad.push(&FilePosition { file: self.file.clone(), line }, None, None, message);
    }

    /// Tells a curator what may not be meant.
    pub fn warn(&mut self, line: Option<u64>, message: String) {
        let file = Some(self.file.to_string());
        self.warnings.push(Finding { file, line, message, ..Finding::default() });
    }
}
