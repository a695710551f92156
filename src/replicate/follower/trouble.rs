//! Why a replica cannot go on, by what can be done about it.

use crate::bucket::BucketError;
use crate::model::shell::Word;
use crate::model::{DatabaseId, Timestamp};
use crate::replicate::frame::Malformed;
use crate::replicate::layout;
use crate::store::StoreError;
use crate::store::replication::ApplyError;

/// A failure of following. Its words begin in lower case and say what to do.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The bucket failed, or refused.
    #[error(transparent)]
    Bucket(BucketError),
    /// An object is not what must stand in its place.
    #[error("object `{name}` cannot be used: {detail}")]
    Object {
        /// The object's name below the bucket's prefix.
        name: String,
        /// What does not fit.
        detail: String,
    },
    /// The log goes on from another state than the replica's, or its way there is gone.
    #[error("the log does not go on from what was read before: {0}")]
    Parted(String),
    /// The rows are not the origin's.
    #[error("the rows are not those of the origin: {0}")]
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
        "the origin is of another medfeed (format {found}, this one knows {known}); use the origin's version here too"
    )]
    Schema {
        /// The log's.
        found: u32,
        /// This program's.
        known: u32,
    },
    /// The log is written by an older program.
    #[error(
        "the origin is of an older medfeed (format {found}, this one knows {known}); upgrade it first: `medfeed upgrade` there, \
         then `medfeed publish`. Until then its replicas need the older medfeed"
    )]
    OlderSchema {
        /// The log's.
        found: u32,
        /// This program's.
        known: u32,
    },
    /// The rows have other fields than this program's.
    #[error("the origin is of another medfeed, whose records have other fields; use the origin's version here too")]
    OtherFields,
    /// The bucket is empty.
    #[error(
        "nothing is published at {0}; run `medfeed publish {word}` where the database is, and look whether URL and seal key are the same",
        word = Word(.0)
    )]
    Nothing(String),
    /// An entry is missing, and later ones exist or are named.
    #[error(
        "{} is missing from the log, which goes on to slot {later}: objects were deleted, or the bucket was restored from a \
         copy. Put them back; or have the origin publish its whole state: `medfeed publish URL --start-over`",
        missing_slots(*.slot, *.later)
    )]
    Missing {
        /// The first slot that is missing.
        slot: u64,
        /// A later slot, known by its entry or by the publisher's sign of life.
        later: u64,
    },
    /// Nothing says whether the log ends where its entries end.
    #[error(
        "{0}, so it cannot be known whether the log ends at slot {1}; a running `medfeed publish` writes `alive` anew"
    )]
    Unconfirmed(String, u64),
    /// Loading a whole state failed a moment ago.
    #[error("{0}")]
    Paused(String),
    /// No state is old enough.
    #[error("no state is kept from so long ago; the oldest is of {oldest}")]
    TooEarly {
        /// When the oldest one's last commit was made.
        oldest: Timestamp,
    },
    /// What is in the bucket ends before what the replica holds.
    #[error(
        "the log ends at slot {slot}, seq {end}, before seq {here} of this replica, which never goes back: the bucket lost \
         entries. If the origin lives, start `medfeed publish` there, which says what to do. If it is lost too, this file is \
         the newest copy: keep it, and make it the origin with `medfeed promote URL --start-over`"
    )]
    Behind {
        /// The last slot of the log.
        slot: u64,
        /// The last seq of the log.
        end: u64,
        /// The replica's.
        here: u64,
    },
    /// Another replica was promoted meanwhile.
    #[error(
        "another replica took the origin's place at {at}, by {who} ({what}), and this one has followed it; publish and write \
         there. If that one is lost too, run this again"
    )]
    TakenOver {
        /// The user and machine that promoted it.
        who: String,
        /// Its description in the history.
        what: String,
        /// When, by that machine's clock.
        at: Timestamp,
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

/// The slots from one to the one before another, in words.
fn missing_slots(slot: u64, later: u64) -> String {
    match later.saturating_sub(1) {
        last if last > slot => format!("slot {slot} (`{}`), and maybe up to slot {last},", layout::log(slot)),
        _ => format!("slot {slot} (`{}`)", layout::log(slot)),
    }
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
            ApplyError::OtherVersion => Trouble::OtherFields,
            ApplyError::Store(error) => Trouble::Store(error),
        }
    }

    /// Whether the bucket does not hold, or cannot be known to hold, what it should: that may heal while a replica waits.
    pub fn is_of_log(&self) -> bool {
        matches!(self, Trouble::Missing { .. } | Trouble::Unconfirmed(..) | Trouble::Behind { .. })
    }

    /// Whether following ends with it: trying again helps only after somebody acted.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            Trouble::OtherDatabase { .. } | Trouble::Schema { .. } | Trouble::OlderSchema { .. } | Trouble::OtherFields
        )
    }
}
