//! The lag of keys over the last day: the age of the oldest entry that they had not fetched.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::api::SnapshotSource;
use crate::model::Dataset;
use crate::model::time::now;
use crate::serve::operators::usage::{Usage, Uses};
use crate::serve::watching::watcher::Watcher;
use crate::store::Snapshot;

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
pub fn run(lags: &LagHistory, watcher: &Watcher, usage: &Usage, stopped: &Receiver<()>) {
    while stopped.recv_timeout(SAMPLE_EVERY) == Err(RecvTimeoutError::Timeout) {
        lags.sample(&watcher.newest(), &usage.all());
    }
}
