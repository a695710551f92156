//! The errors of a replica.

use std::path::PathBuf;

use crate::bucket::BucketError;
use crate::model::{DatabaseId, Printable, ShellWord, Timestamp};
use crate::replicate::layout;
use crate::store::StoreError;
use crate::store::replication::{ApplyError, SCHEMA};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The result of a replica's step.
pub type Result<T, E = ReplicaError> = std::result::Result<T, E>;

/// An error of a replica. The message says what to do.
#[allow(missing_docs, reason = "the messages explain variants and fields")]
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The bucket cannot be used.
    #[error(transparent)]
    Bucket(BucketError),
    #[error("object `{name}` cannot be used: {detail}{}", entry_advice(name))]
    Object { name: String, detail: String },
    /// The log does not continue the replica's state.
    #[error("the log does not continue from this replica's position: {0}")]
    Diverged(String),
    #[error("the rows are not those of the origin: {0}")]
    Digest(String),
    #[error(
        "the bucket holds database {found}, but the file is a replica of {expected}; name the bucket that it follows, \
         or another file with --db"
    )]
    OtherDatabase {
        expected: DatabaseId,
        found: DatabaseId,
    },
    #[error(
        "the bucket has format {0}, made by a newer medfeed; medfeed {VERSION} reads format {SCHEMA}; use the origin's \
         version here too"
    )]
    Schema(u32),
    #[error(
        "the bucket has format {0}, of an older medfeed; medfeed {VERSION} reads format {SCHEMA}; bring its origin to \
         this version first (docs/upgrading.md), then run `medfeed publish` there. Until then its replicas need the older \
         version"
    )]
    OlderSchema(u32),
    #[error(
        "the origin runs another version of medfeed, whose records have other fields; use the origin's version here too"
    )]
    OtherFields,
    #[error(
        "nothing is published at {0}; run `medfeed publish {word}` where the database is, and check that URL and seal \
         key are the same",
        word = ShellWord(.0)
    )]
    Nothing(String),
    #[error(
        "{}: objects were deleted, or the bucket was \
         restored from a copy. Put them back; or publish a whole state at the origin: `medfeed publish URL \
         --start-over`",
        missing_slots(*.slot, *.later)
    )]
    Missing {
        slot: u64,
        /// A later slot, known from its entry or from the heartbeat.
        later: u64,
    },
    /// Nothing confirms that the log ends after its last entry.
    #[error(
        "{0}, so it is unknown whether the log ends at slot {1}; a running `medfeed publish` writes `alive` again"
    )]
    Unconfirmed(String, u64),
    /// A whole state failed to load a moment ago.
    #[error("{0}")]
    Paused(String),
    #[error("no state is that old; the oldest is of {oldest}")]
    TooEarly { oldest: Timestamp },
    #[error(
        "the database as it was at {until} is not in the bucket: the commits after {before} were published in one \
         whole state, as of {after}. Use --at {before} or --at {after}"
    )]
    WithinState {
        until: Timestamp,
        before: Timestamp,
        after: Timestamp,
    },
    #[error(
        "the log ends at slot {slot}, seq {end}, before seq {here} of this replica, which never goes back: the bucket \
         lost entries. If the origin still exists, start `medfeed publish` there, and do what it says. If it is lost \
         too, this file is the newest copy: keep it, and make it the origin with `medfeed promote URL --start-over`"
    )]
    Behind { slot: u64, end: u64, here: u64 },
    #[error(
        "another replica was made the origin at {at}, by {who} ({what}), and this one follows it; publish and write \
         there. If that one is lost too, run this command again"
    )]
    TakenOver {
        who: String,
        what: String,
        at: Timestamp,
    },
    #[error(
        "other publishers kept writing to the bucket, so the promotion failed; stop `medfeed publish` at the old \
         origin if you can, and run this command again"
    )]
    Overtaken,
    #[error(
        "{} is in use by {}; one server follows with a file. Stop that one first, or name another file with --db",
        path.display(), Printable(holder)
    )]
    InUse { path: PathBuf, holder: String },
    #[error(
        "{0}; so it is unknown whether this replica took over; the old origin may be fenced. Run this command again"
    )]
    Unsure(BucketError),
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
    /// The replica's file cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Describes the slots from `slot` to the one before `later`, up to which the log is known.
fn missing_slots(slot: u64, later: u64) -> String {
    let first = format!("slot {slot} (`{}`)", layout::log(slot));
    match later.saturating_sub(1) {
        last if last > slot => format!(
            "{first}, and possibly up to slot {last}, is missing from the log, which continues to slot {later}"
        ),
        last if last == slot => {
            format!("{first} is missing from the log, which continues to slot {later}")
        }
        _ => format!("{first}, the last one that is known, is missing from the log"),
    }
}

/// The advice for an entry that cannot be used.
fn entry_advice(name: &str) -> &'static str {
    match layout::log_slot(name) {
        Some(_) => {
            ". If other entries can be read, find out who wrote this one. Put back the right one; or delete it, and \
             write a whole state at the origin: `medfeed publish URL --start-over`"
        }
        None => "",
    }
}

impl From<BucketError> for ReplicaError {
    fn from(error: BucketError) -> ReplicaError {
        match error {
            BucketError::Damaged { name, detail } => ReplicaError::Object { name, detail },
            other => ReplicaError::Bucket(other),
        }
    }
}

impl ReplicaError {
    /// Returns the error of an object that is not the one that belongs at its name.
    pub fn object(name: impl Into<String>, detail: impl ToString) -> ReplicaError {
        ReplicaError::Object {
            name: name.into(),
            detail: detail.to_string(),
        }
    }

    /// Returns the error of an object of another database.
    pub(super) fn of_database(name: &str, id: DatabaseId) -> ReplicaError {
        ReplicaError::object(name, format!("it is of another database ({id})"))
    }

    /// Converts an error of applying the changes in an object.
    pub(super) fn of_apply(error: ApplyError, name: &str) -> ReplicaError {
        match error {
            ApplyError::Base { .. } => ReplicaError::Diverged(error.to_string()),
            ApplyError::Digest(_) => ReplicaError::Digest(error.to_string()),
            ApplyError::Malformed(detail) => ReplicaError::object(name, detail),
            ApplyError::OtherVersion => ReplicaError::OtherFields,
            ApplyError::Store(error) => ReplicaError::Store(error),
        }
    }

    /// Whether the log is incomplete or damaged, or cannot be confirmed. That may be repaired while a replica waits.
    pub fn is_of_log(&self) -> bool {
        use ReplicaError::{Behind, Missing, Object, Unconfirmed};
        matches!(
            self,
            Missing { .. } | Object { .. } | Unconfirmed(..) | Behind { .. }
        )
    }

    /// Whether following ends with this error, because only an operator can fix it.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            ReplicaError::OtherDatabase { .. }
                | ReplicaError::Schema(_)
                | ReplicaError::OlderSchema(_)
                | ReplicaError::OtherFields
                | ReplicaError::Store(StoreError::Damaged { .. })
        )
    }
}
