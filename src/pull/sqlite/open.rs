//! Opens the file of a copy, or creates one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::dialect::APPLICATION_ID;
use super::failure::{failure, no_copy};
use super::file::SqliteFile;
use crate::disk::{describe, describe_at};
use crate::pull::error::PullError;
use crate::pull::files::{self, make_file, open_file};
use crate::pull::sql::database::Database;
use crate::pull::sql::layout;
use crate::pull::sql::schema::FORMAT;

/// The page cache, in KiB. A load of a million records needs no more.
const CACHE_KIB: i32 = 16 * 1024;

/// The timeout for the lock of another program that writes to the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// The first bytes of every SQLite file (<https://sqlite.org/fileformat.html>).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Opens or creates a copy. Leaves other files untouched.
pub fn open(path: &Path) -> Result<SqliteFile, PullError> {
    // Checked before the lock file is created next to it.
    has_copy(path)?;
    let lock = lock(path)?;
    let is_there = has_copy(path)?;
    if !is_there {
        // The file's mode must not depend on the umask. SQLite uses it for its other files too.
        make_file(path).map_err(|error| PullError::Unusable(describe_at(path, &error)))?;
    }
    let connection = connect(path).map_err(|error| failure(path, &error))?;
    let mut file = SqliteFile { path: path.to_owned(), connection, identity: identity(path)?, lock };
    if is_there {
        layout::renew(&mut file)?
    } else {
        file.in_transaction(layout::create)?
    }
    Ok(file)
}

/// The device and inode of a path.
pub fn identity(path: &Path) -> Result<(u64, u64), PullError> {
    let found = fs::metadata(path).map_err(|error| {
        PullError::Unusable(format!(
            "{}: the copy has gone ({}); run again to make a new one",
            path.display(),
            describe(&error)
        ))
    })?;
    Ok((found.dev(), found.ino()))
}

/// Whether a file begins with SQLite's magic bytes.
pub fn is_sqlite(file: &mut File) -> bool {
    let mut begin = [0; MAGIC.len()];
    file.read_exact(&mut begin).is_ok() && begin == *MAGIC
}

/// Whether there is a copy at a path. Fails if there is another file. Changes nothing.
fn has_copy(path: &Path) -> Result<bool, PullError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            return if folder.is_dir() {
                Ok(false)
            } else {
                Err(PullError::Unusable(format!("there is no folder {}; make it first", folder.display())))
            };
        }
        Err(error) => return Err(PullError::Unusable(describe_at(path, &error))),
        Ok(found) if !found.is_file() => return Err(no_copy(&path.display())),
        Ok(found) if found.len() == 0 => return Ok(false),
        // SQLite would overwrite a file that is shorter than its header.
        Ok(_) if !open_file(path).is_ok_and(|mut file| is_sqlite(&mut file)) => return Err(no_copy(&path.display())),
        Ok(_) => {}
    }
    let read = || -> rusqlite::Result<(i32, i32, i64)> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let number = |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0));
        let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((number("application_id")?, number("user_version")?, tables))
    };
    match read() {
        Ok((APPLICATION_ID, FORMAT, _)) => Ok(true),
        Ok((APPLICATION_ID, format, _)) => Err(PullError::Unusable(format!(
            "{} was written by another version of this program (format {format}; this one knows {FORMAT}); use that \
             version, or give another path",
            path.display()
        ))),
        // Left by a pull that was killed before its first commit.
        Ok((0, 0, 0)) => Ok(false),
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

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // No `SQLITE_OPEN_URI`: `file:x.db` is a file name.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(64);
    // WAL does not block readers. A power cut can lose the newest transactions, but only whole ones.
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "foreign_keys", "off")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok(connection)
}
