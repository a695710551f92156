//! Why publishing ends.

use std::path::PathBuf;

use crate::bucket::BucketError;
use crate::model::DatabaseId;
use crate::model::printable::Printable;
use crate::replicate::frame::Malformed;
use crate::store::StoreError;

/// Why a publisher ends, in words that say what to do.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The database cannot be read, or not be marked.
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
    /// Another process publishes this very file.
    #[error("{} is published already by {}; stop that one first", path.display(), Printable(holder))]
    Locked {
        /// The database.
        path: PathBuf,
        /// Who has the lock, as far as that is known.
        holder: String,
    },
    /// Another publisher took over.
    #[error(
        "{} is no longer published from here: {}; write there, and stop servers of this file. {}",
        path.display(), Printable(by), in_this_file_alone(alone, url)
    )]
    Fenced {
        /// The database.
        path: PathBuf,
        /// The bucket.
        url: String,
        /// Who took over, and when.
        by: String,
        /// The commits that only this file has, in words; empty if there are none, or it is not known.
        alone: String,
    },
    /// The bucket holds another database's log.
    #[error(
        "{url} holds the log of another database ({found}), and this one is {own}; publish it to a prefix of its own"
    )]
    OtherDatabase {
        /// The bucket.
        url: String,
        /// Whose log it is.
        found: DatabaseId,
        /// This database's id, in words.
        own: String,
    },
    /// The database does not hold the end of the log.
    #[error(transparent)]
    Diverged(Box<Diverged>),
    /// The bucket was published to from here, and is empty now.
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
    /// The log ends before what was published.
    #[error(
        "{url} ends at slot {slot}, though {} was published there up to slot {known} (as {by} says): the bucket lost entries, or \
         was restored from a copy. Put them back; or, to go on with a whole state of this database, add --start-over once",
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
        /// The source of `known`.
        by: &'static str,
    },
    /// The log lacks an entry, though later objects exist.
    #[error(
        "`{name}` is missing in {url}, though what follows is there: look who deletes objects. Put it back; or, to go on with a \
         whole state of the database, run `medfeed publish` with --start-over once"
    )]
    Missing {
        /// The bucket.
        url: String,
        /// The entry.
        name: String,
    },
    /// A file beside the database cannot be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What is to be published cannot be written as an object.
    #[error("this cannot be published: {0}; run `medfeed check`")]
    Unwritable(#[from] Malformed),
}

/// Says what a database that is no longer published has alone.
fn in_this_file_alone(commits: &str, url: &str) -> String {
    match commits {
        "" => format!("What was committed here and is not in {url} is in this file alone (`medfeed export`)"),
        commits => format!(
            "{commits} after the last one that was published are in this file alone (`medfeed log`, `medfeed export`)"
        ),
    }
}

/// A database that does not hold the end of the log, and both ends.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} does not hold what {url} ends with: slot {slot} there, put by {}{} at {published_at}, is the commit of seq \
     {published_seq}, and the last commit here is that of seq {own_seq}, of {own_time}, in a history without it. Publish the \
     database that holds it; or, to give up what only the log has, add --start-over once",
    path.display(), Printable(who), if *is_own { " from this very file" } else { "" }
)]
pub struct Diverged {
    /// The database.
    pub path: PathBuf,
    /// The bucket.
    pub url: String,
    /// The last slot there.
    pub slot: u64,
    /// Who put it.
    pub who: String,
    /// Whether it was put from this file, which has gone back since. Else another publisher did.
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
    /// Whether another publisher has put what comes next.
    pub fn is_fenced(&self) -> bool {
        match self {
            PublishError::Diverged(diverged) => !diverged.is_own,
            error => matches!(error, PublishError::Fenced { .. } | PublishError::Store(StoreError::Fenced { .. })),
        }
    }

    /// The exit code of a command that ends so: 4 when another publisher has put what comes next, 3 when the bucket cannot be
    /// reached for now (what is committed stays so, and replicas do not know it yet), else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            fenced if fenced.is_fenced() => 4,
            PublishError::Bucket(BucketError::Unreachable(_)) => 3,
            _ => 1,
        }
    }
}
