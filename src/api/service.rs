//! From a request to its answer: the order of checks, and the one place where answers are finished.
//!
//! HTTP (400) → body (400) → route (404) → method (405) → key (401) → address (403) → rate (429) → dataset (403) →
//! parameters (400) → token (400, 410) → record (404).

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use http::{HeaderValue, Method, StatusCode};

use super::caller::Caller;
use super::content::{Content, Document};
use super::deferred::{Answer, Asked, Deferred, Outcome, Passed, Wait};
use super::observe::{Answered, Observer, RequestLog};
use super::pages::Pages;
use super::problem::{Code, Problem};
use super::rate::RateLimiter;
use super::reference::ReferenceLists;
use super::request::Request;
use super::response::Response;
use super::source::Source;
use super::{auth, changes, exports, records, status};
use crate::contract::route::is_under_v1;
use crate::contract::{CONTRACT, Query, Resource};
use crate::docs;
use crate::model::KeyRecord;
use crate::query::packed::Packer;

/// What a service is configured with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The URL that callers see, without a slash at its end and without `/v1`.
    pub public_url: String,
    /// Where the error pages are: `{docs_url}/errors/<code>`.
    pub docs_url: String,
    /// The longest path and query, in bytes.
    pub max_uri_bytes: usize,
    /// What the parts that compressed answers are put together from may take in memory, in bytes.
    pub packed_bytes: usize,
}

impl Settings {
    /// The defaults for a public URL: this server's own documentation.
    pub fn of(public_url: &str) -> Settings {
        let public_url = public_url.trim_end_matches('/').to_owned();
        let docs_url = format!("{public_url}/docs");
        Settings { docs_url, public_url, max_uri_bytes: 4096, packed_bytes: 64 << 20 }
    }
}

/// The API over a source of snapshots.
pub struct Service {
    settings: Settings,
    source: Arc<dyn Source>,
    observer: Arc<dyn Observer>,
    rate: RateLimiter,
    packer: Arc<Packer>,
    reference_lists: ReferenceLists,
    pages: Arc<Pages>,
    documents: Mutex<HashMap<String, (&'static str, Arc<Document>)>>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Service {
    /// A service with fresh rate windows, which logs a line per request.
    pub fn new(settings: Settings, source: Arc<dyn Source>) -> Service {
        Service::observed(settings, source, Arc::new(RequestLog))
    }

    /// A service with fresh rate windows, whose answers an observer hears of.
    pub fn observed(settings: Settings, source: Arc<dyn Source>, observer: Arc<dyn Observer>) -> Service {
        let packer = Arc::new(Packer::new(settings.packed_bytes));
        let (rate, reference_lists, pages, documents) = Default::default();
        Service { settings, source, observer, rate, packer, reference_lists, pages, documents }
    }

    /// Who hears of answers and connections.
    pub fn observer(&self) -> &dyn Observer {
        self.observer.as_ref()
    }

    /// What the service is configured with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Answers a request at once, or hands it back to be gone on with where it may wait. A panic on the way is a 500 for this
    /// request alone.
    pub fn answer(&self, request: Request) -> Answer {
        let request_id = new_request_id();
        let window = is_under_v1(&request.path).then(|| self.rate.address_window(request.address, request.at));
        let mut asked = Asked { request, request_id, window, key: None, pattern: "(none)" };
        let mut passed = None;
        let outcome = catch(|| {
            if let Some(response) = self.check(&mut asked, &mut passed)? {
                return Ok(response.into());
            }
            let passed = passed.as_ref().ok_or_else(|| Problem::internal("a request without a caller"))?;
            self.respond(&asked.request, passed, Wait::Nothing)
        });
        self.conclude(asked, passed, outcome)
    }

    /// Goes on with an answer that had to wait, in a thread that may. It may turn out that it has to wait for more.
    pub fn resume(&self, deferred: Deferred) -> Answer {
        let Deferred { asked, passed, wait } = deferred;
        let outcome = catch(|| match self.respond(&asked.request, &passed, wait)? {
            // It would come round for ever.
            Outcome::Later(more) if more <= wait => Err(Problem::internal("an answer waited in vain")),
            outcome => Ok(outcome),
        });
        self.conclude(asked, Some(passed), outcome)
    }

    /// The answer to a deferred request, of what was made for it. The observer hears of it.
    pub fn finish(&self, deferred: Deferred, made: Result<Response, Problem>) -> Response {
        self.finish_asked(&deferred.asked, made)
    }

    /// Answers a request here and now, however long it takes.
    pub fn answer_waiting(&self, request: Request) -> Response {
        let mut answer = self.answer(request);
        loop {
            answer = match answer {
                Answer::Ready(response) => return response,
                Answer::Deferred(deferred) => self.resume(*deferred),
                Answer::Export(deferred, call) => {
                    let built = catch(|| call.build(&self.packer).map(|file| call.respond(&file)));
                    return self.finish(*deferred, built);
                }
            }
        }
    }

    /// What parts of exports are compressed with.
    pub fn packer(&self) -> &Arc<Packer> {
        &self.packer
    }

    fn conclude(&self, asked: Asked, passed: Option<Passed>, outcome: Result<Outcome, Problem>) -> Answer {
        match (outcome, passed) {
            (Ok(Outcome::Later(wait)), Some(passed)) => Answer::Deferred(Box::new(Deferred { asked, passed, wait })),
            (Ok(Outcome::Export(call)), Some(passed)) => {
                Answer::Export(Box::new(Deferred { asked, passed, wait: Wait::Building }), Arc::new(call))
            }
            (Ok(Outcome::Response(response)), _) => Answer::Ready(self.finish_asked(&asked, Ok(response))),
            (Ok(_), None) => {
                Answer::Ready(self.finish_asked(&asked, Err(Problem::internal("an answer waits for nobody"))))
            }
            (Err(problem), _) => Answer::Ready(self.finish_asked(&asked, Err(problem))),
        }
    }

    fn finish_asked(&self, asked: &Asked, made: Result<Response, Problem>) -> Response {
        let Asked { request, request_id, window, key, pattern } = asked;
        let finish = |made: Result<Response, Problem>| {
            let response = made.unwrap_or_else(|problem| problem.into_response(&self.settings.docs_url, request_id));
            response.finish(request, request_id, window.as_ref(), &self.packer)
        };
        let mut response = catch(|| Ok(finish(made))).unwrap_or_else(|problem| finish(Err(problem)));
        response.has_key = key.is_some() && response.problem != Some(Code::IpNotAllowed);
        tell(self.observer.as_ref(), request, pattern, request_id, key.as_deref(), &response);
        response
    }

    /// A problem for a request that never became one: what HTTP itself refused.
    pub fn refuse(&self, status: StatusCode, detail: &str) -> (Problem, String) {
        (Problem::invalid_request(status, detail), new_request_id())
    }

    /// All that is asked of a request before its parameters: `None` when its caller has passed.
    fn check(&self, asked: &mut Asked, passed: &mut Option<Passed>) -> Result<Option<Response>, Problem> {
        let request = &asked.request;
        if let Some(flaw) = request.flaw {
            asked.window = None;
            return Err(Problem::invalid_request(StatusCode::BAD_REQUEST, flaw));
        }
        let uri_bytes = request.path.len() + request.query.as_ref().map_or(0, |query| query.len() + 1);
        if uri_bytes > self.settings.max_uri_bytes {
            asked.window = None;
            return Err(Problem::invalid_request(
                StatusCode::URI_TOO_LONG,
                format!(
                    "The path and query are {uri_bytes} bytes long; at most {} are taken.",
                    self.settings.max_uri_bytes
                ),
            ));
        }
        let reading = matches!(request.method, Method::GET | Method::HEAD);
        if request.has_body && reading {
            return Err(Problem::invalid_request(
                StatusCode::BAD_REQUEST,
                "A GET or HEAD request must not have a body. Send the parameters in the query.",
            ));
        }
        let closing = |problem: Problem| if request.has_body { problem.closing() } else { problem };
        let route = CONTRACT.route(&request.path).ok_or_else(|| {
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
            Resource::Docs => return self.docs(request).map(Some),
            Resource::Status => {
                let query = Query::of(route.endpoint, request.query.as_deref());
                let snapshot = self.source.published();
                let readable = self.source.is_readable();
                return status::status(&snapshot, readable, &query, request.wall).map(Some);
            }
            _ => {}
        }
        let looks = self.source.looks();
        let caller = self.identify(asked)?;
        *passed = Some(Passed { caller, route, looks });
        Ok(None)
    }

    /// The answer to a caller who passed, if it has to wait for no more than `patience`.
    fn respond(&self, request: &Request, passed: &Passed, patience: Wait) -> Result<Outcome, Problem> {
        let Passed { caller, route, looks } = passed;
        let query = &Query::of(route.endpoint, request.query.as_deref());
        match route.endpoint.resource {
            Resource::Export => exports::export(caller, route, query, request.wall, patience),
            Resource::List(dataset) => records::list(caller, dataset, query, &request.headers, &self.pages, patience),
            Resource::Record(dataset) => records::single(caller, dataset, route.value.parse().ok(), query, patience),
            Resource::Changes(dataset) => {
                let newer = changes::Newer { source: self.source.as_ref(), looks: *looks };
                changes::changes(caller, &newer, dataset, query, &self.pages, patience)
            }
            Resource::TherapyAreas => self.reference_lists.therapy_areas(caller, query, patience),
            Resource::Tags => self.reference_lists.tags(caller, query, patience),
            Resource::Organizations => self.reference_lists.organizations(caller, query, patience),
            Resource::Docs | Resource::Status => Err(Problem::internal("a route was not taken")),
        }
    }

    /// Key, address and rate, in this order.
    fn identify(&self, asked: &mut Asked) -> Result<Caller, Problem> {
        let request = &asked.request;
        let newest = self.source.newest();
        let key = match auth::authenticate(request, &newest) {
            Ok(key) => key,
            Err(problem) if problem.code == Code::MissingApiKey => return Err(problem),
            Err(problem) => {
                // Only unusable keys use up the address's window, and only they are refused by it.
                let counted = self.rate.count_failure(request.address, request.at);
                asked.window = Some(counted.unwrap_or_else(|window| window));
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
        let snapshot = self.source.published();
        let license = snapshot.find_license(key.license).cloned().ok_or_else(|| {
            // Keys are taken at once, while commits may be held back: the license is not there yet.
            Problem::new(Code::Unavailable, "The license of this API key is being set up. Try again in a minute.")
        })?;
        let counted = self.rate.count_key(&key.id, license.rate_limit, request.at);
        asked.window = Some(counted.unwrap_or_else(|window| window));
        if let Err(window) = counted {
            return Err(Problem::rate_limited(
                window.reset_s,
                format!(
                    "The limit of {} requests per minute is used up. Wait {} seconds, then continue.",
                    window.limit, window.reset_s
                ),
            ));
        }
        Ok(Caller { snapshot, license })
    }

    /// A page of the documentation, made at its first call and kept: there are as many as the documentation has.
    fn docs(&self, request: &Request) -> Result<Response, Problem> {
        let mut pages = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        let (content_type, body) = match pages.get(&request.path) {
            Some(page) => page.clone(),
            None => {
                let page = docs::find_page(&CONTRACT, &request.path, &self.settings.public_url).ok_or_else(|| {
                    let start = format!("There is no such page. Start at {}/docs.", self.settings.public_url);
                    Problem::new(Code::NotFound, start)
                })?;
                let page = (page.content_type, Arc::new(Document::new(page.body)));
                pages.insert(request.path.clone(), page.clone());
                page
            }
        };
        let response = Response::new(StatusCode::OK, content_type, Content::Document(body));
        Ok(response
            .with(CONTENT_SECURITY_POLICY, HeaderValue::from_static(docs::CONTENT_SECURITY_POLICY))
            .with(REFERRER_POLICY, HeaderValue::from_static("no-referrer")))
    }
}

/// A new id: unique across processes, and in the order of time for those who search logs.
pub fn new_request_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Does a part of the work for one request. Its panic is that request's failure alone.
fn catch<T>(work: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Problem::internal("the request's handler panicked")))
}

/// Tells the observer of a finished answer.
fn tell(
    observer: &dyn Observer,
    request: &Request,
    route: &'static str,
    request_id: &str,
    key: Option<&KeyRecord>,
    response: &Response,
) {
    observer.answered(&Answered {
        request_id,
        method: &request.method,
        route,
        status: response.status.as_u16(),
        problem: response.problem,
        key,
        address: request.address,
        bytes: response.body.len(),
        duration: request.at.elapsed(),
        feed: response.feed,
    });
}
