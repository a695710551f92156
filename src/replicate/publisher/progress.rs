//! The progress and failures of a running publisher, for monitoring.
//!
//! Monitoring (`serve/publishing.rs`) never calls the publisher. The publisher notes its status
//! (`publisher/progress.rs`), and another handle reads the outbox. So a wait for the bucket does not block monitoring.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::model::DatabaseId;
use crate::replicate::protocol::LastEntry;

/// The shared status of a running publisher.
#[derive(Debug, Default)]
pub struct PublisherStatus(Mutex<SharedProgress>);

/// The work of a publisher since its start.
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
    /// The parts that are failing at present, such as the bucket, and since when.
    failing: BTreeMap<&'static str, Instant>,
    /// The last failure.
    error: String,
}

impl SharedProgress {
    fn failing_for(&self) -> Option<Duration> {
        self.failing.values().map(Instant::elapsed).max()
    }
}

impl PublisherStatus {
    /// Returns the work done so far.
    pub fn progress(&self) -> PublisherProgress {
        self.0.lock().progress.clone()
    }

    /// Returns how long requests have been failing; `None` while all succeed.
    pub fn failing_for(&self) -> Option<Duration> {
        self.0.lock().failing_for()
    }

    /// Returns why nothing is published, if the publisher is fenced or has been failing for `lasting`.
    pub fn failure(&self, lasting: Duration) -> Option<String> {
        let state = self.0.lock();
        if let Some(by) = &state.progress.fenced {
            return Some(format!("fenced: {by}"));
        }
        let failing = state.failing_for().filter(|failing| *failing >= lasting)?;
        Some(format!(
            "failing for {} s: {}",
            failing.as_secs(),
            state.error
        ))
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut PublisherProgress)) {
        change(&mut self.0.lock().progress);
    }

    /// Reports a temporary failure of a part. Only the first one is logged, until all parts work again.
    pub(super) fn report(&self, part: &'static str, error: &dyn Display) {
        let mut state = self.0.lock();
        state.error = error.to_string();
        if state.failing.is_empty() {
            tracing::warn!("{error}; retrying. Commits continue in the meantime");
        }
        state.failing.entry(part).or_insert_with(Instant::now);
    }

    /// Reports a success of a part, which ends its failure.
    pub(super) fn passed(&self, part: &'static str) {
        let mut state = self.0.lock();
        if let Some(since) = state.failing.remove(part)
            && state.failing.is_empty()
        {
            tracing::info!(
                "publishing continues after {} s of failures",
                since.elapsed().as_secs()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_lasts_until_no_part_fails() {
        let status = PublisherStatus::default();
        let message = || status.failure(Duration::ZERO);
        status.passed("one");
        assert_eq!((message(), status.failing_for()), (None, None));
        status.report("one", &"away");
        status.report("one", &"still away");
        assert_eq!(message().as_deref(), Some("failing for 0 s: still away"));
        assert_eq!(status.failure(Duration::from_secs(60)), None);
        status.report("other", &"slow");
        status.passed("one");
        assert_eq!(message().as_deref(), Some("failing for 0 s: slow"));
        status.passed("other");
        assert_eq!((message(), status.failing_for()), (None, None));
        status.update(|progress| progress.fenced = Some("ana@b published slot 2".to_owned()));
        assert_eq!(
            status.failure(Duration::MAX).as_deref(),
            Some("fenced: ana@b published slot 2")
        );
    }
}
