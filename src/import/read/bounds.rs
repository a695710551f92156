//! Limits on the input of an import. They bound the memory and time that a broken or hostile file can cost.
//! They are no options: files of the design size stay far below them.

use crate::model::message::{Message, message};

/// The limits of an import. All programs use the defaults; tests use smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The maximum size of a JSON line or a CSV row.
    pub line_bytes: usize,
    /// The maximum number of columns of a table.
    pub columns: usize,
    /// The maximum number of CSV rows or JSON lines in a file, including blank ones.
    pub rows: usize,
    /// The maximum decompressed size of a file.
    pub file_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { line_bytes: 4 << 20, columns: 1_000, rows: 2_000_000, file_bytes: 1 << 30 }
    }
}

impl Bounds {
    pub(in crate::import) fn line_fault(&self) -> Message {
        message!("the line is longer than {} bytes; correct it", self.line_bytes)
    }

    /// The message for a CSV row that is too long. Reading stops at this row.
    pub(in crate::import) fn table_row_fault(&self, in_quotes: bool) -> Message {
        let remedy = if in_quotes { "close the quote that it opens" } else { "correct it" };
        message!("the row is longer than {} bytes, and the rest of the table is not read; {remedy}", self.line_bytes)
    }

    pub(in crate::import) fn columns_fault(&self) -> Message {
        message!("has more than {} columns; remove those that are not fields", self.columns)
    }

    pub(in crate::import) fn rows_fault(&self, what: &str) -> Message {
        message!("the file has more than {} {what}; split it", self.rows)
    }
}

/// The error of a file larger than [`Bounds::file_bytes`]. Readers return it inside an [`io::Error`](std::io::Error).
#[derive(Debug, thiserror::Error)]
#[error("the file is too large: it has more than {max_bytes} bytes, decompressed; split it")]
pub(in crate::import) struct TooLarge {
    pub max_bytes: u64,
}
