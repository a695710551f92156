//! Finds the published states, for `--after-publish`. The publisher keeps a note next to the database about what it has
//! published.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::Snapshot;
use crate::store::StoreError;
use crate::store::replication::PublishedNote;

/// Reads the publisher's note of a database.
#[derive(Debug)]
pub struct PublishedOnly {
    database: PathBuf,
    /// The failure because of which later states will not be published.
    failure: Mutex<Option<String>>,
    /// Whether the bucket has the newest state.
    has_newest: AtomicBool,
}

impl PublishedOnly {
    pub fn of(database: PathBuf) -> PublishedOnly {
        PublishedOnly { database, failure: Mutex::default(), has_newest: AtomicBool::new(false) }
    }

    /// Reads the publisher's note. Keeps the failure, if any, for [`PublishedOnly::failure`].
    pub fn note(&self) -> Option<PublishedNote> {
        let (note, failure) = match PublishedNote::read(&self.database) {
            Ok(Some(note)) => {
                let taken_over =
                    note.fenced.as_ref().map(|by| format!("the database is no longer published from here: {by}"));
                (Some(note), taken_over)
            }
            Ok(None) => {
                (None, Some("the publisher's note next to the database is missing; run `medfeed publish`".to_owned()))
            }
            Err(error) => (None, Some(error.to_string())),
        };
        *self.lock() = failure;
        note
    }

    /// The reason why later states will not be published without the operator.
    pub fn failure(&self) -> Option<String> {
        self.lock().clone()
    }

    /// Whether the bucket has the newest state, as of [`PublishedOnly::note_newest`].
    pub fn has_newest(&self) -> bool {
        self.has_newest.load(Ordering::Relaxed)
    }

    /// Notes whether the bucket has the newest state.
    pub fn note_newest(&self, has_newest: bool) {
        self.has_newest.store(has_newest, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the last commit of a state is in the bucket. `newest` is the newest state of the file. A note about a commit
/// that is not in the file is ignored: the file was replaced, or read before that commit.
pub fn is_published(note: &PublishedNote, state: &Snapshot, newest: &Snapshot) -> Result<bool, StoreError> {
    let end = state.commit();
    Ok(end.seq <= note.seq && newest.holds(note.seq, &note.lineage)? && newest.holds(end.seq, &end.lineage)?)
}
