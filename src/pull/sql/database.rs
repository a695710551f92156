//! The differences between SQLite and PostgreSQL.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::schema::{Table, Tables};
use crate::model::Dataset;
use crate::model::value::ValueKind;
use crate::pull::columns::Cell;
use crate::pull::error::PullError;

/// The number of records that are read at once.
const READ_AT_ONCE: u32 = 500;

/// A row of a table or of a query's result.
pub type Row = Vec<Cell>;

/// Handles some of the rows that are read; `false` ends the reading.
pub type TakeRows<'a, D> = &'a mut dyn FnMut(&mut D, Vec<Row>) -> Result<bool, PullError>;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Flag,
    /// A day.
    Date,
    /// A text.
    Text,
    /// An instant.
    Time,
    /// A record as the service sent it.
    Json,
}

impl From<ValueKind> for Type {
    fn from(kind: ValueKind) -> Type {
        match kind {
            ValueKind::Integer | ValueKind::Year => Type::Integer,
            ValueKind::Number => Type::Number,
            ValueKind::Flag => Type::Flag,
            ValueKind::Date => Type::Date,
            ValueKind::Text | ValueKind::Choice(_) | ValueKind::DateStatus(_) => Type::Text,
            ValueKind::Texts | ValueKind::Links(_) => Type::Text,
        }
    }
}

/// Whether the full-text index follows each record that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// It does.
    Updated,
    /// The caller rebuilds it at the end.
    Rebuilt,
}

/// The SQL that differs between databases. Statements write parameters as `$1`, `$2`.
pub trait Dialect {
    /// Today, in UTC.
    const TODAY: &str;
    /// The day 90 days later.
    const IN_90_DAYS: &str;
    /// The days from today until `due_date`.
    const DAYS_LEFT: &str;
    /// `verified_at` in seconds since 1970.
    const VERIFIED_S: &str;
    /// Begins a transaction that writes.
    const BEGIN: &str;
    /// The function that returns the items of a JSON array as rows, in the column `value`.
    const JSON_ITEMS: &str;
    /// The end of the definition of a table that is stored by a primary key other than a number.
    const BY_KEY: &str;

    /// Creates the tables `copy` and `sync`, and marks the database as a copy.
    fn common() -> String;

    /// The name of a type.
    fn type_name(kind: Type) -> &'static str;

    /// The further columns of a dataset's table for the full-text index.
    fn search_column(dataset: Dataset) -> String;

    /// Creates the full-text index of a dataset, and comments on its table.
    fn search_ddl(dataset: Dataset) -> String;

    /// Comments on a table.
    fn comment(table: &str, text: &str) -> String;

    /// Moves the records of a dataset to the table `old_DATASET`, and drops their table and its full-text index.
    fn set_aside(dataset: Dataset) -> String;

    /// An expression that reads a column as a [`Cell`].
    fn read(column: &str, kind: Type) -> String;

    /// The cell as the database stores it.
    fn stored(kind: Type, cell: Cell) -> Cell;
}

/// An open database. It holds the lock that keeps other pulls away from the copy.
pub trait Database: Dialect + Debug + Sized {
    /// The address of a copy.
    type Address: Debug;

    /// How to name another place for a copy, for messages.
    const OTHER_PLACE: &str;

    /// Opens a copy, or creates one.
    ///
    /// # Errors
    /// When the place holds something else or a copy of a newer format; it is left untouched then. When another pull is at
    /// work on the copy.
    fn open(address: &Self::Address) -> Result<Self, PullError>;

    /// Whether the connection is gone, and the lock with it.
    fn is_lost(&self) -> bool {
        false
    }

    /// The address, for messages.
    fn shown(&self) -> String;

    /// Fails when the address leads to another copy by now.
    fn check_place(&self) -> Result<(), PullError> {
        Ok(())
    }

    /// Runs statements without parameters.
    fn batch(&mut self, sql: &str) -> Result<(), PullError>;

    /// Runs a statement; returns the rows of its result.
    fn query(&mut self, sql: &str, params: &[Cell]) -> Result<Vec<Row>, PullError>;

    /// Returns the ids of records from `from` on, each with the SHA-256 of its JSON, in order and at most `count`.
    fn digests(&mut self, dataset: Dataset, from: i64, count: usize) -> Result<Vec<(i64, Vec<u8>)>, PullError>;

    /// Writes rows of different keys. Replaces the rows that have their keys.
    fn write_rows(&mut self, table: &Table, rows: Vec<Row>) -> Result<(), PullError>;

    /// Writes the rows of records, and removes those of ids without a row.
    fn write_records(
        &mut self,
        tables: &Tables,
        records: BTreeMap<i64, Option<Row>>,
        search: Search,
    ) -> Result<(), PullError>;

    /// Rebuilds the full-text index of a dataset, if the database does not keep it by itself.
    fn rebuild_search(&mut self, _dataset: Dataset) -> Result<(), PullError> {
        Ok(())
    }

    /// Prepares the tables of a dataset for queries, after a load.
    fn after_load(&mut self, _tables: &Tables) {}

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

    /// Returns the first row of a query, if it has any.
    fn first(&mut self, sql: &str, params: &[Cell]) -> Result<Option<Row>, PullError> {
        Ok(self.query(sql, params)?.into_iter().next())
    }

    /// Whether a table has a row that meets a condition.
    fn has(&mut self, table: &str, condition: &str) -> Result<bool, PullError> {
        Ok(self.first(&format!("SELECT 1 FROM {table} WHERE {condition} LIMIT 1"), &[])?.is_some())
    }

    /// Reads the columns of a table from an id on, some rows at a time in the order of ids. The first column is `id`.
    fn read_all(&mut self, columns: &str, table: &str, from: i64, take: TakeRows<'_, Self>) -> Result<(), PullError> {
        let query = format!("SELECT {columns} FROM {table} WHERE id >= $1 ORDER BY id LIMIT {READ_AT_ONCE}");
        let mut next = Some(from);
        while let Some(from) = next {
            let rows = self.query(&query, &[Cell::Integer(from)])?;
            let Some(last) = rows.last().and_then(|row| row[0].integer()) else { break };
            if !take(self, rows)? {
                break;
            }
            next = last.checked_add(1);
        }
        Ok(())
    }
}
