//! Deferred answers are finished on blocking threads, so that no other answer waits for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::held::HeldRequests;
use super::state::ConnectionState;
use crate::api::deferred::{Seeking, Turn};
use crate::api::{Answer, Deferred, Problem, Request, Response, Service, Wait};

/// Concurrent looks at the file: one serves all who wait, and one more may have come too late for it.
const LOOKING: usize = 2;
/// Concurrent builds of columns: each keeps a processor busy.
const BUILDING: usize = 2;
/// Requests with unknown keys that wait together for a look for new ones; further ones are answered at once.
const SEEKING: usize = 64;
/// Those of them whose addresses have used up their unusable keys: few, so that they take no place from others.
const SEEKING_OVER_LIMIT: usize = 4;
/// The least number of concurrent reads.
const MIN_READING: usize = 4;
/// How long an export waits for its permits.
const EXPORT_PATIENCE: Duration = Duration::from_secs(30);

/// The permits of deferred answers. Each kind of wait has a queue of its own, so that none holds up another; permits are few,
/// so that blocking threads never run out.
#[derive(Debug)]
pub struct Waiting {
    reading: Arc<Semaphore>,
    building: Arc<Semaphore>,
    looking: Arc<Semaphore>,
    seeking: Semaphore,
    seeking_over_limit: Semaphore,
    /// One waits for the look: who comes next finds that it is done.
    seeking_turn: Arc<Semaphore>,
    exporting: Arc<Semaphore>,
    exports_per_key: usize,
    exporting_keys: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// The runtime whose threads may wait. All use the same few: each thread that makes answers has a heap of its own.
    threads: Handle,
    /// Requests that wait for news.
    held: HeldRequests,
}

/// The permits that an answer holds while it is made.
type Permits = Vec<OwnedSemaphorePermit>;

impl Waiting {
    /// Permits for `exports` concurrent exports, `exports_per_key` of them for one key; answers wait on threads of the runtime.
    pub fn new(exports: usize, exports_per_key: usize, held: HeldRequests, threads: Handle) -> Waiting {
        // What is read is mostly in the page cache, so the processors are the limit.
        let reading = available_parallelism().map_or(MIN_READING, |count| (2 * count.get()).max(MIN_READING));
        let permits = |count| Arc::new(Semaphore::new(count));
        Waiting {
            reading: permits(reading),
            building: permits(BUILDING),
            looking: permits(LOOKING),
            seeking: Semaphore::new(SEEKING),
            seeking_over_limit: Semaphore::new(SEEKING_OVER_LIMIT),
            seeking_turn: permits(1),
            exporting: permits(exports),
            exports_per_key,
            exporting_keys: Mutex::default(),
            threads,
            held,
        }
    }

    /// Requests that wait for news.
    pub fn held(&self) -> &HeldRequests {
        &self.held
    }

    /// Answers a request of a connection, at once if possible, else when its turn comes, or when it need not be held any more.
    pub async fn answer(
        &self,
        service: &Arc<Service>,
        request: Request,
        state: &ConnectionState,
        closing: &mut watch::Receiver<bool>,
    ) -> Response {
        let mut answer = service.answer(request);
        let mut _turn = None;
        loop {
            answer = match answer {
                Answer::Ready(response) => return response,
                Answer::Deferred(deferred) => self.resume(service, deferred).await,
                Answer::Seeking(seeking) => Box::pin(self.seek(service, seeking)).await,
                Answer::Held(held) => {
                    _turn = None;
                    // In a box, so that other requests' connections are no larger for it.
                    let woken = Box::pin(self.held.hold(service, held, state, closing)).await;
                    _turn = woken.1;
                    woken.0
                }
            }
        }
    }

    async fn seek(&self, service: &Arc<Service>, seeking: Box<Seeking>) -> Answer {
        let places = if seeking.is_over_limit { &self.seeking_over_limit } else { &self.seeking };
        let Ok(_place) = places.try_acquire() else { return service.give_up_seeking(seeking) };
        let Ok(turn) = Arc::clone(&self.seeking_turn).acquire_owned().await else {
            return service.give_up_seeking(seeking);
        };
        let service = Arc::clone(service);
        let sought = self.threads.spawn_blocking(move || {
            let answer = service.seek(seeking);
            drop(turn);
            answer
        });
        match sought.await {
            Ok(answer) => answer,
            // The runtime is ending, and with it this connection.
            Err(_) => std::future::pending().await,
        }
    }

    async fn resume(&self, service: &Arc<Service>, deferred: Box<Deferred>) -> Answer {
        let (deferred, shared) = match service.join(deferred).await {
            Turn::Answered(answer) => return answer,
            Turn::Make(deferred, shared) => (deferred, shared),
        };
        let permits = match self.permits(&deferred).await {
            Ok(permits) => permits,
            Err(problem) => return Answer::Ready(service.refuse(&deferred, problem)),
        };
        let resumed = self.threads.spawn_blocking({
            let service = Arc::clone(service);
            move || {
                let resumed = service.resume(deferred);
                // Held until the thread is free, even if the caller has left.
                drop(permits);
                resumed
            }
        });
        match resumed.await {
            Ok(resumed) => service.share(shared, resumed),
            // The runtime is ending, and with it this connection.
            Err(_) => std::future::pending().await,
        }
    }

    async fn permits(&self, deferred: &Deferred) -> Result<Permits, Problem> {
        let needed = match deferred.wait() {
            Wait::Nothing | Wait::Reading => vec![Arc::clone(&self.reading)],
            Wait::Building => vec![Arc::clone(&self.building)],
            Wait::Looking => vec![Arc::clone(&self.looking)],
            Wait::Exporting => vec![self.permits_of_key(deferred.key_id()), Arc::clone(&self.exporting)],
        };
        let acquire = async {
            let mut permits = Vec::with_capacity(needed.len());
            for semaphore in needed {
                permits.push(semaphore.acquire_owned().await.map_err(Problem::internal)?);
            }
            Ok(permits)
        };
        if deferred.wait() != Wait::Exporting {
            return acquire.await;
        }
        tokio::time::timeout(EXPORT_PATIENCE, acquire).await.unwrap_or_else(|_| {
            Err(Problem::rate_limited(
                EXPORT_PATIENCE.as_secs(),
                "Too many exports are being built at once. Wait, then ask again; one export after the other is fastest.",
            ))
        })
    }

    fn permits_of_key(&self, key_id: &str) -> Arc<Semaphore> {
        let mut keys = self.exporting_keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|_, permits| Arc::strong_count(permits) > 1 || permits.available_permits() < self.exports_per_key);
        let new = || Arc::new(Semaphore::new(self.exports_per_key));
        Arc::clone(keys.entry(key_id.to_owned()).or_insert_with(new))
    }
}
