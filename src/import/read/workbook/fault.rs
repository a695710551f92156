//! Errors of unreadable workbooks.

use std::fmt::Display;
use std::io;

/// The remedy for damaged files.
const SAVE_ANEW: &str = "save it again as .xlsx or as CSV in UTF-8";

/// Creates an error whose message contains the remedy.
pub(super) fn unusable(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

/// Creates an error with the remedy to save the workbook again.
pub(super) fn damaged(why: impl Display) -> io::Error {
    unusable(format!("{why}; {SAVE_ANEW}"))
}

/// Creates the error of a damaged part.
pub(super) fn damaged_part(part: &str, why: impl Display) -> io::Error {
    damaged(format_args!("its part `{part}` is damaged: {why}"))
}
