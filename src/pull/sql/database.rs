//! The database of a copy, which is SQLite or PostgreSQL.

use std::collections::VecDeque;
use std::fmt::Debug;

use super::dialect::{Dialect, Records, Row};
use super::schema::{DatasetTables, SqlTable};
use crate::model::Dataset;
use crate::pull::columns::Cell;
use crate::pull::error::PullError;

/// The number of rows that are read at once: another program may have written any number of them.
const READ_AT_ONCE: u32 = 500;

/// An open database. It holds the lock that keeps other pulls away from the copy.
pub trait Database: Dialect + Debug + Sized {
    /// The address of a copy.
    type Location: Debug;

    /// How to name another place for a copy, for messages.
    const OTHER_LOCATION: &str;

    /// Opens a copy, or creates one. Fails when the place holds something else, and leaves that untouched.
    fn open(address: &Self::Location) -> Result<Self, PullError>;

    /// Whether the connection is gone, and the lock with it.
    fn is_lost(&self) -> bool {
        false
    }

    /// The address, for messages.
    fn shown(&self) -> String;

    /// Fails when the address leads to another copy by now.
    fn check_location(&self) -> Result<(), PullError> {
        Ok(())
    }

    /// Runs statements without parameters.
    fn batch(&mut self, sql: &str) -> Result<(), PullError>;

    /// Runs a statement; returns the rows of its result.
    fn query(&mut self, sql: &str, params: &[Cell]) -> Result<Vec<Row>, PullError>;

    /// Writes rows of different keys. Replaces the rows that have their keys.
    fn write_rows(&mut self, table: &SqlTable, rows: Vec<Row>) -> Result<(), PullError>;

    /// Writes and removes records. Updates the full-text index if `updates_search`.
    fn write_records(
        &mut self,
        tables: &DatasetTables,
        records: Records,
        updates_search: bool,
    ) -> Result<(), PullError>;

    /// Rebuilds the full-text index of a dataset, if the database does not keep it by itself.
    fn rebuild_search(&mut self, _dataset: Dataset) -> Result<(), PullError> {
        Ok(())
    }

    /// Prepares the tables of a dataset for queries, after a load.
    fn after_load(&mut self, _tables: &DatasetTables) {}

    /// Fails when the storage is damaged.
    fn check_storage(&mut self) -> Result<(), PullError> {
        Ok(())
    }

    /// Compares the full-text index of a dataset with its records; returns the fault.
    fn find_search_fault(&mut self, _dataset: Dataset) -> Result<Option<String>, PullError> {
        Ok(None)
    }

    /// Runs `work` in one transaction.
    fn in_transaction<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, PullError>) -> Result<T, PullError> {
        self.batch(Self::BEGIN)?;
        let done = work(self).and_then(|done| self.batch("COMMIT").map(|()| done));
        if done.is_err() && !self.is_lost() {
            // The first error counts. After some errors the database has rolled back by itself.
            let _ = self.batch("ROLLBACK");
        }
        done
    }

    /// Whether a table has a row that meets a condition.
    fn has(&mut self, table: &str, condition: &str) -> Result<bool, PullError> {
        Ok(!self.query(&format!("SELECT 1 FROM {table} WHERE {condition} LIMIT 1"), &[])?.is_empty())
    }
}

/// Reads the rows of a table in the order of ids, some at a time.
#[derive(Debug)]
pub struct Reader {
    query: String,
    /// The first id that was not read yet; `None` after the last one.
    next: Option<i64>,
    rows: VecDeque<Row>,
}

impl Reader {
    /// Reads columns from an id on. The first column is `id`.
    pub fn new(columns: &str, table: &str, from: i64) -> Reader {
        let query = format!("SELECT {columns} FROM {table} WHERE id >= $1 ORDER BY id LIMIT {READ_AT_ONCE}");
        Reader { query, next: Some(from), rows: VecDeque::new() }
    }

    /// Returns the next rows; none after the last one.
    pub fn some<D: Database>(&mut self, database: &mut D) -> Result<Vec<Row>, PullError> {
        let Some(from) = self.next else { return Ok(Vec::new()) };
        let rows = database.query(&self.query, &[Cell::Integer(from)])?;
        self.next = rows.last().and_then(|row| row[0].integer()?.checked_add(1));
        Ok(rows)
    }

    /// Returns the next row if its id is not greater than `last`.
    pub fn next_until<D: Database>(&mut self, database: &mut D, last: i64) -> Result<Option<Row>, PullError> {
        if self.rows.is_empty() {
            self.rows = self.some(database)?.into();
        }
        Ok(self.rows.pop_front_if(|row| row[0].integer().is_some_and(|id| id <= last)))
    }
}
