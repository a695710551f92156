//! SQLite's SQL.

use super::file::SqliteFile;
use crate::model::Dataset;
use crate::pull::columns::Cell;
use crate::pull::sql::dialect::{Dialect, Type};
use crate::pull::sql::schema::FORMAT;
use crate::pull::tables::searched;

/// `PRAGMA application_id` of a copy: "mfcp".
pub const APPLICATION_ID: i32 = 0x6d66_6370;

const COMMON: &str = "
    -- Of what this is a copy: the service's address and the layout of the tables.
    CREATE TABLE copy (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    -- Where it stands: the sync token, and when it was loaded, last changed, last compared with the service. Times are UTC.
    CREATE TABLE sync (dataset TEXT PRIMARY KEY, token TEXT NOT NULL, records INTEGER NOT NULL,
        loaded_at TEXT NOT NULL, changed_at TEXT NOT NULL, checked_at TEXT NOT NULL, verified_at TEXT);
";

impl Dialect for SqliteFile {
    const VIEW_WORDS: [(&str, &str); 3] = [
        ("{today}", "date('now')"),
        ("{in_90_days}", "date('now', '+90 days')"),
        ("{days_left}", "CAST(julianday(due_date) - julianday(date('now')) AS INTEGER)"),
    ];
    const BEGIN: &str = "BEGIN IMMEDIATE";
    const JSON_ITEMS: &str = "json_each";
    const BY_KEY: &str = " WITHOUT ROWID";
    const JSON_OR_DIGEST: &str = "json";
    const FOREIGN_OBJECTS: &str = "SELECT 'trigger', name, tbl_name FROM sqlite_schema WHERE type = 'trigger'
        UNION ALL SELECT 'unique index', name, tbl_name FROM sqlite_schema WHERE sql LIKE 'CREATE UNIQUE INDEX%'
            AND $1 LIKE 'UNIQUE %' AND (instr($1, tbl_name || '.') OR instr($1, name))
        UNION ALL SELECT 'check', substr($1, 26), name FROM sqlite_schema WHERE type = 'table'
            AND $1 LIKE 'CHECK constraint failed: %' AND instr(sql, substr($1, 26))";

    fn common() -> String {
        format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT};\n{COMMON}")
    }

    fn type_name(kind: Type) -> &'static str {
        match kind {
            Type::Integer => "INTEGER",
            Type::Number => "REAL",
            Type::Flag => "BOOLEAN",
            Type::Date => "DATE",
            Type::Text | Type::Time | Type::Json => "TEXT",
        }
    }

    // Apostrophes and dashes separate words, as in the query; U+02BC would be a letter. The layout's digest includes the
    // whitespace, so it must not change.
    fn search(dataset: Dataset) -> (String, String) {
        let index = format!(
            "
         CREATE VIRTUAL TABLE {dataset}_search USING fts5({}, content='{dataset}', content_rowid='id',
            tokenize='unicode61 remove_diacritics 2 separators ''\u{2bc}''');",
            searched(dataset).join(", ")
        );
        (String::new(), index)
    }

    fn comment(_table: &str, _text: &str) -> String {
        String::new()
    }

    fn set_aside(dataset: Dataset) -> String {
        // Without the pragma, views of other programs would get the new name too, or refuse it because of tables that are
        // dropped at this point (<https://sqlite.org/pragma.html#pragma_legacy_alter_table>).
        format!(
            "DROP TABLE IF EXISTS {dataset}_search; PRAGMA legacy_alter_table = on;
             ALTER TABLE {dataset} RENAME TO old_{dataset};"
        )
    }

    fn read(column: &str, _kind: Type) -> String {
        column.to_owned()
    }

    /// SQLite stores flags as integers. In a column that is not of text, it would change a text such as `1e3` or `2026`
    /// into a number, which differs from the record's JSON. Such a text becomes null, as in PostgreSQL.
    fn stored(kind: Type, cell: Cell) -> Cell {
        match (kind, cell) {
            (_, Cell::Flag(flag)) => Cell::Integer(flag.into()),
            (Type::Integer | Type::Number | Type::Flag | Type::Date, Cell::Text(text)) if is_number(&text) => {
                Cell::Null
            }
            (_, other) => other,
        }
    }
}

/// Whether SQLite takes a text for a number (<https://sqlite.org/datatype3.html>, section 3). It reads a text up to the
/// first NUL.
fn is_number(text: &str) -> bool {
    let text = text.split('\0').next().unwrap_or_default();
    let trimmed = text.trim_matches(|letter: char| letter.is_ascii_whitespace() || letter == '\x0b');
    let is_sign = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    trimmed.bytes().all(is_sign) && trimmed.parse::<f64>().is_ok()
}
