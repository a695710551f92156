//! An SQLite file as the database of a copy.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

use rusqlite::{Connection, ErrorCode};
use sha2::{Digest as _, Sha256};

use super::failure::failure;
use super::open::{identity, open};
use super::records;
use crate::model::Dataset;
use crate::pull::columns::Cell;
use crate::pull::error::PullError;
use crate::pull::sql::database::{Database, Row, Search};
use crate::pull::sql::schema::{Table, Tables};

/// A file that is open and locked.
#[derive(Debug)]
pub struct SqliteFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The connection.
    pub connection: Connection,
    /// The device and inode of the file.
    pub identity: (u64, u64),
    /// Keeps other pulls away while the file is open.
    pub lock: File,
}

impl SqliteFile {
    fn run<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, PullError> {
        work(&self.connection).map_err(|error| failure(&self.path, &error))
    }
}

impl Database for SqliteFile {
    type Address = PathBuf;

    const OTHER_PLACE: &str = "give another path, or";

    fn open(path: &PathBuf) -> Result<SqliteFile, PullError> {
        open(path)
    }

    fn shown(&self) -> String {
        self.path.display().to_string()
    }

    fn check_place(&self) -> Result<(), PullError> {
        if identity(&self.path)? == self.identity {
            return Ok(());
        }
        Err(PullError::Unusable(format!(
            "{}: another file has taken the copy's place meanwhile; run again to go on with that one",
            self.path.display()
        )))
    }

    fn batch(&mut self, sql: &str) -> Result<(), PullError> {
        self.run(|connection| connection.execute_batch(sql))
    }

    fn query(&mut self, sql: &str, params: &[Cell]) -> Result<Vec<Row>, PullError> {
        self.run(|connection| records::query(connection, sql, params))
    }

    fn digests(&mut self, dataset: Dataset, from: i64, count: usize) -> Result<Vec<(i64, Vec<u8>)>, PullError> {
        let query = format!("SELECT id, CAST(json AS BLOB) FROM {dataset} WHERE id >= ? ORDER BY id LIMIT {count}");
        self.run(|connection| {
            let mut statement = connection.prepare_cached(&query)?;
            let rows = statement.query_map([from], |row| {
                let json = row.get_ref(1)?.as_blob()?;
                Ok((row.get(0)?, Sha256::digest(json).to_vec()))
            })?;
            rows.collect()
        })
    }

    fn write_rows(&mut self, table: &Table, rows: Vec<Row>) -> Result<(), PullError> {
        self.run(|connection| records::write_rows(connection, table, &rows))
    }

    fn write_records(
        &mut self,
        tables: &Tables,
        records: BTreeMap<i64, Option<Row>>,
        search: Search,
    ) -> Result<(), PullError> {
        self.run(|connection| records::write_records(connection, tables, records, search))
    }

    fn rebuild_search(&mut self, dataset: Dataset) -> Result<(), PullError> {
        self.batch(&format!("INSERT INTO {dataset}_search ({dataset}_search) VALUES ('rebuild')"))
    }

    fn check_storage(&mut self) -> Result<(), PullError> {
        self.run(|connection| {
            let state: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            if state == "ok" {
                return Ok(());
            }
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
            Err(rusqlite::Error::SqliteFailure(code, Some(state)))
        })
    }

    fn find_search_fault(&mut self, dataset: Dataset) -> Result<Option<String>, PullError> {
        let compare = format!("INSERT INTO {dataset}_search ({dataset}_search, rank) VALUES ('integrity-check', 1)");
        self.run(|connection| match connection.execute_batch(&compare) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                Ok(Some("its full-text index does not fit its records".to_owned()))
            }
            done => done.map(|()| None),
        })
    }
}
