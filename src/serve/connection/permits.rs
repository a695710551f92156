//! Permits for blocking threads. Each kind of work has its own permits, so no kind delays another. There are few, so
//! threads never run out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::api::Problem;
use crate::api::job::PermitKind;

/// Concurrent polls of the file: one serves all waiting requests, and one more those that came after it began.
const CATCH_UPS: usize = 2;
/// Concurrent builds of columns. Each keeps a processor busy.
const BUILDS: usize = 2;
/// Requests with unknown keys that may wait until new keys are loaded. Further ones are answered at once.
const KEY_POLLS: usize = 64;
/// The same for addresses over the limit for unusable keys. They have permits of their own, so they cannot use up those
/// of others.
const KEY_POLLS_OVER_LIMIT: usize = 4;
const MIN_READS: usize = 4;
const EXPORT_TIMEOUT: Duration = Duration::from_secs(30);

/// The permits of a server.
#[derive(Debug)]
pub struct Permits {
    reads: Arc<Semaphore>,
    builds: Arc<Semaphore>,
    catch_ups: Arc<Semaphore>,
    exports: Arc<Semaphore>,
    exports_per_key: usize,
    exporting_keys: Mutex<HashMap<String, Arc<Semaphore>>>,
    key_polls: Semaphore,
    key_polls_over_limit: Semaphore,
    /// One request waits on a thread. The next ones then find the poll done.
    key_poll_thread: Arc<Semaphore>,
}

impl Permits {
    /// Permits for `exports` concurrent exports, `exports_per_key` of them for one key.
    pub fn new(exports: usize, exports_per_key: usize) -> Permits {
        // Most reads hit the page cache, so processors are the limit.
        let reads = available_parallelism().map_or(MIN_READS, |count| (2 * count.get()).max(MIN_READS));
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Permits {
            reads: semaphore(reads),
            builds: semaphore(BUILDS),
            catch_ups: semaphore(CATCH_UPS),
            exports: semaphore(exports),
            exports_per_key,
            exporting_keys: Mutex::default(),
            key_polls: Semaphore::new(KEY_POLLS),
            key_polls_over_limit: Semaphore::new(KEY_POLLS_OVER_LIMIT),
            key_poll_thread: semaphore(1),
        }
    }

    /// Waits for the permits of a kind. An export also needs one of its key. Returns a 429 if an export waits too long.
    pub async fn acquire(&self, kind: PermitKind, key_id: &str) -> Result<Vec<OwnedSemaphorePermit>, Problem> {
        let needed = match kind {
            PermitKind::Read => vec![Arc::clone(&self.reads)],
            PermitKind::Build => vec![Arc::clone(&self.builds)],
            PermitKind::CatchUp => vec![Arc::clone(&self.catch_ups)],
            PermitKind::Export => vec![self.exports_of_key(key_id), Arc::clone(&self.exports)],
        };
        let acquire = async {
            let mut permits = Vec::with_capacity(needed.len());
            for semaphore in needed {
                permits.push(semaphore.acquire_owned().await.map_err(Problem::internal)?);
            }
            Ok(permits)
        };
        if kind != PermitKind::Export {
            return acquire.await;
        }
        tokio::time::timeout(EXPORT_TIMEOUT, acquire).await.unwrap_or_else(|_| {
            Err(Problem::rate_limited(
                EXPORT_TIMEOUT.as_secs(),
                "Too many exports are being built at once. Wait, then send the request again. Request one export after the other.",
            ))
        })
    }

    /// A place among the requests that wait for new keys, and the permit to wait on a thread; `None` if all places are
    /// taken.
    pub async fn acquire_key_poll(&self, is_over_limit: bool) -> Option<(SemaphorePermit<'_>, OwnedSemaphorePermit)> {
        let places = if is_over_limit { &self.key_polls_over_limit } else { &self.key_polls };
        let place = places.try_acquire().ok()?;
        Some((place, Arc::clone(&self.key_poll_thread).acquire_owned().await.ok()?))
    }

    fn exports_of_key(&self, key_id: &str) -> Arc<Semaphore> {
        let mut keys = self.exporting_keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|_, permits| Arc::strong_count(permits) > 1 || permits.available_permits() < self.exports_per_key);
        let new = || Arc::new(Semaphore::new(self.exports_per_key));
        Arc::clone(keys.entry(key_id.to_owned()).or_insert_with(new))
    }
}
