//! An open SQLite file, and its statements.

use std::fs::File;
use std::path::PathBuf;

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::failure::failure;
use crate::pull::columns::Cell;
use crate::pull::error::PullError;
use crate::pull::sql::dialect::Row;
use crate::pull::sql::schema::SqlTable;

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
    /// Runs `work` on the connection.
    pub fn run<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, PullError> {
        work(&self.connection).map_err(|error| failure(&self.path, &error))
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

/// Runs a statement; returns the rows of its result.
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

/// A statement that writes a row. A row that is nothing but a key is left as it is. Unlike `INSERT OR REPLACE`, it deletes
/// no row because of a unique index that others added.
pub fn insert(table: &SqlTable) -> String {
    let keys: Vec<&str> = table.columns[..table.keys].iter().map(|(name, _)| *name).collect();
    let sets: Vec<String> = table.values().iter().map(|(name, _)| format!("{name} = excluded.{name}")).collect();
    let action = if sets.is_empty() { "NOTHING".to_owned() } else { format!("UPDATE SET {}", sets.join(", ")) };
    let marks = vec!["?"; table.columns.len()].join(", ");
    let (name, names, keys) = (&table.name, table.names(), keys.join(", "));
    format!("INSERT INTO {name} ({names}) VALUES ({marks}) ON CONFLICT ({keys}) DO {action}")
}
