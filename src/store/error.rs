//! Errors of the database. Each message says what to do.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{describe, describe_at};
use crate::model::{Printable, Timestamp};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The result of a function of the store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum StoreError {
    #[error("there is no database at {}; create one with `medfeed import --create`, or name another with --db", path.display())]
    NotFound { path: PathBuf },
    #[error("{} is not a medfeed database ({reason}); name another file with --db, or `medfeed restore` a backup if it was one", path.display())]
    NotADatabase { path: PathBuf, reason: String },
    #[error("{} has format {found}, made by a newer medfeed; medfeed {VERSION} reads format {known}; use that version, or a newer one", path.display())]
    NewerSchema {
        path: PathBuf,
        found: u32,
        known: u32,
    },
    #[error("{} was written by a newer medfeed: its rows have {}, which this one does not know; use that version, or a newer one", path.display(), unknown.join(", "))]
    NewerFields { path: PathBuf, unknown: Vec<String> },
    #[error(
        "{} has format {found}, of a program before the first release; medfeed {VERSION} reads format {known}; export it with the program that made it (`medfeed export FOLDER`) and import the files here; a replica's file can be removed instead: `medfeed serve --from` loads all data again",
        path.display()
    )]
    OlderSchema {
        path: PathBuf,
        found: u32,
        known: u32,
    },
    #[error("{} was written by an older medfeed, whose rows {}; run `medfeed upgrade`, which keeps the old file", path.display(), difference(missing))]
    OlderFields {
        path: PathBuf,
        /// Empty if only the order of the fields changed.
        missing: Vec<String>,
    },
    #[error("{} is being written by {holder}; try again when it is done, or give it more time with --wait", path.display())]
    Busy { path: PathBuf, holder: String },
    /// A killed command left the file unrepaired, and this user may not write to it.
    #[error("{} was left by a killed command, and must be repaired by a user who may write to it: run `medfeed check` as its owner ({})", path.display(), describe(source))]
    NeedsRepair { path: PathBuf, source: io::Error },
    #[error("{} was replaced while this command ran; nothing was changed, run it again", path.display())]
    Replaced { path: PathBuf },
    /// A row does not contain the bytes that were written.
    #[error(
        "the database is damaged: table `{table}`: {detail}; run `medfeed check`, and restore a backup; if it is a replica, stop its server, remove the file, and start again: it loads all data again"
    )]
    Damaged { table: &'static str, detail: String },
    /// A row is intact, but this program cannot decode it.
    #[error(
        "table `{table}` has a row that this medfeed does not understand ({detail}); use the version that wrote it, or a newer one"
    )]
    UnknownRow { table: &'static str, detail: String },
    /// A file that cannot be replaced, or cannot be the source of a backup.
    #[error("{} cannot be used: {reason}", path.display())]
    BadTarget { path: PathBuf, reason: String },
    #[error("the backup {} cannot be used: {reason}; nothing was changed, use another backup", path.display())]
    BadBackup { path: PathBuf, reason: String },
    /// The file is a replica: only the thread that follows its origin may write to it.
    #[error("{} is a replica of {}; write to its origin. If that is lost, `medfeed promote` makes this replica the origin; for an independent copy, use `medfeed backup FILE --from URL`", path.display(), Printable(url))]
    IsReplica { path: PathBuf, url: String },
    #[error("{} is a replica of {}, written by an older medfeed; upgrade its origin, then start `medfeed serve --from` again: it loads all data again", path.display(), Printable(url))]
    OlderReplica { path: PathBuf, url: String },
    #[error("{} is not a replica; name another file with --db", path.display())]
    NotAReplica { path: PathBuf },
    /// Another publisher took over.
    #[error("{} is no longer published from here: {}; write there. Commits made here since then are only in this file (`medfeed export` saves them). To use it as an independent database, publish it into another bucket, or remove {} and give --publish-wait 0s", path.display(), Printable(by), note.display())]
    Fenced {
        path: PathBuf,
        by: String,
        note: PathBuf,
    },
    #[error("{} cannot be parsed ({reason}); move it away, and `medfeed publish` writes a new one", path.display())]
    BadNote { path: PathBuf, reason: String },
    #[error("there is no license `{0}`; `medfeed license list` lists all")]
    NoSuchLicense(String),
    #[error("there is no key `{0}`; `medfeed key list` lists all")]
    NoSuchKey(String),
    #[error("key `{id}` is {status} already")]
    KeyOutOfUse { id: String, status: &'static str },
    /// The overlap of two keys would begin at the last commit, which a clock that was ahead has made.
    #[error(
        "the clock is {behind_s} seconds behind the last commit, so key `{id}` would stay usable until {until}; correct the clock, or end the key at once with `--overlap 0s`"
    )]
    LongOverlap {
        id: String,
        until: Timestamp,
        behind_s: i64,
    },
    #[error("{}", describe_at(path, source))]
    Io { path: PathBuf, source: io::Error },
    #[error("the operating system returned no random bytes: {0}")]
    Random(#[from] getrandom::Error),
    #[error("there is no room left on the disk, or for this user (quota, ulimit -f); nothing was changed. Free some, and run the command again: {}", describe(.0))]
    DiskFull(io::Error),
    #[error(
        "the database could not be read or written: {0}; run `medfeed check`, and if it finds damage, restore a backup"
    )]
    Engine(Box<redb::Error>),
}

/// How the fields of an older file differ from today's. `missing` is empty if only their order does.
fn difference(missing: &[String]) -> String {
    match missing {
        [] => "have the same fields in another order".to_owned(),
        _ => format!("have no {}", missing.join(", ")),
    }
}

impl StoreError {
    /// Creates a [`StoreError::Damaged`].
    pub fn damaged(table: &'static str, detail: impl Into<String>) -> StoreError {
        StoreError::Damaged {
            table,
            detail: detail.into(),
        }
    }

    /// Converts an error of the operating system at a path. A full disk becomes an error of its own.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        move |source| match is_full(&source) {
            true => StoreError::DiskFull(source),
            false => StoreError::Io {
                path: path.to_owned(),
                source,
            },
        }
    }

    /// The damage, if only the outbox is damaged. Publishing a whole state repairs that.
    pub fn outbox_damage(&self) -> Option<&str> {
        match self {
            StoreError::Damaged {
                table: "outbox",
                detail,
            }
            | StoreError::UnknownRow {
                table: "outbox",
                detail,
            } => Some(detail),
            _ => None,
        }
    }

    /// Converts an error of redb. Damage and a full disk become errors of their own.
    pub(super) fn from_redb(error: redb::Error) -> StoreError {
        match error {
            redb::Error::Corrupted(detail) => StoreError::damaged("(pages)", detail),
            redb::Error::Io(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
                StoreError::damaged("(pages)", "the file is cut short")
            }
            redb::Error::Io(source) if is_full(&source) => StoreError::DiskFull(source),
            other => StoreError::Engine(Box::new(other)),
        }
    }
}

/// Whether the disk is full, or a limit of the user is reached.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Converts the error types of redb by way of `redb::Error`.
macro_rules! from_engine {
    ($($error:ty),*) => {$(
        impl From<$error> for StoreError {
            fn from(error: $error) -> StoreError {
                StoreError::from_redb(error.into())
            }
        }
    )*};
}
from_engine!(
    redb::StorageError,
    redb::TableError,
    redb::TransactionError,
    redb::CommitError,
    redb::CursorError
);

/// Implements `Debug` for types that have handles of redb: it prints their name.
macro_rules! opaque_debug {
    ($($type:ty),*) => {$(
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($type))
            }
        }
    )*};
}
pub(crate) use opaque_debug;
