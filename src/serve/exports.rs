//! Exports: built once for all who ask for the same one, within limits, and kept while they fit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, Semaphore};

use crate::api::exports::{BuiltExport, ExportCall, ExportKey};
use crate::api::{Deferred, Problem, Response, Service};

/// How long a call waits for a place to build in.
const WAIT: Duration = Duration::from_secs(30);

/// The exports of a server.
#[derive(Debug)]
pub struct Exports {
    kept: Mutex<Kept>,
    places: Arc<Semaphore>,
    per_key: usize,
    keys: Mutex<HashMap<String, Arc<Semaphore>>>,
}

#[derive(Debug)]
struct Kept {
    entries: HashMap<ExportKey, Entry>,
    most_bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    cell: Arc<OnceCell<BuiltExport>>,
    used_at: u64,
}

impl Exports {
    /// Room for `places` builds at once, `per_key` of them for one key, and `most_bytes` of finished files.
    pub fn new(places: usize, per_key: usize, most_bytes: usize) -> Exports {
        Exports {
            kept: Mutex::new(Kept { entries: HashMap::new(), most_bytes, clock: 0 }),
            places: Arc::new(Semaphore::new(places)),
            per_key,
            keys: Mutex::new(HashMap::new()),
        }
    }

    /// How many finished files are kept, and their bytes.
    pub fn kept(&self) -> (usize, usize) {
        let kept = self.lock();
        let built = kept.entries.values().filter_map(|entry| entry.cell.get());
        built.fold((0, 0), |(files, bytes), file| (files + 1, bytes + file.gzip.len()))
    }

    /// Answers a call for an export that passed all checks.
    pub async fn answer(&self, service: &Service, deferred: Deferred, call: Arc<ExportCall>) -> Response {
        let key = call.key();
        let cell = self.lock().cell(&key);
        let built = cell.get_or_try_init(|| self.build(&call, deferred.key_id(), service)).await;
        let response = built.map(|file| call.respond(file));
        self.lock().trim(&key);
        service.finish(deferred, response)
    }

    async fn build(&self, call: &Arc<ExportCall>, key_id: &str, service: &Service) -> Result<BuiltExport, Problem> {
        let own = {
            let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            keys.retain(|_, places| Arc::strong_count(places) > 1 || places.available_permits() < self.per_key);
            let places = keys.entry(key_id.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.per_key)));
            Arc::clone(places)
        };
        let places = async { (own.acquire_owned().await, Arc::clone(&self.places).acquire_owned().await) };
        let Ok((Ok(own), Ok(place))) = tokio::time::timeout(WAIT, places).await else {
            return Err(Problem::rate_limited(
                WAIT.as_secs(),
                "Too many exports are being built at once. Wait, then ask again; one export after the other is fastest.",
            ));
        };
        let (call, packer) = (Arc::clone(call), Arc::clone(service.packer()));
        let built = tokio::task::spawn_blocking(move || {
            let built = call.build(&packer);
            drop((own, place));
            built
        });
        built.await.unwrap_or_else(|_| Err(Problem::internal("the building of an export panicked")))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn cell(&mut self, key: &ExportKey) -> Arc<OnceCell<BuiltExport>> {
        self.clock += 1;
        let used_at = self.clock;
        let entry = self.entries.entry(*key).or_insert_with(|| Entry { cell: Arc::default(), used_at });
        entry.used_at = used_at;
        Arc::clone(&entry.cell)
    }

    /// Drops files that a newer state of the same list has replaced, then those unused for longest, until the rest fits.
    fn trim(&mut self, newest: &ExportKey) {
        self.entries.retain(|key, _| key == newest || !key.is_replaced_by(newest));
        let size = |entry: &Entry| entry.cell.get().map_or(0, |file| file.gzip.len());
        let mut bytes: usize = self.entries.values().map(size).sum();
        while bytes > self.most_bytes {
            let built = self.entries.iter().filter(|(_, entry)| entry.cell.initialized());
            let Some(key) = built.min_by_key(|(_, entry)| entry.used_at).map(|(key, _)| *key) else { return };
            bytes -= self.entries.remove(&key).map_or(0, |entry| size(&entry));
        }
    }
}
