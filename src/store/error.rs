//! What can go wrong with the database, in words that say what to do.

use std::path::PathBuf;

use crate::model::printable::Printable;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No file at the path.
    #[error("there is no database at {}; create one with `medfeed import`, or name another with --db", path.display())]
    NotFound {
        /// The path asked for.
        path: PathBuf,
    },
    /// The file is not a medfeed database.
    #[error("{} is not a medfeed database ({reason}); name another file with --db", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file was written by a newer medfeed.
    #[error("{} was written by a newer medfeed (format {found}, this one knows {known}); use that version, or a newer one", path.display())]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: u32,
        /// The schema version of this program.
        known: u32,
    },
    /// The file's records have fields that this program does not know.
    #[error("{} was written by a newer medfeed: its rows have {}, which this one does not know; use that version, or a newer one", path.display(), unknown.join(", "))]
    NewerFields {
        /// The file.
        path: PathBuf,
        /// Such as `conferences.acronym`.
        unknown: Vec<String>,
    },
    /// The file was written by an older medfeed.
    #[error("{} was written by an older medfeed (format {found}, this one knows {known}); {}", path.display(), remedy_of(*found))]
    OlderSchema {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: u32,
        /// The schema version of this program.
        known: u32,
    },
    /// The file's records lack fields that this program has.
    #[error("{} was written by an older medfeed, whose rows have no {}; run `medfeed upgrade`, which keeps the old file", path.display(), missing.join(", "))]
    OlderFields {
        /// The file.
        path: PathBuf,
        /// Such as `conferences.acronym`; none if only their order changed.
        missing: Vec<String>,
    },
    /// Another process is writing.
    #[error("{} is being written by {holder}; try again when it is done, or give it more time with --wait", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
        /// Who has it, as far as that is known.
        holder: String,
    },
    /// A command that is not to wait asks for the lock, and the edit gives way to it.
    #[error("another command asks for the writer's lock")]
    YieldRequested,
    /// A killed command left the file, and this user may not write to it.
    #[error("{} was left by a killed command, and must be opened once by a user who may write to it before others can read it: run `medfeed check` as its owner ({source})", path.display())]
    NeedsRepair {
        /// The file.
        path: PathBuf,
        /// Why it cannot be written to.
        source: std::io::Error,
    },
    /// The file at the path was replaced while this process wrote to the old one.
    #[error("{} was replaced while this command ran; nothing was changed, run it again", path.display())]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// A row's bytes are not what was written.
    #[error("the database is damaged: table `{table}`: {detail}; run `medfeed check`, and restore a backup")]
    Damaged {
        /// The table.
        table: &'static str,
        /// What does not fit.
        detail: String,
    },
    /// A row that is sound, and that this program does not understand.
    #[error(
        "table `{table}` has a row that this medfeed does not understand ({detail}); use the version that wrote it, or a newer one"
    )]
    UnknownRow {
        /// The table.
        table: &'static str,
        /// The decoder's reason.
        detail: String,
    },
    /// A file that a backup must not replace, or be made from.
    #[error("{} cannot be used: {reason}", path.display())]
    BadTarget {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A backup that is damaged.
    #[error("the backup {} is damaged: {reason}; nothing was changed, use another backup", path.display())]
    BadBackup {
        /// The backup.
        path: PathBuf,
        /// What is wrong with it, and in which table.
        reason: String,
    },
    /// The file follows another database, and only its follower may write to it.
    #[error("{} is a replica of {}; change the database that it follows, or make it one of its own with `medfeed promote`", path.display(), Printable(url))]
    IsReplica {
        /// The file.
        path: PathBuf,
        /// Where it follows its origin.
        url: String,
    },
    /// The file of a replica, written by an older medfeed.
    #[error("{} is a replica of {}, written by an older medfeed; upgrade the database that it follows, then start this one again with `medfeed serve --from`: it loads the state anew", path.display(), Printable(url))]
    OlderReplica {
        /// The file.
        path: PathBuf,
        /// Where it follows its origin.
        url: String,
    },
    /// The file is no replica.
    #[error("{} is a database of its own and no replica; name another file with --db", path.display())]
    NotAReplica {
        /// The file.
        path: PathBuf,
    },
    /// Another database took this one's place.
    #[error("{} is no longer published from here: {}; write there. What was committed here since is in this file alone (`medfeed export`). To use it as a database of its own, remove {}", path.display(), Printable(by), note.display())]
    Fenced {
        /// The file.
        path: PathBuf,
        /// Who took over, and when.
        by: String,
        /// The publisher's note that says so.
        note: PathBuf,
    },
    /// The publisher's note cannot be understood.
    #[error("{} cannot be understood ({reason}); move it away, and `medfeed publish` writes it anew", path.display())]
    BadNote {
        /// The note.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A license that does not exist.
    #[error("there is no license `{0}`; `medfeed license list` shows those there are")]
    NoSuchLicense(String),
    /// A key that does not exist.
    #[error("there is no key `{0}`; `medfeed key list` shows those there are")]
    NoSuchKey(String),
    /// A key that is out of use already.
    #[error("key `{id}` is {status} already")]
    KeyOutOfUse {
        /// The key's id.
        id: String,
        /// Its status.
        status: &'static str,
    },
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No random bytes from the operating system.
    #[error("the operating system gave no random bytes: {0}")]
    Random(#[from] getrandom::Error),
    /// No room left.
    #[error("there is no room left on the disk; nothing was changed. Free some, and run the command again: {0}")]
    DiskFull(std::io::Error),
    /// The storage engine failed.
    #[error("the database could not be read or written: {0}")]
    Engine(Box<redb::Error>),
}

/// The way on for a file of an older format.
fn remedy_of(format: u32) -> &'static str {
    match format {
        0 | 1 => {
            "export it with that version (`medfeed export FOLDER`) and import the files with this one into a new database"
        }
        _ => "run `medfeed upgrade`, which keeps the old file",
    }
}

impl StoreError {
    /// Damage in a table.
    pub fn damaged(table: &'static str, detail: impl Into<String>) -> StoreError {
        StoreError::Damaged { table, detail: detail.into() }
    }

    /// What is wrong with the changes that wait to be published, if it is that alone: a whole state holds all that they do.
    pub fn outbox_damage(&self) -> Option<&str> {
        match self {
            StoreError::Damaged { table: "outbox", detail } | StoreError::UnknownRow { table: "outbox", detail } => {
                Some(detail)
            }
            _ => None,
        }
    }

    /// An error of the engine, told apart by what the operator can do about it.
    pub(super) fn of_engine(error: redb::Error) -> StoreError {
        match error {
            redb::Error::Corrupted(detail) => StoreError::damaged("(pages)", detail),
            redb::Error::Io(source) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
                StoreError::damaged("(pages)", "the file is cut short")
            }
            redb::Error::Io(source)
                if matches!(source.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded) =>
            {
                StoreError::DiskFull(source)
            }
            other => StoreError::Engine(Box::new(other)),
        }
    }
}

/// Every error of the engine becomes its one general form.
macro_rules! from_engine {
    ($($error:ty),*) => {$(
        impl From<$error> for StoreError {
            fn from(error: $error) -> StoreError {
                StoreError::of_engine(error.into())
            }
        }
    )*};
}
from_engine!(redb::StorageError, redb::TableError, redb::TransactionError, redb::CommitError, redb::CursorError);
