//! The copy as an SQLite file.
//!
//! - [`dialect`]: SQLite's words in the statements of a copy.
//! - [`failure`]: errors, by what can be done about them.
//! - [`mod@file`]: an open SQLite file, and its statements.
//! - [`open`]: which files are taken, and for whom they are kept.
//! - [`records`]: writing records, and keeping the full-text index with them.
//! - [`database`]: an SQLite file as the database of a copy.

use std::path::Path;

use super::error::PullError;
use super::server_url::ServerUrl;
use super::sql::SqlCopy;
use file::SqliteFile;

pub mod database;
pub mod dialect;
pub mod failure;
pub mod file;
pub mod open;
pub mod records;

/// A copy in an SQLite file.
pub type SqliteCopy = SqlCopy<SqliteFile>;

impl SqliteCopy {
    /// Opens a copy like [`SqlCopy::at`].
    pub fn open(path: &Path, server: &ServerUrl, reload: bool) -> Result<SqliteCopy, PullError> {
        SqlCopy::at(path.to_owned(), server, reload)
    }
}
