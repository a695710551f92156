//! How a publisher stands, for those who watch it while it works: what it has put, and what keeps it from more.

use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::model::{DatabaseId, Head};

/// How a publisher stands.
#[derive(Debug, Default)]
pub struct Standing(Mutex<State>);

/// The end of the log, as its publisher knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The database.
    pub id: DatabaseId,
    /// The last slot.
    pub slot: u64,
    /// The last commit in it.
    pub head: Head,
}

/// What a publisher did since its start.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// The end of the log; `None` while that is not known, or there is none.
    pub reached: Option<Reached>,
    /// Entries put.
    pub entries: u64,
    /// Whole states put, as entries and beside the log.
    pub states: u64,
    /// What was asked of the bucket and failed.
    pub failures: u64,
    /// Who took over, and when.
    pub fenced: Option<String>,
    /// When everything was published last, as far as known.
    pub all_published_at: Option<Instant>,
}

#[derive(Debug, Default)]
struct State {
    progress: Progress,
    /// How many meet failures at present.
    troubled: usize,
    /// Since when there is always one.
    since: Option<Instant>,
    /// The last failure.
    error: String,
}

impl Standing {
    /// What was done so far.
    pub fn progress(&self) -> Progress {
        self.state().progress.clone()
    }

    /// For how long something has failed again and again; `None` while all works.
    pub fn troubled_for(&self) -> Option<Duration> {
        self.state().since.map(|since| since.elapsed())
    }

    /// Why nothing is published, if that has lasted for some time, or will last.
    pub fn trouble(&self, lasting: Duration) -> Option<String> {
        let state = self.state();
        if let Some(by) = &state.progress.fenced {
            return Some(format!("fenced: {by}"));
        }
        let troubled = state.since.map(|since| since.elapsed()).filter(|troubled| *troubled >= lasting)?;
        Some(format!("in trouble for {} s: {}", troubled.as_secs(), state.error))
    }

    pub(super) fn note(&self, note: impl FnOnce(&mut Progress)) {
        note(&mut self.state().progress);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A failure that is borne. The first is told of, and that it has passed once nobody meets one any more.
#[derive(Debug)]
pub(super) struct Trouble {
    standing: Arc<Standing>,
    is_met: bool,
}

impl Trouble {
    pub fn new(standing: &Arc<Standing>) -> Trouble {
        Trouble { standing: Arc::clone(standing), is_met: false }
    }

    pub fn standing(&self) -> &Arc<Standing> {
        &self.standing
    }

    /// Tells of a failure, the first of its time.
    pub fn tell(&mut self, error: &dyn Display) {
        let mut state = self.standing.state();
        state.error = error.to_string();
        if !self.is_met {
            self.is_met = true;
            state.troubled += 1;
        }
        if state.since.is_none() {
            state.since = Some(Instant::now());
            drop(state);
            tracing::warn!("{error}; trying again until it passes, commits go on meanwhile");
        }
    }

    /// Tells that trouble has passed, if there was any.
    pub fn passed(&mut self) {
        if let Some(since) = self.end() {
            tracing::info!("publishing goes on after {} s of trouble", since.elapsed().as_secs());
        }
    }

    /// Since when there was trouble, if it ends with this one.
    fn end(&mut self) -> Option<Instant> {
        if !std::mem::take(&mut self.is_met) {
            return None;
        }
        let mut state = self.standing.state();
        state.troubled = state.troubled.saturating_sub(1);
        if state.troubled == 0 { state.since.take() } else { None }
    }
}

impl Drop for Trouble {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_lasts_until_nobody_meets_it() {
        let standing = Arc::new(Standing::default());
        let (mut one, mut other) = (Trouble::new(&standing), Trouble::new(&standing));
        let told = || standing.trouble(Duration::ZERO);
        one.passed();
        assert_eq!((told(), standing.troubled_for()), (None, None));
        one.tell(&"away");
        one.tell(&"still away");
        assert_eq!(told().as_deref(), Some("in trouble for 0 s: still away"));
        assert_eq!(standing.trouble(Duration::from_secs(60)), None);
        other.tell(&"slow");
        one.passed();
        assert_eq!(told().as_deref(), Some("in trouble for 0 s: slow"));
        drop(other);
        assert_eq!((told(), standing.troubled_for()), (None, None));
        standing.note(|progress| progress.fenced = Some("ana@b published slot 2".to_owned()));
        assert_eq!(standing.trouble(Duration::MAX).as_deref(), Some("fenced: ana@b published slot 2"));
    }
}
