//! Writes records and their full-text index.

use rusqlite::Connection;

use super::file::{execute, insert, query};
use crate::pull::columns::Cell;
use crate::pull::sql::tables::{DatasetTables, Row, searched};

/// The statements that write a record and its full-text index.
pub struct Statements {
    updates_search: bool,
    /// The positions of the id and of the columns in the full-text index.
    searched: Vec<usize>,
    /// Selects the id of a record and its texts in the full-text index.
    select: String,
    insert: String,
    update: String,
    delete: String,
    /// Adds an id and its texts to the full-text index.
    search: String,
    /// Removes an id and its texts from the full-text index. It uses `VALUES`: with `SELECT`, the index flushes to the
    /// disk before each statement, which takes five times as long.
    unsearch: String,
}

impl Statements {
    /// The statements of a dataset.
    pub fn new(tables: &DatasetTables, updates_search: bool) -> Statements {
        let (dataset, names) = (tables.dataset, searched(tables.dataset));
        let is_searched = |name: &str| name == "id" || names.contains(&name);
        let columns = tables.records.columns.iter().enumerate();
        let sets: Vec<String> =
            columns.clone().skip(1).map(|(at, (name, _))| format!("{name} = ?{}", at + 1)).collect();
        let (texts, marks) = (names.join(", "), ", ?".repeat(names.len()));
        Statements {
            updates_search,
            searched: columns.filter(|(_, (name, _))| is_searched(name)).map(|(at, _)| at).collect(),
            select: format!("SELECT id, {texts} FROM {dataset} WHERE id = ?"),
            insert: insert(&tables.records),
            update: format!("UPDATE {dataset} SET {} WHERE id = ?1", sets.join(", ")),
            delete: format!("DELETE FROM {dataset} WHERE id = ?"),
            search: format!("INSERT INTO {dataset}_search (rowid, {texts}) VALUES (?{marks})"),
            unsearch: format!(
                "INSERT INTO {dataset}_search ({dataset}_search, rowid, {texts}) VALUES ('delete', ?{marks})"
            ),
        }
    }

    /// Writes a record, or removes it if `row` is `None`.
    pub fn write(&self, connection: &Connection, id: i64, row: Option<Row>) -> rusqlite::Result<()> {
        let key = vec![Cell::Integer(id)];
        if !self.updates_search {
            return match row {
                Some(row) => execute(connection, &self.insert, row),
                None => execute(connection, &self.delete, key),
            };
        }
        let before = query(connection, &self.select, &key)?.pop();
        let words: Option<Row> = row.as_ref().map(|row| self.searched.iter().map(|at| row[*at].clone()).collect());
        let (was_there, is_new) = (before.is_some(), before != words);
        if let Some(before) = before.filter(|_| is_new) {
            execute(connection, &self.unsearch, before)?;
        }
        match row {
            Some(row) if was_there => execute(connection, &self.update, row)?,
            Some(row) => execute(connection, &self.insert, row)?,
            None => execute(connection, &self.delete, key)?,
        }
        words.filter(|_| is_new).map_or(Ok(()), |words| execute(connection, &self.search, words))
    }
}
