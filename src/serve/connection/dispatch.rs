//! From a request to its response: what memory answers is answered at once; everything else runs on a thread that may block,
//! under a permit, so that no other answer waits for it.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::api::answers::AnswerResult;
use crate::api::exchange::Exchange;
use crate::api::job::{Job, PermitKind};
use crate::api::service::CheckedRequest;
use crate::api::{Request, Response, Service};
use crate::serve::connection::long_polls::LongPolls;
use crate::serve::connection::permits::Permits;
use crate::serve::connection::state::ConnectionState;

/// Answers requests of connections.
#[derive(Debug)]
pub struct Dispatcher {
    permits: Permits,
    long_polls: LongPolls,
    /// The runtime whose threads may block. All use the same few: each thread that makes answers has a heap of its own.
    threads: Handle,
}

impl Dispatcher {
    /// A dispatcher that blocks threads of a runtime.
    pub fn new(permits: Permits, long_polls: LongPolls, threads: Handle) -> Dispatcher {
        Dispatcher { permits, long_polls, threads }
    }

    /// Requests that wait for news.
    pub fn long_polls(&self) -> &LongPolls {
        &self.long_polls
    }

    /// Answers a request of a connection. Slow steps are boxed, so that the future of a fast request stays small.
    pub async fn answer(
        &self,
        service: &Arc<Service>,
        request: Request,
        state: &ConnectionState,
        closing: &mut watch::Receiver<bool>,
    ) -> Response {
        let mut exchange = Exchange::new(request);
        let mut checked = service.check(&mut exchange);
        // A woken request holds it until its answer is made.
        let mut _turn = None;
        loop {
            let answer = match checked {
                Ok(CheckedRequest::Preflight) => return service.preflight(&exchange),
                Ok(CheckedRequest::Answered(answer)) => Ok(answer),
                Ok(CheckedRequest::Passed(job, permit)) => Box::pin(self.make(service, &exchange, job, permit)).await,
                Ok(CheckedRequest::UnknownKey { is_over_limit }) => {
                    Box::pin(self.look_for_keys(service, &exchange, is_over_limit)).await;
                    checked = service.check(&mut exchange);
                    continue;
                }
                Err(problem) => Err(problem),
            };
            let Some((interest, until)) = exchange.interest(&answer) else { return service.finish(&exchange, answer) };
            drop(answer);
            _turn = None;
            let wait = self.long_polls.wait(service, &mut exchange, interest, until, state, closing);
            _turn = Box::pin(wait).await;
            checked = service.check(&mut exchange);
        }
    }

    /// Makes an answer, once for all who ask for the same, and caches it.
    async fn make(
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
        let made = match self.run(service, permits, |service| service.make(job)).await {
            Ok(made) => made,
            Err(job) => {
                let permits = self.permits.acquire(PermitKind::CatchUp, exchange.key_id()).await?;
                self.run(service, permits, |service| service.make_caught_up(job)).await
            }
        };
        made.inspect(|answer| guard.finish(&exchange.request().target, Arc::clone(answer)))
    }

    /// Looks for the key of a request, which may be new, if there is room for one more who waits for that.
    async fn look_for_keys(&self, service: &Arc<Service>, exchange: &Exchange, is_over_limit: bool) {
        let Some((_place, turn)) = self.permits.acquire_key_look(is_over_limit).await else { return };
        let since = exchange.request().at;
        self.run(service, turn, move |service| service.look_for_keys(since)).await;
    }

    /// Runs work on a thread that may block. Permits are held until it is done, even if the caller has left.
    async fn run<T: Send + 'static>(
        &self,
        service: &Arc<Service>,
        permits: impl Send + 'static,
        work: impl FnOnce(&Service) -> T + Send + 'static,
    ) -> T {
        let service = Arc::clone(service);
        let done = self.threads.spawn_blocking(move || {
            let done = work(&service);
            drop(permits);
            done
        });
        match done.await {
            Ok(done) => done,
            // The runtime is ending, and with it this connection.
            Err(_) => std::future::pending().await,
        }
    }
}
