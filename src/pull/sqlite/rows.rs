//! Writing a record into all of its tables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::types::{ToSql, ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{Connection, OptionalExtension, params_from_iter};
use serde_json::Value;

use super::failure::failure;
use super::schema::{Linked, linked, one, searched};
use crate::model::Dataset;
use crate::pull::columns::{Cell, Column, columns};
use crate::pull::error::PullError;

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Cell::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Cell::Integer(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
            Cell::Number(number) => ToSqlOutput::Borrowed(ValueRef::Real(*number)),
            Cell::Flag(flag) => ToSqlOutput::Borrowed(ValueRef::Integer(i64::from(*flag))),
            Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

/// The statements of a dataset.
#[derive(Debug)]
pub struct Statements {
    /// The dataset.
    pub dataset: Dataset,
    /// Its columns.
    pub columns: &'static [Column],
    /// The kinds of rows that its records link to, each with its link table.
    pub links: Vec<(&'static Linked, String)>,
    /// `INSERT` of a record's row: id, cells, `updated_at`, `json`.
    insert: String,
    /// Takes the row of an id out of the full-text index.
    unsearch: String,
    /// Puts the row of an id into the full-text index.
    search: String,
}

impl Statements {
    /// Those of a dataset.
    pub fn new(dataset: Dataset) -> Statements {
        let columns = columns(dataset);
        let links = linked().iter().filter_map(|kind| Some((kind, kind.link_table(dataset)?))).collect();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let texts = searched(dataset).join(", ");
        Statements {
            dataset,
            columns,
            links,
            insert: format!(
                "INSERT INTO {dataset} (id, {}, updated_at, json) VALUES (?{})",
                names.join(", "),
                ", ?".repeat(names.len() + 2)
            ),
            unsearch: format!(
                "INSERT INTO {dataset}_search ({dataset}_search, rowid, {texts}) SELECT 'delete', id, {texts} FROM {dataset} \
                 WHERE id = ?"
            ),
            search: format!(
                "INSERT INTO {dataset}_search (rowid, {texts}) SELECT id, {texts} FROM {dataset} WHERE id = ?"
            ),
        }
    }
}

/// The cells of a record.
pub fn cells_of(columns: &[Column], record: &Value) -> Vec<Cell> {
    columns.iter().map(|column| column.cell(record)).collect()
}

/// The cell of `updated_at`.
pub fn updated_at_of(record: &Value) -> Cell {
    record["updated_at"].as_str().map_or(Cell::Null, |text| Cell::Text(text.to_owned()))
}

/// The key that an item of a list links to.
pub fn key_of(kind: &Linked, item: &Value) -> Option<SqlValue> {
    if kind.columns.is_empty() {
        item.as_str().map(|name| SqlValue::Text(name.to_owned()))
    } else {
        item["id"].as_i64().map(SqlValue::Integer)
    }
}

/// The lists of a record that link to rows of a kind.
pub fn items_of<'a>(columns: &[Column], kind: &Linked, record: &'a Value) -> impl Iterator<Item = &'a Value> {
    let lists: Vec<&Value> =
        columns.iter().filter(|column| column.kind == kind.kind).map(|column| column.value(record)).collect();
    lists.into_iter().filter_map(Value::as_array).flatten()
}

/// Writes records of a dataset within a transaction.
#[derive(Debug)]
pub struct Rows<'a> {
    path: &'a Path,
    connection: &'a Connection,
    statements: &'a Statements,
    /// Whether the full-text index is kept with each record, rather than made anew at the end.
    is_searched: bool,
    /// What this transaction has written of linked rows already, by table and key.
    written: BTreeMap<(&'static str, i64), Value>,
    /// Linked rows that may have lost their last link.
    unlinked: Vec<(&'static Linked, SqlValue)>,
}

impl<'a> Rows<'a> {
    /// A writer.
    pub fn new(
        path: &'a Path,
        connection: &'a Connection,
        statements: &'a Statements,
        is_searched: bool,
    ) -> Rows<'a> {
        Rows { path, connection, statements, is_searched, written: BTreeMap::new(), unlinked: Vec::new() }
    }

    /// The bytes of a record's JSON.
    pub fn json(&self, id: i64) -> Result<Option<Vec<u8>>, PullError> {
        let query = format!("SELECT json FROM {} WHERE id = ?", self.statements.dataset);
        let read = || -> rusqlite::Result<Option<Vec<u8>>> {
            let mut statement = self.connection.prepare_cached(&query)?;
            statement.query_row([id], |row| Ok(bytes_of(row.get_ref(0)?).to_vec())).optional()
        };
        read().map_err(|error| failure(self.path, &error))
    }

    /// The ids of records between two ids, both excluded.
    pub fn ids_between(&self, after: i64, before: i64) -> Result<Vec<i64>, PullError> {
        let query = format!("SELECT id FROM {} WHERE id > ? AND id < ? ORDER BY id", self.statements.dataset);
        let read = || -> rusqlite::Result<Vec<i64>> {
            self.connection.prepare_cached(&query)?.query_map([after, before], |row| row.get(0))?.collect()
        };
        read().map_err(|error| failure(self.path, &error))
    }

    /// Writes a record; returns whether it is new.
    pub fn put(&mut self, id: i64, json: &str) -> Result<bool, PullError> {
        let record: Value = serde_json::from_str(json)
            .map_err(|error| PullError::failed(format!("the service sent a record that cannot be read ({error})")))?;
        let was_there = self.remove(id)?;
        self.insert(id, &record, json).map_err(|error| failure(self.path, &error))?;
        Ok(!was_there)
    }

    fn insert(&mut self, id: i64, record: &Value, json: &str) -> rusqlite::Result<()> {
        let statements = self.statements;
        let mut row = Vec::with_capacity(statements.columns.len() + 3);
        row.push(Cell::Integer(id));
        row.extend(cells_of(statements.columns, record));
        row.push(updated_at_of(record));
        row.push(Cell::Text(json.to_owned()));
        self.connection.prepare_cached(&statements.insert)?.execute(params_from_iter(row))?;
        for (kind, table) in &statements.links {
            let link = format!("INSERT OR IGNORE INTO {table} VALUES (?, ?)");
            for item in items_of(statements.columns, kind, record) {
                let Some(key) = key_of(kind, item) else { continue };
                self.put_linked(kind, &key, item)?;
                self.connection.prepare_cached(&link)?.execute((id, key))?;
            }
        }
        if self.is_searched {
            self.connection.prepare_cached(&statements.search)?.execute([id])?;
        }
        Ok(())
    }

    /// Writes an organization, tag or therapy area as a record tells it.
    fn put_linked(&mut self, kind: &Linked, key: &SqlValue, item: &Value) -> rusqlite::Result<()> {
        let SqlValue::Integer(id) = key else {
            let insert = format!("INSERT OR IGNORE INTO {} VALUES (?)", kind.table);
            self.connection.prepare_cached(&insert)?.execute([key])?;
            return Ok(());
        };
        if self.written.get(&(kind.table, *id)) == Some(item) {
            return Ok(());
        }
        let replace = format!("INSERT OR REPLACE INTO {} VALUES (?{})", kind.table, ", ?".repeat(kind.columns.len()));
        let mut row = vec![key.clone()];
        row.extend(kind.columns.iter().map(|name| match &item[*name] {
            Value::Null => SqlValue::Null,
            Value::String(text) => SqlValue::Text(text.clone()),
            other => SqlValue::Text(other.to_string()),
        }));
        self.connection.prepare_cached(&replace)?.execute(params_from_iter(row))?;
        self.written.insert((kind.table, *id), item.clone());
        Ok(())
    }

    /// Removes a record; returns whether there was one.
    pub fn remove(&mut self, id: i64) -> Result<bool, PullError> {
        self.try_remove(id).map_err(|error| failure(self.path, &error))
    }

    fn try_remove(&mut self, id: i64) -> rusqlite::Result<bool> {
        let (connection, statements) = (self.connection, self.statements);
        let dataset = statements.dataset;
        let exists = format!("SELECT 1 FROM {dataset} WHERE id = ?");
        if !connection.prepare_cached(&exists)?.exists([id])? {
            return Ok(false);
        }
        if self.is_searched {
            connection.prepare_cached(&statements.unsearch)?.execute([id])?;
        }
        for (kind, table) in &statements.links {
            let (key, one) = (kind.key, one(dataset));
            let delete = format!("DELETE FROM {table} WHERE {one}_id = ? RETURNING {key}");
            let mut delete = connection.prepare_cached(&delete)?;
            for key in delete.query_map([id], |row| row.get(0))? {
                self.unlinked.push((kind, key?));
            }
        }
        connection.prepare_cached(&format!("DELETE FROM {dataset} WHERE id = ?"))?.execute([id])?;
        Ok(true)
    }

    /// Removes linked rows that have lost their last link: what no record of the license carries is not kept.
    pub fn sweep(self) -> Result<(), PullError> {
        let mut seen = BTreeSet::new();
        let mut sweep = || -> rusqlite::Result<()> {
            for (kind, key) in &self.unlinked {
                if seen.insert((kind.table, format!("{key:?}"))) {
                    let delete = format!("DELETE FROM {0} WHERE {1} = ?1{2}", kind.table, kind.own_key(), no_link(kind, "?1"));
                    self.connection.prepare_cached(&delete)?.execute([key])?;
                }
            }
            Ok(())
        };
        sweep().map_err(|error| failure(self.path, &error))
    }
}

/// A condition that no record links to the row whose key the text stands for.
pub fn no_link(kind: &Linked, key: &str) -> String {
    let tables = Dataset::ALL.into_iter().filter_map(|dataset| kind.link_table(dataset));
    tables.map(|table| format!(" AND NOT EXISTS (SELECT 1 FROM {table} WHERE {} = {key})", kind.key)).collect()
}

/// The bytes of a text or blob; none of anything else.
pub fn bytes_of(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        _ => &[],
    }
}
