//! The copy as an SQLite file: SQLite's SQL.
//!
//! - [`mod@file`]: opens the file of a copy, runs its statements, and maps their errors. Writes records with their
//!   full-text index.

use std::path::PathBuf;

use rusqlite::{ErrorCode, params_from_iter};

use super::columns::Cell;
use super::error::{PullError, Result};
use super::files::{lock, make_file};
use super::sql::SqlCopy;
use super::sql::database::Database;
use super::sql::schema::{FORMAT, create};
use super::sql::tables::{DatasetTables, Records, Row, SqlTable, Type, searched};
use crate::disk::describe_at;
use crate::model::Dataset;
use file::{
    APPLICATION_ID, SqliteFile, Statements, connect, failure, find_copy, identity, insert, query,
};

pub mod file;

/// A copy in an SQLite file.
pub type SqliteCopy = SqlCopy<SqliteFile>;

const COMMON: &str = "
    -- The source of this copy: the service's address, and the layout of the tables.
    CREATE TABLE copy (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    -- The position of this copy: the sync token, and when it was loaded, last changed, last compared with the service. Times are UTC.
    CREATE TABLE sync (dataset TEXT PRIMARY KEY, token TEXT NOT NULL, records INTEGER NOT NULL,
        loaded_at TEXT NOT NULL, changed_at TEXT NOT NULL, checked_at TEXT NOT NULL, verified_at TEXT);
";

impl Database for SqliteFile {
    type Location = PathBuf;

    const OTHER_LOCATION: &str = "give another path";
    const VIEW_WORDS: [(&str, &str); 3] = [
        ("{today}", "date('now')"),
        ("{in_90_days}", "date('now', '+90 days')"),
        (
            "{days_left}",
            "CAST(julianday(due_date) - julianday(date('now')) AS INTEGER)",
        ),
    ];
    const BEGIN: &str = "BEGIN IMMEDIATE";
    const JSON_ITEMS: &str = "json_each";
    const BY_KEY: &str = " WITHOUT ROWID";
    const JSON_OR_DIGEST: &str = "json";
    const FOREIGN_OBJECTS: &str = "SELECT 'trigger', name, tbl_name FROM sqlite_schema WHERE type = 'trigger'
        UNION ALL SELECT 'unique index', name, tbl_name FROM sqlite_schema WHERE sql LIKE 'CREATE UNIQUE INDEX%'
            AND $1 LIKE 'UNIQUE %' AND (instr($1, tbl_name || '.') OR instr($1, name))
        UNION ALL SELECT 'check', substr($1, 26), name FROM sqlite_schema WHERE type = 'table'
            AND $1 LIKE 'CHECK constraint failed: %' AND instr(sql, substr($1, 26))
        UNION ALL SELECT 'NOT NULL of the column', substr($1, instr($1, '.') + 1), substr($1, 29, instr($1, '.') - 29)
            WHERE $1 LIKE 'NOT NULL constraint failed: %.%'";

    fn common() -> String {
        format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT};\n{COMMON}"
        )
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

    // Apostrophes and dashes separate words, as in the query; U+02BC would be a letter. The layout's digest includes
    // the whitespace, so it must not change.
    fn search(dataset: Dataset) -> (String, String) {
        let index = format!(
            "
         CREATE VIRTUAL TABLE {dataset}_search USING fts5({}, content='{dataset}', content_rowid='id',
            tokenize='unicode61 remove_diacritics 2 separators ''\u{2bc}''');",
            searched(dataset).join(", ")
        );
        (String::new(), index)
    }

    fn set_aside(dataset: Dataset) -> String {
        // Without the pragma, views of other programs would get the new name too, or refuse it because of tables that
        // are dropped at this point (<https://sqlite.org/pragma.html#pragma_legacy_alter_table>).
        format!(
            "DROP TABLE IF EXISTS {dataset}_search; PRAGMA legacy_alter_table = on;
             ALTER TABLE {dataset} RENAME TO old_{dataset};"
        )
    }

    /// SQLite stores flags as integers.
    fn stored(_kind: Type, cell: Cell) -> Cell {
        match cell {
            Cell::Flag(flag) => Cell::Integer(flag.into()),
            other => other,
        }
    }

    fn open(path: &PathBuf) -> Result<SqliteFile> {
        // Checked before the lock file is created next to it.
        find_copy(path)?;
        let lock = lock(&path.with_added_extension("lock"), path)?;
        let is_there = find_copy(path)?;
        if !is_there {
            // The file's mode must not depend on the umask. SQLite uses it for its other files too.
            make_file(path).map_err(|error| PullError::Unusable(describe_at(path, &error)))?;
        }
        let connection = connect(path).map_err(|error| failure(path, &error))?;
        let mut file = SqliteFile {
            path: path.clone(),
            connection,
            identity: identity(path)?,
            lock,
        };
        if !is_there {
            file.in_transaction(create)?;
        }
        Ok(file)
    }

    fn shown(&self) -> String {
        self.path.display().to_string()
    }

    fn check_location(&self) -> Result<()> {
        if identity(&self.path)? == self.identity {
            return Ok(());
        }
        Err(PullError::Unusable(format!(
            "{}: another file has replaced the copy; run again to use that one",
            self.path.display()
        )))
    }

    fn batch(&mut self, sql: &str) -> Result<()> {
        self.run(|connection| connection.execute_batch(sql))
    }

    fn query(&mut self, sql: &str, params: &[Cell]) -> Result<Vec<Row>> {
        self.run(|connection| query(connection, &sql.replace('$', "?"), params))
    }

    fn write_rows(&mut self, table: &SqlTable, rows: Vec<Row>) -> Result<()> {
        self.run(|connection| {
            let mut insert = connection.prepare_cached(&insert(table))?;
            rows.iter()
                .try_for_each(|row| insert.execute(params_from_iter(row)).map(|_| ()))
        })
    }

    fn write_records(
        &mut self,
        tables: &DatasetTables,
        records: Records,
        updates_search: bool,
    ) -> Result<()> {
        let statements = Statements::new(tables, updates_search);
        // The full-text index buffers rising ids, and writes them to the disk together.
        self.run(|connection| {
            records
                .into_iter()
                .try_for_each(|(id, row)| statements.write(connection, id, row))
        })
    }

    fn rebuild_search(&mut self, dataset: Dataset) -> Result<()> {
        // Fails if the index is there.
        let _ = self.batch(&Self::search(dataset).1);
        self.batch(&format!(
            "INSERT INTO {dataset}_search ({dataset}_search) VALUES ('rebuild')"
        ))
    }

    fn check_storage(&mut self) -> Result<()> {
        self.run(|connection| {
            let state: String =
                connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            if state == "ok" {
                return Ok(());
            }
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
            Err(rusqlite::Error::SqliteFailure(code, Some(state)))
        })
    }

    fn find_search_fault(&mut self, dataset: Dataset) -> Result<Option<String>> {
        let compare = format!(
            "INSERT INTO {dataset}_search ({dataset}_search, rank) VALUES ('integrity-check', 1)"
        );
        self.run(|connection| match connection.execute_batch(&compare) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => Ok(
                Some("its full-text index does not fit its records".to_owned()),
            ),
            done => done.map(|()| None),
        })
    }
}
