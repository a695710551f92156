//! From a request to its answer: the order of checks, and the one place where answers are finished.
//!
//! body (400) → route (404) → method (405) → key (401) → address (403) → rate (429) → dataset (403) → parameters (400)
//! → token (400, 410) → record (404).

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use http::header::CONTENT_SECURITY_POLICY;
use http::{HeaderValue, Method, StatusCode};

use super::caller::Caller;
use super::content::{Content, Document};
use super::exports::ExportCall;
use super::observe::{Answered, Observer, RequestLog};
use super::pages::Pages;
use super::params::Params;
use super::problem::{Code, Problem};
use super::rate::{RateLimiter, Window};
use super::reference::ReferenceLists;
use super::request::Request;
use super::response::Response;
use super::route::{Route, find_route, is_under_v1};
use super::source::Source;
use super::{auth, changes, exports, records, status};
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

/// What becomes of a request.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all answers are ready, and are moved on at once")]
pub enum Answer {
    /// The whole answer.
    Ready(Response),
    /// An export that is to be built, or taken from a cache, outside the request's own thread.
    Export(Box<Pending>),
}

/// An export that passed all checks.
pub struct Pending {
    /// What to build.
    pub call: Arc<ExportCall>,
    /// Whom it counts for.
    pub key: Arc<KeyRecord>,
    /// What parts of it are compressed with.
    pub packer: Arc<Packer>,
    request: Request,
    request_id: String,
    window: Window,
    docs_url: String,
    observer: Arc<dyn Observer>,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("call", &self.call).field("key", &self.key.id).finish_non_exhaustive()
    }
}

impl Pending {
    /// The answer, once the file is there or has failed to be.
    pub fn finish(self, built: Result<Response, Problem>) -> Response {
        let response = built.unwrap_or_else(|problem| problem.into_response(&self.docs_url, &self.request_id));
        let response = response.finish(&self.request, &self.request_id, Some(&self.window), &self.packer);
        let route = Route::EXPORT_PATTERN;
        tell(self.observer.as_ref(), &self.request, route, &self.request_id, Some(&self.key), &response);
        response
    }
}

/// What a route answers: at once, or later.
pub(super) enum Outcome {
    Response(Response),
    Export(ExportCall),
}

/// What the finishing of an answer needs to know about its request, filled in as checks pass.
struct Progress {
    window: Option<Window>,
    key: Option<Arc<KeyRecord>>,
    pattern: &'static str,
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

    /// Whether every request but an export is answered at once. While it is not, filtered lists and reference lists wait for
    /// the records to be read, and requests should not be answered where others wait.
    pub fn is_warm(&self) -> bool {
        true
    }

    /// Answers a request. A panic on the way is a 500 for this request alone.
    pub fn answer(&self, request: Request) -> Answer {
        let request_id = new_request_id();
        let window = is_under_v1(&request.path).then(|| self.rate.address_window(request.address, request.at));
        let mut progress = Progress { window, key: None, pattern: "(none)" };
        let outcome = catch_unwind(AssertUnwindSafe(|| self.handle(&request, &mut progress)))
            .unwrap_or_else(|_| Err(Problem::internal("the request's handler panicked")));
        let Progress { window, key, pattern } = progress;
        let response = match (outcome, key.as_ref(), window) {
            (Ok(Outcome::Export(call)), Some(key), Some(window)) => {
                return Answer::Export(Box::new(Pending {
                    call: Arc::new(call),
                    key: Arc::clone(key),
                    packer: Arc::clone(&self.packer),
                    request,
                    request_id,
                    window,
                    docs_url: self.settings.docs_url.clone(),
                    observer: Arc::clone(&self.observer),
                }));
            }
            (Ok(Outcome::Export(_)), _, _) => {
                Problem::internal("an export without a key").into_response(&self.settings.docs_url, &request_id)
            }
            (Ok(Outcome::Response(response)), _, _) => response,
            (Err(problem), _, _) => problem.into_response(&self.settings.docs_url, &request_id),
        };
        let response = response.finish(&request, &request_id, window.as_ref(), &self.packer);
        tell(self.observer.as_ref(), &request, pattern, &request_id, key.as_deref(), &response);
        Answer::Ready(response)
    }

    /// A problem for a request that never became one: what HTTP itself refused.
    pub fn refuse(&self, status: StatusCode, detail: &str) -> (Problem, String) {
        (Problem::invalid_request(status, detail), new_request_id())
    }

    fn handle(&self, request: &Request, progress: &mut Progress) -> Result<Outcome, Problem> {
        let uri_bytes = request.path.len() + request.query.as_ref().map_or(0, |query| query.len() + 1);
        if uri_bytes > self.settings.max_uri_bytes {
            progress.window = None;
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
        let route = find_route(&request.path).ok_or_else(|| {
            closing(Problem::new(
                Code::NotFound,
                format!("There is no such endpoint. The endpoints are listed at {}/docs.", self.settings.public_url),
            ))
        })?;
        progress.pattern = route.pattern();
        if !reading {
            return Err(closing(Problem::method_not_allowed(&request.method)));
        }
        let params = Params::of(request.query.as_deref());
        match route {
            Route::Docs => return self.docs(request).map(Outcome::Response),
            Route::Status => {
                let snapshot = self.source.published();
                let readable = self.source.is_readable();
                return status::status(&snapshot, readable, &params, request.wall).map(Outcome::Response);
            }
            _ => {}
        }
        let caller = self.identify(request, progress)?;
        match route {
            Route::Export(dataset) => exports::export(caller, &dataset, &params, request.wall).map(Outcome::Export),
            Route::List(dataset) => {
                records::list(&caller, dataset, &params, &request.headers, &self.pages).map(Outcome::Response)
            }
            Route::Record(dataset, id) => records::single(&caller, dataset, id, &params).map(Outcome::Response),
            Route::Changes(dataset) => {
                changes::changes(caller, self.source.as_ref(), dataset, &params, &self.pages).map(Outcome::Response)
            }
            Route::TherapyAreas => self.reference_lists.therapy_areas(&caller, &params).map(Outcome::Response),
            Route::Tags => self.reference_lists.tags(&caller, &params).map(Outcome::Response),
            Route::Organizations => self.reference_lists.organizations(&caller, &params).map(Outcome::Response),
            Route::Docs | Route::Status => Err(Problem::internal("a route was not taken")),
        }
    }

    /// Key, address and rate, in this order.
    fn identify(&self, request: &Request, progress: &mut Progress) -> Result<Caller, Problem> {
        let newest = self.source.newest();
        let key = match auth::authenticate(request, &newest) {
            Ok(key) => key,
            Err(problem) if problem.code == Code::MissingApiKey => return Err(problem),
            Err(problem) => {
                // Only unusable keys use up the address's window, and only they are refused by it.
                let counted = self.rate.count_failure(request.address, request.at);
                progress.window = Some(counted.unwrap_or_else(|window| window));
                return Err(match counted {
                    Ok(_) => problem,
                    Err(window) => Problem::rate_limited(
                        window.reset_s,
                        "Too many requests with unusable API keys came from this address. Wait, and send a valid key.",
                    ),
                });
            }
        };
        progress.key = Some(Arc::clone(&key));
        auth::check_address(request, &key)?;
        let snapshot = self.source.published();
        let license = snapshot.find_license(key.license).cloned().ok_or_else(|| {
            // Keys are taken at once, while commits may be held back: the license is not there yet.
            Problem::new(Code::Unavailable, "The license of this API key is being set up. Try again in a minute.")
        })?;
        let counted = self.rate.count_key(&key.id, license.rate_limit, request.at);
        progress.window = Some(counted.unwrap_or_else(|window| window));
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
                let page = docs::find_page(&request.path, &self.settings.public_url).ok_or_else(|| {
                    let start = format!("There is no such page. Start at {}/docs.", self.settings.public_url);
                    Problem::new(Code::NotFound, start)
                })?;
                let page = (page.content_type, Arc::new(Document::new(page.body)));
                pages.insert(request.path.clone(), page.clone());
                page
            }
        };
        let policy = HeaderValue::from_static(docs::CONTENT_SECURITY_POLICY);
        Ok(Response::new(StatusCode::OK, content_type, Content::Document(body)).with(CONTENT_SECURITY_POLICY, policy))
    }
}

/// A new id: unique across processes, and in the order of time for those who search logs.
pub fn new_request_id() -> String {
    uuid::Uuid::now_v7().to_string()
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
