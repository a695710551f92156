//! Permits to block a thread. Each kind of work has its own, so that none holds up another; permits are few, so that threads
//! never run out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::api::Problem;
use crate::api::job::PermitKind;

/// Concurrent looks at the file: one serves all who wait, and one more may have come too late for it.
const CATCH_UPS: usize = 2;
/// Concurrent builds of columns: each keeps a processor busy.
const BUILDS: usize = 2;
/// Requests with unknown keys that wait together for a look for new ones; further ones are answered at once.
const KEY_LOOKS: usize = 64;
/// Those of them whose addresses have used up their unusable keys: few, so that they take no place from others.
const KEY_LOOKS_OVER_LIMIT: usize = 4;
/// The least number of concurrent reads.
const MIN_READS: usize = 4;
/// How long an export waits for its permits.
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
    key_looks: Semaphore,
    key_looks_over_limit: Semaphore,
    /// One waits for the look: who comes next finds that it is done.
    key_look_turn: Arc<Semaphore>,
}

impl Permits {
    /// Permits for `exports` concurrent exports, `exports_per_key` of them for one key.
    pub fn new(exports: usize, exports_per_key: usize) -> Permits {
        // Most reads come from the page cache, so the processors are the limit.
        let reads = available_parallelism().map_or(MIN_READS, |count| (2 * count.get()).max(MIN_READS));
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Permits {
            reads: semaphore(reads),
            builds: semaphore(BUILDS),
            catch_ups: semaphore(CATCH_UPS),
            exports: semaphore(exports),
            exports_per_key,
            exporting_keys: Mutex::default(),
            key_looks: Semaphore::new(KEY_LOOKS),
            key_looks_over_limit: Semaphore::new(KEY_LOOKS_OVER_LIMIT),
            key_look_turn: semaphore(1),
        }
    }

    /// Waits for permits of a kind; an export needs one of its key first.
    ///
    /// # Errors
    /// 429 where an export waits too long.
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
                "Too many exports are being built at once. Wait, then ask again; one export after the other is fastest.",
            ))
        })
    }

    /// A place among those who wait for a look for new keys, and the turn to wait for it on a thread; `None` where there is no
    /// place.
    pub async fn acquire_key_look(&self, is_over_limit: bool) -> Option<(SemaphorePermit<'_>, OwnedSemaphorePermit)> {
        let places = if is_over_limit { &self.key_looks_over_limit } else { &self.key_looks };
        let place = places.try_acquire().ok()?;
        Some((place, Arc::clone(&self.key_look_turn).acquire_owned().await.ok()?))
    }

    fn exports_of_key(&self, key_id: &str) -> Arc<Semaphore> {
        let mut keys = self.exporting_keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|_, permits| Arc::strong_count(permits) > 1 || permits.available_permits() < self.exports_per_key);
        let new = || Arc::new(Semaphore::new(self.exports_per_key));
        Arc::clone(keys.entry(key_id.to_owned()).or_insert_with(new))
    }
}
