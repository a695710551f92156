//! Detects that another publisher has taken over. Then keys may be revoked in the other database, and this server would
//! not notice.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::model::DatabaseId;
use crate::model::time::since_boot;
use crate::store::StoreError;
use crate::store::replication::PublishedNote;

const POLL_EVERY: Duration = Duration::from_millis(500);

/// Watches the publisher's note next to a database.
#[derive(Debug)]
pub struct FenceWatch {
    database: PathBuf,
    /// The time for which the server still answers after another publisher took over.
    staleness: Duration,
    state: Mutex<FenceState>,
    /// The end of that time, in milliseconds since the machine's start; [`u64::MAX`] while not fenced.
    end_ms: AtomicU64,
}

#[derive(Debug, Default)]
struct FenceState {
    polled_at: Option<Instant>,
    by: Option<String>,
}

impl FenceWatch {
    /// Watches the note of a database. The path must have its symbolic links resolved.
    pub fn new(database: PathBuf, staleness: Duration) -> FenceWatch {
        FenceWatch { database, staleness, state: Mutex::default(), end_ms: AtomicU64::new(u64::MAX) }
    }

    /// Reads the note if the last read is long enough ago. Ignores a note about another database id.
    pub fn poll(&self, id: impl FnOnce() -> Result<Option<DatabaseId>, StoreError>) {
        let mut state = self.state();
        if state.polled_at.is_some_and(|at| at.elapsed() < POLL_EVERY) {
            return;
        }
        state.polled_at = Some(Instant::now());
        // Keep the state if the note or the database cannot be read now.
        let Ok(note) = PublishedNote::read(&self.database) else { return };
        let note = match note.filter(|note| note.fenced.is_some()) {
            None => None,
            Some(note) => match id() {
                Ok(id) => Some(note).filter(|note| id == Some(note.id)),
                Err(_) => return,
            },
        };
        let fenced_for = note.as_ref().map_or(Duration::ZERO, PublishedNote::fenced_for);
        let fenced = note.and_then(|note| note.fenced);
        match (&state.by, &fenced) {
            (None, Some(by)) => {
                // Count from the takeover: a restart must not extend the time.
                let over = since_boot().saturating_sub(fenced_for).saturating_add(self.staleness);
                self.end_ms.store(u64::try_from(over.as_millis()).unwrap_or(u64::MAX - 1), Ordering::Relaxed);
                tracing::error!(
                    "another publisher took over from this database ({by}): keys may be revoked there, and this server would \
                     not notice. It is not ready, and responds with 503 after --max-staleness. Send callers to a server of \
                     the other database, and stop this one"
                );
            }
            (Some(_), None) => {
                self.end_ms.store(u64::MAX, Ordering::Relaxed);
                tracing::info!("this database is the published one again");
            }
            _ => {}
        }
        state.by = fenced;
    }

    pub fn reason(&self) -> Option<String> {
        let by = self.state().by.clone()?;
        let answers = if self.is_over() { "so it answers 503" } else { "so it will answer 503 soon" };
        Some(format!("another publisher took over from this database, {answers}: {by}; stop this server"))
    }

    pub fn is_fenced(&self) -> bool {
        self.end_ms.load(Ordering::Relaxed) < u64::MAX
    }

    /// Whether the time for answering after the takeover is over. Called on every request.
    pub fn is_over(&self) -> bool {
        let end_ms = self.end_ms.load(Ordering::Relaxed);
        end_ms < u64::MAX && since_boot() > Duration::from_millis(end_ms)
    }

    fn state(&self) -> MutexGuard<'_, FenceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
