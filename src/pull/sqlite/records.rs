//! Writing rows, and keeping the full-text index with them.

use std::collections::BTreeMap;

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};
use serde_json::Value;

use super::database::SqliteFile;
use crate::model::Dataset;
use crate::pull::columns::{Cell, Column, cell_of, columns};
use crate::pull::sql::database::{Dialect, Row, Search};
use crate::pull::sql::schema::{Table, Tables};
use crate::pull::tables::searched;

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
    let mut statement = connection.prepare_cached(&sql.replace('$', "?"))?;
    let columns = statement.column_count();
    let rows = statement.query_map(params_from_iter(params), |row| {
        (0..columns).map(|column| row.get_ref(column).map(cell)).collect::<rusqlite::Result<Row>>()
    })?;
    rows.collect()
}

/// Writes rows of different keys. Leaves rows that are nothing but a key as they are.
pub fn write_rows(connection: &Connection, table: &Table, rows: &[Row]) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(&insert(table))?;
    rows.iter().try_for_each(|row| statement.execute(params_from_iter(row)).map(|_| ()))
}

fn insert(table: &Table) -> String {
    let action = if table.values().is_empty() { "IGNORE" } else { "REPLACE" };
    let marks = vec!["?"; table.columns.len()].join(", ");
    format!("INSERT OR {action} INTO {} ({}) VALUES ({marks})", table.name, table.names())
}

/// Writes the rows of records, and removes those of ids without a row.
pub fn write_records(
    connection: &Connection,
    tables: &Tables,
    records: BTreeMap<i64, Option<Row>>,
    search: Search,
) -> rusqlite::Result<()> {
    let statements = Statements::new(tables);
    // In the order of ids: the full-text index gathers rising ids, and writes them to the disk in one go.
    for (id, row) in records {
        match (search, row) {
            (Search::Updated, row) => statements.write(connection, id, row)?,
            (Search::Rebuilt, Some(row)) => execute(connection, &statements.insert, row)?,
            (Search::Rebuilt, None) => execute(connection, &statements.delete, [Cell::Integer(id)])?,
        }
    }
    Ok(())
}

fn execute(connection: &Connection, sql: &str, params: impl IntoIterator<Item = Cell>) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(params_from_iter(params)).map(|_| ())
}

/// The statements that write a record and its words.
struct Statements {
    columns: &'static [Column],
    /// The indexes of the columns in the full-text index.
    searched: Vec<usize>,
    /// Selects the JSON of a record, and its texts in the full-text index.
    select: String,
    insert: String,
    update: String,
    delete: String,
    /// Adds an id and its texts to the full-text index.
    search: String,
    /// Removes an id and its texts from the full-text index. It names values rather than selecting them: before a statement
    /// that may concern several rows, the index writes everything to the disk, and that takes five times as long.
    unsearch: String,
}

impl Statements {
    fn new(tables: &Tables) -> Statements {
        let (dataset, columns) = (tables.dataset, tables.columns);
        let sets: Vec<String> =
            tables.records.values().iter().zip(2..).map(|((name, _), at)| format!("{name} = ?{at}")).collect();
        let texts = searched(dataset).join(", ");
        let marks = ", ?".repeat(searched(dataset).len());
        Statements {
            columns,
            searched: columns_in_search(dataset),
            select: format!("SELECT json, {texts} FROM {dataset} WHERE id = ?"),
            insert: insert(&tables.records),
            update: format!("UPDATE {dataset} SET {} WHERE id = ?1", sets.join(", ")),
            delete: format!("DELETE FROM {dataset} WHERE id = ?"),
            search: format!("INSERT INTO {dataset}_search (rowid, {texts}) VALUES (?{marks})"),
            unsearch: format!(
                "INSERT INTO {dataset}_search ({dataset}_search, rowid, {texts}) VALUES ('delete', ?{marks})"
            ),
        }
    }

    /// Writes a record and its words, or removes them.
    fn write(&self, connection: &Connection, id: i64, row: Option<Row>) -> rusqlite::Result<()> {
        let before = query(connection, &self.select, &[Cell::Integer(id)])?.pop();
        let has_new_words = before.as_ref().is_none_or(|before| self.has_other_words(&before[0], row.as_ref()));
        if let Some(before) = before.as_ref().filter(|_| has_new_words) {
            execute(connection, &self.unsearch, with_id(id, before[1..].to_vec()))?;
        }
        let Some(row) = row else { return execute(connection, &self.delete, [Cell::Integer(id)]) };
        let texts = self.searched.iter().map(|at| row[at + 1].clone()).collect();
        execute(connection, if before.is_some() { &self.update } else { &self.insert }, row)?;
        if has_new_words { execute(connection, &self.search, with_id(id, texts)) } else { Ok(()) }
    }

    /// Whether a row has other texts in the full-text index than the JSON that it replaces.
    fn has_other_words(&self, json: &Cell, row: Option<&Row>) -> bool {
        let before = json.text().and_then(|json| serde_json::from_str::<Value>(json).ok());
        let (Some(before), Some(row)) = (before, row) else { return true };
        let cell = |at: usize| {
            let column = &self.columns[at];
            SqliteFile::stored(column.kind.into(), cell_of(column, &before))
        };
        self.searched.iter().any(|at| cell(*at) != row[at + 1])
    }
}

fn with_id(id: i64, texts: Vec<Cell>) -> impl Iterator<Item = Cell> {
    std::iter::once(Cell::Integer(id)).chain(texts)
}

fn columns_in_search(dataset: Dataset) -> Vec<usize> {
    let at = |name: &&str| columns(dataset).iter().position(|column| column.column == *name);
    searched(dataset).iter().filter_map(at).collect()
}
