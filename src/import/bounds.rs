//! Limits on what a run reads. They bound the memory and time that a mistaken or hostile file can cost.

use std::io;

/// The limits of a run. The defaults are far above what real files need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most bytes of a line of JSON, or of a row of a CSV table.
    pub line_bytes: usize,
    /// The most bytes of a JSON key, or of a CSV column's name.
    pub name_bytes: usize,
    /// The most columns of a CSV table, and members of a JSON object.
    pub columns: usize,
    /// The most rows of a CSV file, and lines of a JSON file, blank ones included.
    pub rows: usize,
    /// The most bytes of a file, decompressed.
    pub file_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { line_bytes: 4 << 20, name_bytes: 256, columns: 1_000, rows: 2_000_000, file_bytes: 1 << 30 }
    }
}

impl Bounds {
    /// The message for a line that is too long.
    pub(super) fn line_fault(&self) -> String {
        format!("the line is longer than {} bytes; correct it, or raise --max-line-bytes", self.line_bytes)
    }

    /// The message for a CSV row that is too long; no row after it is read.
    pub(super) fn table_row_fault(&self, in_quotes: bool) -> String {
        let remedy = if in_quotes { "close the quote that it opens" } else { "correct it" };
        format!(
            "the row is longer than {} bytes, and the rest of the table is not read; {remedy}, or raise --max-line-bytes",
            self.line_bytes
        )
    }

    /// The message for a key or column name of this length.
    pub(super) fn name_fault(&self, bytes: usize) -> String {
        format!(
            "the name is {bytes} bytes long, and at most {} are read; correct it, or raise --max-name-bytes",
            self.name_bytes
        )
    }

    /// The message for a table with too many columns, or an object with too many members.
    pub(super) fn columns_fault(&self, what: &str) -> String {
        format!("has more than {} {what}; take out those that are no fields, or raise --max-columns", self.columns)
    }

    /// The message for a file with too many rows or lines.
    pub(super) fn rows_fault(&self, what: &str) -> String {
        format!("the file has more than {} {what}; split it, or raise --max-rows", self.rows)
    }
}

/// A file holds more than [`Bounds::file_bytes`]. It is passed as an [`io::Error`] through the readers.
#[derive(Debug, thiserror::Error)]
#[error(
    "the file is too large: it holds more than {max_bytes} bytes, decompressed; split it, or raise --max-file-bytes"
)]
pub(super) struct TooLarge {
    pub max_bytes: u64,
}

impl TooLarge {
    /// The message, if the error is this one.
    pub fn message_in(error: &io::Error) -> Option<String> {
        error.get_ref().filter(|inner| inner.is::<TooLarge>()).map(ToString::to_string)
    }
}
