//! Answers that have to wait go on in threads that may, so that no other answer waits for them.

use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::exports::Exports;
use crate::api::{Answer, Deferred, Request, Response, Service, Wait};

/// Answers that look at the file at once: one looks for all who wait, and one may have come too late for that.
const LOOKING: usize = 2;
/// Answers that build something at once: each takes a processor for as long as that takes.
const BUILDING: usize = 2;
/// Answers that read at once, at the least.
const READING_LEAST: usize = 4;

/// The places of answers that wait. There is a queue for each thing that is waited for, so that who waits for one keeps
/// nobody from another; and places are few, so that the threads that may wait are never used up.
#[derive(Debug)]
pub struct Waiting {
    reading: Arc<Semaphore>,
    building: Arc<Semaphore>,
    looking: Arc<Semaphore>,
}

impl Default for Waiting {
    fn default() -> Waiting {
        // What is read is mostly there: then it is the processors that are waited for.
        let reading = available_parallelism().map_or(READING_LEAST, |count| (2 * count.get()).max(READING_LEAST));
        let places = |count| Arc::new(Semaphore::new(count));
        Waiting { reading: places(reading), building: places(BUILDING), looking: places(LOOKING) }
    }
}

impl Waiting {
    /// Answers a request: at once if it can be, else when its turn has come.
    pub async fn answer(&self, service: &Arc<Service>, exports: &Exports, request: Request) -> Response {
        let mut answer = service.answer(request);
        loop {
            answer = match answer {
                Answer::Ready(response) => return response,
                Answer::Export(deferred, call) => return exports.answer(service, *deferred, call).await,
                Answer::Deferred(deferred) => match self.resume(service, deferred).await {
                    Some(answer) => answer,
                    // The runtime is ending, and with it this connection.
                    None => std::future::pending().await,
                },
            }
        }
    }

    async fn resume(&self, service: &Arc<Service>, deferred: Box<Deferred>) -> Option<Answer> {
        let place = self.place(deferred.wait()).await.ok()?;
        let service = Arc::clone(service);
        let resumed = tokio::task::spawn_blocking(move || {
            let answer = service.resume(*deferred);
            // The place is taken until the thread is free, even if the caller has gone.
            drop(place);
            answer
        });
        resumed.await.ok()
    }

    async fn place(&self, wait: Wait) -> Result<OwnedSemaphorePermit, AcquireError> {
        let places = match wait {
            Wait::Nothing | Wait::Reading => &self.reading,
            Wait::Building => &self.building,
            Wait::Looking => &self.looking,
        };
        Arc::clone(places).acquire_owned().await
    }
}
