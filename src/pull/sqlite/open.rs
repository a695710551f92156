//! Which files are taken, and for whom they are kept.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use super::failure::{failure, no_copy};
use super::rows::{Mode, Rows, Statements, bytes_of};
use super::schema::{APPLICATION_ID, FORMAT, all, derived, layout, undo_derived};
use crate::model::Dataset;
use crate::pull::entry::MAX_ID;
use crate::pull::error::PullError;
use crate::pull::files::{self, make_file, open_file};
use crate::pull::sqlite::magic::is_sqlite;

/// How much of the file is held in memory, in KiB: a million records are loaded within it.
const CACHE_KIB: i32 = 16 * 1024;

/// How long another program that writes to the file is waited for.
const BUSY: Duration = Duration::from_secs(30);

/// What stands at a path.
enum Found {
    Nothing,
    Copy,
}

/// A copy that is open and locked.
#[derive(Debug)]
pub struct Opened {
    /// The connection.
    pub connection: Connection,
    /// Device and inode of the file.
    pub identity: (u64, u64),
    /// Of which service it is a copy; `None` for a new one.
    pub server: Option<String>,
    /// Held while the copy is open, so that no second pull works on it.
    pub lock: File,
}

/// Opens a copy, or makes one.
///
/// # Errors
/// When the file is something else, of a newer format, or in use by another pull; it is left untouched then.
pub fn open(path: &Path) -> Result<Opened, PullError> {
    // The lock's file stands beside the copy, so first see that there is none or a copy.
    look(path)?;
    let lock = lock(path)?;
    let found = look(path)?;
    if matches!(found, Found::Nothing) {
        // Made here, so that the umask does not open it to others. SQLite gives its mode to the files beside it.
        make_file(path).map_err(|error| PullError::Unusable(format!("{}: {error}", path.display())))?;
    }
    let connection = connect(path, &found).map_err(|error| failure(path, &error))?;
    let server = match found {
        Found::Nothing => None,
        Found::Copy => {
            renew_layout(path, &connection)?;
            value_of(&connection, "server").map_err(|error| failure(path, &error))?
        }
    };
    Ok(Opened { identity: identity(path)?, connection, server, lock })
}

/// Device and inode of what a path leads to.
///
/// # Errors
/// When there is nothing.
pub fn identity(path: &Path) -> Result<(u64, u64), PullError> {
    let found = fs::metadata(path).map_err(|error| {
        PullError::Unusable(format!("{}: the copy has gone ({error}); run again to make a new one", path.display()))
    })?;
    Ok((found.dev(), found.ino()))
}

/// Looks without changing anything.
fn look(path: &Path) -> Result<Found, PullError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            return if folder.is_dir() {
                Ok(Found::Nothing)
            } else {
                Err(PullError::Unusable(format!("there is no folder {}; make it first", folder.display())))
            };
        }
        Err(error) => return Err(PullError::Unusable(format!("{}: {error}", path.display()))),
        Ok(found) if !found.is_file() => return Err(no_copy(&path.display())),
        Ok(found) if found.len() == 0 => return Ok(Found::Nothing),
        // SQLite takes a file that is shorter than its header for an empty database, and would write over it.
        Ok(_) if !open_file(path).is_ok_and(|mut file| is_sqlite(&mut file)) => return Err(no_copy(&path.display())),
        Ok(_) => {}
    }
    let read = || -> rusqlite::Result<(i32, i32, i64)> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(BUSY)?;
        let number = |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0));
        let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((number("application_id")?, number("user_version")?, tables))
    };
    match read() {
        Ok((APPLICATION_ID, FORMAT, _)) => Ok(Found::Copy),
        Ok((APPLICATION_ID, format, _)) => Err(PullError::Unusable(format!(
            "{} was written by another version of this program (format {format}; this one knows {FORMAT}); use that \
             version, or give another path",
            path.display()
        ))),
        // What a pull leaves that is killed before its first commit.
        Ok((0, 0, 0)) => Ok(Found::Nothing),
        Ok(_) => Err(no_copy(&path.display())),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => Err(no_copy(&path.display())),
        Err(error) => Err(failure(path, &error)),
    }
}

fn lock(path: &Path) -> Result<File, PullError> {
    let mut name = OsString::from(path);
    name.push(".lock");
    files::lock(Path::new(&name), path)
}

fn connect(path: &Path, found: &Found) -> rusqlite::Result<Connection> {
    // Without the flag for addresses: a name such as `file:x.db` is a name.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Readers go on while a page or an export is written. What a power cut takes is whole transactions, the newest ones,
    // tokens included.
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "foreign_keys", "off")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    if matches!(found, Found::Nothing) {
        let layout = layout();
        connection.execute_batch(&format!(
            "BEGIN IMMEDIATE; {} INSERT INTO copy VALUES ('layout', '{layout}'); COMMIT;",
            all()
        ))?;
    }
    Ok(connection)
}

/// A value of the table `copy`.
pub fn value_of(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT value FROM copy WHERE name = ?", [name], |row| row.get(0)).optional()
}

/// Makes the derived tables anew where another version of the program has made them otherwise.
fn renew_layout(path: &Path, connection: &Connection) -> Result<(), PullError> {
    let wanted = layout();
    let sql = |sql: &str| connection.execute_batch(sql).map_err(|error| failure(path, &error));
    if value_of(connection, "layout").map_err(|error| failure(path, &error))?.as_deref() == Some(&*wanted) {
        return Ok(());
    }
    sql("BEGIN IMMEDIATE")?;
    sql(&undo_derived())?;
    for dataset in Dataset::ALL {
        sql(&format!("ALTER TABLE {dataset} RENAME TO old_{dataset}"))?;
    }
    sql(&derived())?;
    for dataset in Dataset::ALL {
        let statements = Statements::new(dataset);
        let mut rows = Rows::new(path, connection, &statements, Mode::Anew);
        let read = |after: i64| -> rusqlite::Result<Option<(i64, String)>> {
            let next =
                format!("SELECT id, json FROM old_{dataset} WHERE id BETWEEN ? AND {MAX_ID} ORDER BY id LIMIT 1");
            let json = |row: &rusqlite::Row<'_>| -> rusqlite::Result<String> {
                Ok(String::from_utf8_lossy(bytes_of(row.get_ref(1)?)).into_owned())
            };
            connection.prepare_cached(&next)?.query_row([after], |row| Ok((row.get(0)?, json(row)?))).optional()
        };
        // Other ids are not the service's, and are not taken along.
        let mut next = 1;
        while let Some((id, json)) = read(next).map_err(|error| failure(path, &error))? {
            rows.put(id, &json)?;
            next = id + 1;
        }
        sql(&format!("INSERT INTO {dataset}_search ({dataset}_search) VALUES ('rebuild'); DROP TABLE old_{dataset}"))?;
    }
    sql(&format!("UPDATE copy SET value = '{wanted}' WHERE name = 'layout'; COMMIT"))
}
