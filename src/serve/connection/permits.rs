//! Permits for blocking threads. Each kind of work has its own permits, so no kind delays another. There are few, so
//! threads never run out.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::api::Problem;
use crate::api::handlers::PermitKind;
use crate::serve::connection::limits::Limits;

/// Concurrent polls of the file: one serves all waiting requests, and one more those that came after it began.
const CATCH_UPS: usize = 2;
/// Requests with unknown keys that may wait until new keys are loaded. Further ones get 503 at once.
const KEY_POLLS: usize = 64;
/// The same for addresses over the limit for unusable keys. They have permits of their own, so they cannot use up those
/// of others.
const KEY_POLLS_OVER_LIMIT: usize = 4;
const MIN_READS: usize = 4;
const EXPORT_TIMEOUT: Duration = Duration::from_secs(30);

/// The permits of a server.
pub struct Permits {
    reads: Arc<Semaphore>,
    catch_ups: Arc<Semaphore>,
    exports: KeyedPermits,
    /// For `LongPolls::wait`.
    pub long_polls: KeyedPermits,
    key_polls: Semaphore,
    key_polls_over_limit: Semaphore,
    /// One request waits on a thread. The next ones then find the poll done.
    key_poll_thread: Arc<Semaphore>,
}

impl Permits {
    /// Permits for as many exports and long polls as the limits allow.
    pub fn new(limits: &Limits) -> Permits {
        // Reads use memory alone, so processors are the limit.
        let reads =
            available_parallelism().map_or(MIN_READS, |count| (2 * count.get()).max(MIN_READS));
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Permits {
            reads: semaphore(reads),
            catch_ups: semaphore(CATCH_UPS),
            exports: KeyedPermits::new(limits.exports, limits.exports_per_key),
            long_polls: KeyedPermits::new(limits.long_polls, limits.long_polls_per_key),
            key_polls: Semaphore::new(KEY_POLLS),
            key_polls_over_limit: Semaphore::new(KEY_POLLS_OVER_LIMIT),
            key_poll_thread: semaphore(1),
        }
    }

    /// Waits for the permits of a kind, for a request that came at `since`. An export also needs one of its key. Returns
    /// a 429 if an export has waited too long, also for other requests for the same export.
    pub async fn acquire(
        &self,
        kind: PermitKind,
        key_id: &str,
        since: Instant,
    ) -> Result<Vec<OwnedSemaphorePermit>, Problem> {
        let needed = match kind {
            PermitKind::Read => vec![Arc::clone(&self.reads)],
            PermitKind::CatchUp => vec![Arc::clone(&self.catch_ups)],
            PermitKind::Export => self.exports.semaphores_for(key_id).into(),
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
        let end = since + EXPORT_TIMEOUT;
        tokio::time::timeout_at(end.into(), acquire).await.unwrap_or_else(|_| {
            Err(Problem::rate_limited(
                EXPORT_TIMEOUT.as_secs(),
                "Too many exports are being built at once. Wait, then send the request again. Request one export after the other.",
            ))
        })
    }

    /// A permit to wait for new keys, and the permit to wait on a thread; `None` if too many requests wait for keys.
    pub async fn acquire_key_poll(
        &self,
        is_over_limit: bool,
    ) -> Option<(SemaphorePermit<'_>, OwnedSemaphorePermit)> {
        let polls = if is_over_limit {
            &self.key_polls_over_limit
        } else {
            &self.key_polls
        };
        let poll = polls.try_acquire().ok()?;
        Some((
            poll,
            Arc::clone(&self.key_poll_thread)
                .acquire_owned()
                .await
                .ok()?,
        ))
    }
}

/// Permits with two limits: one for all keys together, one for each key.
pub struct KeyedPermits {
    all: Arc<Semaphore>,
    per_key: usize,
    /// Of the keys that hold permits.
    keys: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl KeyedPermits {
    /// Allows `all` permits, `per_key` of them for one key.
    pub fn new(all: usize, per_key: usize) -> KeyedPermits {
        KeyedPermits {
            all: Arc::new(Semaphore::new(all)),
            per_key,
            keys: Mutex::default(),
        }
    }

    /// The semaphores of which a request of a key needs a permit each: first that of its key, then that of all keys.
    pub fn semaphores_for(&self, key_id: &str) -> [Arc<Semaphore>; 2] {
        let mut keys = self.keys.lock();
        keys.retain(|_, permits| {
            Arc::strong_count(permits) > 1 || permits.available_permits() < self.per_key
        });
        let own = keys
            .entry(key_id.to_owned())
            .or_insert_with(|| Arc::new(Semaphore::new(self.per_key)));
        [Arc::clone(own), Arc::clone(&self.all)]
    }

    /// Takes the permits of a request; `None` if it must wait.
    pub fn try_acquire(&self, key_id: &str) -> Option<Vec<OwnedSemaphorePermit>> {
        self.semaphores_for(key_id)
            .into_iter()
            .map(|permits| permits.try_acquire_owned().ok())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    fn permits(exports: usize, exports_per_key: usize) -> Permits {
        Permits::new(&Limits {
            exports,
            exports_per_key,
            ..Limits::default()
        })
    }

    fn now() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    async fn acquire(
        permits: &Permits,
        kind: PermitKind,
        key: &str,
    ) -> Result<Vec<OwnedSemaphorePermit>, Problem> {
        permits.acquire(kind, key, now()).await
    }

    /// Whether permits are free at once.
    async fn are_free(permits: &Permits, kind: PermitKind, key: &str) -> bool {
        timeout(Duration::ZERO, acquire(permits, kind, key))
            .await
            .is_ok_and(|acquired| acquired.is_ok())
    }

    #[tokio::test(start_paused = true)]
    async fn exports_are_bounded_by_key_and_in_all() {
        let permits = permits(3, 2);
        let first = acquire(&permits, PermitKind::Export, "a").await.unwrap();
        assert_eq!(first.len(), 2, "one of the key, one of all");
        let second = acquire(&permits, PermitKind::Export, "a").await.unwrap();
        assert!(
            !are_free(&permits, PermitKind::Export, "a").await,
            "the key's are taken"
        );
        let third = acquire(&permits, PermitKind::Export, "b").await.unwrap();
        for key in ["a", "b", "c"] {
            assert!(
                !are_free(&permits, PermitKind::Export, key).await,
                "{key}: all are taken"
            );
        }
        for kind in [PermitKind::Read, PermitKind::CatchUp] {
            assert!(
                are_free(&permits, kind, "a").await,
                "{kind:?} has permits of its own"
            );
        }
        drop(second);
        assert!(are_free(&permits, PermitKind::Export, "a").await);
        assert!(are_free(&permits, PermitKind::Export, "c").await);
        drop((first, third));
        assert!(are_free(&permits, PermitKind::Export, "c").await);
        let count = permits.exports.keys.lock().len();
        assert_eq!(count, 1, "keys that export nothing are forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_for_own_exports_takes_no_permit_of_other_keys() {
        let permits = permits(2, 1);
        let _first = acquire(&permits, PermitKind::Export, "a").await.unwrap();
        let begun = now();
        let mut waiting = std::pin::pin!(acquire(&permits, PermitKind::Export, "a"));
        assert!(timeout(Duration::ZERO, waiting.as_mut()).await.is_err());
        assert!(are_free(&permits, PermitKind::Export, "b").await);
        let problem = waiting.await.unwrap_err();
        assert_eq!((now() - begun).as_secs(), 30);
        assert_eq!(problem.code, crate::api::Code::RateLimited);
        let mut retry_after = problem.headers.iter();
        let retry_after = retry_after.find(|(name, _)| name == http::header::RETRY_AFTER);
        assert_eq!(
            retry_after.map(|(_, value)| value.to_str().unwrap()),
            Some("30")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_for_exports_of_other_keys_ends_after_30_seconds() {
        let permits = permits(1, 1);
        let _others = acquire(&permits, PermitKind::Export, "a").await.unwrap();
        let begun = now();
        let action = Duration::from_secs(3600);
        let waited = timeout(action, acquire(&permits, PermitKind::Export, "b")).await;
        let code = waited.expect("it ends").unwrap_err().code;
        assert_eq!(code, crate::api::Code::RateLimited);
        assert_eq!((now() - begun).as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_for_an_export_waits_for_30_seconds_in_all() {
        // The seconds that it has waited for another request for the same export; the further ones until 429.
        for (waited_s, left_s) in [(0, 30), (12, 18), (29, 1), (30, 0), (75, 0)] {
            let permits = permits(1, 1);
            let others = acquire(&permits, PermitKind::Export, "a").await.unwrap();
            let came = now();
            advance(Duration::from_secs(waited_s)).await;
            let begun = now();
            let waited = permits.acquire(PermitKind::Export, "b", came).await;
            assert_eq!(waited.unwrap_err().code, crate::api::Code::RateLimited);
            assert_eq!((now() - begun).as_secs(), left_s, "{waited_s}");
            drop(others);
            let free = permits.acquire(PermitKind::Export, "b", came).await;
            assert!(free.is_ok(), "a free permit needs no wait");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn few_requests_catch_up_at_once() {
        let permits = permits(8, 2);
        let kind = PermitKind::CatchUp;
        let mut held = Vec::new();
        for _ in 0..CATCH_UPS {
            held.push(acquire(&permits, kind, "a").await.unwrap());
        }
        assert!(!are_free(&permits, kind, "b").await);
        held.pop();
        assert!(are_free(&permits, kind, "b").await);
        let hour = Duration::from_secs(3600);
        held.push(acquire(&permits, kind, "a").await.unwrap());
        assert!(
            timeout(hour, acquire(&permits, kind, "b")).await.is_err(),
            "it has no time limit"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn key_polls_of_addresses_over_their_limit_have_their_own_permits() {
        let permits = permits(8, 2);
        for (is_over_limit, places) in [(true, KEY_POLLS_OVER_LIMIT), (false, KEY_POLLS)] {
            let first = permits
                .acquire_key_poll(is_over_limit)
                .await
                .expect("the first one has thread and place");
            let mut waiting = Vec::new();
            for _ in 1..places {
                let mut one = Box::pin(permits.acquire_key_poll(is_over_limit));
                assert!(
                    timeout(Duration::ZERO, one.as_mut()).await.is_err(),
                    "one waits on the thread"
                );
                waiting.push(one);
            }
            let beyond = timeout(Duration::ZERO, permits.acquire_key_poll(is_over_limit)).await;
            assert!(
                beyond.is_ok_and(|place| place.is_none()),
                "no more than {places} wait"
            );
            let mut other = Box::pin(permits.acquire_key_poll(!is_over_limit));
            assert!(
                timeout(Duration::ZERO, other.as_mut()).await.is_err(),
                "others still find a place"
            );
            drop(other);
            drop(first);
            assert!(
                waiting.remove(0).await.is_some(),
                "the next one gets the thread"
            );
        }
    }
}
