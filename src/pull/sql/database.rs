//! The database of a copy, which is SQLite or PostgreSQL, and the SQL that differs between them.

use std::collections::VecDeque;

use super::tables::{DatasetTables, Row, SqlTable, Type};
use crate::model::Dataset;
use crate::pull::columns::Cell;
use crate::pull::error::{PullError, Result};

/// The number of rows that a query reads at once.
const READ_AT_ONCE: u32 = 500;

/// An open database. It holds the copy's lock. All statements write parameters as `$1`, `$2`.
pub trait Database: Sized {
    /// The path or URL of a copy.
    type Location;

    /// A hint for messages: how to choose another location.
    const OTHER_LOCATION: &str;

    /// The words of the views: today, the day 90 days later, and the days from today until `due_date`, in UTC.
    const VIEW_WORDS: [(&str, &str); 3];
    /// Begins a transaction that writes.
    const BEGIN: &str;
    /// The function that returns the items of a JSON array as rows, in the column `value`.
    const JSON_ITEMS: &str;
    /// The end of the definition of a table whose primary key is not a number.
    const BY_KEY: &str;
    /// The JSON of a record, or its SHA-256 if the server can compute it.
    const JSON_OR_DIGEST: &str;

    /// Selects the kind, the name and the table of objects that others added to the copy's tables: all triggers, and
    /// the constraints and unique indexes that the message `$1` is about.
    const FOREIGN_OBJECTS: &str;

    /// Creates the tables `copy` and `sync`, and marks the database as a copy.
    fn common() -> String;

    /// The name of a type.
    fn type_name(kind: Type) -> &'static str;

    /// The full-text index of a dataset: further columns of its table, and statements that follow.
    fn search(dataset: Dataset) -> (String, String);

    /// Comments on a table, if the database stores comments.
    fn comment(_table: &str, _text: &str) -> String {
        String::new()
    }

    /// Moves the records of a dataset to the table `old_DATASET`, and drops their table and its full-text index.
    fn set_aside(dataset: Dataset) -> String;

    /// An expression that reads a column as a [`Cell`].
    fn read(column: &str, _kind: Type) -> String {
        column.to_owned()
    }

    /// The cell as the database stores it.
    fn stored(kind: Type, cell: Cell) -> Cell;

    /// Opens a copy, or creates one. Leaves other files and databases untouched.
    fn open(address: &Self::Location) -> Result<Self>;

    /// Whether the connection, and with it the lock, is lost.
    fn is_lost(&self) -> bool {
        false
    }

    /// The location, for messages.
    fn shown(&self) -> String;

    /// Fails if the location was removed or now holds another copy.
    fn check_location(&self) -> Result<()> {
        Ok(())
    }

    /// Runs statements without parameters.
    fn batch(&mut self, sql: &str) -> Result<()>;

    /// Runs a statement. Returns its rows.
    fn query(&mut self, sql: &str, params: &[Cell]) -> Result<Vec<Row>>;

    /// Inserts rows with distinct keys, or replaces those with the same keys. Does not touch rows that are equal.
    fn write_rows(&mut self, table: &SqlTable, rows: Vec<Row>) -> Result<()>;

    /// Removes records from the full-text index before they change, if the database does not maintain it. `ids` is a
    /// list of their ids.
    fn unindex(&mut self, _dataset: Dataset, _ids: &Cell) -> Result<()> {
        Ok(())
    }

    /// Adds records to the full-text index after they have changed, if the database does not maintain it.
    fn index(&mut self, _dataset: Dataset, _ids: &Cell) -> Result<()> {
        Ok(())
    }

    /// Rebuilds the full-text index of a dataset, if the database does not maintain it.
    fn rebuild_search(&mut self, _dataset: Dataset) -> Result<()> {
        Ok(())
    }

    /// Prepares the tables of a dataset for queries, after a load.
    fn after_load(&mut self, _tables: &DatasetTables) {}

    /// Fails when the storage is damaged.
    fn check_storage(&mut self) -> Result<()> {
        Ok(())
    }

    /// Compares the full-text index of a dataset with its records. Returns the fault.
    fn find_search_fault(&mut self, _dataset: Dataset) -> Result<Option<String>> {
        Ok(None)
    }

    /// Runs `work` in one transaction.
    fn in_transaction<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.batch(Self::BEGIN)?;
        let done = work(self).and_then(|done| self.batch("COMMIT").map(|()| done));
        let Err(error) = done else { return done };
        if self.is_lost() {
            return Err(error);
        }
        // Returns the first error. After some errors, the database has already rolled back.
        let _ = self.batch("ROLLBACK");
        let PullError::Rejected { copy, reason, .. } = &error else {
            return Err(error);
        };
        match self.foreign_objects(reason) {
            Ok(objects) if !objects.is_empty() => Err(PullError::Unusable(format!(
                "{copy}: {} refuses what the service sends ({reason}); `medfeed pull` did not create that; drop it, and run \
                 again; the copy stays as it was",
                objects.join(" or ")
            ))),
            _ => Err(error),
        }
    }

    /// The objects that others added to the copy's tables, and that can cause a message of the database.
    fn foreign_objects(&mut self, reason: &str) -> Result<Vec<String>> {
        let rows = self.query(Self::FOREIGN_OBJECTS, &[reason.into()])?;
        let (triggers, named): (Vec<Row>, Vec<Row>) = rows
            .into_iter()
            .partition(|row| row[0] == Cell::from("trigger"));
        // A message names constraints and indexes, but not triggers.
        let rows = if named.is_empty() { triggers } else { named };
        let shown = rows.iter().map(|row| {
            let [kind, name, table] = [0, 1, 2].map(|at| String::from_utf8_lossy(row[at].bytes()));
            format!("the {kind} `{name}` of the table `{table}`")
        });
        Ok(shown.collect())
    }

    /// Looks for a row of a table that meets a condition.
    fn finds(&mut self, table: &str, condition: &str) -> Result<bool> {
        Ok(!self
            .query(
                &format!("SELECT 1 FROM {table} WHERE {condition} LIMIT 1"),
                &[],
            )?
            .is_empty())
    }
}

/// Reads the rows of a table in batches, ordered by id.
pub struct Reader {
    query: String,
    /// The first id of the next batch; `None` at the end.
    next: Option<i64>,
    rows: VecDeque<Row>,
}

impl Reader {
    /// Reads from an id on. The first column must be `id`.
    pub fn new(columns: &str, table: &str, from: i64) -> Reader {
        let query = format!(
            "SELECT {columns} FROM {table} WHERE id >= $1 ORDER BY id LIMIT {READ_AT_ONCE}"
        );
        Reader {
            query,
            next: Some(from),
            rows: VecDeque::new(),
        }
    }

    /// Returns the next batch; empty at the end.
    pub fn some<D: Database>(&mut self, database: &mut D) -> Result<Vec<Row>> {
        let Some(from) = self.next else {
            return Ok(Vec::new());
        };
        let rows = database.query(&self.query, &[Cell::Integer(from)])?;
        self.next = rows.last().and_then(|row| row[0].integer()?.checked_add(1));
        Ok(rows)
    }

    /// Returns the next row if its id is not greater than `last`.
    pub fn next_until<D: Database>(&mut self, database: &mut D, last: i64) -> Result<Option<Row>> {
        if self.rows.is_empty() {
            self.rows = self.some(database)?.into();
        }
        Ok(self
            .rows
            .pop_front_if(|row| row[0].integer().is_some_and(|id| id <= last)))
    }
}
