//! The types of columns, and the SQL that differs between SQLite and PostgreSQL.

use std::collections::BTreeMap;

use crate::model::Dataset;
use crate::model::value::ValueKind;
use crate::pull::columns::Cell;

/// A row of a table or of a query's result.
pub type Row = Vec<Cell>;

/// The rows of records by id; `None` for records to remove.
pub type Records = BTreeMap<i64, Option<Row>>;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as what they hold")]
pub enum Type {
    Integer,
    Number,
    Flag,
    Date,
    Text,
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

/// The SQL that differs between databases. All statements write parameters as `$1`, `$2`.
pub trait Dialect {
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

    /// Selects the kind, the name and the table of objects that others added to the copy's tables: all triggers, and the
    /// constraints and unique indexes that the message `$1` is about.
    const FOREIGN_OBJECTS: &str;

    /// Creates the tables `copy` and `sync`, and marks the database as a copy.
    fn common() -> String;

    /// The name of a type.
    fn type_name(kind: Type) -> &'static str;

    /// The full-text index of a dataset: further columns of its table, and statements that follow.
    fn search(dataset: Dataset) -> (String, String);

    /// Comments on a table.
    fn comment(table: &str, text: &str) -> String;

    /// Moves the records of a dataset to the table `old_DATASET`, and drops their table and its full-text index.
    fn set_aside(dataset: Dataset) -> String;

    /// An expression that reads a column as a [`Cell`].
    fn read(column: &str, kind: Type) -> String;

    /// The cell as the database stores it.
    fn stored(kind: Type, cell: Cell) -> Cell;
}
