//! An SQLite file as the database of a copy.

use std::path::PathBuf;

use rusqlite::{ErrorCode, params_from_iter};

use super::file::{SqliteFile, insert, query};
use super::open::{identity, open};
use super::records::Statements;
use crate::model::Dataset;
use crate::pull::columns::Cell;
use crate::pull::error::PullError;
use crate::pull::sql::database::Database;
use crate::pull::sql::dialect::{Records, Row};
use crate::pull::sql::schema::{DatasetTables, SqlTable};

impl Database for SqliteFile {
    type Location = PathBuf;

    const OTHER_LOCATION: &str = "give another path, or";

    fn open(path: &PathBuf) -> Result<SqliteFile, PullError> {
        open(path)
    }

    fn shown(&self) -> String {
        self.path.display().to_string()
    }

    fn check_location(&self) -> Result<(), PullError> {
        if identity(&self.path)? == self.identity {
            return Ok(());
        }
        Err(PullError::Unusable(format!(
            "{}: another file has replaced the copy; run again to use that one",
            self.path.display()
        )))
    }

    fn batch(&mut self, sql: &str) -> Result<(), PullError> {
        self.run(|connection| connection.execute_batch(sql))
    }

    fn query(&mut self, sql: &str, params: &[Cell]) -> Result<Vec<Row>, PullError> {
        self.run(|connection| query(connection, &sql.replace('$', "?"), params))
    }

    fn write_rows(&mut self, table: &SqlTable, rows: Vec<Row>) -> Result<(), PullError> {
        self.run(|connection| {
            let mut insert = connection.prepare_cached(&insert(table))?;
            rows.iter().try_for_each(|row| insert.execute(params_from_iter(row)).map(|_| ()))
        })
    }

    fn write_records(
        &mut self,
        tables: &DatasetTables,
        records: Records,
        updates_search: bool,
    ) -> Result<(), PullError> {
        let statements = Statements::new(tables, updates_search);
        // The full-text index buffers rising ids, and writes them to the disk together.
        self.run(|connection| records.into_iter().try_for_each(|(id, row)| statements.write(connection, id, row)))
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
