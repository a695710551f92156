//! The lag of keys over the last day: the seconds by which their last sync tokens were behind the feeds.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::api::SnapshotSource;
use crate::api::changes::behind_s;
use crate::model::{Dataset, License};
use crate::serve::following::watcher::Watcher;
use crate::serve::operators::usage::{FeedSeen, Usage, Uses, in_history};
use crate::store::Snapshot;
use crate::view::View;

const SAMPLE_EVERY: Duration = Duration::from_secs(600);
/// The number of samples per day.
pub const SAMPLES: usize = 144;

/// The samples of each key and feed since the server's start, in seconds, newest last.
#[derive(Debug, Default)]
pub struct LagHistory(Mutex<HashMap<(String, Dataset), VecDeque<u64>>>);

impl LagHistory {
    /// Adds a sample for each feed that a key has requested. Drops keys that are not in the snapshot.
    pub fn sample(&self, newest: &Snapshot, uses: &Uses) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut older = std::mem::take(&mut *samples);
        for key in newest.list_keys() {
            let Some(used) = uses.get(&key.id) else { continue };
            let license = newest.find_license(key.license).map(Arc::as_ref);
            for (dataset, seen) in &used.feeds {
                let feed = (key.id.clone(), *dataset);
                let mut line = older.remove(&feed).unwrap_or_default();
                line.push_back(lag_s(newest, license, *dataset, seen));
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

/// The current lag of a key in a feed, in seconds. It grows with the feed while the key sends no token.
pub fn lag_s(newest: &Snapshot, license: Option<&License>, dataset: Dataset, seen: &FeedSeen) -> u64 {
    let view = license.and_then(|license| View::open(newest, license, dataset).ok());
    view.and_then(|view| behind_s(&view, seen.position).ok()).unwrap_or(seen.behind_s)
}

/// Takes samples until the server stops.
pub fn run(lags: &LagHistory, watcher: &Watcher, usage: &Usage, stopped: &Receiver<()>) {
    while stopped.recv_timeout(SAMPLE_EVERY) == Err(RecvTimeoutError::Timeout) {
        let newest = watcher.newest();
        lags.sample(&newest, &in_history(usage.all(), &newest));
    }
}
