//! The tables and views of a copy.
//!
//! A record's row has its cells and, in `json`, the bytes that the service sent. All else is derived from `json`.

use std::fmt::Write;

use sha2::{Digest as _, Sha256};

use crate::model::Dataset;
use crate::model::value::ValueKind;
use crate::pull::columns::{Column, columns};
use crate::pull::tables::{Dialect, Linked, linked, links, one, searched, views};

/// `PRAGMA application_id` of a copy: "mfcp".
pub const APPLICATION_ID: i32 = 0x6d66_6370;

/// `PRAGMA user_version`: raised when an older program must not go on with a newer copy.
pub const FORMAT: i32 = 1;

/// What is the same in every copy.
const COMMON: &str = "
    -- Of what this is a copy: the service's address and the layout of the tables.
    CREATE TABLE copy (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    -- Where it stands: the sync token, and when it was loaded, last changed, last compared with the service. Times are UTC.
    CREATE TABLE sync (dataset TEXT PRIMARY KEY, token TEXT NOT NULL, records INTEGER NOT NULL,
        loaded_at TEXT NOT NULL, changed_at TEXT NOT NULL, checked_at TEXT NOT NULL, verified_at TEXT);
";

const DIALECT: Dialect = Dialect {
    today: "date('now')",
    in_90_days: "date('now', '+90 days')",
    days_left: "CAST(julianday(due_date) - julianday(date('now')) AS INTEGER)",
};

/// The statements that make the tables derived from records, and the views.
pub fn derived() -> String {
    let mut ddl: String = linked().iter().map(ddl_of).collect();
    for dataset in Dataset::ALL {
        push_dataset(&mut ddl, dataset);
    }
    for (name, query) in views(DIALECT) {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(ddl, "CREATE VIEW {name} AS {query};");
    }
    ddl
}

fn ddl_of(kind: &Linked) -> String {
    if kind.columns.is_empty() {
        return format!("CREATE TABLE {} (name TEXT PRIMARY KEY) WITHOUT ROWID;\n", kind.table);
    }
    let cells: String = kind.columns.iter().map(|name| format!(", {name} TEXT")).collect();
    format!("CREATE TABLE {} (id INTEGER PRIMARY KEY{cells});\n", kind.table)
}

fn push_dataset(ddl: &mut String, dataset: Dataset) {
    let cells: String =
        columns(dataset).iter().map(|column| format!(", {} {}", column.column, sql_type(column))).collect();
    let _ = writeln!(
        ddl,
        "CREATE TABLE {dataset} (id INTEGER PRIMARY KEY{cells}, updated_at TEXT, json TEXT NOT NULL);
         CREATE VIRTUAL TABLE {dataset}_search USING fts5({}, content='{dataset}', content_rowid='id',
            tokenize='unicode61 remove_diacritics 2');",
        searched(dataset).join(", ")
    );
    for (kind, table) in links(dataset) {
        let (key, target, one) = (kind.key, kind.table, one(dataset));
        let key_type = if kind.columns.is_empty() { "TEXT" } else { "INTEGER" };
        let _ = writeln!(
            ddl,
            "CREATE TABLE {table} ({one}_id INTEGER NOT NULL REFERENCES {dataset}, {key} {key_type} NOT NULL REFERENCES \
             {target}, PRIMARY KEY ({one}_id, {key})) WITHOUT ROWID;
             CREATE INDEX {table}_by_{key} ON {table} ({key});"
        );
    }
}

fn sql_type(column: &Column) -> &'static str {
    match column.kind {
        ValueKind::Integer | ValueKind::Year => "INTEGER",
        ValueKind::Number => "REAL",
        ValueKind::Flag => "BOOLEAN",
        ValueKind::Date => "DATE",
        ValueKind::Text | ValueKind::Choice(_) | ValueKind::DateStatus(_) => "TEXT",
        ValueKind::Texts | ValueKind::Links(_) => "TEXT",
    }
}

/// The statements that make a new copy.
pub fn all() -> String {
    format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT};\n{COMMON}{}", derived())
}

/// The statements that remove what [`derived`] makes, but for the records.
pub fn undo_derived() -> String {
    let mut ddl: String = views(DIALECT).rev().map(|(name, _)| format!("DROP VIEW IF EXISTS {name};\n")).collect();
    for dataset in Dataset::ALL {
        let _ = writeln!(ddl, "DROP TABLE IF EXISTS {dataset}_search;");
        for (_, table) in links(dataset) {
            let _ = writeln!(ddl, "DROP TABLE IF EXISTS {table};");
        }
    }
    for kind in linked() {
        let _ = writeln!(ddl, "DROP TABLE IF EXISTS {};", kind.table);
    }
    ddl
}

/// What tells one layout of the derived tables from another.
pub fn layout() -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(derived().as_bytes()))
}
