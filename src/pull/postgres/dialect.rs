//! PostgreSQL's SQL.
//!
//! The type `json` keeps a record's bytes. PostgreSQL maintains the full-text index.

use super::session::Session;
use crate::model::Dataset;
use crate::model::time::{parse_date, parse_time};
use crate::pull::columns::{Cell, columns};
use crate::pull::sql::dialect::{Dialect, Type};
use crate::pull::sql::schema::FORMAT;
use crate::pull::tables::searched;

const COMMON: &str = "
    CREATE TABLE copy (name text PRIMARY KEY, value text NOT NULL);
    COMMENT ON TABLE copy IS 'Of what this is a copy: the address of the service, and the layout of the tables';
    CREATE TABLE sync (dataset text PRIMARY KEY, token text NOT NULL, records bigint NOT NULL, loaded_at timestamptz NOT NULL,
        changed_at timestamptz NOT NULL, checked_at timestamptz NOT NULL, verified_at timestamptz);
    COMMENT ON TABLE sync IS 'Where the copy stands: the sync token, and when it was loaded, last changed, last asked for news, \
last found equal to the service''s content';
";

/// The most characters of a record in the full-text index: more than records have, and less than an entry's limit.
const SEARCHED_LENGTH: u32 = 50_000;

/// An apostrophe that PostgreSQL takes for a letter, and dashes, after compatibility decomposition.
const TYPOGRAPHY: &str = "\u{2bc}\u{2010}\u{2012}\u{2013}\u{2014}\u{2015}\u{2212}";

impl Dialect for Session {
    const VIEW_WORDS: [(&str, &str); 3] = [
        ("{today}", "(now() AT TIME ZONE 'UTC')::date"),
        ("{in_90_days}", "(now() AT TIME ZONE 'UTC')::date + 90"),
        ("{days_left}", "due_date - (now() AT TIME ZONE 'UTC')::date"),
    ];
    const BEGIN: &str = "BEGIN";
    const JSON_ITEMS: &str = "json_array_elements";
    const BY_KEY: &str = "";
    const JSON_OR_DIGEST: &str = "sha256(convert_to(json::text, 'UTF8'))";
    // The copy's own foreign keys are those of link tables, whose comments begin with `Which`.
    const FOREIGN_OBJECTS: &str = "SELECT 'trigger', tgname::text, tgrelid::regclass::text FROM pg_trigger
            JOIN pg_class t ON t.oid = tgrelid WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace
        UNION ALL SELECT 'constraint', conname::text, conrelid::regclass::text FROM pg_constraint WHERE contype <> 'p'
            AND strpos($1::text, conname::text) > 0 AND coalesce(obj_description(conrelid, 'pg_class'), '') NOT LIKE 'Which %'
            AND EXISTS (SELECT 1 FROM pg_class t WHERE t.oid IN (conrelid, confrelid)
                AND relnamespace = current_schema()::regnamespace)
        UNION ALL SELECT 'unique index', relname::text, indrelid::regclass::text FROM pg_index
            JOIN pg_class i ON i.oid = indexrelid WHERE indisunique AND NOT indisprimary
            AND relnamespace = current_schema()::regnamespace AND strpos($1::text, relname::text) > 0
            AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid)";

    fn common() -> String {
        format!("{COMMON}INSERT INTO copy VALUES ('made by', 'medfeed pull'), ('format', '{FORMAT}');")
    }

    fn type_name(kind: Type) -> &'static str {
        match kind {
            Type::Integer => "bigint",
            Type::Number => "double precision",
            Type::Flag => "boolean",
            Type::Date => "date",
            Type::Text => "text",
            Type::Time => "timestamptz",
            Type::Json => "json",
        }
    }

    // The layout's digest includes the whitespace here and in `comment`, so it must not change.
    fn search(dataset: Dataset) -> (String, String) {
        // Words are found with and without their accents, and by plain apostrophes and dashes.
        let texts: Vec<String> = searched(dataset).iter().map(|name| format!("coalesce({name}, '')")).collect();
        let text = format!("left({}, {SEARCHED_LENGTH})", texts.join(" || ' ' || "));
        let column = format!(
            ", search tsvector GENERATED ALWAYS AS (to_tsvector('simple', {text} || ' ' || \
             translate(regexp_replace(normalize({text}, NFKD), '[\\u0300-\\u036f]', '', 'g'), \
             '{TYPOGRAPHY}', '''------'))) STORED"
        );
        let mut index = format!(
            "
         CREATE INDEX {dataset}_search ON {dataset} USING gin (search);
         COMMENT ON TABLE {dataset} IS 'The {dataset} of the copy; columns as in the CSV export';
         COMMENT ON COLUMN {dataset}.json IS 'The record as the service sent it';
         COMMENT ON COLUMN {dataset}.search IS 'Full-text index: search @@ websearch_to_tsquery(''simple'', ''words'')';"
        );
        for column in columns(dataset) {
            let note = column.note.replace('\'', "''");
            index += &format!("\nCOMMENT ON COLUMN {dataset}.{} IS '{note}';", column.column);
        }
        (column, index)
    }

    fn comment(table: &str, text: &str) -> String {
        format!("\n             COMMENT ON TABLE {table} IS '{text}';")
    }

    fn set_aside(dataset: Dataset) -> String {
        format!(
            "CREATE TEMPORARY TABLE old_{dataset} (id bigint PRIMARY KEY, json text) ON COMMIT DROP;
             INSERT INTO old_{dataset} SELECT id, json::text FROM {dataset}; DROP TABLE {dataset};"
        )
    }

    fn read(column: &str, kind: Type) -> String {
        match kind {
            Type::Date | Type::Json => format!("{column}::text"),
            // RFC 3339, unlike the result of a cast.
            Type::Time => format!("to_json({column}) #>> '{{}}'"),
            _ => column.to_owned(),
        }
    }

    /// A cell of another type becomes null. PostgreSQL cannot store NUL, so U+FFFD replaces it.
    fn stored(kind: Type, cell: Cell) -> Cell {
        match (kind, cell) {
            (Type::Date, Cell::Text(text)) if parse_date(&text).is_ok() => Cell::Text(text),
            (Type::Time, Cell::Text(text)) => {
                // PostgreSQL's own form, for comparisons.
                parse_time(&text).map_or(Cell::Null, |time| time.to_string().replace('Z', "+00:00").into())
            }
            (Type::Text, Cell::Text(text)) => text.replace('\0', "\u{fffd}").into(),
            (Type::Json, text @ Cell::Text(_)) => text,
            (Type::Integer, number @ Cell::Integer(_)) => number,
            (Type::Number, number @ Cell::Number(_)) => number,
            (Type::Flag, flag @ Cell::Flag(_)) => flag,
            _ => Cell::Null,
        }
    }
}
