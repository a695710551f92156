//! The copy as an SQLite file.
//!
//! - [`dialect`]: SQLite's SQL.
//! - [`failure`]: the errors of SQLite.
//! - [`open`]: opens the file of a copy, or creates one.
//! - [`records`]: writes records and their full-text index.
//! - [`database`]: an SQLite file as the database of a copy.

use std::path::Path;

use super::error::PullError;
use super::server_url::ServerUrl;
use super::sql::SqlCopy;
use database::SqliteFile;

pub mod database;
pub mod dialect;
pub mod failure;
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
