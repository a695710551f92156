//! Comparing everything that is derived from the records with them.

use std::collections::BTreeMap;

use rusqlite::types::{Value as SqlValue, ValueRef};
use rusqlite::{Connection, ErrorCode};
use serde_json::Value;

use super::rows::{Statements, bytes_of, cells_of, key_of, updated_at_of};
use crate::pull::columns::Cell;
use crate::pull::tables::{Linked, items_of, no_link, one};

/// The first fault in what is derived from a dataset's records.
///
/// # Errors
/// When the file cannot be read, or its pages are damaged.
pub fn find_fault(connection: &Connection, statements: &Statements) -> rusqlite::Result<Option<String>> {
    let state: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if state != "ok" {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
        return Err(rusqlite::Error::SqliteFailure(code, Some(state)));
    }
    if let Some(fault) = find_in_rows(connection, statements)? {
        return Ok(Some(fault));
    }
    for (kind, _) in &statements.links {
        let own = format!("{}.{}", kind.table, kind.own_key());
        let stray = format!("SELECT 1 FROM {} WHERE true{}", kind.table, no_link(kind, &own));
        if connection.prepare(&stray)?.exists([])? {
            return Ok(Some(format!("`{}` has a row that no record is linked to", kind.table)));
        }
    }
    let dataset = statements.dataset;
    let compare = format!("INSERT INTO {dataset}_search ({dataset}_search, rank) VALUES ('integrity-check', 1)");
    match connection.execute_batch(&compare) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            Ok(Some("its full-text index does not fit its records".to_owned()))
        }
        done => done.map(|()| None),
    }
}

/// Compares the cells of every row and its links.
fn find_in_rows(connection: &Connection, statements: &Statements) -> rusqlite::Result<Option<String>> {
    let (dataset, columns) = (statements.dataset, statements.columns);
    let names: Vec<&str> = columns.iter().map(|column| column.column.as_str()).collect();
    let query = format!("SELECT id, {}, updated_at, json FROM {dataset} ORDER BY id", names.join(", "));
    let mut links: Vec<Links<'_>> =
        statements.links.iter().map(|(kind, table)| Links::new(connection, kind, table)).collect();
    let mut statement = connection.prepare(&query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let json = row.get_ref(columns.len() + 2)?;
        if !matches!(json, ValueRef::Text(_)) {
            return Ok(Some(format!("the JSON of record {id} is no text")));
        }
        let Ok(record) = serde_json::from_slice::<Value>(bytes_of(json)) else {
            return Ok(Some(format!("the JSON of record {id} cannot be read")));
        };
        if record["id"].as_i64() != Some(id) {
            return Ok(Some(format!("the id of record {id} does not fit its JSON")));
        }
        let mut expected = cells_of(columns, &record);
        expected.push(updated_at_of(&record));
        for (index, cell) in expected.iter().enumerate() {
            if !is_cell(cell, row.get_ref(index + 1)?) {
                let name = names.get(index).unwrap_or(&"updated_at");
                return Ok(Some(format!("the column `{name}` of record {id} does not fit its JSON")));
            }
        }
        for links in &mut links {
            if !links.fit(statements, id, &record)? {
                return Ok(Some(format!("`{}` does not fit the JSON of record {id}", links.table)));
            }
        }
    }
    for links in links {
        let count: i64 =
            connection.query_row(&format!("SELECT count(*) FROM {}", links.table), [], |row| row.get(0))?;
        if count != links.count {
            return Ok(Some(format!("`{}` has a link of a record that is not there", links.table)));
        }
    }
    Ok(None)
}

/// A link table while it is compared.
struct Links<'a> {
    connection: &'a Connection,
    kind: &'static Linked,
    table: &'a str,
    /// How many links the records seen so far have.
    count: i64,
    /// Linked rows that were found to be as a record tells them.
    seen: BTreeMap<i64, Value>,
}

impl<'a> Links<'a> {
    fn new(connection: &'a Connection, kind: &'static Linked, table: &'a str) -> Links<'a> {
        Links { connection, kind, table, count: 0, seen: BTreeMap::new() }
    }

    fn fit(&mut self, statements: &Statements, id: i64, record: &Value) -> rusqlite::Result<bool> {
        let (kind, one) = (self.kind, one(statements.dataset));
        let items: Vec<&Value> = items_of(statements.columns, kind, record).collect();
        let query = format!("SELECT {} FROM {} WHERE {one}_id = ?", kind.key, self.table);
        let mut statement = self.connection.prepare_cached(&query)?;
        let found: Vec<SqlValue> = statement.query_map([id], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        self.count += i64::try_from(items.len()).unwrap_or(i64::MAX);
        if found.len() != items.len() {
            return Ok(false);
        }
        for item in items {
            let Some(key) = key_of(kind, item) else { return Ok(false) };
            if !found.contains(&key) || !self.is_there(&key, item)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the linked row stands in its table as a record tells it. Both datasets may tell of one row; the one that was
    /// brought to the present last has written it, and that is the one which is compared.
    fn is_there(&mut self, key: &SqlValue, item: &Value) -> rusqlite::Result<bool> {
        let kind = self.kind;
        if let SqlValue::Integer(id) = key
            && self.seen.get(id) == Some(item)
        {
            return Ok(true);
        }
        let own = kind.own_key();
        let names = if kind.columns.is_empty() { own.to_owned() } else { kind.columns.join(", ") };
        let query = format!("SELECT {names} FROM {} WHERE {own} = ?", kind.table);
        let mut statement = self.connection.prepare_cached(&query)?;
        let mut rows = statement.query([key])?;
        let Some(row) = rows.next()? else { return Ok(false) };
        for (index, name) in kind.columns.iter().enumerate() {
            let expected = match &item[*name] {
                Value::Null => Cell::Null,
                Value::String(text) => Cell::Text(text.clone()),
                other => Cell::Text(other.to_string()),
            };
            if !is_cell(&expected, row.get_ref(index)?) {
                return Ok(false);
            }
        }
        if let SqlValue::Integer(id) = key {
            self.seen.insert(*id, item.clone());
        }
        Ok(true)
    }
}

/// Whether a cell is stored so.
fn is_cell(cell: &Cell, stored: ValueRef<'_>) -> bool {
    match (cell, stored) {
        (Cell::Null, ValueRef::Null) => true,
        (Cell::Integer(expected), ValueRef::Integer(found)) => *expected == found,
        (Cell::Flag(expected), ValueRef::Integer(found)) => i64::from(*expected) == found,
        (Cell::Number(expected), ValueRef::Real(found)) => expected.to_bits() == found.to_bits(),
        (Cell::Text(expected), ValueRef::Text(found)) => expected.as_bytes() == found,
        _ => false,
    }
}
