//! The errors of a publisher.

use std::path::PathBuf;

use crate::bucket::BucketError;
use crate::disk::describe_at;
use crate::model::{DatabaseId, Printable};
use crate::replicate::frame::MalformedObject;
use crate::replicate::replica::ReplicaError;
use crate::store::StoreError;

/// The result of a publisher's step.
pub type Result<T, E = PublishError> = std::result::Result<T, E>;

/// A permanent error of a publisher. The message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The database cannot be read or marked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bucket cannot be used.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(ReplicaError),
    #[error("{} is already published by {}; stop that publisher first", path.display(), Printable(holder))]
    Locked { path: PathBuf, holder: String },
    #[error(
        "{} is no longer published from here: {}; make all changes there, and stop servers of this file. {}",
        path.display(), Printable(by), only_in_this_file(alone, url)
    )]
    Fenced {
        path: PathBuf,
        url: String,
        by: String,
        /// The commits that only this file contains, in words; empty if there are none or this is unknown.
        alone: String,
    },
    #[error(
        "{url} holds the log of another database ({found}), and this one {own}; publish it to a prefix of its own"
    )]
    OtherDatabase {
        url: String,
        found: DatabaseId,
        /// This database's id, in words, with a verb.
        own: String,
    },
    /// The database does not contain the end of the log.
    #[error("{text}")]
    Diverged {
        slot: u64,
        /// Whether it was published from this file, which was replaced by an older copy since. Otherwise another file
        /// published it.
        is_own: bool,
        text: String,
    },
    #[error(
        "{url} is empty, though {} was published there up to slot {slot}; check the URL and the credentials. If the \
         objects were deleted on purpose, add --start-over once",
        path.display()
    )]
    Emptied {
        path: PathBuf,
        url: String,
        slot: u64,
    },
    #[error(
        "{url} ends at slot {slot}, though {} was published there up to slot {known} (as {by} says): the bucket lost \
         entries, or was restored from a copy. Put them back; or, to continue with a whole state of this database, \
         add --start-over once",
        path.display()
    )]
    WentBack {
        path: PathBuf,
        url: String,
        slot: u64,
        known: u64,
        by: &'static str,
    },
    /// A file next to the database cannot be used.
    #[error("{}", describe_at(path, source))]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The changes or rows cannot be encoded as an object.
    #[error("this cannot be published: {0}; run `medfeed check`")]
    Unwritable(#[from] MalformedObject),
}

/// Describes the commits that only this file contains.
fn only_in_this_file(commits: &str, url: &str) -> String {
    match commits {
        "" => format!("Commits that are not in {url} are only in this file (`medfeed export`)"),
        commits => {
            format!(
                "{commits} after the last published one are only in this file (`medfeed log`, `medfeed export`)"
            )
        }
    }
}

impl From<ReplicaError> for PublishError {
    fn from(error: ReplicaError) -> PublishError {
        match error {
            ReplicaError::Bucket(error) => PublishError::Bucket(error),
            ReplicaError::Store(error) => PublishError::Store(error),
            other => PublishError::Log(other),
        }
    }
}

impl PublishError {
    /// Whether another publisher took over.
    pub fn is_fenced(&self) -> bool {
        match self {
            PublishError::Diverged { is_own, .. } => !is_own,
            error => matches!(
                error,
                PublishError::Fenced { .. } | PublishError::Store(StoreError::Fenced { .. })
            ),
        }
    }

    /// Returns the exit code of a command that fails with this error: 4 if another publisher took over, 3 if the bucket
    /// cannot be reached, else 1. With 3 the commit stands, but replicas do not have it yet.
    pub fn exit_code(&self) -> u8 {
        match self {
            fenced if fenced.is_fenced() => 4,
            PublishError::Bucket(BucketError::Unreachable(_)) => 3,
            _ => 1,
        }
    }
}
