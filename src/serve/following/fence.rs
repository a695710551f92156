//! Noticing that another publisher took over from the database that is served: keys may be revoked where it writes now, and
//! nothing tells this machine.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::model::DatabaseId;
use crate::model::time::since_boot;
use crate::store::StoreError;
use crate::store::replication::PublishedNote;

/// The time between two looks at the publisher's note.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Watches the publisher's note next to a database.
#[derive(Debug)]
pub struct FenceWatch {
    database: PathBuf,
    /// For how long answers are given after another publisher took over.
    staleness: Duration,
    state: Mutex<State>,
    /// When that time is over, in milliseconds since the machine's start; [`u64::MAX`] while nobody took over.
    over_ms: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    looked_at: Option<Instant>,
    /// The publisher that took over.
    by: Option<String>,
}

impl FenceWatch {
    /// Watches the note of a database, links followed.
    pub fn new(database: PathBuf, staleness: Duration) -> FenceWatch {
        FenceWatch { database, staleness, state: Mutex::default(), over_ms: AtomicU64::new(u64::MAX) }
    }

    /// Reads the note if it is time for that. A note about another database than the one of this id means nothing.
    pub fn look(&self, id: impl FnOnce() -> Result<Option<DatabaseId>, StoreError>) {
        let mut state = self.state();
        if state.looked_at.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return;
        }
        state.looked_at = Some(Instant::now());
        // A note, or a database, that cannot be read for a moment changes nothing.
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
                // A restart must not begin the time anew.
                let over = since_boot().saturating_sub(fenced_for).saturating_add(self.staleness);
                self.over_ms.store(u64::try_from(over.as_millis()).unwrap_or(u64::MAX - 1), Ordering::Relaxed);
                tracing::error!(
                    "another publisher took over from this database ({by}): keys may be revoked there, and this server does not \
                     learn of it. It is not ready, and answers 503 after --max-staleness. Send callers to a server of the \
                     other database, and stop this one"
                );
            }
            (Some(_), None) => {
                self.over_ms.store(u64::MAX, Ordering::Relaxed);
                tracing::info!("no other publisher has this database any more");
            }
            _ => {}
        }
        state.by = fenced;
    }

    /// Why the server is not ready.
    pub fn reason(&self) -> Option<String> {
        let by = self.state().by.clone()?;
        let answers = if self.is_over() { "so it answers 503" } else { "so it will answer 503 soon" };
        Some(format!("another publisher took over from this database, {answers}: {by}; stop this server"))
    }

    /// Whether another publisher took over.
    pub fn is_fenced(&self) -> bool {
        self.over_ms.load(Ordering::Relaxed) < u64::MAX
    }

    /// Whether that is longer ago than answers may be given. It is asked with every request.
    pub fn is_over(&self) -> bool {
        let over_ms = self.over_ms.load(Ordering::Relaxed);
        over_ms < u64::MAX && since_boot() > Duration::from_millis(over_ms)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
