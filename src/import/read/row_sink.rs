//! The rows of a part of a source, as its reader passes them on.

use std::ops::{ControlFlow, Range, RangeInclusive};

use super::table_cell::TableCell;
use crate::model::Message;

/// Takes the rows of a table, including the header, or the objects of a list.
pub(in crate::import) trait RowSink {
    /// Takes a row of a table. Returns `Break` if no more rows are needed.
    fn add_row(&mut self, row: TableRow<'_>) -> ControlFlow<()>;

    /// Takes the text of an object.
    fn add_object(&mut self, line: u64, text: &[u8]);

    /// Takes the reason why a row cannot be read.
    fn add_fault(&mut self, _line: u64, _message: Message) {}

    /// Takes a warning about the file.
    fn warn(&mut self, _message: Message) {}
}

/// A row of a table.
pub(in crate::import) struct TableRow<'a> {
    /// The lines of the row, from 1.
    pub lines: Range<u64>,
    pub cells: &'a [TableCell],
    /// The merged cells of the row.
    pub merged: Vec<MergedCells>,
    /// A warning about the row.
    pub warning: Option<&'static str>,
}

/// Merged cells of a row.
pub(in crate::import) struct MergedCells {
    pub columns: RangeInclusive<usize>,
    /// Whether they are in several rows.
    pub is_tall: bool,
    /// The fault of a row that lacks their values.
    pub fault: Message,
}
