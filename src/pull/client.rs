//! The requests that keeping a copy takes, and what their answers mean.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;

use super::digest::ContentDigest;
use super::download::{Bytes, Download};
use super::entry::FeedPage;
use super::error::PullError;
use super::export::{Announced, Export};
use super::limits::{Bounded, Paced, ReadLimits, TooLong};
use super::pause::{pause_after, reason};
use super::server_url::ServerUrl;
use crate::contract::Code;
use crate::model::Dataset;
use crate::transport::causes::root_cause;
use crate::transport::http::{self as transport, ClientSettings, RequestBuilder, Response};
use crate::transport::trust;

/// The longest time for which a service can be asked to hold an empty page back, in seconds. Less than the silence that a
/// connection may keep.
const LONGEST_WAIT_S: u64 = 60;

/// How many records a page is asked for, one after the other, while pages are longer than is read. The first is the service's
/// own choice; a single record always fits.
const PAGE_LIMITS: [Option<u32>; 4] = [None, Some(50), Some(5), Some(1)];

/// The most that is read of an error's body, in bytes.
const PROBLEM_BYTES: u64 = 1 << 16;

/// The most characters of the service's own message that are shown.
const DETAIL_CHARS: usize = 500;

/// The longest file of a key, in bytes.
const KEY_FILE_BYTES: u64 = 1 << 16;

/// A caller with a key.
#[derive(Debug)]
pub struct PullClient {
    http: transport::Client,
    server: ServerUrl,
    authorization: String,
    /// Whether the service is taken to know `wait`, until it says that it does not.
    takes_wait: AtomicBool,
    /// Which of [`PAGE_LIMITS`] pages are asked for with.
    page_limit: AtomicU32,
    limits: ReadLimits,
}

/// The answer of a change feed.
#[derive(Debug)]
pub enum ChangesResponse {
    /// What changed after the token.
    Page(FeedPage),
    /// The token does not lead to the present any more: load the export (410).
    ResyncRequired,
}

/// What the service answered.
enum Answer {
    Success(HeaderMap, Response),
    Problem(ServiceProblem),
}

impl Answer {
    fn read(answer: Response, limits: &ReadLimits) -> Answer {
        let (status, headers) = (answer.status(), answer.headers().clone());
        if status == StatusCode::OK {
            return Answer::Success(headers, answer);
        }
        let mut json = Vec::new();
        // An error without a readable body is told by its status.
        let _ = bounded(&headers, answer, "the answer", PROBLEM_BYTES, limits).read_to_end(&mut json);
        Answer::Problem(ServiceProblem::read(status, &headers, &json))
    }
}

/// An error that the service answered with.
struct ServiceProblem {
    status: StatusCode,
    code: String,
    detail: String,
    retry_after: Option<Duration>,
}

impl PullClient {
    /// A caller who trusts the certificates of the system, or those of a PEM file alone.
    ///
    /// # Errors
    /// When the key cannot be sent or there are no certificates to trust, in words.
    pub fn new(server: ServerUrl, key: &str, ca_file: Option<&Path>) -> Result<PullClient, String> {
        PullClient::with_limits(server, key, ca_file, ReadLimits::default())
    }

    /// The same, with other limits.
    ///
    /// # Errors
    /// As [`PullClient::new`].
    pub fn with_limits(
        server: ServerUrl,
        key: &str,
        ca_file: Option<&Path>,
        limits: ReadLimits,
    ) -> Result<PullClient, String> {
        let is_plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain {
            return Err("the key is empty or holds characters that no key has; a key is `mfk_` and 38 letters and \
                        digits"
                .to_owned());
        }
        let tls = if server.is_https() { trust::trust_authorities(ca_file)? } else { trust::trust_nothing()? };
        let rules = ClientSettings { tls, is_local: server.is_loopback(), silence: limits.silence };
        let http = transport::client(rules).map_err(|error| root_cause(&error).to_string())?;
        let authorization = format!("Bearer {key}");
        let (takes_wait, page_limit) = (AtomicBool::new(true), AtomicU32::new(0));
        Ok(PullClient { http, server, authorization, takes_wait, page_limit, limits })
    }

    /// The bounds on what is read.
    pub fn limits(&self) -> &ReadLimits {
        &self.limits
    }

    /// The service's address.
    pub fn server(&self) -> &ServerUrl {
        &self.server
    }

    /// Whether the service holds empty pages back when it is asked to.
    pub fn takes_wait(&self) -> bool {
        self.takes_wait.load(Ordering::Relaxed)
    }

    /// The changes after a token: `GET /v1/{dataset}/changes?since=`. An empty page may be held back for `wait_s` seconds, until
    /// there is news; a service that does not know of that answers at once.
    ///
    /// # Errors
    /// When the service cannot be reached or refuses.
    pub fn changes(&self, dataset: Dataset, since: &str, wait_s: u64) -> Result<ChangesResponse, PullError> {
        let waits = wait_s > 0 && self.takes_wait();
        let wait = waits.then(|| ("wait", wait_s.min(LONGEST_WAIT_S).to_string()));
        match self.page(dataset, since, wait)? {
            Ok(page) => Ok(ChangesResponse::Page(page)),
            Err(problem) if problem.status == StatusCode::GONE => Ok(ChangesResponse::ResyncRequired),
            Err(problem) if waits && problem.code == Code::UnknownParameter.as_str() => {
                self.takes_wait.store(false, Ordering::Relaxed);
                self.changes(dataset, since, 0)
            }
            Err(problem) => Err(self.refusal(dataset, problem)),
        }
    }

    /// The changes after a token that a change of the license has ended: `GET /v1/{dataset}/changes?since=&resync=diff`. The
    /// page's own token is of the present license, so the pages after it are asked for like any other. To a service that does
    /// not know of that the token does not lead to the present.
    ///
    /// # Errors
    /// When the service cannot be reached or refuses.
    pub fn difference(&self, dataset: Dataset, since: &str) -> Result<ChangesResponse, PullError> {
        match self.page(dataset, since, Some(("resync", "diff".to_owned())))? {
            Ok(page) => Ok(ChangesResponse::Page(page)),
            Err(problem) if problem.status == StatusCode::GONE => Ok(ChangesResponse::ResyncRequired),
            Err(problem) if problem.code == Code::UnknownParameter.as_str() => Ok(ChangesResponse::ResyncRequired),
            Err(problem) => Err(self.refusal(dataset, problem)),
        }
    }

    /// A page of the change feed, asked for with an extension of the feed or without. Where a page is longer than is read,
    /// a shorter one is asked for.
    fn page(
        &self,
        dataset: Dataset,
        since: &str,
        extension: Option<(&str, String)>,
    ) -> Result<Result<FeedPage, ServiceProblem>, PullError> {
        loop {
            let step = self.page_limit.load(Ordering::Relaxed) as usize;
            let limit = PAGE_LIMITS.get(step).copied().flatten().map(|limit| ("limit", limit.to_string()));
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query.append_pair("since", since).extend_pairs(&extension).extend_pairs(limit);
            let (headers, body) = match self.get(&format!("/v1/{dataset}/changes?{}", query.finish()))? {
                Answer::Success(headers, body) => (headers, body),
                Answer::Problem(problem) => return Ok(Err(problem)),
            };
            let mut json = Vec::new();
            let most = self.limits.page_bytes;
            match bounded(&headers, body, "a page of the feed", most, &self.limits).read_to_end(&mut json) {
                Ok(_) => {
                    let page = FeedPage::read(&json)?;
                    if !page.has_more {
                        // The pages after these may be short again.
                        self.page_limit.store(0, Ordering::Relaxed);
                    }
                    return Ok(Ok(page));
                }
                Err(error) if TooLong::is(&error) && step + 1 < PAGE_LIMITS.len() => {
                    self.page_limit.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => return Err(self.broken(error)),
            }
        }
    }

    /// All records of a dataset: `GET /v1/exports/{dataset}`. They are read while they come; where the connection breaks, the
    /// export is gone on with after a pause, of which `note` hears, if it is the same one still.
    ///
    /// # Errors
    /// When the service cannot be reached or refuses.
    pub fn export<'a>(&'a self, dataset: Dataset, note: &'a dyn Fn(&str)) -> Result<Export<'a>, PullError> {
        let target = format!("/v1/exports/{dataset}");
        let (headers, body) = match self.get(&target)? {
            Answer::Success(headers, body) => (headers, self.paced(body)),
            Answer::Problem(problem) => return Err(self.refusal(dataset, problem)),
        };
        let Some(announced) = Announced::read(&headers)? else {
            return Err(PullError::failed(format!(
                "{} sent an export without `X-Sync-Token` and `X-Record-Count`; check that a medfeed service answers \
                 there, and that no proxy drops headers",
                self.server
            )));
        };
        let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        // Parts of a file fit together by a strong tag only.
        let etag = headers.get(header::ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/")).cloned();
        let bytes: Box<dyn Read + 'a> = match (length, etag) {
            (Some(length), Some(etag)) => {
                let resume = move |at: u64, failures: u32, error: &PullError| {
                    let pause = pause_after(failures, error);
                    let reason = reason(error);
                    note(&format!("{dataset}: {error}; going on in {} s{reason}", pause.as_secs_f64().ceil()));
                    sleep(pause);
                    self.rest(dataset, &target, &etag, at, length)
                };
                Box::new(Download::new(body, length, Box::new(resume)))
            }
            _ => body,
        };
        // The decoder stands above the connections and knows nothing of them.
        Export::new(announced, decoded(&headers, bytes), &self.limits)
    }

    /// The bytes of a file from `at` on; `None` when it is not the file with that tag any more.
    fn rest(
        &self,
        dataset: Dataset,
        target: &str,
        etag: &HeaderValue,
        at: u64,
        length: u64,
    ) -> Result<Option<Bytes>, PullError> {
        let request = self
            .request(Method::GET, target)
            .header(header::RANGE, format!("bytes={at}-"))
            .header(header::IF_RANGE, etag);
        let answer = request.send().map_err(|error| self.unreachable(&error))?;
        let range = answer.headers().get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok());
        let is_rest = range == Some(&format!("bytes {at}-{}/{length}", length - 1));
        if answer.status() == StatusCode::PARTIAL_CONTENT && is_rest {
            return Ok(Some(self.paced(answer)));
        }
        match Answer::read(answer, &self.limits) {
            Answer::Success(..) => Ok(None),
            Answer::Problem(problem) if problem.status == StatusCode::RANGE_NOT_SATISFIABLE => Ok(None),
            Answer::Problem(problem) => Err(self.refusal(dataset, problem)),
        }
    }

    /// What the service's content of a dataset comes to, and the token at which it does: `HEAD /v1/exports/{dataset}`. The
    /// export is downloaded where the service does not say it.
    ///
    /// # Errors
    /// When the service cannot be reached or refuses.
    pub fn export_digest(&self, dataset: Dataset) -> Result<(String, ContentDigest), PullError> {
        // What a service refuses it explains in a body, which HEAD has none of: then the download tells.
        if let Answer::Success(headers, _) = self.ask(Method::HEAD, &format!("/v1/exports/{dataset}"))?
            && let Some(Announced { token, digest: Some(digest), .. }) = Announced::read(&headers)?
        {
            return Ok((token, digest));
        }
        let mut export = self.export(dataset, &|_| ())?;
        while export.next_record()?.is_some() {}
        let content = export.content();
        Ok((export.token, content))
    }

    fn get(&self, target: &str) -> Result<Answer, PullError> {
        self.ask(Method::GET, target)
    }

    fn ask(&self, method: Method, target: &str) -> Result<Answer, PullError> {
        let answer = self.request(method, target).send().map_err(|error| self.unreachable(&error))?;
        Ok(Answer::read(answer, &self.limits))
    }

    /// The bytes of a body, at a pace.
    fn paced(&self, body: Response) -> Bytes {
        Box::new(Paced::new(body, self.limits.pace))
    }

    fn request(&self, method: Method, target: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{target}", self.server))
            .header(header::AUTHORIZATION, &self.authorization)
            .header(header::ACCEPT_ENCODING, "gzip")
    }

    /// What an answer other than success means for the copy of a dataset.
    fn refusal(&self, dataset: Dataset, problem: ServiceProblem) -> PullError {
        let ServiceProblem { status, code, detail, retry_after } = problem;
        let server = &self.server;
        let told = match (code.as_str(), detail.as_str()) {
            ("", "") => format!("{server} answered {status}"),
            (_, detail) => format!("{server} answered {status}: {detail}"),
        };
        if code == Code::DatasetNotLicensed.as_str() {
            PullError::NotLicensed(dataset)
        } else if code == Code::InvalidSyncToken.as_str() {
            PullError::Unusable(format!(
                "{server} has not issued the sync token of the copy of `{dataset}`: another service answers there, or its \
                 database was made anew; check the address, or give --reload to replace the copy's content by what this \
                 service has"
            ))
        } else if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            PullError::Refused(told)
        } else if status.is_redirection() || matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
            PullError::failed(format!("{told}; check the address: no medfeed service answers there"))
        } else {
            PullError::Failed { message: told, retry_after }
        }
    }

    fn unreachable(&self, error: &transport::Error) -> PullError {
        let reason = trust::reason_in(error).unwrap_or_else(|| match error.is_timeout() {
            true => format!("timed out: no answer in {} s", self.limits.silence.as_secs()),
            false => root_cause(error).to_string(),
        });
        PullError::failed(format!("{} cannot be reached: {reason}", self.server))
    }

    fn broken(&self, error: io::Error) -> PullError {
        if TooLong::is(&error) {
            return PullError::failed(error.to_string());
        }
        // A body that comes too slowly has its own error.
        let own = error.downcast::<PullError>();
        own.unwrap_or_else(|error| {
            PullError::failed(format!("the connection to {} broke: {}", self.server, root_cause(&error)))
        })
    }
}

/// A body, decompressed when it was compressed for transport.
fn decoded<'a>(headers: &HeaderMap, body: impl Read + 'a) -> Box<dyn Read + 'a> {
    let is_packed = headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding.as_bytes() == b"gzip");
    if is_packed { Box::new(MultiGzDecoder::new(body)) } else { Box::new(body) }
}

/// A body within bounds, on the wire and inflated.
fn bounded<'a>(
    headers: &HeaderMap,
    body: Response,
    what: &'static str,
    most: u64,
    limits: &ReadLimits,
) -> impl Read + 'a {
    let wire = Bounded::new(Paced::new(body, limits.pace), what, most);
    Bounded::new(decoded(headers, wire), what, most)
}

impl ServiceProblem {
    fn read(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ServiceProblem {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Members {
            r#type: String,
            detail: String,
        }
        // What is no problem, such as a proxy's page, has neither.
        let Members { r#type, mut detail } = serde_json::from_slice(body).unwrap_or_default();
        if let Some((end, _)) = detail.char_indices().nth(DETAIL_CHARS) {
            detail.truncate(end);
            detail.push('…');
        }
        let code = r#type.rsplit_once("/errors/").map(|(_, code)| code.to_owned()).unwrap_or_default();
        let retry_after = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        ServiceProblem { status, code, detail, retry_after: retry_after.map(Duration::from_secs) }
    }
}

/// Reads the key of a file, without the line's end.
///
/// # Errors
/// When the file cannot be read, in words.
pub fn key_in(file: &PathBuf) -> Result<String, String> {
    let mut text = String::new();
    let read = File::open(file).and_then(|file| file.take(KEY_FILE_BYTES).read_to_string(&mut text));
    read.map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(text.trim().to_owned())
}
