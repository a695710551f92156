//! The interface of a monitored program, and a server as operators and monitoring see it, with the lag of keys over the
//! last day: the age of the oldest entry that they had not fetched.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::api::{Service, SnapshotSource};
use crate::model::time::now;
use crate::model::{Dataset, Timestamp};
use crate::serve::connection::limits::Limits;
use crate::serve::operators::metrics::Metrics;
use crate::serve::operators::usage::{Usage, Uses};
use crate::serve::watching::replica_thread::ReplicaThread;
use crate::serve::watching::watcher::Watcher;
use crate::store::Snapshot;

/// A monitored program. [`Monitored::unready`] and [`Monitored::warning`] must not block.
pub trait Monitored: Debug + Send + Sync + 'static {
    /// The reason why it is not ready; `None` if it is.
    fn unready(&self) -> Option<String>;

    /// A warning for the operator of a ready program.
    fn warning(&self) -> Option<String> {
        None
    }

    /// The OpenMetrics text of a scrape.
    fn scrape(&self) -> String;

    /// The operators' page, or an error message; `None` for a program without a page.
    fn page(&self) -> Option<Result<String, String>>;
}

/// A running server.
#[derive(Debug)]
pub struct MonitoredServer {
    pub metrics: Arc<Metrics>,
    pub watcher: Arc<Watcher>,
    /// The origin, if the database is a replica.
    pub upstream: Option<Arc<ReplicaThread>>,
    pub service: Arc<Service>,
    pub usage: Option<Arc<Usage>>,
    pub lags: LagHistory,
    pub limits: Limits,
    pub started_at: Timestamp,
    /// Whether the server is stopping.
    pub stopping: watch::Receiver<bool>,
}

impl MonitoredServer {
    /// The reason why the server should get no new callers.
    pub fn unready(&self) -> Option<String> {
        if *self.stopping.borrow() {
            return Some("the server is stopping".to_owned());
        }
        if !self.watcher.is_followed() {
            return Some("the database file cannot be followed; the last state is served".to_owned());
        }
        let upstream = self.upstream.as_ref().filter(|upstream| !upstream.is_fresh());
        self.watcher.failure().or_else(|| upstream.and_then(|upstream| upstream.failure()))
    }

    /// A warning for the operator of a ready server. A replica stays ready for a while when its bucket fails. Otherwise
    /// load balancers would drop all replicas at once.
    pub fn warning(&self) -> Option<String> {
        self.upstream.as_ref().and_then(|upstream| upstream.failure())
    }
}

const SAMPLE_EVERY: Duration = Duration::from_secs(600);
/// The number of samples per day.
pub const SAMPLES: usize = 144;

/// The samples of each key and feed since the server's start, in seconds, newest last.
#[derive(Debug, Default)]
pub struct LagHistory(Mutex<HashMap<(String, Dataset), VecDeque<u64>>>);

impl LagHistory {
    /// Adds a sample for each feed of a key whose lag is known. Drops the other feeds.
    pub fn sample(&self, newest: &Snapshot, uses: &Uses) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut older = std::mem::take(&mut *samples);
        for key in newest.list_keys() {
            let Some(used) = uses.get(&key.id) else { continue };
            for (dataset, seen) in &used.feeds {
                let Some(lag_s) = seen.lag_s(*dataset, key, newest, now()) else { continue };
                let feed = (key.id.clone(), *dataset);
                let mut line = older.remove(&feed).unwrap_or_default();
                line.push_back(lag_s);
                line.drain(..line.len().saturating_sub(SAMPLES));
                samples.insert(feed, line);
            }
        }
    }

    /// The samples of a key and feed, oldest first.
    pub fn of(&self, key_id: &str, dataset: Dataset) -> Vec<u64> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        samples.get(&(key_id.to_owned(), dataset)).into_iter().flatten().copied().collect()
    }
}

/// Takes samples until the server stops.
pub fn sample_lags(lags: &LagHistory, watcher: &Watcher, usage: &Usage, stopped: &Receiver<()>) {
    while stopped.recv_timeout(SAMPLE_EVERY) == Err(RecvTimeoutError::Timeout) {
        lags.sample(&watcher.newest(), &usage.all());
    }
}
