//! The tables and views of a copy.
//!
//! A record's row has its cells and, in `json`, the bytes that the service sent: the type `json` keeps them as they are. All
//! else is derived from them, the words of the full-text index by PostgreSQL itself.

use std::fmt::Write;

use sha2::{Digest as _, Sha256};

use crate::model::Dataset;
use crate::model::value::ValueKind;
use crate::pull::columns::columns;
use crate::pull::tables::{Dialect, Linked, linked, links, one, searched, views};

/// Raised when an older program must not go on with a newer copy.
pub const FORMAT: &str = "1";

/// What is the same in every copy.
const COMMON: &str = "
    CREATE TABLE copy (name text PRIMARY KEY, value text NOT NULL);
    COMMENT ON TABLE copy IS 'Of what this is a copy: the address of the service, and the layout of the tables';
    CREATE TABLE sync (dataset text PRIMARY KEY, token text NOT NULL, records bigint NOT NULL, loaded_at timestamptz NOT NULL,
        changed_at timestamptz NOT NULL, checked_at timestamptz NOT NULL, verified_at timestamptz);
    COMMENT ON TABLE sync IS 'Where the copy stands: the sync token, and when it was loaded, last changed, last asked for news, \
last found equal to the service''s content';
";

const DIALECT: Dialect = Dialect {
    today: "(now() AT TIME ZONE 'UTC')::date",
    in_90_days: "(now() AT TIME ZONE 'UTC')::date + 90",
    days_left: "due_date - (now() AT TIME ZONE 'UTC')::date",
};

/// How much of a record's text is in the full-text index, in characters: far more than records have, and less than an entry
/// of the index can hold.
const SEARCHED_LENGTH: u32 = 50_000;

/// The name and type of each column of a dataset that is written, in order.
pub fn cells(dataset: Dataset) -> Vec<(&'static str, &'static str)> {
    let between = columns(dataset).iter().map(|column| (column.column.as_str(), sql_type(column.kind)));
    [("id", "bigint")].into_iter().chain(between).chain([("updated_at", "timestamptz"), ("json", "json")]).collect()
}

fn sql_type(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Integer | ValueKind::Year => "bigint",
        ValueKind::Number => "double precision",
        ValueKind::Flag => "boolean",
        ValueKind::Date => "date",
        ValueKind::Text | ValueKind::Choice(_) | ValueKind::DateStatus(_) => "text",
        ValueKind::Texts | ValueKind::Links(_) => "text",
    }
}

/// The type of the key of a linked row.
pub fn key_type(kind: &Linked) -> &'static str {
    if kind.columns.is_empty() { "text" } else { "bigint" }
}

/// The statements that make the tables derived from records, and the views.
pub fn derived() -> String {
    let mut ddl = String::new();
    for kind in linked() {
        let cells: String = kind.columns.iter().map(|name| format!(", {name} text")).collect();
        let (table, own) = (kind.table, kind.own_key());
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            ddl,
            "CREATE TABLE {table} ({own} {} PRIMARY KEY{cells});
             COMMENT ON TABLE {table} IS 'Those that the records of the copy name';",
            key_type(kind)
        );
    }
    for dataset in Dataset::ALL {
        push_dataset(&mut ddl, dataset);
    }
    for (name, query) in views(DIALECT) {
        let _ = writeln!(ddl, "CREATE VIEW {name} AS {query};");
    }
    ddl
}

fn push_dataset(ddl: &mut String, dataset: Dataset) {
    let one = one(dataset);
    let definition = |(name, sql_type): &(&str, &str)| {
        let constraint = match *name {
            "id" => " PRIMARY KEY",
            "json" => " NOT NULL",
            _ => "",
        };
        format!("{name} {sql_type}{constraint}")
    };
    let cells: Vec<String> = cells(dataset).iter().map(definition).collect();
    // Words are found with and without their accents.
    let texts: Vec<String> = searched(dataset).iter().map(|name| format!("coalesce({name}, '')")).collect();
    let text = format!("left({}, {SEARCHED_LENGTH})", texts.join(" || ' ' || "));
    let _ = writeln!(
        ddl,
        "CREATE TABLE {dataset} ({}, search tsvector GENERATED ALWAYS AS (to_tsvector('simple', {text} || ' ' || \
         regexp_replace(normalize({text}, NFKD), '[\\u0300-\\u036f]', '', 'g'))) STORED);
         CREATE INDEX {dataset}_search ON {dataset} USING gin (search);
         COMMENT ON TABLE {dataset} IS 'The {dataset} of the copy; columns as in the CSV export';
         COMMENT ON COLUMN {dataset}.json IS 'The record as the service sent it';
         COMMENT ON COLUMN {dataset}.search IS 'Full-text index: search @@ websearch_to_tsquery(''simple'', ''words'')';",
        cells.join(", ")
    );
    for column in columns(dataset) {
        let note = column.note.replace('\'', "''");
        let _ = writeln!(ddl, "COMMENT ON COLUMN {dataset}.{} IS '{note}';", column.column);
    }
    for (kind, table) in links(dataset) {
        let (key, target) = (kind.key, kind.table);
        let _ = writeln!(
            ddl,
            "CREATE TABLE {table} ({one}_id bigint NOT NULL REFERENCES {dataset}, {key} {} NOT NULL REFERENCES {target}, \
             PRIMARY KEY ({one}_id, {key}));
             CREATE INDEX {table}_by_{key} ON {table} ({key});
             COMMENT ON TABLE {table} IS 'Which {dataset} name which {target}';",
            key_type(kind)
        );
    }
}

/// The statements that make a new copy.
pub fn all() -> String {
    let layout = layout();
    format!(
        "{COMMON}{}INSERT INTO copy VALUES ('made by', 'medfeed pull'), ('format', '{FORMAT}'), ('layout', '{layout}');",
        derived()
    )
}

/// The statements that remove what [`derived`] makes, but for the records.
pub fn undo_derived() -> String {
    let mut names: Vec<String> = views(DIALECT).rev().map(|(name, _)| format!("VIEW IF EXISTS {name}")).collect();
    for dataset in Dataset::ALL {
        names.extend(links(dataset).into_iter().map(|(_, table)| format!("TABLE IF EXISTS {table}")));
        names.push(format!("TABLE {dataset}"));
    }
    names.extend(linked().iter().map(|kind| format!("TABLE IF EXISTS {}", kind.table)));
    names.into_iter().map(|name| format!("DROP {name};\n")).collect()
}

/// What tells one layout of the derived tables from another.
pub fn layout() -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(derived().as_bytes()))
}
