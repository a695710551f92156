//! Why a replica cannot go on, by what can be done about it.

use crate::bucket::BucketError;
use crate::model::{DatabaseId, Timestamp};
use crate::replicate::frame::Malformed;
use crate::store::StoreError;
use crate::store::replication::ApplyError;

/// A failure of following. Its words begin in lower case and say what to do.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The bucket failed, or refused.
    #[error(transparent)]
    Bucket(BucketError),
    /// An object is not what must stand in its place.
    #[error("object `{name}` cannot be used: {detail}; what was applied before it is served")]
    Object {
        /// The object's name below the bucket's prefix.
        name: String,
        /// What does not fit.
        detail: String,
    },
    /// The log goes on from another state than the replica's, or its way there is gone.
    #[error("the log does not go on from what this replica holds: {0}; the whole state is loaded anew")]
    Parted(String),
    /// The rows are not the origin's.
    #[error("the rows of this replica are not those of its origin: {0}; the whole state is loaded anew")]
    Digest(String),
    /// The log is of another database.
    #[error(
        "the bucket holds database {found}, but the file is a replica of {expected}; name the bucket that it follows, or another file with --db"
    )]
    OtherDatabase {
        /// The database that the replica follows.
        expected: DatabaseId,
        /// The one in the bucket.
        found: DatabaseId,
    },
    /// The log is written in a schema that this program does not know.
    #[error(
        "the origin is of another medfeed (format {found}, this one knows {known}); use that version here: replicas are updated first"
    )]
    Schema {
        /// The log's.
        found: u32,
        /// This program's.
        known: u32,
    },
    /// The bucket is empty.
    #[error(
        "nothing is published at {0}; run `medfeed publish {0}` where the database is, and look whether URL and seal key are the same"
    )]
    Nothing(String),
    /// No state is old enough.
    #[error("no state is kept from so long ago; the oldest is of {oldest}")]
    TooEarly {
        /// When the oldest one's last commit was made.
        oldest: Timestamp,
    },
    /// What is in the bucket ends before what the replica holds.
    #[error(
        "the log ends at seq {end}, before seq {here} of this replica, which never goes back; if the bucket lost objects on purpose, remove the replica's file"
    )]
    Behind {
        /// The last seq of the log.
        end: u64,
        /// The replica's.
        here: u64,
    },
    /// Others published whenever this tried to.
    #[error(
        "others publish to the bucket, so this replica did not come in; stop `medfeed publish` at the old origin if you can, and run this again"
    )]
    Overtaken,
    /// Another process follows with this file.
    #[error("another process follows with this file; stop it first")]
    Followed,
    /// The bucket does not say whether it took the entry with which this replica takes over.
    #[error(
        "{0}; so it cannot be told whether this replica took over, and the old origin may publish no more: run this again"
    )]
    Unsure(BucketError),
    /// Whoever follows is to end.
    #[error("stopped")]
    Stopped,
    /// The replica's file.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<BucketError> for Trouble {
    fn from(error: BucketError) -> Trouble {
        match error {
            BucketError::Damaged { name, detail } => Trouble::Object { name, detail },
            other => Trouble::Bucket(other),
        }
    }
}

impl Trouble {
    /// An object that is not what must stand in its place.
    pub fn object(name: impl Into<String>, detail: impl ToString) -> Trouble {
        Trouble::Object { name: name.into(), detail: detail.to_string() }
    }

    pub(super) fn malformed(name: &str) -> impl Fn(Malformed) -> Trouble {
        move |malformed| Trouble::object(name, malformed)
    }

    /// Changes of an object that were not applied.
    pub(super) fn of_apply(error: ApplyError, name: &str) -> Trouble {
        match error {
            ApplyError::Base { .. } => Trouble::Parted(error.to_string()),
            ApplyError::Digest(_) => Trouble::Digest(error.to_string()),
            ApplyError::Malformed(detail) => Trouble::object(name, detail),
            ApplyError::Store(error) => Trouble::Store(error),
        }
    }

    /// Whether following ends with it: trying again helps only after somebody acted.
    pub fn is_final(&self) -> bool {
        matches!(self, Trouble::OtherDatabase { .. } | Trouble::Schema { .. })
    }
}
