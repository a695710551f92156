//! From a request to its answer: the order of checks, and the one place where answers are finished.
//!
//! HTTP (400) → a state that is too old (503) → body (400) → route (404) → method (405) → key (401) → address (403) →
//! rate (429) → dataset (403) → parameters (400) → token (400, 410) → record (404).
//!
//! An answer that is cached has passed all of them but key, address and rate, so it is looked up as soon as the key is known.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use http::header::{CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY};
use http::{HeaderValue, Method, StatusCode};

use super::answers::{self, AnswerCache, AnswerResult, BuildGuard, CachedAnswer};
use super::auth::{self, UsableKey};
use super::caller::Caller;
use super::cors::Cors;
use super::exchange::{Exchange, Interest, RateHeaders, new_request_id};
use super::job::{Job, PermitKind};
use super::observe::{Answered, Observer, RequestLog};
use super::problem::{Code, Problem};
use super::rate::{RateLimiter, Window};
use super::representation::Representation;
use super::request::Request;
use super::response::{Response, accepts_gzip, prefers_html};
use super::source::{Listener, SnapshotSource};
use super::{explorer, status};
use crate::contract::route::is_under_v1;
use crate::contract::{CONTRACT, Query, Resource, Route};
use crate::docs;
use crate::explorer::Demo;
use crate::model::KeyRecord;
use crate::query::segments::SegmentCache;
use crate::store::read::cache::new_cache;

/// What a service is configured with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The URL that callers see, without a slash at its end and without `/v1`.
    pub public_url: String,
    /// Where the error pages are: `{docs_url}/errors/<code>`.
    pub docs_url: String,
    /// The longest path and query, in bytes.
    pub max_uri_bytes: usize,
    /// What finished answers may take in memory, in bytes.
    pub answer_cache_bytes: u64,
    /// The origins whose applications may call the API.
    pub cors: Cors,
    /// What the explorer is told, in a demo.
    pub demo: Option<Arc<Demo>>,
}

impl Settings {
    /// The defaults for a public URL: this server's own documentation.
    pub fn of(public_url: &str) -> Settings {
        let public_url = public_url.trim_end_matches('/').to_owned();
        let docs_url = format!("{public_url}/docs");
        Settings {
            docs_url,
            public_url,
            max_uri_bytes: 4096,
            answer_cache_bytes: answers::DEFAULT_MAX_BYTES,
            cors: Cors::default(),
            demo: None,
        }
    }
}

/// The API over a source of snapshots.
pub struct Service {
    settings: Settings,
    source: Arc<dyn SnapshotSource>,
    observer: Arc<dyn Observer>,
    rate: RateLimiter,
    answers: AnswerCache,
    segments: SegmentCache,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Service {
    /// A service with fresh rate windows, which logs a line per request.
    pub fn new(settings: Settings, source: Arc<dyn SnapshotSource>) -> Service {
        Service::observed(settings, source, Arc::new(RequestLog))
    }

    /// A service with fresh rate windows, whose answers an observer hears of.
    pub fn observed(settings: Settings, source: Arc<dyn SnapshotSource>, observer: Arc<dyn Observer>) -> Service {
        // Parts that answers are made from are of use to fewer requests than answers.
        let segment_bytes = settings.answer_cache_bytes / 4;
        let (answers, segments) =
            (AnswerCache::new(settings.answer_cache_bytes - segment_bytes), new_cache(segment_bytes));
        Service { settings, source, observer, rate: RateLimiter::default(), answers, segments }
    }

    /// Who hears of answers and connections.
    pub fn observer(&self) -> &dyn Observer {
        self.observer.as_ref()
    }

    /// What the service is configured with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many answers are cached, and the bytes of memory that they and compressed segments take.
    pub fn cached(&self) -> (usize, u64) {
        (self.answers.entries(), self.answers.bytes() + self.segments.weight())
    }

    /// Checks a request up to its parameters and token, or anew once it has waited. Returns the answer if it is cached or made
    /// from memory alone. It never blocks.
    ///
    /// # Errors
    /// The problem to answer with. A panic is a 500 for this request alone, here and in all that follows.
    pub fn check(&self, exchange: &mut Exchange) -> Result<CheckedRequest, Problem> {
        catch(|| self.check_all(exchange))
    }

    /// Looks for keys that are newer than a request. It may block.
    pub fn look_for_keys(&self, since: Instant) {
        // A panic leaves the key unknown.
        let _ = catch(|| {
            self.source.look_for_keys(since);
            Ok(())
        });
    }

    /// Waits until nobody else makes the same answer. Returns it if it fits the request by then; else the right to make it.
    ///
    /// # Errors
    /// That right.
    pub async fn join(&self, exchange: &Exchange, job: &Job) -> Result<Arc<CachedAnswer>, BuildGuard<'_>> {
        let fits = |answer: &CachedAnswer| fits(&job.caller, answer, job.wants_gzip);
        self.answers.join(job.caller.license.id, &exchange.request.target, fits).await
    }

    /// Makes an answer. It may block.
    ///
    /// # Errors
    /// The job itself, if its sync token does not continue in the caller's state: [`Service::make_caught_up`] is next.
    pub fn make(&self, job: Box<Job>) -> Result<AnswerResult, Box<Job>> {
        match catch(|| job.continues()) {
            Ok(true) => Ok(self.run(*job)),
            Ok(false) => Err(job),
            Err(problem) => Ok(Err(problem)),
        }
    }

    /// Makes an answer in a newer state, in which the sync token continues. It may block.
    pub fn make_caught_up(&self, job: Box<Job>) -> AnswerResult {
        catch(|| job.catch_up(self.source.as_ref())).and_then(|job| self.run(job))
    }

    fn run(&self, job: Job) -> AnswerResult {
        catch(|| job.run(&self.segments)).map(Arc::new)
    }

    /// Tells a listener of every further state that answers are made from.
    pub fn subscribe(&self, listener: Listener) {
        self.source.subscribe(listener);
    }

    /// Whether a page that is held back would still be the same: its key, and what its license sees. It reads nothing.
    pub fn is_current(&self, interest: &Interest) -> bool {
        let UsableKey { hash, record } = &interest.key;
        let has_key = self.source.newest().find_key(hash).is_some_and(|newest| newest == record);
        let caller = self.caller(record).filter(|_| has_key);
        caller.is_some_and(|caller| caller.has_witness(interest.dataset, &interest.witness))
    }

    /// The response to a request whose answer is there. The observer is told.
    pub fn finish(&self, exchange: &Exchange, answer: AnswerResult) -> Response {
        let Exchange { request, request_id, .. } = exchange;
        let window = self.window(exchange);
        let finished = answer
            .and_then(|answer| catch(|| Response::new(&answer.representation, request, request_id, window.as_ref())));
        let response = finished.unwrap_or_else(|problem| {
            let page = self.page_instead(exchange, &problem);
            let docs_url = &self.settings.docs_url;
            page.unwrap_or_else(|| Response::of_problem(problem, docs_url, request, request_id, window.as_ref()))
        });
        self.tell(exchange, response)
    }

    /// The response to a browser that asks if it may send a request.
    pub fn preflight(&self, exchange: &Exchange) -> Response {
        let window = self.window(exchange);
        self.tell(exchange, Response::preflight(&exchange.request_id, window.as_ref()))
    }

    /// What a path outside `/v1` that leads nowhere gets instead of a problem: the way to the page that was meant, or in a
    /// browser a page.
    fn page_instead(&self, exchange: &Exchange, problem: &Problem) -> Option<Response> {
        let Exchange { request, request_id, .. } = exchange;
        let path = request.path();
        let reading = matches!(request.method, Method::GET | Method::HEAD);
        if problem.code != Code::NotFound || !reading || is_under_v1(path) {
            return None;
        }
        let answer = |representation: &Representation| Response::new(representation, request, request_id, None).ok();
        if let Some(target) = docs::find_moved(&CONTRACT, path) {
            let location = HeaderValue::from_str(&target).ok()?;
            let moved = Representation::text("text/plain; charset=utf-8", target.into()).with(LOCATION, location);
            return Some(Response { status: StatusCode::PERMANENT_REDIRECT, ..answer(&moved)? });
        }
        if !prefers_html(&request.headers) {
            return None;
        }
        let page = answer(&page(docs::not_found(path)))?;
        Some(Response { status: StatusCode::NOT_FOUND, problem: Some(problem.code), ..page })
    }

    /// What the rate headers tell.
    fn window(&self, Exchange { request, window, .. }: &Exchange) -> Option<Window> {
        match window {
            RateHeaders::Of(window) => Some(*window),
            RateHeaders::OfAddress if is_under_v1(request.path()) => {
                Some(self.rate.address_window(request.address, request.at))
            }
            RateHeaders::OfAddress | RateHeaders::None => None,
        }
    }

    /// Tells the observer of a finished answer.
    fn tell(&self, exchange: &Exchange, mut response: Response) -> Response {
        let Exchange { request, request_id, key, pattern, since, .. } = exchange;
        response.has_key = key.is_some() && response.problem != Some(Code::IpNotAllowed);
        self.settings.cors.put_on(request, &mut response.headers);
        self.observer.answered(&Answered {
            request_id,
            method: &request.method,
            route: pattern,
            status: response.status.as_u16(),
            problem: response.problem,
            key: key.as_ref().map(|key| &*key.record),
            address: request.address,
            bytes: response.body.len(),
            duration: since.elapsed(),
            feed: response.feed,
        });
        response
    }

    /// A problem for a request that never became one: what HTTP itself refused.
    pub fn refuse_unread(&self, status: StatusCode, detail: &str) -> (Problem, String) {
        (Problem::invalid_request(status, detail), new_request_id())
    }

    fn check_all(&self, exchange: &mut Exchange) -> Result<CheckedRequest, Problem> {
        let request = &exchange.request;
        if let Some(flaw) = request.flaw {
            exchange.window = RateHeaders::None;
            return Err(Problem::invalid_request(StatusCode::BAD_REQUEST, flaw));
        }
        let uri_bytes = request.target.len();
        if uri_bytes > self.settings.max_uri_bytes {
            exchange.window = RateHeaders::None;
            return Err(Problem::invalid_request(
                StatusCode::URI_TOO_LONG,
                format!(
                    "The path and query are {uri_bytes} bytes long; at most {} are taken.",
                    self.settings.max_uri_bytes
                ),
            ));
        }
        if self.settings.cors.is_preflight(request) {
            exchange.pattern = "(preflight)";
            return Ok(CheckedRequest::Preflight);
        }
        if is_under_v1(request.path()) {
            self.refuse_too_old()?;
        }
        let reading = matches!(request.method, Method::GET | Method::HEAD);
        if request.has_body && reading {
            return Err(Problem::from(Code::InvalidRequest).closing());
        }
        let key = auth::authenticate(request, &self.source.newest());
        let caller = key.as_ref().ok().and_then(|key| self.caller(&key.record));
        if reading && let Some(answer) = caller.as_ref().and_then(|caller| self.find(caller, request)) {
            exchange.pattern = answer.pattern;
            self.admit(exchange, key, caller)?;
            return Ok(CheckedRequest::Answered(answer));
        }
        let closing = |problem: Problem| if request.has_body { problem.closing() } else { problem };
        let route = CONTRACT.route(request.path()).ok_or_else(|| {
            closing(Problem::new(
                Code::NotFound,
                format!("There is no such endpoint. The endpoints are listed at {}/docs.", self.settings.public_url),
            ))
        })?;
        exchange.pattern = route.endpoint.pattern;
        if !reading {
            return Err(closing(Problem::method_not_allowed(&request.method)));
        }
        match route.endpoint.resource {
            Resource::Docs => return self.docs(request.path(), route.endpoint.pattern).map(CheckedRequest::Answered),
            Resource::Explorer => {
                let demo = self.settings.demo.as_deref();
                let page = explorer::page(request, route.endpoint.pattern, demo, &self.answers)?;
                return Ok(CheckedRequest::Answered(page));
            }
            Resource::Status => {
                let query = Query::of(route.endpoint, request.query());
                let snapshot = self.source.published();
                let readable = self.source.is_readable();
                let status = status::status(&snapshot, readable, &query, request.wall)?;
                return Ok(CheckedRequest::Answered(Arc::new(CachedAnswer::of_all(exchange.pattern, status))));
            }
            _ => {}
        }
        // An address that has used up its unusable keys may have been given a new one, too.
        let is_unknown = key.as_ref().is_err_and(|problem| problem.code == Code::InvalidApiKey);
        let may_be_new = !exchange.has_looked_for_key && self.source.may_lack_keys();
        if is_unknown && may_be_new && auth::is_shaped(request) {
            exchange.has_looked_for_key = true;
            let is_over_limit = self.rate.address_window(request.address, request.at).remaining == 0;
            return Ok(CheckedRequest::UnknownKey { is_over_limit });
        }
        let looks = self.source.looks();
        let caller = self.admit(exchange, key, caller)?;
        self.parse(&exchange.request, caller, &route, looks)
    }

    /// Parses the request of a caller who passed, and answers it if memory alone does.
    fn parse(&self, request: &Request, caller: Caller, route: &Route, looks: u64) -> Result<CheckedRequest, Problem> {
        let license = caller.license.id;
        let job = Job::parse(caller, request, route, looks)?;
        if let Some(permit) = job.permit()? {
            return Ok(CheckedRequest::Passed(Box::new(job), permit));
        }
        let answer = self.run(job)?;
        self.answers.insert(Some(license), &request.target, Arc::clone(&answer));
        Ok(CheckedRequest::Answered(answer))
    }

    /// Refuses to answer from a state that may be too old, keys included.
    fn refuse_too_old(&self) -> Result<(), Problem> {
        self.source.is_too_old().map_or(Ok(()), |too_old| Err(Problem::too_old(too_old)))
    }

    /// The state and the license that a key reads.
    fn caller(&self, key: &KeyRecord) -> Option<Caller> {
        let snapshot = self.source.published();
        let license = Arc::clone(snapshot.find_license(key.license)?);
        Some(Caller { snapshot, license })
    }

    /// A cached answer that fits a request.
    fn find(&self, caller: &Caller, request: &Request) -> Option<Arc<CachedAnswer>> {
        let answer = self.answers.find(Some(caller.license.id), &request.target)?;
        fits(caller, &answer, accepts_gzip(&request.headers)).then_some(answer)
    }

    /// Key, address and rate, in this order.
    fn admit(
        &self,
        exchange: &mut Exchange,
        key: Result<UsableKey, Problem>,
        caller: Option<Caller>,
    ) -> Result<Caller, Problem> {
        let request = &exchange.request;
        let key = match key {
            Ok(key) => key,
            Err(problem) if problem.code == Code::MissingApiKey || exchange.is_counted => return Err(problem),
            Err(problem) => {
                // Only unusable keys use up the address's window, and only they are refused by it. So an address beyond it
                // still learns by an answer whether a key is valid, at any rate. A key has 190 random bits, and looking it up
                // takes one hash whether it is there or not: nobody finds one by trying.
                let counted = self.rate.count_failure(request.address, request.at);
                exchange.window = RateHeaders::Of(counted.unwrap_or_else(|window| window));
                return Err(match counted {
                    Ok(_) => problem,
                    Err(window) => Problem::rate_limited(
                        window.reset_s,
                        "Too many requests with unusable API keys came from this address. Wait, and send a valid key.",
                    ),
                });
            }
        };
        let UsableKey { record, .. } = &*exchange.key.insert(key);
        auth::check_address(request, record)?;
        let caller = caller.ok_or_else(Problem::not_set_up)?;
        let limit = caller.license.rate_limit;
        let counted = if exchange.is_counted {
            Ok(self.rate.key_window(&record.id, limit, exchange.since))
        } else {
            self.rate.count_key(&record.id, limit, request.at)
        };
        exchange.is_counted = true;
        exchange.window = RateHeaders::Of(counted.unwrap_or_else(|window| window));
        if let Err(window) = counted {
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

    /// A page of the documentation.
    fn docs(&self, path: &str, pattern: &'static str) -> Result<Arc<CachedAnswer>, Problem> {
        if let Some(page) = self.answers.find(None, path) {
            return Ok(page);
        }
        let found = docs::find_page(&CONTRACT, path, &self.settings.public_url).ok_or_else(|| {
            let start = format!("There is no such page. Start at {}/docs.", self.settings.public_url);
            Problem::new(Code::NotFound, start)
        })?;
        let representation = page(found);
        // It is compressed at once, so that it is weighed whole.
        representation.gzip();
        let page = Arc::new(CachedAnswer::of_all(pattern, representation));
        self.answers.insert(None, path, Arc::clone(&page));
        Ok(page)
    }
}

/// A page of the documentation, with what keeps it to itself.
fn page(page: docs::DocsPage) -> Representation {
    Representation::text(page.content_type, page.body)
        .with(CONTENT_SECURITY_POLICY, HeaderValue::from_static(docs::CONTENT_SECURITY_POLICY))
        .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
}

/// The outcome of checking a request.
#[derive(Debug)]
pub enum CheckedRequest {
    /// A browser asks for an origin that is allowed. It sends no key with that, and nothing is counted.
    Preflight,
    /// The answer is in memory.
    Answered(Arc<CachedAnswer>),
    /// The answer is to be made, on a thread that may block.
    Passed(Box<Job>, PermitKind),
    /// The key is not known here, and may be new.
    UnknownKey {
        /// Whether its address has used up its unusable keys.
        is_over_limit: bool,
    },
}

/// Whether an answer is current, and in memory in the form that is asked for.
fn fits(caller: &Caller, answer: &CachedAnswer, wants_gzip: bool) -> bool {
    caller.is_current(answer) && answer.representation.is_ready(wants_gzip)
}

/// Does a part of the work for one request. Its panic is that request's failure alone.
fn catch<T>(work: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Problem::internal("the request's handler panicked")))
}
