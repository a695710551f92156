//! The content of a bucket: the end of the log, its states, and the pending commits.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::end::read_end;
use super::publish_error::Result;
use super::retry::Retry;
use crate::model::{DatabaseId, Head, Timestamp, now};
use crate::replicate::entry::EntryHeader;
use crate::replicate::replica::{LogReader, ReplicaError};
use crate::store::replication::PublishedNote;
use crate::store::{Reader, StoreError};

const STATES: usize = 5;

/// The content of a bucket, and the commits of this database that it lacks.
#[derive(Debug)]
pub struct PublicationStatus {
    /// The last entry of the log; `None` if nothing was published.
    pub end: Option<EntryHeader>,
    /// The entries after the newest state.
    pub entries_since_state: u64,
    /// The newest states, newest first: slot, and modification time in the store.
    pub states: Vec<(u64, Timestamp)>,
    /// The time in the publisher's last heartbeat, by the publisher's clock.
    pub alive_at: Option<Timestamp>,
    /// The pending changes of the database; `None` if there is no such database here.
    pub waiting: Option<Waiting>,
    /// The publisher that took over from this database.
    pub fenced: Option<String>,
    /// The reason why the heartbeat cannot be used.
    pub unusable: Option<String>,
}

/// The changes of the database that the log lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Everything is published.
    Nothing,
    /// Pending commits.
    Commits {
        /// Their number.
        count: u64,
        /// The size of their changes.
        bytes: u64,
        /// The time of the first one.
        since: Timestamp,
    },
    /// A whole state is published next.
    State,
    /// The database does not contain the end of the log. It is another database, or another file was published
    /// meanwhile.
    Elsewhere,
}

impl PublicationStatus {
    /// Reads the content of a bucket, and compares it with a database, if there is one.
    pub fn read(database: &Path, log: &LogReader) -> Result<PublicationStatus> {
        // No retries: a status should return quickly.
        let retry = &Retry::new(Some(Instant::now()), &Arc::default());
        let found = read_end(log, retry)?;
        let states = log.states()?;
        let states = states
            .iter()
            .rev()
            .take(STATES)
            .map(|(slot, object)| (*slot, object.modified))
            .collect();
        let (alive_at, unusable) = match log.heartbeat() {
            Ok(alive) => (alive.map(|alive| alive.at), None),
            Err(error @ ReplicaError::Object { .. }) => (None, Some(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        let waiting = match Reader::open(database) {
            Ok(reader) => Some(waiting(
                &reader,
                found
                    .as_ref()
                    .map(|found| (found.header.id, found.header.head())),
            )?),
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let note = PublishedNote::read(database)?.filter(|note| note.url == log.url());
        let fenced = note.and_then(|note| note.fenced);
        let entries_since_state = found.as_ref().map_or(0, |found| found.state.entries_since);
        let end = found.map(|found| found.header);
        Ok(PublicationStatus {
            end,
            entries_since_state,
            states,
            alive_at,
            waiting,
            fenced,
            unusable,
        })
    }
}

impl Waiting {
    /// Returns the seconds since everything was published; 0 if nothing is pending, `None` if unknown.
    pub fn behind_s(self) -> Option<u64> {
        match self {
            Waiting::Nothing => Some(0),
            Waiting::Commits { since, .. } => {
                Some(u64::try_from(now().unix_s().saturating_sub(since.unix_s())).unwrap_or(0))
            }
            Waiting::State | Waiting::Elsewhere => None,
        }
    }
}

/// Returns the pending changes of a database after `end`: the log's database id and last commit.
pub fn waiting(reader: &Reader, end: Option<(DatabaseId, Head)>) -> Result<Waiting, StoreError> {
    let view = reader.origin()?;
    let Some((id, head)) = end else {
        return Ok(Waiting::State);
    };
    if view.id()? != Some(id) {
        return Ok(Waiting::Elsewhere);
    }
    if !view.holds(head)? {
        return Ok(match view.is_restored_over(head)? {
            true => Waiting::State,
            false => Waiting::Elsewhere,
        });
    }
    Ok(match view.pending_after(head, u64::MAX) {
        Ok(Some(commits)) => commits
            .first()
            .map_or(Waiting::Nothing, |first| Waiting::Commits {
                count: commits.len() as u64,
                bytes: commits.iter().map(|commit| commit.bytes).sum(),
                since: first.time,
            }),
        Ok(None) => Waiting::State,
        Err(error) if error.outbox_damage().is_some() => Waiting::State,
        Err(error) => return Err(error),
    })
}
