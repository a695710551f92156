//! Turns requests into responses. Requests that memory can answer are answered directly. All others run on a blocking
//! thread, under a permit.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::api::answers::AnswerResult;
use crate::api::exchange::Exchange;
use crate::api::job::{Job, PermitKind};
use crate::api::service::CheckedRequest;
use crate::api::{Request, Response, Service};
use crate::serve::connection::limits::Connection;
use crate::serve::connection::long_polls::LongPolls;
use crate::serve::connection::permits::Permits;

/// Answers requests of connections.
#[derive(Debug)]
pub struct Dispatcher {
    permits: Permits,
    long_polls: Arc<LongPolls>,
    /// The runtime of the blocking threads. All connections share a few, since the allocator keeps a heap per thread.
    blocking: Handle,
}

impl Dispatcher {
    /// A dispatcher that uses the blocking threads of a runtime.
    pub fn new(permits: Permits, long_polls: Arc<LongPolls>, blocking: Handle) -> Dispatcher {
        Dispatcher { permits, long_polls, blocking }
    }

    /// Answers a request of a connection. Slow steps are boxed, so that the future of a fast request stays small.
    pub async fn answer(
        &self,
        service: &Arc<Service>,
        request: Request,
        connection: &Connection,
        closing: &mut watch::Receiver<bool>,
    ) -> Response {
        let mut exchange = Exchange::new(request);
        let mut checked = service.check(&mut exchange);
        loop {
            let answer = match checked {
                Ok(CheckedRequest::Preflight) => return service.preflight(&exchange),
                Ok(CheckedRequest::Answered(answer)) => Ok(answer),
                Ok(CheckedRequest::Passed(job, permit)) => {
                    let built = Box::pin(self.build(service, &exchange, job, permit)).await;
                    // It may have waited for a permit, or for another request. Its key may be revoked meanwhile.
                    if !service.is_still_admitted(&exchange) {
                        exchange.recheck();
                        checked = service.check(&mut exchange);
                        continue;
                    }
                    built
                }
                Ok(CheckedRequest::UnknownKey { is_over_limit }) => {
                    Box::pin(self.poll_for_keys(service, &exchange, is_over_limit)).await;
                    exchange.recheck();
                    checked = service.check(&mut exchange);
                    continue;
                }
                Err(problem) => Err(problem),
            };
            let Some((interest, until)) = exchange.interest(&answer) else { return service.finish(&exchange, answer) };
            drop(answer);
            Box::pin(self.long_polls.wait(service, &mut exchange, interest, until, connection, closing)).await;
            checked = service.check(&mut exchange);
        }
    }

    /// Builds an answer and caches it. Concurrent requests for the same answer wait and share it.
    async fn build(
        &self,
        service: &Arc<Service>,
        exchange: &Exchange,
        job: Box<Job>,
        permit: PermitKind,
    ) -> AnswerResult {
        let guard = match service.join(exchange, &job).await {
            Ok(answer) => return Ok(answer),
            Err(guard) => guard,
        };
        let permits = self.permits.acquire(permit, exchange.key_id()).await?;
        let built = match self.run(service, permits, |service| service.build(job)).await {
            Ok(built) => built,
            Err(job) => {
                let permits = self.permits.acquire(PermitKind::CatchUp, exchange.key_id()).await?;
                self.run(service, permits, |service| service.build_caught_up(job)).await
            }
        };
        built.inspect(|answer| guard.finish(&exchange.request().target, Arc::clone(answer)))
    }

    /// Waits until new keys are loaded. Returns at once if too many requests wait already.
    async fn poll_for_keys(&self, service: &Arc<Service>, exchange: &Exchange, is_over_limit: bool) {
        let Some((_place, permit)) = self.permits.acquire_key_poll(is_over_limit).await else { return };
        let since = exchange.request().at;
        self.run(service, permit, move |service| service.poll_for_keys(since)).await;
    }

    /// Runs work on a blocking thread. Holds the permits until it is done, even if the caller has disconnected.
    async fn run<T: Send + 'static>(
        &self,
        service: &Arc<Service>,
        permits: impl Send + 'static,
        work: impl FnOnce(&Service) -> T + Send + 'static,
    ) -> T {
        let service = Arc::clone(service);
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
