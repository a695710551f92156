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

use super::answers::{self, AnswerCache, CachedAnswer};
use super::caller::Caller;
use super::cors::Cors;
use super::deferred::{
    Answer, Asked, Deferred, Held, Interest, Made, Outcome, Passed, RateHeaders, Resumed, Seeking, Shared, Turn, Wait,
};
use super::observe::{Answered, Observer, RequestLog};
use super::problem::{Code, Problem};
use super::rate::{RateLimiter, Window};
use super::representation::Representation;
use super::request::Request;
use super::response::{Response, accepts_gzip, prefers_html};
use super::source::{Listener, SnapshotSource};
use super::{auth, changes, explorer, exports, records, reference, status};
use crate::contract::route::is_under_v1;
use crate::contract::{CONTRACT, Query, Resource};
use crate::docs;
use crate::explorer::Demo;
use crate::model::{KeyRecord, Timestamp};
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

    /// Answers a request at once, or returns it to be resumed where it may wait. A panic on the way is a 500 for this request
    /// alone.
    pub fn answer(&self, request: Request) -> Answer {
        let (request_id, since) = (new_request_id(), request.at);
        let (window, key, pattern) = (RateHeaders::OfAddress, None, "(none)");
        let may_seek = self.source.may_lack_keys();
        self.proceed(Asked { request, request_id, window, key, pattern, since, may_hold: true, may_seek })
    }

    fn proceed(&self, mut asked: Asked) -> Answer {
        match catch(|| self.check(&mut asked)) {
            Err(problem) => Answer::Ready(self.refuse_asked(&asked, problem)),
            Ok(Checked::Answered(answer)) => self.conclude(asked, &answer),
            Ok(Checked::Preflight) => {
                let window = self.window(&asked);
                let response = Response::preflight(&asked.request_id, window.as_ref());
                Answer::Ready(self.tell(&asked, response))
            }
            Ok(Checked::Passed(passed)) => self.begin(asked, passed),
            Ok(Checked::UnknownKey) => {
                let Request { address, at, .. } = asked.request;
                let is_over_limit = self.rate.address_window(address, at).remaining == 0;
                Answer::Seeking(Box::new(Seeking { asked, is_over_limit }))
            }
        }
    }

    /// Waits for a look for new keys, in a thread that may wait, and answers then.
    pub fn seek(&self, seeking: Box<Seeking>) -> Answer {
        self.source.look_for_keys(seeking.asked.request.at);
        self.give_up_seeking(seeking)
    }

    /// Answers by the keys that are known here.
    pub fn give_up_seeking(&self, seeking: Box<Seeking>) -> Answer {
        self.proceed(Asked { may_seek: false, ..seeking.asked })
    }

    fn begin(&self, asked: Asked, passed: Passed) -> Answer {
        let resumed = self.go_on(Deferred { asked, passed, wait: Wait::Nothing });
        if let Some(Made { license, target, answer }) = resumed.made {
            self.answers.insert(Some(license), &target, answer);
        }
        resumed.answer
    }

    /// Finishes an answer, or holds it back where its caller wants that.
    fn conclude(&self, asked: Asked, answer: &CachedAnswer) -> Answer {
        let hold = answer.representation.hold.filter(|_| asked.may_hold && !asked.request.is_head());
        let held = hold.zip(answer.rests_on).zip(asked.key.clone()).zip(auth::key_hash(&asked.request));
        match held {
            Some((((time, (dataset, witness)), key), key_hash)) => {
                let interest = Interest { key_hash, key, dataset, witness };
                let until = asked.request.at + time;
                Answer::Held(Box::new(Held { asked, interest, until }))
            }
            None => Answer::Ready(self.finish(&asked, &answer.representation)),
        }
    }

    /// Tells a listener of every further state that answers are made from.
    pub fn subscribe(&self, listener: Listener) {
        self.source.subscribe(listener);
    }

    /// Whether the answer to a held request is still the same: its key, and what its license sees. It reads nothing.
    pub fn is_current(&self, interest: &Interest) -> bool {
        let newest = self.source.newest();
        let has_key = newest.find_key(&interest.key_hash).is_some_and(|key| **key == *interest.key);
        let caller = self.caller(&interest.key).filter(|_| has_key);
        caller.is_some_and(|caller| caller.has_witness(interest.dataset, &interest.witness))
    }

    /// Goes on with a held request, at a time on both clocks. It passes the checks of key, address and license anew, but
    /// counts no more. Unless `is_over`, it is held again if there is still no news.
    pub fn wake(&self, held: Held, at: Instant, wall: Timestamp, is_over: bool) -> Answer {
        let mut asked = held.asked;
        (asked.request.wall, asked.since, asked.may_hold) = (wall, at, !is_over);
        (asked.window, asked.key) = (RateHeaders::OfAddress, None);
        match catch(|| self.check_again(&mut asked)) {
            Err(problem) => Answer::Ready(self.refuse_asked(&asked, problem)),
            Ok(passed) => self.begin(asked, passed),
        }
    }

    fn check_again(&self, asked: &mut Asked) -> Result<Passed, Problem> {
        self.refuse_too_old()?;
        let key = auth::authenticate(&asked.request, &self.source.newest())?;
        asked.key = Some(Arc::clone(&key));
        auth::check_address(&asked.request, &key)?;
        let looks = self.source.looks();
        let caller = self.caller(&key).ok_or_else(Problem::not_set_up)?;
        asked.window = RateHeaders::Of(self.rate.key_window(&key.id, caller.license.rate_limit, asked.since));
        let route = CONTRACT.route(asked.request.path()).ok_or_else(|| Problem::internal("a route is gone"))?;
        Ok(Passed { caller, route, looks })
    }

    /// Waits until it is a request's turn: of those that wait for the same answer, one has it made.
    pub async fn join(&self, deferred: Box<Deferred>) -> Turn<'_> {
        let Passed { caller, .. } = &deferred.passed;
        let target = &deferred.asked.request.target;
        let joined = self.answers.join(Some(caller.license.id), target, |answer| caller.is_current(answer)).await;
        let making = match joined {
            Err(making) => making,
            Ok(answer) if answer.representation.is_ready(accepts_gzip(&deferred.asked.request.headers)) => {
                return Turn::Answered(self.conclude(deferred.asked, &answer));
            }
            Ok(_) => None,
        };
        Turn::Make(deferred, Shared(making))
    }

    /// Goes on with an answer that had to wait, in a thread that may. It may turn out that it has to wait for more.
    pub fn resume(&self, deferred: Box<Deferred>) -> Resumed {
        let wait = deferred.wait;
        let resumed = self.go_on(*deferred);
        match resumed.answer {
            // It would come round for ever.
            Answer::Deferred(again) if again.wait <= wait => {
                let problem = Problem::internal("an answer waited in vain");
                Resumed { answer: Answer::Ready(self.refuse(&again, problem)), made: None }
            }
            answer => Resumed { answer, ..resumed },
        }
    }

    /// Gives what was made to those who wait for it, and caches it. Returns what became of the request itself.
    pub fn share(&self, shared: Shared<'_>, resumed: Resumed) -> Answer {
        if let Some(Made { license, target, answer }) = resumed.made {
            match shared.0 {
                Some(making) => making.finish(&target, answer),
                None => self.answers.insert(Some(license), &target, answer),
            }
        }
        resumed.answer
    }

    /// The answer to a deferred request that cannot be resumed. The observer hears of it.
    pub fn refuse(&self, deferred: &Deferred, problem: Problem) -> Response {
        self.refuse_asked(&deferred.asked, problem)
    }

    /// Answers a request here and now, however long it takes; it waits for no news.
    pub fn answer_waiting(&self, request: Request) -> Response {
        let mut answer = self.answer(request);
        loop {
            answer = match answer {
                Answer::Ready(response) => return response,
                Answer::Deferred(deferred) => self.share(Shared(None), self.resume(deferred)),
                Answer::Seeking(seeking) => self.seek(seeking),
                Answer::Held(held) => {
                    let Request { at, wall, .. } = held.asked.request;
                    self.wake(*held, at, wall, true)
                }
            }
        }
    }

    /// Makes an answer, if it has to wait for no more than it may.
    fn go_on(&self, deferred: Deferred) -> Resumed {
        let Deferred { asked, passed, wait: patience } = deferred;
        let (license, target) = (passed.caller.license.id, &asked.request.target);
        let found = self.answers.find(Some(license), target).filter(|answer| passed.caller.is_current(answer));
        let wants_gzip = accepts_gzip(&asked.request.headers);
        let wait = match found {
            Some(answer) => {
                let is_whole = answer.representation.is_ready(wants_gzip);
                if is_whole || patience >= Wait::Reading {
                    let target = target.clone();
                    let concluded = self.conclude(asked, &answer);
                    // Its compressed form counts from now on.
                    let made = (!is_whole).then_some(Made { license, target, answer });
                    return Resumed { answer: concluded, made };
                }
                Wait::Reading
            }
            None => match catch(|| self.make(&asked.request, &passed, wants_gzip, patience)) {
                Ok(Outcome::Made(rests_on, representation)) => {
                    let (pattern, rests_on) = (asked.pattern, Some(rests_on));
                    let answer = Arc::new(CachedAnswer { pattern, rests_on, representation });
                    let target = target.clone();
                    let concluded = self.conclude(asked, &answer);
                    return Resumed { answer: concluded, made: Some(Made { license, target, answer }) };
                }
                Ok(Outcome::Later(wait)) => wait,
                Err(problem) => {
                    return Resumed { answer: Answer::Ready(self.refuse_asked(&asked, problem)), made: None };
                }
            },
        };
        Resumed { answer: Answer::Deferred(Box::new(Deferred { asked, passed, wait })), made: None }
    }

    fn finish(&self, asked: &Asked, representation: &Representation) -> Response {
        let Asked { request, request_id, .. } = asked;
        match catch(|| Response::new(representation, request, request_id, self.window(asked).as_ref())) {
            Ok(response) => self.tell(asked, response),
            Err(problem) => self.refuse_asked(asked, problem),
        }
    }

    fn refuse_asked(&self, asked: &Asked, problem: Problem) -> Response {
        let Asked { request, request_id, .. } = asked;
        if let Some(response) = self.page_instead(asked, &problem) {
            return self.tell(asked, response);
        }
        let (docs_url, window) = (&self.settings.docs_url, self.window(asked));
        self.tell(asked, Response::of_problem(problem, docs_url, request, request_id, window.as_ref()))
    }

    /// What a path outside `/v1` that leads nowhere gets instead of a problem: the way to the page that was meant, or in a
    /// browser a page.
    fn page_instead(&self, Asked { request, request_id, .. }: &Asked, problem: &Problem) -> Option<Response> {
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
    fn window(&self, Asked { request, window, .. }: &Asked) -> Option<Window> {
        match window {
            RateHeaders::Of(window) => Some(*window),
            RateHeaders::OfAddress if is_under_v1(request.path()) => {
                Some(self.rate.address_window(request.address, request.at))
            }
            RateHeaders::OfAddress | RateHeaders::None => None,
        }
    }

    /// Tells the observer of a finished answer.
    fn tell(&self, asked: &Asked, mut response: Response) -> Response {
        let Asked { request, request_id, key, pattern, since, .. } = asked;
        response.has_key = key.is_some() && response.problem != Some(Code::IpNotAllowed);
        self.settings.cors.put_on(request, &mut response.headers);
        self.observer.answered(&Answered {
            request_id,
            method: &request.method,
            route: pattern,
            status: response.status.as_u16(),
            problem: response.problem,
            key: key.as_deref(),
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

    /// All that is asked of a request before its parameters.
    fn check(&self, asked: &mut Asked) -> Result<Checked, Problem> {
        let request = &asked.request;
        if let Some(flaw) = request.flaw {
            asked.window = RateHeaders::None;
            return Err(Problem::invalid_request(StatusCode::BAD_REQUEST, flaw));
        }
        let uri_bytes = request.target.len();
        if uri_bytes > self.settings.max_uri_bytes {
            asked.window = RateHeaders::None;
            return Err(Problem::invalid_request(
                StatusCode::URI_TOO_LONG,
                format!(
                    "The path and query are {uri_bytes} bytes long; at most {} are taken.",
                    self.settings.max_uri_bytes
                ),
            ));
        }
        if self.settings.cors.is_preflight(request) {
            asked.pattern = "(preflight)";
            return Ok(Checked::Preflight);
        }
        if is_under_v1(request.path()) {
            self.refuse_too_old()?;
        }
        let reading = matches!(request.method, Method::GET | Method::HEAD);
        if request.has_body && reading {
            return Err(Problem::from(Code::InvalidRequest).closing());
        }
        let key = auth::authenticate(request, &self.source.newest());
        let caller = key.as_ref().ok().and_then(|key| self.caller(key));
        if reading && let Some(answer) = caller.as_ref().and_then(|caller| self.find_ready(caller, request)) {
            asked.pattern = answer.pattern;
            self.admit(asked, key, caller)?;
            return Ok(Checked::Answered(answer));
        }
        let closing = |problem: Problem| if request.has_body { problem.closing() } else { problem };
        let route = CONTRACT.route(request.path()).ok_or_else(|| {
            closing(Problem::new(
                Code::NotFound,
                format!("There is no such endpoint. The endpoints are listed at {}/docs.", self.settings.public_url),
            ))
        })?;
        asked.pattern = route.endpoint.pattern;
        if !reading {
            return Err(closing(Problem::method_not_allowed(&request.method)));
        }
        match route.endpoint.resource {
            Resource::Docs => return self.docs(request.path(), route.endpoint.pattern).map(Checked::Answered),
            Resource::Explorer => {
                let demo = self.settings.demo.as_deref();
                let page = explorer::page(request, route.endpoint.pattern, demo, &self.answers)?;
                return Ok(Checked::Answered(page));
            }
            Resource::Status => {
                let query = Query::of(route.endpoint, request.query());
                let snapshot = self.source.published();
                let readable = self.source.is_readable();
                let status = status::status(&snapshot, readable, &query, request.wall)?;
                return Ok(Checked::Answered(Arc::new(CachedAnswer::of_all(asked.pattern, status))));
            }
            _ => {}
        }
        // An address that has used up its unusable keys may have been given a new one, too.
        let is_unknown = key.as_ref().is_err_and(|problem| problem.code == Code::InvalidApiKey);
        if is_unknown && asked.may_seek && auth::is_shaped(request) {
            return Ok(Checked::UnknownKey);
        }
        let looks = self.source.looks();
        let caller = self.admit(asked, key, caller)?;
        Ok(Checked::Passed(Passed { caller, route, looks }))
    }

    /// Refuses to answer from a state that may be too old, keys included.
    fn refuse_too_old(&self) -> Result<(), Problem> {
        self.source.is_too_old().map_or(Ok(()), |too_old| Err(Problem::too_old(too_old)))
    }

    /// The answer to a caller who passed, if it has to wait for no more than `patience`.
    fn make(&self, request: &Request, passed: &Passed, wants_gzip: bool, patience: Wait) -> Result<Outcome, Problem> {
        let Passed { caller, route, looks } = passed;
        let query = &Query::of(route.endpoint, request.query());
        let gzip = wants_gzip.then_some(&self.segments);
        match route.endpoint.resource {
            Resource::Export => exports::export(caller, route, query, &self.segments, patience),
            Resource::List(dataset) => records::list(caller, dataset, query, gzip, patience),
            Resource::Record(dataset) => records::single(caller, dataset, route.value.parse().ok(), query, patience),
            Resource::Changes(dataset) => {
                let newer = changes::Newer { source: self.source.as_ref(), looks: *looks, since: request.at };
                changes::changes(caller, &newer, dataset, query, gzip, patience)
            }
            Resource::TherapyAreas => reference::therapy_areas(caller, query, patience),
            Resource::Tags => reference::tags(caller, query, patience),
            Resource::Organizations => reference::organizations(caller, query, patience),
            Resource::Docs | Resource::Explorer | Resource::Status => Err(Problem::internal("a route was not taken")),
        }
    }

    /// The state and the license that a key reads.
    fn caller(&self, key: &KeyRecord) -> Option<Caller> {
        let snapshot = self.source.published();
        let license = Arc::clone(snapshot.find_license(key.license)?);
        Some(Caller { snapshot, license })
    }

    /// A finished answer that is current, in the form that is asked for.
    fn find_ready(&self, caller: &Caller, request: &Request) -> Option<Arc<CachedAnswer>> {
        let answer = self.answers.find(Some(caller.license.id), &request.target)?;
        let is_ready = || answer.representation.is_ready(accepts_gzip(&request.headers));
        (caller.is_current(&answer) && is_ready()).then_some(answer)
    }

    /// Key, address and rate, in this order.
    fn admit(
        &self,
        asked: &mut Asked,
        key: Result<Arc<KeyRecord>, Problem>,
        caller: Option<Caller>,
    ) -> Result<Caller, Problem> {
        let request = &asked.request;
        let key = match key {
            Ok(key) => key,
            Err(problem) if problem.code == Code::MissingApiKey => return Err(problem),
            Err(problem) => {
                // Only unusable keys use up the address's window, and only they are refused by it. So an address beyond it
                // still learns by an answer whether a key is valid, at any rate. A key has 190 random bits, and looking it up
                // takes one hash whether it is there or not: nobody finds one by trying.
                let counted = self.rate.count_failure(request.address, request.at);
                asked.window = RateHeaders::Of(counted.unwrap_or_else(|window| window));
                return Err(match counted {
                    Ok(_) => problem,
                    Err(window) => Problem::rate_limited(
                        window.reset_s,
                        "Too many requests with unusable API keys came from this address. Wait, and send a valid key.",
                    ),
                });
            }
        };
        asked.key = Some(Arc::clone(&key));
        auth::check_address(request, &key)?;
        let caller = caller.ok_or_else(Problem::not_set_up)?;
        let counted = self.rate.count_key(&key.id, caller.license.rate_limit, request.at);
        asked.window = RateHeaders::Of(counted.unwrap_or_else(|window| window));
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
fn page(page: docs::Page) -> Representation {
    Representation::text(page.content_type, page.body)
        .with(CONTENT_SECURITY_POLICY, HeaderValue::from_static(docs::CONTENT_SECURITY_POLICY))
        .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer"))
}

/// What the checks before the parameters come to.
enum Checked {
    /// A browser asks for an origin that is allowed. It sends no key with that, and nothing is counted.
    Preflight,
    /// The answer is there: in the cache, or to what needs no key.
    Answered(Arc<CachedAnswer>),
    /// A caller whose key, address and rate have passed.
    Passed(Passed),
    /// A key that is none here, and may be a new one.
    UnknownKey,
}

/// A new id: unique across processes, and in the order of time for those who search logs.
pub fn new_request_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Does a part of the work for one request. Its panic is that request's failure alone.
fn catch<T>(work: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Problem::internal("the request's handler panicked")))
}
