//! An SQLite file as the database of a copy.

use std::fs::File;
use std::path::PathBuf;

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, params_from_iter};

use super::failure::failure;
use super::open::{identity, open};
use super::records::Statements;
use crate::model::Dataset;
use crate::pull::columns::Cell;
use crate::pull::error::PullError;
use crate::pull::sql::database::{Database, Records, Row};
use crate::pull::sql::schema::{DatasetTables, SqlTable};

/// An open and locked file.
#[derive(Debug)]
pub struct SqliteFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The connection.
    pub connection: Connection,
    /// The device and inode of the file.
    pub identity: (u64, u64),
    /// The lock against other pulls.
    pub lock: File,
}

impl SqliteFile {
    fn run<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, PullError> {
        work(&self.connection).map_err(|error| failure(&self.path, &error))
    }
}

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

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Cell::Null => ValueRef::Null,
            Cell::Integer(number) => ValueRef::Integer(*number),
            Cell::Number(number) => ValueRef::Real(*number),
            Cell::Flag(flag) => ValueRef::Integer(i64::from(*flag)),
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
            Cell::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Number(number),
        ValueRef::Text(bytes) => str::from_utf8(bytes).map_or_else(|_| Cell::Bytes(bytes.to_vec()), Cell::from),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    }
}

/// Runs a statement. Returns its rows.
pub fn query(connection: &Connection, sql: &str, params: &[Cell]) -> rusqlite::Result<Vec<Row>> {
    let mut statement = connection.prepare_cached(sql)?;
    let columns = statement.column_count();
    let rows = statement.query_map(params_from_iter(params), |row| {
        (0..columns).map(|column| row.get_ref(column).map(cell)).collect::<rusqlite::Result<Row>>()
    })?;
    rows.collect()
}

/// Runs a statement without a result.
pub fn execute(connection: &Connection, sql: &str, params: Row) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(params_from_iter(params)).map(|_| ())
}

/// A statement that writes a row. Does not touch an existing row that has only a key.
pub fn insert(table: &SqlTable) -> String {
    let action = if table.values().is_empty() { "IGNORE" } else { "REPLACE" };
    let marks = vec!["?"; table.columns.len()].join(", ");
    format!("INSERT OR {action} INTO {} ({}) VALUES ({marks})", table.name, table.names())
}
