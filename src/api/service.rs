//! The service: the order of checks, and the finishing of every response.
//!
//! HTTP (400) → unservable data (503) → body (400) → route (404) → method (405) → key (401) → address (403) → rate
//! (429) → dataset (403) → parameters (400) → token (400, 410) → record (404).
//!
//! A cached answer has passed all checks except key, address and rate. So it is looked up as soon as the key is known.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use http::StatusCode;
use tokio::sync::watch;

use super::answers::{Answer, AnswerCache, AnswerResult, BuildGuard};
use super::auth::{self, Caller, KnownKey};
use super::handlers::{
    Job, PermitKind, asks_to_forget, docs_page, explorer_page, forgotten, page_instead, status,
};
use super::observe::{Answered, Observer, RequestLog};
use super::problem::{Code, Problem};
use super::rate::{RateLimiter, Window};
use super::request::{Exchange, Interest, RateHeaders, Request};
use super::response::{Response, accepts_gzip};
use super::settings::Settings;
use super::source::SnapshotSource;
use crate::contract::route::is_under_v1;
use crate::contract::{CONTRACT, Query, Resource, Route};
use crate::model::KeyRecord;
use crate::query::segments::{SegmentBytes, SegmentCache, new_cache};

/// The maximum length of path and query, in bytes.
const MAX_URI_BYTES: usize = 4096;

/// The API over a source of snapshots.
pub struct Service {
    settings: Settings,
    source: Arc<dyn SnapshotSource>,
    observer: Arc<dyn Observer>,
    rate: RateLimiter,
    answers: AnswerCache,
    segments: SegmentCache,
}

impl Service {
    /// A service that logs a line per request.
    pub fn new(settings: Settings, source: Arc<dyn SnapshotSource>) -> Service {
        Service::observed(settings, source, Arc::new(RequestLog))
    }

    /// A service with an observer.
    pub fn observed(
        settings: Settings,
        source: Arc<dyn SnapshotSource>,
        observer: Arc<dyn Observer>,
    ) -> Service {
        // Segments serve fewer requests than whole answers.
        let segment_bytes = settings.answer_cache_bytes / 4;
        let answers = AnswerCache::new(settings.answer_cache_bytes - segment_bytes);
        let segments = new_cache(segment_bytes, SegmentBytes);
        Service {
            settings,
            source,
            observer,
            rate: RateLimiter::default(),
            answers,
            segments,
        }
    }

    /// The observer.
    pub fn observer(&self) -> &dyn Observer {
        self.observer.as_ref()
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The number of cached answers, and the size of answers and compressed segments in bytes.
    pub fn cached(&self) -> (usize, u64) {
        (
            self.answers.entries(),
            self.answers.bytes() + self.segments.weight(),
        )
    }

    /// Checks a request, at arrival and after each wait, up to its parameters and token. Returns the answer if it is
    /// cached or needs only a little memory. It never blocks. A panic becomes a 500, as in all following methods.
    pub fn check(&self, exchange: &mut Exchange) -> Result<CheckedRequest, Problem> {
        catch(|| self.check_all(exchange))
    }

    /// Waits until keys newer than a request are loaded. It may block. Returns false if an unknown key may still be
    /// valid.
    pub fn poll_for_keys(&self, since: Instant) -> bool {
        catch(|| Ok(self.source.poll_for_keys(since))).unwrap_or(false)
    }

    /// Waits until no other request is building the same answer. Returns the answer if it fits, else the right to build
    /// it.
    pub async fn join(
        &self,
        exchange: &Exchange,
        job: &Job,
    ) -> Result<Arc<Answer>, BuildGuard<'_>> {
        let license = job.caller.license.id;
        self.answers
            .join(license, &exchange.request.target, |answer| {
                fits(&job.caller, answer, job.wants_gzip)
            })
            .await
    }

    /// Builds an answer. It may block. Returns the job if its sync token is not valid in the caller's snapshot; then
    /// call [`Service::build_caught_up`].
    pub fn build(&self, job: Box<Job>) -> Result<AnswerResult, Box<Job>> {
        match catch(|| job.check_token()) {
            Ok(true) => Ok(self.run(*job)),
            Ok(false) => Err(job),
            Err(problem) => Ok(Err(problem)),
        }
    }

    /// Builds an answer in a newer snapshot, in which the sync token is valid. It may block.
    pub fn build_caught_up(&self, job: Box<Job>) -> AnswerResult {
        catch(|| job.catch_up(self.source.as_ref())).and_then(|job| self.run(job))
    }

    fn run(&self, job: Job) -> AnswerResult {
        catch(|| job.run(&self.segments)).map(Arc::new)
    }

    /// Receives a message for every new snapshot.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.source.changes()
    }

    /// Whether neither the key nor the witness of a long poll has changed. It does not read the disk.
    pub fn is_current(&self, interest: &Interest) -> bool {
        let KnownKey { hash, record } = &interest.key;
        let has_key = self
            .source
            .newest()
            .find_key(hash)
            .is_some_and(|newest| newest == record);
        let caller = self.caller(record).filter(|_| has_key);
        caller.is_some_and(|caller| caller.has_witness(interest.dataset, &interest.witness))
    }

    /// Checks the key and the scope again after a wait. Returns false if the request must be checked from its beginning.
    /// It does not read the disk.
    pub fn confirm_admission(&self, exchange: &Exchange) -> bool {
        let Some(KnownKey { hash, record }) = &exchange.key else {
            return true;
        };
        let newest = self.source.newest();
        let is_usable = record
            .status_after(exchange.wall_now(), newest.commit().time)
            .is_usable();
        let is_same_key = newest.find_key(hash).is_some_and(|found| found == record);
        let caller = self
            .caller(record)
            .filter(|_| is_usable && is_same_key && self.source.unservable().is_none());
        caller.is_some_and(|caller| caller.license.scope_seq == exchange.scope_seq)
    }

    /// Finishes a response, and reports it to the observer.
    pub fn finish(&self, exchange: &Exchange, answer: AnswerResult) -> Response {
        let Exchange {
            request,
            request_id,
            ..
        } = exchange;
        let window = self.window(exchange);
        let finished = answer.and_then(|answer| {
            catch(|| Response::new(&answer, request, request_id, window.as_ref()))
        });
        let response = finished.unwrap_or_else(|problem| {
            let is_page = problem.code == Code::NotFound
                && request.is_reading()
                && !is_under_v1(request.path());
            let page = is_page
                .then(|| page_instead(request, &self.settings, request_id))
                .flatten();
            let docs_url = &self.settings.docs_url;
            page.unwrap_or_else(|| {
                Response::of_problem(problem, docs_url, request, request_id, window.as_ref())
            })
        });
        self.report(exchange, response)
    }

    /// The response to a CORS preflight.
    pub fn preflight(&self, exchange: &Exchange) -> Response {
        let window = self.window(exchange);
        self.report(
            exchange,
            Response::preflight(&exchange.request, &exchange.request_id, window.as_ref()),
        )
    }

    fn window(
        &self,
        Exchange {
            request,
            window,
            since,
            ..
        }: &Exchange,
    ) -> Option<Window> {
        match window {
            RateHeaders::Of(window) => Some(*window),
            RateHeaders::OfAddress if is_under_v1(request.path()) => {
                Some(self.rate.address_window(request.address, *since))
            }
            RateHeaders::OfAddress | RateHeaders::None => None,
        }
    }

    /// Adds the CORS headers, and reports a response to the observer.
    fn report(&self, exchange: &Exchange, mut response: Response) -> Response {
        let Exchange {
            request,
            request_id,
            key,
            pattern,
            since,
            ..
        } = exchange;
        let usable = key
            .as_ref()
            .filter(|_| response.problem != Some(Code::IpNotAllowed));
        response.key = usable.map(|key| key.hash);
        self.settings
            .cors
            .add_headers(request, &mut response.headers);
        self.observer.answered(&Answered {
            request_id,
            method: &request.method,
            route: pattern,
            status: response.status.as_u16(),
            problem: response.problem,
            key: key.as_ref().map(|key| &*key.record),
            sent_key: exchange.sent_key.as_deref(),
            address: request.address,
            bytes: response.body.len(),
            duration: since.elapsed(),
            feed: response.feed,
        });
        response
    }

    fn check_all(&self, exchange: &mut Exchange) -> Result<CheckedRequest, Problem> {
        let request = &exchange.request;
        check_http(request).inspect_err(|_| exchange.window = RateHeaders::None)?;
        if self.settings.cors.is_preflight(request) {
            exchange.pattern = "(preflight)";
            return Ok(CheckedRequest::Preflight);
        }
        if is_under_v1(request.path())
            && let Some(unservable) = self.source.unservable()
        {
            return Err(Problem::unservable(unservable));
        }
        let reading = request.is_reading();
        if request.has_body && reading {
            return Err(Problem::from(Code::InvalidRequest).closing());
        }
        let newest = self.source.newest();
        let sent = auth::find_key(&request.headers, &newest);
        exchange.sent_key = sent.as_ref().ok().map(|key| Arc::clone(&key.record));
        let key = sent.and_then(|key| auth::check_status(key, request.wall, &newest));
        let caller = key.as_ref().ok().and_then(|key| self.caller(&key.record));
        if reading
            && let Some(answer) = caller
                .as_ref()
                .and_then(|caller| self.find(caller, request))
        {
            exchange.pattern = answer.pattern;
            self.admit(exchange, key, caller)?;
            return Ok(CheckedRequest::Answered(answer));
        }
        let closing = |problem: Problem| {
            if request.has_body {
                problem.closing()
            } else {
                problem
            }
        };
        let route = CONTRACT
            .route(request.path())
            .ok_or_else(|| closing(self.not_found()))?;
        exchange.pattern = route.endpoint.pattern;
        if let Some(answer) = self.answer_public(request, &route).map_err(closing)? {
            return Ok(CheckedRequest::Answered(answer));
        }
        // Also for an address over its limit: it may now use a new key.
        let is_unknown = key
            .as_ref()
            .is_err_and(|problem| problem.code == Code::InvalidApiKey);
        if is_unknown && !exchange.has_polled_for_key && auth::has_well_formed_key(&request.headers)
        {
            exchange.has_polled_for_key = true;
            let is_over_limit = self
                .rate
                .address_window(request.address, request.at)
                .remaining
                == 0;
            return Ok(CheckedRequest::UnknownKey { is_over_limit });
        }
        let caller = self.admit(exchange, key, caller)?;
        self.parse(&exchange.request, caller, &route)
    }

    fn not_found(&self) -> Problem {
        let url = &self.settings.public_url;
        let detail = format!("There is no such endpoint. The endpoints are listed at {url}/docs.");
        Problem::new(Code::NotFound, detail)
    }

    /// Answers a request that needs no key. Returns `None` if it needs one, and 405 for a method that no endpoint has.
    fn answer_public(
        &self,
        request: &Request,
        route: &Route,
    ) -> Result<Option<Arc<Answer>>, Problem> {
        if asks_to_forget(request) {
            return Ok(Some(Arc::new(forgotten())));
        }
        if !request.is_reading() {
            return Err(Problem::method_not_allowed(&request.method));
        }
        let answer = match route.endpoint.resource {
            Resource::Docs => docs_page(route, &self.settings, &self.answers)?,
            Resource::Explorer => explorer_page(request, route, &self.settings, &self.answers)?,
            Resource::Status => {
                let query = Query::of(route.endpoint, request.query());
                let snapshot = self.source.shown();
                let readable = self.source.is_readable();
                Arc::new(status(&snapshot, readable, &query, request.wall)?)
            }
            _ => return Ok(None),
        };
        Ok(Some(answer))
    }

    /// Parses an admitted request. Answers it if it needs only a little memory.
    fn parse(
        &self,
        request: &Request,
        caller: Caller,
        route: &Route,
    ) -> Result<CheckedRequest, Problem> {
        let license = caller.license.id;
        let job = Job::parse(caller, request, route)?;
        if let Some(permit) = job.permit()? {
            return Ok(CheckedRequest::Passed(Box::new(job), permit));
        }
        let answer = self.run(job)?;
        self.answers
            .insert(Some(license), &request.target, Arc::clone(&answer));
        Ok(CheckedRequest::Answered(answer))
    }

    /// The snapshot and license for a key; `None` if the license is not shown yet.
    fn caller(&self, key: &KeyRecord) -> Option<Caller> {
        let snapshot = self.source.shown();
        let license = Arc::clone(snapshot.find_license(key.license)?);
        Some(Caller { snapshot, license })
    }

    fn find(&self, caller: &Caller, request: &Request) -> Option<Arc<Answer>> {
        let answer = self
            .answers
            .find(Some(caller.license.id), &request.target)?;
        fits(caller, &answer, accepts_gzip(&request.headers)).then_some(answer)
    }

    /// Checks key, address and rate, in this order.
    fn admit(
        &self,
        exchange: &mut Exchange,
        key: Result<KnownKey, Problem>,
        caller: Option<Caller>,
    ) -> Result<Caller, Problem> {
        let request = &exchange.request;
        let key = match key {
            Ok(key) => key,
            Err(problem) if problem.code == Code::MissingApiKey || exchange.is_counted => {
                return Err(problem);
            }
            Err(problem) => {
                // The window counts and limits only unusable keys. So an address over its limit can still test keys,
                // without a limit. This is safe: a key has 190 random bits, and a lookup takes one hash, found or not.
                let window = self.rate.count_failure(request.address, request.at);
                exchange.window = RateHeaders::Of(window);
                if !window.is_exceeded {
                    return Err(problem);
                }
                return Err(Problem::rate_limited(
                    window.reset_s,
                    "Too many requests with unusable API keys came from this address. Wait, and send a valid key.",
                ));
            }
        };
        let KnownKey { record, .. } = &*exchange.key.insert(key);
        auth::check_address(request.address, record)?;
        let caller = caller.ok_or_else(Problem::not_set_up)?;
        exchange.scope_seq = caller.license.scope_seq;
        let limit = caller.license.rate_limit;
        let window = if exchange.is_counted {
            self.rate.keys.peek(&record.id, limit, exchange.since)
        } else {
            self.rate.keys.count(&record.id, limit, request.at)
        };
        exchange.is_counted = true;
        exchange.window = RateHeaders::Of(window);
        if window.is_exceeded {
            return Err(Problem::rate_limited(
                window.reset_s,
                format!(
                    "The limit of {} requests per minute is used up. Wait {} seconds, then continue.",
                    window.limit, window.reset_s
                ),
            ));
        }
        Ok(caller)
    }
}

/// The outcome of checking a request.
#[derive(Debug)]
pub enum CheckedRequest {
    /// A CORS preflight of an allowed origin. It has no key, and is not counted.
    Preflight,
    /// The answer is known.
    Answered(Arc<Answer>),
    /// The answer must be built on a blocking thread.
    Passed(Box<Job>, PermitKind),
    /// The key is unknown, but may be new.
    UnknownKey {
        /// Whether its address is over the limit for unusable keys.
        is_over_limit: bool,
    },
}

/// Rejects a request that is invalid in HTTP, or whose path and query are too long.
fn check_http(request: &Request) -> Result<(), Problem> {
    if let Some(flaw) = request.flaw {
        return Err(Problem::invalid_request(StatusCode::BAD_REQUEST, flaw));
    }
    let uri_bytes = request.target.len();
    if uri_bytes <= MAX_URI_BYTES {
        return Ok(());
    }
    Err(Problem::invalid_request(
        StatusCode::URI_TOO_LONG,
        format!("The path and query are {uri_bytes} bytes long; the limit is {MAX_URI_BYTES}."),
    ))
}

/// Whether an answer is current, and ready in the requested form.
fn fits(caller: &Caller, answer: &Answer, wants_gzip: bool) -> bool {
    caller.is_current(answer) && answer.is_ready(wants_gzip)
}

/// Runs work for one request. Turns a panic into an internal error.
fn catch<T>(work: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Problem::internal("the request's handler panicked")))
}
