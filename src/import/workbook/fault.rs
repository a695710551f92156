//! Errors of a workbook that cannot be read at all.

use std::fmt::Display;
use std::io;

/// The remedy for a file that only a spreadsheet program can repair.
const SAVE_ANEW: &str = "save it anew as .xlsx or as CSV in UTF-8";

/// An error with a message that says what to do.
pub(super) fn unusable(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

/// An error with the remedy to save the workbook anew.
pub(super) fn damaged(why: impl Display) -> io::Error {
    unusable(format!("{why}; {SAVE_ANEW}"))
}

/// The error of a damaged part of the workbook.
pub(super) fn damaged_part(part: &str, why: impl Display) -> io::Error {
    damaged(format_args!("its part `{part}` is damaged: {why}"))
}
