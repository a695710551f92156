//! Turns requests into responses. Requests that memory can answer are answered directly. All others run on a blocking
//! thread, under a permit.
//!
//! Slow work never delays fast responses. The threads that serve connections, one per processor, each have their own
//! runtime (`serve/connection/resources.rs`), and they never block. One function answers a request: `Dispatcher::answer`.
//!
//! 1. `Service::check` checks the request. A cached response ends here, and so does an empty page of a feed that needs
//!    only memory.
//! 2. Otherwise the check makes a *job*: a handler with its parameters parsed and its token opened. A job that reads
//!    only memory runs at once (`Job::permit`): single records, and most lists, if the feed is in memory and in this
//!    state. They take well under a millisecond. Other jobs go on:
//! 3. If several requests need the same response, one of them builds it (`AnswerCache::join`). If its caller leaves,
//!    the next one builds it.
//! 4. The job takes a permit (`Permits`): to read, or to build an export. Each kind has few
//!    permits.
//! 5. The handler runs once, on a thread that may block. The permit is held until that thread is free.
//! 6. The response is cached. The key and the license are checked again (`Service::confirm_admission`), since any of
//!    these steps may have waited. If one has changed, the request starts again at step 1, but is not counted again.
//! 7. The response is finished.
//!
//! A sync token may come from another server that is a moment ahead. Before its handler runs, such a job takes one of
//! two permits of another kind, and looks for newer commits.
//!
//! The log and the usage record are written by threads of their own. While they write, they hold no lock that a
//! response needs.
//!
//! Permits for blocking threads. Each kind of work has its own permits, so no kind delays another. There are few, so
//! threads never run out.
//!
//! Long-polling requests of change feeds (parameter `wait`). Each takes its connection and a timer, but no thread.
//! After a commit, each looks in memory whether its license shows a change.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, watch};

use crate::api::answers::AnswerResult;
use crate::api::handlers::{Job, PermitKind};
use crate::api::observe::WaitEnd;
use crate::api::request::Interest;
use crate::api::service::CheckedRequest;
use crate::api::{Exchange, Problem, Request, Response, Service};
use crate::model::now;
use crate::serve::connection::limits::{Connection, Limits};

/// Answers requests of connections.
pub struct Dispatcher {
    /// The service that it answers with.
    pub service: Arc<Service>,
    permits: Permits,
    /// The runtime of the blocking threads. All connections share a few, since the allocator keeps a heap per thread.
    blocking: Handle,
}

impl Dispatcher {
    /// A dispatcher that uses the blocking threads of a runtime.
    pub fn new(service: Arc<Service>, permits: Permits, blocking: Handle) -> Dispatcher {
        Dispatcher {
            service,
            permits,
            blocking,
        }
    }

    /// Answers a request of a connection. Slow steps are boxed, so that the future of a fast request stays small.
    pub async fn answer(
        &self,
        request: Request,
        connection: &Connection,
        closing: &mut watch::Receiver<bool>,
    ) -> Response {
        let service = &self.service;
        let mut exchange = Exchange::new(request);
        let mut checked = service.check(&mut exchange);
        loop {
            let answer = match checked {
                Ok(CheckedRequest::Preflight) => return service.preflight(&exchange),
                Ok(CheckedRequest::Answered(answer)) => Ok(answer),
                Ok(CheckedRequest::Passed(job, permit)) => {
                    let built = Box::pin(self.build(&exchange, job, permit)).await;
                    // It may have waited for a permit, or for another request. Its key may be revoked meanwhile.
                    if !service.confirm_admission(&exchange) {
                        exchange.recheck();
                        checked = service.check(&mut exchange);
                        continue;
                    }
                    built
                }
                Ok(CheckedRequest::UnknownKey { is_over_limit }) => {
                    let has_polled = Box::pin(self.poll_for_keys(&exchange, is_over_limit)).await;
                    exchange.recheck();
                    checked = service.check(&mut exchange);
                    if !has_polled {
                        checked = checked.map_err(Problem::of_unpolled_key);
                    }
                    continue;
                }
                Err(problem) => Err(problem),
            };
            let Some(interest) = exchange.interest(&answer) else {
                return service.finish(&exchange, answer);
            };
            drop(answer);
            let polls = LongPolls {
                service,
                permits: &self.permits.long_polls,
            };
            Box::pin(polls.wait(&mut exchange, interest, connection, closing)).await;
            checked = service.check(&mut exchange);
        }
    }

    /// Builds an answer and caches it. Concurrent requests for the same answer wait and share it.
    async fn build(&self, exchange: &Exchange, job: Box<Job>, permit: PermitKind) -> AnswerResult {
        let guard = match self.service.join(exchange, &job).await {
            Ok(answer) => return Ok(answer),
            Err(guard) => guard,
        };
        let since = exchange.request().at;
        let permits = self
            .permits
            .acquire(permit, exchange.key_id(), since)
            .await?;
        let built = match self.run(permits, |service| service.build(job)).await {
            Ok(built) => built,
            Err(job) => {
                let permits = self
                    .permits
                    .acquire(PermitKind::CatchUp, exchange.key_id(), since)
                    .await?;
                self.run(permits, |service| service.build_caught_up(job))
                    .await
            }
        };
        built.inspect(|answer| {
            // Fails if the placeholder was evicted. Then the answer is not cached.
            let _ = guard.insert(Arc::clone(answer));
        })
    }

    /// Waits until new keys are loaded. Returns false if the poll failed, or at once if too many requests wait already.
    async fn poll_for_keys(&self, exchange: &Exchange, is_over_limit: bool) -> bool {
        let Some((_poll, permit)) = self.permits.acquire_key_poll(is_over_limit).await else {
            return false;
        };
        let since = exchange.request().at;
        self.run(permit, move |service| service.poll_for_keys(since))
            .await
    }

    /// Runs work on a blocking thread. Holds the permits until it is done, even if the caller has disconnected.
    async fn run<T: Send + 'static>(
        &self,
        permits: impl Send + 'static,
        work: impl FnOnce(&Service) -> T + Send + 'static,
    ) -> T {
        let service = Arc::clone(&self.service);
        let done = self.blocking.spawn_blocking(move || {
            let done = work(&service);
            drop(permits);
            done
        });
        match done.await {
            Ok(done) => done,
            // The runtime is shutting down, which also drops this connection.
            Err(_) => std::future::pending().await,
        }
    }
}

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

/// A long poll that is counted. Dropping it reports its end.
struct LongPoll<'s> {
    service: &'s Service,
    end: WaitEnd,
    _permits: Vec<OwnedSemaphorePermit>,
}

/// The long polls of a service.
#[derive(Clone, Copy)]
pub struct LongPolls<'s> {
    /// The service that is asked for changes.
    pub service: &'s Service,
    /// Their permits.
    pub permits: &'s KeyedPermits,
}

impl LongPolls<'_> {
    /// Waits until a change, the end of the request's time, the server's stop, the closing of its connection, or the end of
    /// what its caller sends. Does not wait if no permit is free.
    pub async fn wait(
        self,
        exchange: &mut Exchange,
        interest: Interest,
        connection: &Connection,
        closing: &mut watch::Receiver<bool>,
    ) {
        let Some(permits) = self.permits.try_acquire(&interest.key.record.id) else {
            exchange.wake(Instant::now(), now(), true);
            return;
        };
        let service = self.service;
        service.observer().long_poll_started();
        let mut poll = LongPoll {
            service,
            end: WaitEnd::Left,
            _permits: permits,
        };
        // From here on it is notified, so it misses no commit.
        let mut commits = service.changes();
        connection.start_long_poll(interest.key.hash);
        // The witness of a damaged feed is never current. Such a request would be woken at once, again and again.
        let was_current = service.is_current(&interest);
        let changed =
            async { while service.is_current(&interest) && commits.changed().await.is_ok() {} };
        // Its key may expire or be revoked earlier.
        let wake_at = exchange
            .key_ends_at()
            .map_or(interest.until, |end| end.min(interest.until));
        poll.end = tokio::select! {
            biased;
            () = changed => WaitEnd::Change,
            _ = closing.wait_for(|closing| *closing) => WaitEnd::Stop,
            end = connection.woken() => end,
            () = tokio::time::sleep_until(wake_at.into()) => WaitEnd::Time,
        };
        connection.finish_long_poll();
        let at = Instant::now();
        let is_over = match poll.end {
            WaitEnd::Change => !was_current,
            WaitEnd::Time => at >= interest.until,
            WaitEnd::Capacity | WaitEnd::Stop | WaitEnd::Left => true,
        };
        exchange.wake(at, now(), is_over);
    }
}

impl Drop for LongPoll<'_> {
    fn drop(&mut self) {
        self.service.observer().long_poll_ended(self.end);
    }
}

#[cfg(test)]
mod permits_tests {
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
        assert!(
            are_free(&permits, PermitKind::Export, "a").await
                && are_free(&permits, PermitKind::Export, "c").await
        );
        drop((first, third));
        assert!(are_free(&permits, PermitKind::Export, "c").await);
        assert_eq!(
            permits.exports.keys.lock().len(),
            1,
            "keys that export nothing are forgotten"
        );
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
        let retry_after = problem
            .headers
            .iter()
            .find(|(name, _)| name == http::header::RETRY_AFTER);
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
        let waited = timeout(
            Duration::from_secs(3600),
            acquire(&permits, PermitKind::Export, "b"),
        )
        .await;
        assert_eq!(
            waited.expect("it ends").unwrap_err().code,
            crate::api::Code::RateLimited
        );
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
