//! The location of a copy, as given by `--to`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::files::open_file;
use super::postgres::address::PostgresAddress;
use super::sqlite::file::probe_sqlite;

const SQLITE_EXTENSIONS: [&str; 3] = ["sqlite", "sqlite3", "db"];

/// The forms of `--to`, for messages.
const FORMS: &str = "give an SQLite file ending .sqlite, .sqlite3 or .db, a folder ending / (for JSON lines and CSV), or an \
                     address such as postgres://user@host/database?schema=NAME";

/// The location of a copy.
#[derive(Debug)]
pub enum CopyLocation {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A folder of JSON lines and CSV.
    Folder(PathBuf),
    /// A schema in PostgreSQL.
    Postgres(Box<PostgresAddress>),
}

impl CopyLocation {
    /// Parses a path or a URL. An existing SQLite file may have any extension. Error messages contain no password.
    pub fn of(to: &Path) -> Result<CopyLocation, String> {
        let text = to.to_string_lossy();
        let (scheme, rest) = text.split_once(':').unwrap_or_default();
        match &*scheme.trim().to_ascii_lowercase() {
            "postgres" | "postgresql" if rest.starts_with("//") => {
                return format!("postgres:{rest}")
                    .parse()
                    .map(|address| CopyLocation::Postgres(Box::new(address)));
            }
            "postgres" | "postgresql" => {
                return Err(format!("the address of PostgreSQL cannot be read; {FORMS}"));
            }
            _ if rest.starts_with("//") => {
                return Err(format!("--to names an address of another kind; {FORMS}"));
            }
            _ => {}
        }
        if to.is_dir() || to.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Ok(CopyLocation::Folder(to.to_owned()));
        }
        let ending = to
            .extension()
            .and_then(OsStr::to_str)
            .unwrap_or_default()
            .to_ascii_lowercase();
        if SQLITE_EXTENSIONS.contains(&&*ending)
            || open_file(to).is_ok_and(|mut file| probe_sqlite(&mut file))
        {
            return Ok(CopyLocation::Sqlite(to.to_owned()));
        }
        Err(format!(
            "--to names a file whose ending is not that of a copy; {FORMS}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_recognized_as_file_folder_or_database() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(at("old.copy"), b"SQLite format 3\0 and more").unwrap();
        std::fs::write(at("mine.csv"), b"id,name\n1,a\n").unwrap();
        std::fs::write(at("mine.sqlite"), b"").unwrap();
        let cases = cases![
            at("copy.sqlite"), Ok("Sqlite");
            at("copy.SQLITE3"), Ok("Sqlite");
            "copy.db".to_owned(), Ok("Sqlite");
            at("mine.sqlite"), Ok("Sqlite");
            at("old.copy"), Ok("Sqlite");
            at("new/"), Ok("Folder");
            at("x.csv/"), Ok("Folder");
            folder.path().display().to_string(), Ok("Folder");
            "postgres://me@localhost/x".to_owned(), Ok("Postgres");
            "POSTGRES://me@localhost/x".to_owned(), Ok("Postgres");
            "PostgreSQL://me@localhost/x?schema=a".to_owned(), Ok("Postgres");
            at("mine.csv"), Err("not that of a copy");
            at("x.parquet"), Err("not that of a copy");
            at("x.jsonl"), Err("a folder ending /");
            at("copy"), Err("not that of a copy");
            "file:x.duckdb".to_owned(), Err("not that of a copy");
            "".to_owned(), Err("not that of a copy");
            "POSTGRES://me:secret@localhost/x".to_owned(), Err("PGPASSWORD");
            "postgres://me:secret@localhost:port/x".to_owned(), Err("write it as");
            "Postgres://me:secret%ZZ@localhost/x?x=%".to_owned(), Err("");
            "postgres:me:secret@localhost/x.sqlite".to_owned(), Err("cannot be read");
            " postgres://me:secret@localhost/x".to_owned(), Err("PGPASSWORD");
            "mysql://me:secret@localhost/x".to_owned(), Err("of another kind");
            "postgres+tls://me:secret@localhost/x.sqlite".to_owned(), Err("of another kind");
            "host=db.sqlite password=secret".to_owned(), Err("not that of a copy");
        ];
        for (to, expected) in cases {
            match (CopyLocation::of(Path::new(&to)), expected) {
                (Ok(place), Ok(kind)) => {
                    assert!(format!("{place:?}").starts_with(kind), "{to}: {place:?}")
                }
                (Err(message), Err(part)) => {
                    assert!(
                        message.contains(part) && !message.contains("secret"),
                        "{to}: {message}"
                    );
                }
                (place, _) => panic!("{to}: {place:?}"),
            }
        }
    }
}
