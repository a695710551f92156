//! Which states the bucket has, by the note that the publisher keeps beside the database: what `--after-publish` shows.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::Snapshot;
use crate::store::StoreError;
use crate::store::replication::PublishedNote;

/// Lets the states of a database pass that are in the bucket.
#[derive(Debug)]
pub struct PublishedOnly {
    database: PathBuf,
    /// What keeps later states from passing, beyond a publisher that is at work.
    trouble: Mutex<Option<String>>,
}

impl PublishedOnly {
    /// The published states of the database at a path.
    pub fn of(database: PathBuf) -> PublishedOnly {
        PublishedOnly { database, trouble: Mutex::default() }
    }

    /// The publisher's note. What is wrong with it is kept, to be told.
    pub fn note(&self) -> Option<PublishedNote> {
        let (note, trouble) = match PublishedNote::read(&self.database) {
            Ok(Some(note)) => {
                let taken_over =
                    note.fenced.as_ref().map(|by| format!("the database is published from here no more: {by}"));
                (Some(note), taken_over)
            }
            Ok(None) => {
                (None, Some("the publisher's note beside the database is gone; run `medfeed publish`".to_owned()))
            }
            Err(error) => (None, Some(error.to_string())),
        };
        *self.locked() = trouble;
        note
    }

    /// Why later states will not pass by themselves.
    pub fn trouble(&self) -> Option<String> {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the commit that a state ends with is in the bucket, where `newest` is the newest state of its file. A note of a commit
/// that the file does not hold tells nothing: the file was exchanged, or read before that commit.
///
/// # Errors
/// When the database cannot be read.
pub fn is_published(note: &PublishedNote, state: &Snapshot, newest: &Snapshot) -> Result<bool, StoreError> {
    let end = state.commit();
    Ok(end.seq <= note.seq && newest.holds(note.seq, &note.lineage)? && newest.holds(end.seq, &end.lineage)?)
}
