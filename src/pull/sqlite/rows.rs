//! Writing a record into all of its tables.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use rusqlite::types::{ToSql, ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{Connection, OptionalExtension, params_from_iter};
use serde_json::Value;

use super::failure::failure;
use crate::model::Dataset;
use crate::pull::columns::{Cell, Column, cell_of, columns};
use crate::pull::error::PullError;
use crate::pull::tables::{Linked, items_of, links, no_link, one, searched};

/// How many ids are read at once: somebody else may have written any number of rows.
const IDS_AT_ONCE: u32 = 1000;

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
    /// Makes a record's row of its cells, `updated_at`, `json` and the id.
    insert: String,
    /// Replaces a record's row by the same.
    update: String,
    /// Which columns are in the full-text index, in its order.
    searched: Vec<usize>,
    /// What the full-text index holds of the row of an id.
    texts: String,
    /// Takes an id and its texts out of the full-text index. It names values rather than selecting them: a statement that may
    /// concern several rows makes the index write all that it has gathered to the disk first, which takes five times as long.
    unsearch: String,
    /// Puts an id and its texts into the full-text index.
    search: String,
}

impl Statements {
    /// Those of a dataset.
    pub fn new(dataset: Dataset) -> Statements {
        let columns = columns(dataset);
        let names: Vec<&str> = columns.iter().map(|column| column.column.as_str()).collect();
        let texts = searched(dataset).join(", ");
        let marks = ", ?".repeat(searched(dataset).len());
        Statements {
            dataset,
            columns,
            links: links(dataset),
            insert: format!(
                "INSERT INTO {dataset} ({}, updated_at, json, id) VALUES (?{})",
                names.join(", "),
                ", ?".repeat(names.len() + 2)
            ),
            update: format!("UPDATE {dataset} SET {} = ?, updated_at = ?, json = ? WHERE id = ?", names.join(" = ?, ")),
            searched: searched(dataset).iter().filter_map(|text| names.iter().position(|name| name == text)).collect(),
            texts: format!("SELECT {texts} FROM {dataset} WHERE id = ?"),
            unsearch: format!(
                "INSERT INTO {dataset}_search ({dataset}_search, rowid, {texts}) VALUES ('delete', ?{marks})"
            ),
            search: format!("INSERT INTO {dataset}_search (rowid, {texts}) VALUES (?{marks})"),
        }
    }
}

/// The cells of a record.
pub fn cells_of(columns: &[Column], record: &Value) -> Vec<Cell> {
    columns.iter().map(|column| cell_of(column, record)).collect()
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

/// How much of what stands in the tables is to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All: what a record leaves as it was, is not written again.
    Keep,
    /// The records alone. The full-text index is made anew at the end, by the caller.
    Anew,
}

/// Writes records of a dataset within a transaction.
#[derive(Debug)]
pub struct Rows<'a> {
    path: &'a Path,
    connection: &'a Connection,
    statements: &'a Statements,
    mode: Mode,
    /// What this transaction has written of linked rows already, by table and key.
    written: BTreeMap<(&'static str, i64), Value>,
    /// Linked rows that may have lost their last link, each once.
    unlinked: BTreeMap<(&'static str, i64, String), (&'static Linked, SqlValue)>,
}

impl<'a> Rows<'a> {
    /// A writer.
    pub fn new(path: &'a Path, connection: &'a Connection, statements: &'a Statements, mode: Mode) -> Rows<'a> {
        Rows { path, connection, statements, mode, written: BTreeMap::new(), unlinked: BTreeMap::new() }
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

    /// The first ids of records in a range.
    pub fn ids_in(&self, ids: &RangeInclusive<i64>) -> Result<Vec<i64>, PullError> {
        let query = format!(
            "SELECT id FROM {} WHERE id BETWEEN ? AND ? ORDER BY id LIMIT {IDS_AT_ONCE}",
            self.statements.dataset
        );
        let read = || -> rusqlite::Result<Vec<i64>> {
            self.connection.prepare_cached(&query)?.query_map([ids.start(), ids.end()], |row| row.get(0))?.collect()
        };
        read().map_err(|error| failure(self.path, &error))
    }

    /// Writes a record; returns whether it is new.
    pub fn put(&mut self, id: i64, json: &str) -> Result<bool, PullError> {
        let record: Value = serde_json::from_str(json)
            .map_err(|error| PullError::failed(format!("the service sent a record that cannot be read ({error})")))?;
        let before = match self.mode {
            Mode::Keep => self.json(id)?.and_then(|json| serde_json::from_slice::<Value>(&json).ok()),
            Mode::Anew => None,
        };
        let was_there = before.is_some() || self.remove(id)?;
        self.write(id, before.as_ref(), &record, json).map_err(|error| failure(self.path, &error))?;
        Ok(!was_there)
    }

    /// Writes a record where none stands, or in the place of another one.
    fn write(&mut self, id: i64, before: Option<&Value>, record: &Value, json: &str) -> rusqlite::Result<()> {
        let statements = self.statements;
        let columns = statements.columns;
        let mut row = cells_of(columns, record);
        let is_searched = self.mode == Mode::Keep
            && before.is_none_or(|before| {
                statements.searched.iter().any(|index| cell_of(&columns[*index], before) != row[*index])
            });
        if is_searched && before.is_some() {
            self.unsearch(id)?;
        }
        let mut texts = vec![Cell::Integer(id)];
        if is_searched {
            texts.extend(statements.searched.iter().map(|index| row[*index].clone()));
        }
        row.push(updated_at_of(record));
        row.push(Cell::Text(json.to_owned()));
        row.push(Cell::Integer(id));
        let put = if before.is_some() { &statements.update } else { &statements.insert };
        self.connection.prepare_cached(put)?.execute(params_from_iter(row))?;
        for (kind, table) in &statements.links {
            if let Some(before) = before {
                if items_of(columns, kind, before).eq(items_of(columns, kind, record)) {
                    continue;
                }
                self.unlink(kind, table, id)?;
            }
            let link = format!("INSERT OR IGNORE INTO {table} VALUES (?, ?)");
            for item in items_of(columns, kind, record) {
                let Some(key) = key_of(kind, item) else { continue };
                self.put_linked(kind, &key, item)?;
                self.connection.prepare_cached(&link)?.execute((id, key))?;
            }
        }
        if is_searched {
            self.connection.prepare_cached(&statements.search)?.execute(params_from_iter(texts))?;
        }
        Ok(())
    }

    /// Takes the row of an id out of the full-text index.
    fn unsearch(&self, id: i64) -> rusqlite::Result<()> {
        let statements = self.statements;
        self.connection.prepare_cached(&statements.texts)?.query_row([id], |row| {
            let texts = (0..statements.searched.len()).map(|index| row.get_ref(index));
            let values: Vec<ValueRef<'_>> =
                std::iter::once(Ok(ValueRef::Integer(id))).chain(texts).collect::<rusqlite::Result<_>>()?;
            let values = values.into_iter().map(ToSqlOutput::Borrowed);
            self.connection.prepare_cached(&statements.unsearch)?.execute(params_from_iter(values))
        })?;
        Ok(())
    }

    /// Removes the links of a record to rows of a kind.
    fn unlink(&mut self, kind: &'static Linked, table: &str, id: i64) -> rusqlite::Result<()> {
        let (key, one) = (kind.key, one(self.statements.dataset));
        let delete = format!("DELETE FROM {table} WHERE {one}_id = ? RETURNING {key}");
        let mut delete = self.connection.prepare_cached(&delete)?;
        for key in delete.query_map([id], |row| row.get(0))? {
            let key = key?;
            let (number, name) = match &key {
                SqlValue::Integer(number) => (*number, String::new()),
                SqlValue::Text(name) => (0, name.clone()),
                _ => continue,
            };
            self.unlinked.insert((kind.table, number, name), (kind, key));
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
        if self.mode == Mode::Keep {
            self.unsearch(id)?;
        }
        for (kind, table) in &statements.links {
            self.unlink(kind, table, id)?;
        }
        connection.prepare_cached(&format!("DELETE FROM {dataset} WHERE id = ?"))?.execute([id])?;
        Ok(true)
    }

    /// Removes linked rows that have lost their last link: what no record of the license carries is not kept.
    pub fn sweep(self) -> Result<(), PullError> {
        let sweep = || -> rusqlite::Result<()> {
            for (kind, key) in self.unlinked.values() {
                let delete = format!("DELETE FROM {} WHERE {} = ?1{}", kind.table, kind.own_key(), no_link(kind, "?1"));
                self.connection.prepare_cached(&delete)?.execute([key])?;
            }
            Ok(())
        };
        sweep().map_err(|error| failure(self.path, &error))
    }
}

/// The bytes of a text or blob; none of anything else.
pub fn bytes_of(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        _ => &[],
    }
}
