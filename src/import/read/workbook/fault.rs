//! Errors of unreadable workbooks.

use std::fmt::Display;
use std::io;

use calamine::XlsxError;

use crate::import::read::column_name::column_letters;

pub(super) const NO_WORKBOOK: &str = "it is not an Excel workbook; save it as .xlsx, or as CSV in UTF-8";

/// Returns the name of the cell at a row and column, such as `B7`.
pub(super) fn cell_name((row, column): (u32, u32)) -> String {
    format!("{}{}", column_letters(usize::try_from(column).unwrap_or(usize::MAX)), u64::from(row) + 1)
}

/// Creates an error whose message contains the remedy.
pub(super) fn unusable(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

/// Creates an error with the remedy to save the workbook again.
pub(super) fn damaged(why: impl Display) -> io::Error {
    unusable(format!("{why}; save it again as .xlsx or as CSV in UTF-8"))
}

pub(super) fn unreadable(error: XlsxError) -> io::Error {
    match error {
        XlsxError::FileNotFound(part) if part == "_rels/.rels" => unusable(NO_WORKBOOK),
        error => damaged(format_args!("its content cannot be read: {error}")),
    }
}

/// Creates the error of a sheet, after its last cell that could be read.
pub(super) fn sheet_error(sheet: &str, last: Option<(u32, u32)>, error: XlsxError) -> io::Error {
    let place = last.map_or("at its first cell".to_owned(), |cell| format!("after the cell {}", cell_name(cell)));
    match error {
        XlsxError::CellError(text) => unusable(format!(
            "its sheet `{sheet}` contains the spreadsheet error `{text}` {place}; correct or clear that cell"
        )),
        error => damaged(format_args!("its sheet `{sheet}` cannot be read {place}: {error}")),
    }
}
