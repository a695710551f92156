//! The errors of a publisher.

use std::path::PathBuf;

use crate::bucket::BucketError;
use crate::model::DatabaseId;
use crate::model::printable::Printable;
use crate::replicate::frame::MalformedObject;
use crate::store::StoreError;

/// A permanent error of a publisher. The message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The database cannot be read or marked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bucket cannot be used.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// An object in the bucket is not what belongs there.
    #[error("object `{name}` in {url} cannot be used: {detail}")]
    Object {
        /// The bucket.
        url: String,
        /// The object's name below the prefix.
        name: String,
        /// What is wrong with it, and what to do.
        detail: String,
    },
    /// Another process publishes this file.
    #[error("{} is already published by {}; stop that publisher first", path.display(), Printable(holder))]
    Locked {
        /// The database.
        path: PathBuf,
        /// The process that has the lock, if known.
        holder: String,
    },
    /// Another publisher took over.
    #[error(
        "{} is no longer published from here: {}; make all changes there, and stop servers of this file. {}",
        path.display(), Printable(by), only_in_this_file(alone, url)
    )]
    Fenced {
        /// The database.
        path: PathBuf,
        /// The bucket.
        url: String,
        /// The publisher that took over, and when.
        by: String,
        /// The commits that only this file contains, in words; empty if there are none or this is unknown.
        alone: String,
    },
    /// The bucket holds the log of another database.
    #[error(
        "{url} holds the log of another database ({found}), and this one is {own}; publish it to a prefix of its own"
    )]
    OtherDatabase {
        /// The bucket.
        url: String,
        /// The id of the log's database.
        found: DatabaseId,
        /// This database's id, in words.
        own: String,
    },
    /// The database does not contain the end of the log.
    #[error(transparent)]
    Diverged(Box<Diverged>),
    /// This database was published to the bucket, which is empty now.
    #[error(
        "{url} is empty, though {} was published there up to slot {slot}; check the URL and the credentials. If the objects \
         were deleted on purpose, add --start-over once",
        path.display()
    )]
    Emptied {
        /// The database.
        path: PathBuf,
        /// The bucket.
        url: String,
        /// The last slot that was published from here.
        slot: u64,
    },
    /// The log ends before the last published slot.
    #[error(
        "{url} ends at slot {slot}, though {} was published there up to slot {known} (as {by} says): the bucket lost entries, or \
         was restored from a copy. Put them back; or, to continue with a whole state of this database, add --start-over once",
        path.display()
    )]
    WentBack {
        /// The database.
        path: PathBuf,
        /// The bucket.
        url: String,
        /// The last slot there.
        slot: u64,
        /// The last slot that was published.
        known: u64,
        /// The source of `known`, in words.
        by: &'static str,
    },
    /// An entry is missing, though later objects exist.
    #[error(
        "`{name}` is missing in {url}, though later objects exist: find out what deletes objects. Put it back; or, to \
         continue with a whole state of the database, run `medfeed publish` with --start-over once"
    )]
    Missing {
        /// The bucket.
        url: String,
        /// The entry.
        name: String,
    },
    /// A file next to the database cannot be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
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
            format!("{commits} after the last published one are only in this file (`medfeed log`, `medfeed export`)")
        }
    }
}

/// A database that does not contain the end of the log.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} does not contain the last entry of {url}: slot {slot} there, published by {}{} at {published_at}, is the commit of \
     seq {published_seq}; the last commit here is seq {own_seq} of {own_time}, and its history lacks that commit. Publish the \
     database that contains it; or, to drop commits that only the log has, add --start-over once",
    path.display(), Printable(who), if *is_own { " from this very file" } else { "" }
)]
pub struct Diverged {
    /// The database.
    pub path: PathBuf,
    /// The bucket.
    pub url: String,
    /// The last slot there.
    pub slot: u64,
    /// Its publisher: user and machine.
    pub who: String,
    /// Whether it was published from this file, which was replaced by an older copy since. Otherwise another file
    /// published it.
    pub is_own: bool,
    /// When it was published.
    pub published_at: String,
    /// The last seq there.
    pub published_seq: u64,
    /// The last seq here.
    pub own_seq: u64,
    /// When that commit was made.
    pub own_time: String,
}

impl PublishError {
    /// Whether another publisher took over.
    pub fn is_fenced(&self) -> bool {
        match self {
            PublishError::Diverged(diverged) => !diverged.is_own,
            error => matches!(error, PublishError::Fenced { .. } | PublishError::Store(StoreError::Fenced { .. })),
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
