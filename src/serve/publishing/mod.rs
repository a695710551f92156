//! What the operator sees of a publisher: its metrics, and whether it is ready. [`reports`] is what it brings from its replicas.

pub mod reports;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::admin::watched::Watched;
use super::process::ProcessMetrics;
use super::registrar::{Number, Registrar, Unsigned, text_of};
use crate::model::time::now;
use crate::replicate::publisher::progress::{PublishedEnd, PublisherStatus};
use crate::replicate::publisher::status::{Waiting, waiting};
use crate::store::Follower;

/// For how long the bucket may fail before the publisher counts as not ready.
const BORNE: Duration = Duration::from_secs(60);

/// A running publisher.
#[derive(Debug)]
pub struct Publishing {
    database: PathBuf,
    status: Arc<PublisherStatus>,
    started: Instant,
    /// Another handle than the publisher's, which waits for the bucket; opened when it is first needed.
    follower: Mutex<Option<Follower>>,
    registry: Registry,
    process: ProcessMetrics,
    slot: Unsigned,
    seq: Unsigned,
    waiting_commits: Unsigned,
    behind: Unsigned,
    outbox: Unsigned,
    entries: Counter,
    states: Counter,
    failures: Counter,
    trouble: Unsigned,
    fenced: Number,
}

impl Publishing {
    /// What is seen of the publisher of a database.
    pub fn new(database: &Path, status: Arc<PublisherStatus>) -> Publishing {
        let mut all = Registrar::new("The program that publishes");
        // They are listed in this order.
        Publishing {
            database: database.to_owned(),
            status,
            started: Instant::now(),
            follower: Mutex::default(),
            process: ProcessMetrics::new(),
            slot: all.add("publish_slot", "The last entry of the log"),
            seq: all.add("publish_seq", "The last seq in it"),
            waiting_commits: all.add(
                "publish_waiting_commits",
                "Commits that wait to be published; 1 where a whole state goes out in their place",
            ),
            behind: all.add_in(
                Unit::Seconds,
                "publish_behind",
                "Time since everything was published; 0 while nothing waits",
                Gauge::default(),
            ),
            outbox: all.add_in(
                Unit::Bytes,
                "publish_outbox",
                "Size of the changes that wait in the database to be published",
                Gauge::default(),
            ),
            entries: all.add("publish_entries", "Entries put into the log"),
            states: all.add("publish_states", "Whole states put, as entries and beside the log"),
            failures: all
                .add("publish_bucket_failures", "Requests to the bucket that failed, most of them tried again"),
            trouble: all.add_in(
                Unit::Seconds,
                "publish_trouble",
                "Time for which something that is asked of the bucket has failed; 0 while all works",
                Gauge::default(),
            ),
            fenced: all.add("publish_fenced", "1 when another publisher took over; this one then ends"),
            registry: all.into_registry(),
        }
    }

    /// What the database has that the log lacks; `None` while it cannot be read.
    fn waiting(&self, reached: Option<PublishedEnd>) -> Option<Waiting> {
        let mut follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = || {
            let opened = match follower.take() {
                Some(opened) => opened,
                None => Follower::open(&self.database)?,
            };
            let opened = follower.insert(opened);
            opened.refresh()?;
            waiting(opened, reached.map(|reached| (reached.id, reached.head)))
        };
        read().inspect_err(|error| tracing::debug!(%error, "the database cannot be looked at")).ok()
    }
}

impl Watched for Publishing {
    fn unready(&self) -> Option<String> {
        self.status.failure(BORNE)
    }

    fn scrape(&self) -> String {
        let progress = self.status.progress();
        let waiting = self.waiting(progress.log_end);
        let unpublished_for = progress.all_published_at.unwrap_or(self.started).elapsed().as_secs();
        let (commits, bytes, behind_s) = match waiting {
            Some(Waiting::Nothing) => (0, 0, 0),
            Some(Waiting::Commits { count, bytes, since }) => {
                (count, bytes, u64::try_from(now().unix_s().saturating_sub(since.unix_s())).unwrap_or(0))
            }
            Some(Waiting::State | Waiting::Elsewhere) | None => (1, 0, unpublished_for),
        };
        if let Some(reached) = progress.log_end {
            self.slot.set(reached.slot);
            self.seq.set(reached.head.seq);
        }
        self.waiting_commits.set(commits);
        self.behind.set(behind_s);
        self.outbox.set(bytes);
        let counters =
            [(&self.entries, progress.entries), (&self.states, progress.states), (&self.failures, progress.failures)];
        for (counter, count) in counters {
            counter.inner().store(count, Ordering::Relaxed);
        }
        self.trouble.set(self.status.failing_for().map_or(0, |troubled| troubled.as_secs()));
        self.fenced.set(i64::from(progress.fenced.is_some()));
        text_of(&self.process, &self.registry)
    }

    fn page(&self) -> Option<Result<String, String>> {
        None
    }
}
