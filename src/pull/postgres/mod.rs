//! The copy in a PostgreSQL database, in a schema of its own: PostgreSQL's SQL.
//!
//! The type `json` keeps a record's bytes. PostgreSQL maintains the full-text index.
//!
//! - [`address`]: the URL of a copy, and its connection settings.
//! - [`session`]: a connection that holds the copy's lock, and its errors.

pub mod address;
pub mod session;

use std::collections::BTreeMap;
use std::error::Error;

use address::PostgresAddress;
use bytes::BytesMut;
use postgres::Row as Answer;
use postgres::types::{Format, IsNull, ToSql, Type as SqlType};
use serde_json::json;
use session::Session;

use super::columns::{Cell, columns};
use super::error::{PullError, Result};
use super::sql::SqlCopy;
use super::sql::database::Database;
use super::sql::schema::{FORMAT, create, saved_value};
use super::sql::tables::{DatasetTables, Row, SqlTable, Type, searched};
use crate::model::{Dataset, Joined, parse_time};

/// A copy in PostgreSQL.
pub type PostgresCopy = SqlCopy<Session>;

const COMMON: &str = "
    CREATE TABLE copy (name text PRIMARY KEY, value text NOT NULL);
    COMMENT ON TABLE copy IS 'The source of this copy: the address of the service, and the layout of the tables';
    CREATE TABLE sync (dataset text PRIMARY KEY, token text NOT NULL, records bigint NOT NULL, loaded_at timestamptz NOT NULL,
        changed_at timestamptz NOT NULL, checked_at timestamptz NOT NULL, verified_at timestamptz);
    COMMENT ON TABLE sync IS 'The position of this copy: the sync token, and when it was loaded, last changed, last asked for news, \
last found equal to the service''s content';
";

/// The most characters of a record in the full-text index: more than records have, and less than an entry's limit.
const SEARCHED_LENGTH: u32 = 50_000;

/// An apostrophe that PostgreSQL takes for a letter, and dashes, after compatibility decomposition.
const TYPOGRAPHY: &str = "\u{2bc}\u{2010}\u{2012}\u{2013}\u{2014}\u{2015}\u{2212}";

impl Database for Session {
    type Location = PostgresAddress;

    const OTHER_LOCATION: &str = "give another schema (?schema=NAME)";
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
            AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid)
        UNION ALL SELECT 'NOT NULL of the column', attname::text, attrelid::regclass::text FROM pg_attribute
            JOIN pg_class t ON t.oid = attrelid WHERE attnotnull AND NOT atthasdef AND attidentity = '' AND attnum > 0
            AND relkind = 'r' AND relnamespace = current_schema()::regnamespace AND relname NOT IN ('copy', 'sync')
            AND attname <> 'json' AND strpos(split_part($1::text, ': ', 1), attname::text) > 0
            AND NOT EXISTS (SELECT 1 FROM pg_index WHERE indrelid = attrelid AND indisprimary AND attnum = ANY (indkey))";

    fn common() -> String {
        format!(
            "{COMMON}INSERT INTO copy VALUES ('made by', 'medfeed pull'), ('format', '{FORMAT}');\n"
        )
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
        let texts = searched(dataset)
            .iter()
            .map(|name| format!("coalesce({name}, '')"))
            .joined(" || ' ' || ");
        let text = format!("left({}, {SEARCHED_LENGTH})", texts);
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
            index += &format!(
                "\nCOMMENT ON COLUMN {dataset}.{} IS '{note}';",
                column.column
            );
        }
        (column, index)
    }

    fn comment(table: &str, text: &str) -> String {
        format!("\n             COMMENT ON TABLE {table} IS '{text}';")
    }

    fn set_aside(dataset: Dataset) -> String {
        format!(
            "CREATE UNLOGGED TABLE old_{dataset} (id bigint PRIMARY KEY, json text);
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

    /// A text that is no time becomes null in a column of times. PostgreSQL cannot store NUL, so U+FFFD replaces it.
    fn stored(kind: Type, cell: Cell) -> Cell {
        match (kind, cell) {
            (Type::Time, Cell::Text(text)) => {
                // PostgreSQL's own form, for comparisons.
                parse_time(&text).map_or(Cell::Null, |time| {
                    time.to_string().replace('Z', "+00:00").into()
                })
            }
            (_, Cell::Text(text)) => text.replace('\0', "\u{fffd}").into(),
            (_, other) => other,
        }
    }

    fn open(address: &PostgresAddress) -> Result<Session> {
        let mut session = Session::connect(address)?;
        let name = &*address.schema;
        // All objects in a schema depend on it, and so do default privileges, which readers need before the first run.
        let objects =
            "SELECT (SELECT count(*) FROM pg_depend d WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid
                AND d.classid <> 'pg_default_acl'::regclass)
             FROM pg_namespace n WHERE nspname = $1::text";
        let objects = session
            .query(objects, &[name.into()])?
            .pop()
            .and_then(|row| row[0].integer());
        if objects.is_none_or(|objects| objects == 0) {
            session.in_transaction(|session| {
                if objects.is_none() {
                    session.batch(&format!("CREATE SCHEMA \"{name}\""))?;
                }
                create(session)
            })?;
            return Ok(session);
        }
        let columns = "SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n \
                       ON n.oid = c.relnamespace WHERE nspname = $1::text AND relname = 'copy' AND attname IN ('name', 'value')";
        let is_copy = session.query(columns, &[name.into()])? == [[Cell::Integer(2)]]
            && saved_value(&mut session, "made by")?.as_deref() == Some("medfeed pull");
        if !is_copy {
            return Err(PullError::Unusable(format!(
                "the schema `{name}` of {} contains objects that `medfeed pull` did not create, and was not changed; name \
                 another one at the end of the address: ?schema=NAME",
                session.shown()
            )));
        }
        let format = saved_value(&mut session, "format")?.unwrap_or_default();
        if format != FORMAT.to_string() {
            return Err(PullError::of_another_version(
                session.shown(),
                format,
                FORMAT,
                Session::OTHER_LOCATION,
            ));
        }
        Ok(session)
    }

    fn is_lost(&self) -> bool {
        self.is_lost || self.client.is_closed()
    }

    fn shown(&self) -> String {
        self.shown.clone()
    }

    fn batch(&mut self, sql: &str) -> Result<()> {
        let done = self.client.batch_execute(sql);
        done.map_err(|error| self.fail(&error))
    }

    fn query(&mut self, sql: &str, params: &[Cell]) -> Result<Vec<Row>> {
        let statement = self.statement(sql)?;
        let params: Vec<&(dyn ToSql + Sync)> = params
            .iter()
            .map(|cell| cell as &(dyn ToSql + Sync))
            .collect();
        let rows = self.client.query(&statement, &params);
        Ok(rows
            .map_err(|error| self.fail(&error))?
            .iter()
            .map(cells)
            .collect())
    }

    fn write_rows(&mut self, table: &SqlTable, rows: Vec<Row>) -> Result<()> {
        if !rows.is_empty() {
            self.query(&upsert(table), &[json_of(table, &rows)])?;
        }
        Ok(())
    }

    /// Updates the planner's statistics. Errors are ignored: the server does this later anyway.
    fn after_load(&mut self, tables: &DatasetTables) {
        let others: String = tables
            .links
            .iter()
            .map(|links| format!(", {}, {}", links.pairs.name, links.kind.rows.name))
            .collect();
        let _ = self.batch(&format!("ANALYZE {}{others}", tables.dataset));
    }
}

/// Parameters are sent as text. The server converts them to the types of the statement.
impl ToSql for Cell {
    fn to_sql(
        &self,
        _: &SqlType,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Cell::Null => return Ok(IsNull::Yes),
            Cell::Text(text) => out.extend_from_slice(text.as_bytes()),
            other => out.extend_from_slice(json!(other).to_string().as_bytes()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &SqlType) -> bool {
        true
    }

    fn encode_format(&self, _: &SqlType) -> Format {
        Format::Text
    }

    postgres::types::to_sql_checked!();
}

/// The cells of a row. Values of unknown types become null.
fn cells(row: &Answer) -> Row {
    let columns = row.columns().iter().enumerate();
    columns
        .map(|(at, column)| cell(row, at, column.type_()).unwrap_or(Cell::Null))
        .collect()
}

fn cell(row: &Answer, at: usize, kind: &SqlType) -> Option<Cell> {
    match *kind {
        SqlType::INT8 => row.try_get(at).ok().flatten().map(Cell::Integer),
        SqlType::BOOL => row.try_get(at).ok().flatten().map(Cell::Flag),
        SqlType::FLOAT8 => row.try_get(at).ok().flatten().map(Cell::Number),
        SqlType::BYTEA => row.try_get(at).ok().flatten().map(Cell::Bytes),
        _ => row.try_get(at).ok().flatten().map(Cell::Text),
    }
}

/// The JSON of rows, for the statement that [`upsert`] returns.
fn json_of(table: &SqlTable, rows: &[Row]) -> Cell {
    let names: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
    let objects: Vec<BTreeMap<&str, &Cell>> = rows
        .iter()
        .map(|row| names.iter().copied().zip(row).collect())
        .collect();
    json!(objects).to_string().into()
}

/// A statement that writes the rows of a JSON array.
fn upsert(table: &SqlTable) -> String {
    // A record's JSON is a string within the JSON, to keep its bytes.
    let read = table.columns.iter().map(|(name, kind)| match kind {
        Type::Json => format!("{name} text"),
        _ => format!("{name} {}", Session::type_name(*kind)),
    });
    let typed = table.columns.iter();
    let typed = typed.map(|(name, kind)| format!("{name}::{}", Session::type_name(*kind)));
    let source = format!(
        "SELECT {} FROM json_to_recordset($1::text::json) AS r ({})",
        typed.joined(", "),
        read.joined(", ")
    );
    table.upsert(&source, |column, kind| match kind {
        Type::Json => format!("{column}::text"),
        _ => column.to_owned(),
    })
}
