//! The copy as an SQLite file: SQLite's SQL. Opens the file, runs its statements, maps their errors, and updates the
//! full-text index.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::slice;
use std::time::Duration;

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, params_from_iter};

use super::columns::Cell;
use super::error::{PullError, Result};
use super::files::{is_sqlite, lock, make_file, open_file};
use super::sql::SqlCopy;
use super::sql::database::Database;
use super::sql::rows::listed;
use super::sql::schema::{FORMAT, create};
use super::sql::tables::{Row, SqlTable, Type, searched};
use crate::disk::{describe, describe_at};
use crate::model::Dataset;

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
        let marks = vec!["?"; table.columns.len()].join(", ");
        let insert = table.upsert(&format!("VALUES ({marks})"), |column, _| column.to_owned());
        self.run(|connection| {
            let mut insert = connection.prepare_cached(&insert)?;
            rows.iter()
                .try_for_each(|row| insert.execute(params_from_iter(row)).map(|_| ()))
        })
    }

    fn unindex(&mut self, dataset: Dataset, ids: &Cell) -> Result<()> {
        self.update_search(dataset, "'delete'", ids)
    }

    fn index(&mut self, dataset: Dataset, ids: &Cell) -> Result<()> {
        self.update_search(dataset, "NULL", ids)
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

/// `PRAGMA application_id` of a copy: "mfcp".
pub const APPLICATION_ID: i32 = 0x6d66_6370;

/// The page cache, in KiB. A load of a million records needs no more.
const CACHE_KIB: i32 = 16 * 1024;

/// The timeout for the lock of another program that writes to the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// An open and locked file.
pub struct SqliteFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The connection.
    pub connection: Connection,
    /// The device and inode of the file.
    pub identity: (u64, u64),
    /// The lock against other pulls.
    pub lock: File,
}

impl SqliteFile {
    /// Runs `work` on the connection.
    pub fn run<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        work(&self.connection).map_err(|error| failure(&self.path, &error))
    }

    /// Runs a command of the full-text index for records with their present texts. `NULL` inserts. One statement for
    /// all of them, because the index flushes to the disk before each statement with `SELECT`.
    fn update_search(&mut self, dataset: Dataset, command: &str, ids: &Cell) -> Result<()> {
        let texts = searched(dataset).join(", ");
        let listed = listed::<SqliteFile>("$1", &[Type::Integer]);
        let update = format!(
            "INSERT INTO {dataset}_search ({dataset}_search, rowid, {texts}) SELECT {command}, id, {texts} FROM {dataset} \
             WHERE id IN ({listed}) ORDER BY id"
        );
        self.query(&update, slice::from_ref(ids)).map(|_| ())
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Cell::Null => ValueRef::Null,
            Cell::Integer(number) => ValueRef::Integer(*number),
            Cell::Number(number) => ValueRef::Real(*number),
            Cell::Flag(flag) => ValueRef::Integer(i64::from(*flag)),
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
            Cell::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Number(number),
        ValueRef::Text(bytes) => {
            str::from_utf8(bytes).map_or_else(|_| Cell::Bytes(bytes.to_vec()), Cell::from)
        }
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    }
}

/// Runs a statement; returns the rows of its result.
pub fn query(connection: &Connection, sql: &str, params: &[Cell]) -> rusqlite::Result<Vec<Row>> {
    let mut statement = connection.prepare_cached(sql)?;
    let columns = statement.column_count();
    let rows = statement.query_map(params_from_iter(params), |row| {
        (0..columns)
            .map(|column| row.get_ref(column).map(cell))
            .collect::<rusqlite::Result<Row>>()
    })?;
    rows.collect()
}

/// The device and inode of a path.
pub fn identity(path: &Path) -> Result<(u64, u64)> {
    let found = fs::metadata(path).map_err(|error| {
        PullError::Unusable(format!(
            "{}: the copy has gone ({}); run again to make a new one",
            path.display(),
            describe(&error)
        ))
    })?;
    Ok((found.dev(), found.ino()))
}

/// Looks for a copy at a path. Fails if there is another file. Changes nothing.
pub fn find_copy(path: &Path) -> Result<bool> {
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty())
                .unwrap_or(Path::new("."));
            return if folder.is_dir() {
                Ok(false)
            } else {
                Err(PullError::Unusable(format!(
                    "there is no folder {}; make it first",
                    folder.display()
                )))
            };
        }
        Err(error) => return Err(PullError::Unusable(describe_at(path, &error))),
        Ok(found) if !found.is_file() => return Err(no_copy(&path.display())),
        Ok(found) if found.len() == 0 => return Ok(false),
        Ok(_) => {
            let mut file =
                open_file(path).map_err(|error| PullError::Unusable(describe_at(path, &error)))?;
            // SQLite would overwrite a file that is shorter than its header.
            if !is_sqlite(&mut file) {
                return Err(no_copy(&path.display()));
            }
        }
    }
    match read_header(path) {
        Ok((APPLICATION_ID, FORMAT, _)) => Ok(true),
        Ok((APPLICATION_ID, format, _)) => Err(PullError::of_another_version(
            path.display(),
            format,
            FORMAT,
            SqliteFile::OTHER_LOCATION,
        )),
        // Left by a pull that was killed before its first commit.
        Ok((0, 0, 0)) => Ok(false),
        Ok(_) => Err(no_copy(&path.display())),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(no_copy(&path.display()))
        }
        Err(error) => Err(failure(path, &error)),
    }
}

/// The application id, the version of the format, and the number of tables and indexes of a database.
fn read_header(path: &Path) -> rusqlite::Result<(i32, i32, i64)> {
    let connection =
        Connection::open_with_flags(plain_name(path), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let query = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) \
                 FROM pragma_application_id, pragma_user_version";
    connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
}

/// A path that SQLite takes for a file name. It reads names that begin with `file:` as addresses, whatever the flags,
/// because its build allows them everywhere; and `:memory:` as no file.
fn plain_name(path: &Path) -> PathBuf {
    Path::new(".").join(path)
}

/// Opens or creates the database.
pub fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(plain_name(path), flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(64);
    // WAL does not block readers. A power cut can lose the newest transactions, but only whole ones.
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "foreign_keys", "off")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok(connection)
}

/// Maps an error of SQLite.
pub fn failure(path: &Path, error: &Error) -> PullError {
    // It would show the whole statement.
    if let Error::SqlInputError { error, msg, .. } = error {
        return failure(path, &Error::SqliteFailure(*error, Some(msg.clone())));
    }
    let path = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => PullError::Unwritable(format!(
            "{path}: no space is left on the disk; make room and run again"
        )),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            PullError::Unwritable(format!(
                "{path}: another program holds a lock on it for writing; close it, or run again later"
            ))
        }
        Some(ErrorCode::SystemIoFailure) => PullError::Unwritable(format!(
            "{path}: it cannot be read or written ({error}); check the disk and its space, and run again"
        )),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            PullError::Unusable(format!(
                "{path}: it cannot be opened for writing; check the permissions of it, of {path}-wal and {path}-shm, and of \
                 their folder"
            ))
        }
        Some(ErrorCode::NotADatabase) => no_copy(&path),
        Some(ErrorCode::ConstraintViolation | ErrorCode::Unknown) => PullError::Rejected {
            copy: path.to_string(),
            reason: error.to_string(),
            other_location: SqliteFile::OTHER_LOCATION,
        },
        _ => PullError::Unusable(format!(
            "{path}: the copy is damaged ({error}); move it away, and the next pull makes a new one"
        )),
    }
}

/// The error for a file that is not a copy.
pub fn no_copy(path: &impl std::fmt::Display) -> PullError {
    PullError::Unusable(format!(
        "{path} is not a copy made by `medfeed pull`, and was not changed; give another path"
    ))
}

#[cfg(test)]
mod file_tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn each_error_has_its_exit_code() {
        // (SQLite's code, whether it may pass, the exit code, a part of the message)
        let cases = cases![
            ffi::SQLITE_BUSY, true, 1, "another program holds a lock";
            ffi::SQLITE_BUSY_SNAPSHOT, true, 1, "another program holds a lock";
            ffi::SQLITE_LOCKED, true, 1, "another program holds a lock";
            ffi::SQLITE_FULL, true, 1, "no space is left";
            ffi::SQLITE_IOERR, true, 1, "check the disk";
            ffi::SQLITE_READONLY, false, 4, "check the permissions of it, of copy.sqlite-wal and copy.sqlite-shm";
            ffi::SQLITE_CANTOPEN, false, 4, "check the permissions of it, of copy.sqlite-wal and copy.sqlite-shm";
            ffi::SQLITE_NOTADB, false, 4, "is not a copy";
            ffi::SQLITE_CORRUPT, false, 4, "the copy is damaged";
            ffi::SQLITE_ERROR, false, 4, "its tables are not as";
            ffi::SQLITE_CONSTRAINT_TRIGGER, false, 4, "its tables are not as";
        ];
        for (code, is_transient, exit_code, part) in cases {
            let error = failure(
                Path::new("copy.sqlite"),
                &Error::SqliteFailure(ffi::Error::new(code), None),
            );
            assert_eq!(error.is_transient(), is_transient, "{code}: {error}");
            assert_eq!(error.exit_code(), exit_code, "{code}: {error}");
            assert!(error.to_string().contains(part), "{code}: {error}");
        }
    }
}
