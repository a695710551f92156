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
//! 4. The job takes a permit (`serve/connection/permits.rs`): to read, or to build an export. Each kind has few
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

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::api::answers::AnswerResult;
use crate::api::handlers::{Job, PermitKind};
use crate::api::problem::Problem;
use crate::api::service::CheckedRequest;
use crate::api::{Exchange, Request, Response, Service};
use crate::serve::connection::limits::Connection;
use crate::serve::connection::long_polls::LongPolls;
use crate::serve::connection::permits::Permits;

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
