//! The progress and failures of a running publisher, for monitoring.
//!
//! Monitoring (`serve/publishing.rs`) never calls the publisher. The publisher notes its status
//! (`publisher/progress.rs`), and another handle reads the outbox. So a wait for the bucket does not block monitoring.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::model::DatabaseId;
use crate::replicate::protocol::LastEntry;

/// The shared status of a running publisher.
#[derive(Debug, Default)]
pub struct PublisherStatus(Mutex<SharedProgress>);

/// The work of a publisher since its start.
#[allow(missing_docs, reason = "the names explain the other fields")]
#[derive(Clone, Debug, Default)]
pub struct PublisherProgress {
    /// The database and the end of its log; `None` while it is unknown, or if there is no log.
    pub log_end: Option<(DatabaseId, LastEntry)>,
    pub entries: u64,
    /// The number of whole states written.
    pub states: u64,
    /// The number of failed bucket requests.
    pub failures: u64,
    /// The number of times when a published object was gone or damaged.
    pub lost_objects: u64,
    /// The publisher that took over, and when.
    pub fenced: Option<String>,
    /// When everything was last known to be published.
    pub all_published_at: Option<Instant>,
}

#[derive(Debug, Default)]
struct SharedProgress {
    progress: PublisherProgress,
    /// The number of reporters that are failing at present.
    failing: usize,
    /// The time since when at least one of them has been failing.
    since: Option<Instant>,
    error: String,
}

impl PublisherStatus {
    /// Returns the work done so far.
    pub fn progress(&self) -> PublisherProgress {
        self.0.lock().progress.clone()
    }

    /// Returns how long requests have been failing; `None` while all succeed.
    pub fn failing_for(&self) -> Option<Duration> {
        self.0.lock().since.map(|since| since.elapsed())
    }

    /// Returns why nothing is published, if the publisher is fenced or has been failing for `lasting`.
    pub fn failure(&self, lasting: Duration) -> Option<String> {
        let state = self.0.lock();
        if let Some(by) = &state.progress.fenced {
            return Some(format!("fenced: {by}"));
        }
        let failing = state
            .since
            .map(|since| since.elapsed())
            .filter(|failing| *failing >= lasting)?;
        Some(format!(
            "failing for {} s: {}",
            failing.as_secs(),
            state.error
        ))
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut PublisherProgress)) {
        change(&mut self.0.lock().progress);
    }
}

/// Reports temporary failures: a warning for the first one, and a message once no reporter fails any more.
#[derive(Debug)]
pub(super) struct FailureReporter {
    status: Arc<PublisherStatus>,
    is_failing: bool,
}

impl FailureReporter {
    pub fn new(status: &Arc<PublisherStatus>) -> FailureReporter {
        FailureReporter {
            status: Arc::clone(status),
            is_failing: false,
        }
    }

    pub fn status(&self) -> &Arc<PublisherStatus> {
        &self.status
    }

    /// Reports a failure. Only the first one is logged.
    pub fn report(&mut self, error: &dyn Display) {
        let mut state = self.status.0.lock();
        state.error = error.to_string();
        if !self.is_failing {
            self.is_failing = true;
            state.failing += 1;
        }
        if state.since.is_none() {
            state.since = Some(Instant::now());
            drop(state);
            tracing::warn!("{error}; retrying. Commits continue in the meantime");
        }
    }

    /// Reports a success, which ends a failure.
    pub fn passed(&mut self) {
        if let Some(since) = self.end() {
            tracing::info!(
                "publishing continues after {} s of failures",
                since.elapsed().as_secs()
            );
        }
    }

    /// Ends a failure of this reporter; returns its start if no reporter fails any more.
    fn end(&mut self) -> Option<Instant> {
        if !std::mem::take(&mut self.is_failing) {
            return None;
        }
        let mut state = self.status.0.lock();
        state.failing = state.failing.saturating_sub(1);
        if state.failing == 0 {
            state.since.take()
        } else {
            None
        }
    }
}

impl Drop for FailureReporter {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_lasts_until_no_reporter_fails() {
        let status = Arc::new(PublisherStatus::default());
        let (mut one, mut other) = (FailureReporter::new(&status), FailureReporter::new(&status));
        let message = || status.failure(Duration::ZERO);
        one.passed();
        assert_eq!((message(), status.failing_for()), (None, None));
        one.report(&"away");
        one.report(&"still away");
        assert_eq!(message().as_deref(), Some("failing for 0 s: still away"));
        assert_eq!(status.failure(Duration::from_secs(60)), None);
        other.report(&"slow");
        one.passed();
        assert_eq!(message().as_deref(), Some("failing for 0 s: slow"));
        drop(other);
        assert_eq!((message(), status.failing_for()), (None, None));
        status.update(|progress| progress.fenced = Some("ana@b published slot 2".to_owned()));
        assert_eq!(
            status.failure(Duration::MAX).as_deref(),
            Some("fenced: ana@b published slot 2")
        );
    }
}
