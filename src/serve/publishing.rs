//! Metrics and readiness of a publisher.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus_client::registry::Unit;

use crate::model::{DatabaseId, Head, Timestamp, now};
use crate::replicate::publisher::progress::{PublisherProgress, PublisherStatus};
use crate::replicate::publisher::publication_status::{Waiting, waiting};
use crate::serve::operators::admin::monitored::Monitored;
use crate::serve::operators::registrar::{Registrar, text_of};
use crate::store::Reader;

/// The time for which the bucket may fail before the publisher is not ready.
const FAILURE_GRACE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct MonitoredPublisher {
    database: PathBuf,
    status: Arc<PublisherStatus>,
    started: Instant,
    started_at: Timestamp,
    /// Opened on first use. The publisher has its own handle, which may wait for the bucket.
    reader: Mutex<Option<Reader>>,
}

impl MonitoredPublisher {
    pub fn new(database: &Path, status: Arc<PublisherStatus>) -> MonitoredPublisher {
        MonitoredPublisher {
            database: database.to_owned(),
            status,
            started: Instant::now(),
            started_at: now(),
            reader: Mutex::default(),
        }
    }

    /// The time since everything was last known to be published, or since the start.
    fn unpublished_for(&self, progress: &PublisherProgress, now: Instant) -> Duration {
        now.duration_since(progress.all_published_at.unwrap_or(self.started))
    }

    /// The changes in the database that are not in the log; `None` if it cannot be read.
    fn waiting(&self, log_end: Option<(DatabaseId, Head)>) -> Option<Waiting> {
        let mut reader = self.reader.lock();
        let mut read = || {
            let opened = match reader.take() {
                Some(opened) => opened,
                None => Reader::open(&self.database)?,
            };
            let opened = reader.insert(opened);
            opened.refresh()?;
            waiting(opened, log_end)
        };
        read()
            .inspect_err(|error| tracing::debug!(%error, "the database cannot be read"))
            .ok()
    }
}

impl Monitored for MonitoredPublisher {
    fn unready(&self) -> Option<String> {
        self.status.failure(FAILURE_GRACE)
    }

    fn scrape(&self) -> String {
        let progress = self.status.progress();
        let waiting = self.waiting(progress.log_end.map(|(id, end)| (id, end.head)));
        let unpublished_for = self.unpublished_for(&progress, Instant::now()).as_secs();
        let (waiting_commits, outbox_bytes) = match waiting {
            Some(Waiting::Nothing) => (0, 0),
            Some(Waiting::Commits { count, bytes, .. }) => (count, bytes),
            Some(Waiting::State | Waiting::Elsewhere) | None => (1, 0),
        };
        let behind_s = waiting
            .and_then(Waiting::behind_s)
            .unwrap_or(unpublished_for);
        let end = progress.log_end.map(|(_, end)| end).unwrap_or_default();
        let mut all = Registrar::new();
        all.add_build("The publishing program");
        all.gauge(
            "publish_slot",
            "The slot of the last entry in the log",
            end.slot,
        );
        all.gauge("publish_seq", "The last seq in the log", end.head.seq);
        all.gauge(
            "publish_waiting_commits",
            "Commits that wait to be published; 1 if a whole state is published instead",
            waiting_commits,
        );
        let behind_help = "Time since everything was published; 0 while nothing waits";
        all.gauge_in(Unit::Seconds, "publish_behind", behind_help, behind_s);
        let outbox_help = "Size of the changes in the database that wait to be published";
        all.gauge_in(Unit::Bytes, "publish_outbox", outbox_help, outbox_bytes);
        all.counter(
            "publish_entries",
            "Entries written to the log",
            progress.entries,
        );
        all.counter("publish_states", "Whole states written", progress.states);
        all.counter(
            "publish_bucket_failures",
            "Failed requests to the bucket, including those that were retried",
            progress.failures,
        );
        all.counter(
            "publish_lost_objects",
            "Times when objects of the bucket were found to be gone or damaged",
            progress.lost_objects,
        );
        all.gauge_in(
            Unit::Seconds,
            "publish_trouble",
            "Time for which an operation on the bucket has been failing; 0 if none is",
            self.status.failing_for().map_or(0, |time| time.as_secs()),
        );
        all.gauge(
            "publish_fenced",
            "1 if another publisher took over; this one then ends",
            u64::from(progress.fenced.is_some()),
        );
        text_of(self.started_at, &[&all])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publisher_is_behind_since_everything_was_published() {
        let publisher = MonitoredPublisher::new(Path::new("none.redb"), Arc::default());
        let at = |seconds| publisher.started + Duration::from_secs(seconds);
        for (published_s, now_s, expected_s) in [
            (None, 0, 0),
            (None, 60, 60),
            (Some(50), 60, 10),
            (Some(60), 60, 0),
        ] {
            let progress = PublisherProgress {
                all_published_at: published_s.map(at),
                ..Default::default()
            };
            let behind = publisher.unpublished_for(&progress, at(now_s));
            let expected = Duration::from_secs(expected_s);
            assert_eq!(behind, expected, "{published_s:?} {now_s}");
        }
    }
}
