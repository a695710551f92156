//! What people ask: the end of the log, its states, what waits, and who follows.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::end::{list_states, read_end};
use super::error::PublishError;
use super::patience::Patience;
use super::shown_who;
use crate::bucket::{Bucket, BucketError};
use crate::model::time::now;
use crate::model::{DatabaseId, Head, Timestamp};
use crate::replicate::frame::Malformed;
use crate::replicate::layout;
use crate::replicate::report::{Alive, ReplicaReport};
use crate::store::replication::{Pending, PublishedNote};
use crate::store::{CommitPoint, Follower, StoreError};

/// The most states that are told of.
const STATES: usize = 5;

/// What a bucket holds, and what this database has that it lacks.
#[derive(Clone, Debug)]
pub struct Status {
    /// The end of the log; `None` if nothing was published.
    pub end: Option<EndStatus>,
    /// The newest states, newest first: slot, and when the store dates it.
    pub states: Vec<(u64, Timestamp)>,
    /// The publisher's last sign of life, by its own clock.
    pub alive_at: Option<Timestamp>,
    /// What waits in the database; `None` if there is no such database here.
    pub waiting: Option<Waiting>,
    /// Who took over from this database.
    pub fenced: Option<String>,
    /// The replicas' reports, by name.
    pub replicas: Vec<(String, ReplicaReport)>,
    /// Signs of life and reports that cannot be used, and why; nothing rests on them.
    pub unusable: Vec<String>,
}

/// The end of the log.
#[derive(Clone, Debug)]
pub struct EndStatus {
    /// Whose log it is.
    pub id: DatabaseId,
    /// The last slot.
    pub slot: u64,
    /// The last seq.
    pub seq: u64,
    /// When the last entry was published, by the publisher's clock.
    pub at: Timestamp,
    /// Who published it: user and machine.
    pub who: String,
    /// The entries since the newest state.
    pub entries_since_state: u64,
}

/// What the database has that the log lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Everything is published.
    Nothing,
    /// So many commits wait; when the first of them was made.
    Commits {
        /// How many.
        count: u64,
        /// The bytes of their changes.
        bytes: u64,
        /// When the first of them was made.
        since: Timestamp,
    },
    /// A whole state goes out next.
    State,
    /// The database does not hold the log's end: it is another one, or another was published meanwhile.
    Elsewhere,
}

impl Status {
    /// Reads what is published, and compares it with a database, if there is one.
    ///
    /// # Errors
    /// [`PublishError`].
    pub fn read(database: &Path, bucket: &Bucket) -> Result<Status, PublishError> {
        // Whoever asks wants an answer now.
        let patience = &mut Patience::new(Some(Instant::now()), &Arc::default());
        let found = read_end(bucket, patience)?;
        let states = list_states(bucket, patience)?;
        let states = states.iter().rev().take(STATES).map(|(slot, object)| (*slot, object.modified)).collect();
        let mut unusable = Vec::new();
        let alive = told(bucket, layout::ALIVE, Alive::decode, &mut unusable)?;
        let end = found.as_ref().map(|found| EndStatus {
            id: found.header.id,
            slot: found.header.slot,
            seq: found.header.seq,
            at: found.header.at,
            who: shown_who(&found.header.who).to_owned(),
            entries_since_state: found.growth.entries,
        });
        let mut replicas = Vec::new();
        for listed in bucket.list(layout::REPLICAS, None)? {
            let report = told(bucket, &listed.name, ReplicaReport::decode, &mut unusable)?;
            let name = listed.name.rsplit_once('/').map_or("", |(_, name)| name).to_owned();
            replicas.extend(report.map(|report| (name, report)));
        }
        let waiting = match Follower::open(database) {
            Ok(follower) => Some(waiting(&follower, found.as_ref().map(|found| (found.header.id, found.end().head)))?),
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let note = PublishedNote::read(database)?.filter(|note| note.url == bucket.url().to_string());
        let fenced = note.and_then(|note| note.fenced);
        Ok(Status { end, states, alive_at: alive.map(|alive| alive.at), waiting, fenced, replicas, unusable })
    }

    /// The seconds since everything was published, 0 if nothing waits; `None` where that cannot be told.
    pub fn behind_s(&self) -> Option<u64> {
        match self.waiting? {
            Waiting::Nothing => Some(0),
            Waiting::Commits { since, .. } => {
                Some(u64::try_from(now().unix_s().saturating_sub(since.unix_s())).unwrap_or(0))
            }
            Waiting::State | Waiting::Elsewhere => None,
        }
    }
}

/// Reads what somebody tells about himself; what cannot be used is noted.
fn told<T>(
    bucket: &Bucket,
    name: &str,
    decode: impl Fn(&[u8]) -> Result<T, Malformed>,
    unusable: &mut Vec<String>,
) -> Result<Option<T>, PublishError> {
    let found = match bucket.get(name) {
        Ok(found) => found.map(|object| decode(&object.bytes).map_err(|error| error.to_string())),
        Err(BucketError::Damaged { detail, .. }) => Some(Err(detail)),
        Err(error) => return Err(error.into()),
    };
    Ok(match found {
        Some(Ok(told)) => Some(told),
        Some(Err(detail)) => {
            unusable.push(format!("object `{name}` cannot be used: {detail}"));
            None
        }
        None => None,
    })
}

/// What a database has after the end of the log: the database of that, and its last commit.
///
/// # Errors
/// When the database cannot be read.
pub fn waiting(follower: &Follower, end: Option<(DatabaseId, Head)>) -> Result<Waiting, StoreError> {
    let view = follower.origin()?;
    let Some((id, head)) = end else { return Ok(Waiting::State) };
    if view.id()? != Some(id) || !view.holds(head.seq, head.lineage)? {
        return Ok(Waiting::Elsewhere);
    }
    let CommitPoint { seq, .. } = view.head()?;
    if seq == head.seq {
        return Ok(Waiting::Nothing);
    }
    Ok(match view.pending_after(head.seq, u64::MAX) {
        Ok(Pending::Commits(commits)) => Waiting::Commits {
            count: u64::try_from(commits.len()).unwrap_or(u64::MAX),
            bytes: commits.iter().map(|commit| commit.bytes).sum(),
            since: commits.first().map_or(Timestamp::EPOCH, |first| first.time),
        },
        Ok(Pending::Nothing | Pending::Gap) => Waiting::State,
        Err(error) if error.outbox_damage().is_some() => Waiting::State,
        Err(error) => return Err(error),
    })
}
