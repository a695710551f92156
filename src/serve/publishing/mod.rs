//! What the operator sees of a publisher: its metrics, and whether it is ready. [`reports`] is what it brings from its replicas.

pub mod reports;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::registry::Registry;

use crate::model::time::now;
use crate::replicate::publisher::progress::{PublishedEnd, PublisherProgress, PublisherStatus};
use crate::replicate::publisher::status::{Waiting, waiting};
use crate::serve::operators::admin::watched::Watched;
use crate::serve::operators::process::ProcessMetrics;
use crate::serve::operators::registrar::{Kind, Registrar, Sampled, Samples, count, text_of};
use crate::store::Follower;

/// For how long the bucket may fail before the publisher counts as not ready.
const BORNE: Duration = Duration::from_secs(60);

/// The source of the metrics.
#[derive(Debug)]
struct Seen {
    progress: PublisherProgress,
    waiting_commits: u64,
    behind_s: u64,
    outbox_bytes: u64,
    trouble_s: u64,
}

const SAMPLED: &[Sampled<Seen>] = &[
    ("publish_slot", Kind::Gauge, "The last entry of the log", |seen| {
        seen.progress.log_end.map_or(0, |reached| count(reached.slot))
    }),
    ("publish_seq", Kind::Gauge, "The last seq in it", |seen| {
        seen.progress.log_end.map_or(0, |reached| count(reached.head.seq))
    }),
    (
        "publish_waiting_commits",
        Kind::Gauge,
        "Commits that wait to be published; 1 where a whole state goes out in their place",
        |seen| count(seen.waiting_commits),
    ),
    ("publish_behind", Kind::Seconds, "Time since everything was published; 0 while nothing waits", |seen| {
        count(seen.behind_s)
    }),
    ("publish_outbox", Kind::Bytes, "Size of the changes that wait in the database to be published", |seen| {
        count(seen.outbox_bytes)
    }),
    ("publish_entries", Kind::Counter, "Entries put into the log", |seen| count(seen.progress.entries)),
    ("publish_states", Kind::Counter, "Whole states put, as entries and beside the log", |seen| {
        count(seen.progress.states)
    }),
    (
        "publish_bucket_failures",
        Kind::Counter,
        "Requests to the bucket that failed, most of them tried again",
        |seen| count(seen.progress.failures),
    ),
    (
        "publish_trouble",
        Kind::Seconds,
        "Time for which something that is asked of the bucket has failed; 0 while all works",
        |seen| count(seen.trouble_s),
    ),
    ("publish_fenced", Kind::Gauge, "1 when another publisher took over; this one then ends", |seen| {
        i64::from(seen.progress.fenced.is_some())
    }),
];

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
    samples: Samples<Seen>,
}

impl Publishing {
    /// What is seen of the publisher of a database.
    pub fn new(database: &Path, status: Arc<PublisherStatus>) -> Publishing {
        let mut all = Registrar::new("The program that publishes");
        Publishing {
            database: database.to_owned(),
            status,
            started: Instant::now(),
            follower: Mutex::default(),
            process: ProcessMetrics::new(),
            samples: all.add_sampled(SAMPLED),
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
        let (waiting_commits, outbox_bytes, behind_s) = match waiting {
            Some(Waiting::Nothing) => (0, 0, 0),
            Some(Waiting::Commits { count, bytes, since }) => {
                (count, bytes, u64::try_from(now().unix_s().saturating_sub(since.unix_s())).unwrap_or(0))
            }
            Some(Waiting::State | Waiting::Elsewhere) | None => (1, 0, unpublished_for),
        };
        self.samples.read(&Seen {
            progress,
            waiting_commits,
            behind_s,
            outbox_bytes,
            trouble_s: self.status.failing_for().map_or(0, |troubled| troubled.as_secs()),
        });
        text_of(&self.process, &self.registry)
    }

    fn page(&self) -> Option<Result<String, String>> {
        None
    }
}
