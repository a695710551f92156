//! The requests of a pull, and the meaning of their responses.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;

use super::body::{Bytes, Download, Paced, ReadLimits, bounded};
use super::error::{PullError, Result};
use super::export::{Announced, ContentDigest, Export, FeedPage};
use super::location::ServerUrl;
use crate::contract::Code;
use crate::disk::describe_at;
use crate::model::time::parse_http_date;
use crate::model::{Dataset, now};
use crate::transport::http::{self as transport, RequestBuilder, Response};
use crate::transport::{root_cause, tls};

/// The longest time of a long poll, in seconds. It is shorter than the read timeout, and than the 60 seconds after
/// which many proxies give up.
pub const LONGEST_WAIT_S: u64 = 45;

/// The `limit` of a page after one that was too long: so many of the longest records fit.
const SHORT_PAGE: &str = "3";

const MAX_PROBLEM_BYTES: u64 = 1 << 16;

const MAX_DETAIL_CHARS: usize = 500;

const MAX_KEY_FILE_BYTES: u64 = 1 << 16;

/// An HTTP client with an API key.
pub struct PullClient {
    http: transport::Client,
    server: ServerUrl,
    authorization: String,
    /// Whether the service supports `wait`. Assumed until it rejects the parameter.
    takes_wait: AtomicBool,
    limits: ReadLimits,
}

/// An error response (RFC 9457).
struct ServiceProblem {
    status: StatusCode,
    code: String,
    detail: String,
    retry_after: Option<Duration>,
    /// The target of a redirect.
    location: Option<String>,
}

impl PullClient {
    /// Creates a client that trusts the system's certificates, or only those of `ca_file`.
    pub fn new(
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
        let tls = if server.is_https {
            tls::trust_authorities(ca_file)?
        } else {
            tls::trust_nothing()?
        };
        let http = transport::client(tls, server.is_loopback, limits.read_timeout)
            .map_err(|error| root_cause(&error))?;
        let authorization = format!("Bearer {key}");
        Ok(PullClient {
            http,
            server,
            authorization,
            takes_wait: AtomicBool::new(true),
            limits,
        })
    }

    /// The limits on responses.
    pub fn limits(&self) -> &ReadLimits {
        &self.limits
    }

    /// The service's address.
    pub fn server(&self) -> &ServerUrl {
        &self.server
    }

    /// Whether the service supports long polling.
    pub fn takes_wait(&self) -> bool {
        self.takes_wait.load(Ordering::Relaxed)
    }

    /// The changes after a token: `GET /v1/{dataset}/changes?since=`. `None` if the feed cannot continue from the token
    /// (410). If there are no changes, the service may long-poll for `wait_s` seconds. Older services respond at once.
    pub fn changes(&self, dataset: Dataset, since: &str, wait_s: u64) -> Result<Option<FeedPage>> {
        let waits = wait_s > 0 && self.takes_wait();
        let wait = waits.then(|| ("wait", wait_s.min(LONGEST_WAIT_S).to_string()));
        match self.page(dataset, since, wait)? {
            Err(problem) if waits && problem.is(Code::UnknownParameter) => {
                self.takes_wait.store(false, Ordering::Relaxed);
                self.changes(dataset, since, 0)
            }
            answer => answer.map_err(|problem| self.refusal(dataset, problem)),
        }
    }

    /// The difference that a change of the license made: `GET /v1/{dataset}/changes?since=&resync=diff`. The page's
    /// token is valid for the new license, so [`PullClient::changes`] continues from it. Older services send none.
    pub fn difference(&self, dataset: Dataset, since: &str) -> Result<Option<FeedPage>> {
        match self.page(dataset, since, Some(("resync", "diff".to_owned())))? {
            Err(problem) if problem.is(Code::UnknownParameter) => Ok(None),
            answer => answer.map_err(|problem| self.refusal(dataset, problem)),
        }
    }

    /// Requests a page of the change feed, with an optional extra parameter. `None` if the feed cannot
    /// continue from the token (410).
    fn page(
        &self,
        dataset: Dataset,
        since: &str,
        extension: Option<(&str, String)>,
    ) -> Result<Result<Option<FeedPage>, ServiceProblem>> {
        let mut limit = None;
        loop {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query
                .append_pair("since", since)
                .extend_pairs(&extension)
                .extend_pairs(limit);
            let body = match self.ask(
                Method::GET,
                &format!("/v1/{dataset}/changes?{}", query.finish()),
            )? {
                Ok(body) => body,
                Err(problem) if problem.status == StatusCode::GONE => return Ok(Ok(None)),
                Err(problem) => return Ok(Err(problem)),
            };
            let mut json = Vec::new();
            match self
                .bounded(body, "a page of the feed", self.limits.page_bytes)
                .read_to_end(&mut json)
            {
                Ok(_) => return Ok(Ok(Some(FeedPage::parse(&json, self.limits.record_bytes)?))),
                // A page of the default length has no limit in bytes.
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge && limit.is_none() => {
                    limit = Some(("limit", SHORT_PAGE));
                }
                Err(error) => return Err(self.broken(error)),
            }
        }
    }

    /// Streams all records of a dataset: `GET /v1/exports/{dataset}`. Resumes a broken download after a pause if its
    /// `ETag` has not changed, and reports that to `note`.
    pub fn export<'a>(&'a self, dataset: Dataset, note: &'a dyn Fn(&str)) -> Result<Export<'a>> {
        let target = format!("/v1/exports/{dataset}");
        let body = self
            .ask(Method::GET, &target)?
            .map_err(|problem| self.refusal(dataset, problem))?;
        let headers = body.headers().clone();
        let Some(announced) = Announced::read(&headers)? else {
            return Err(PullError::failed(format!(
                "{} sent an export without `X-Sync-Token` and `X-Record-Count`; check that a medfeed service answers \
                 there, and that no proxy drops headers",
                self.server
            )));
        };
        let length = headers
            .get(header::CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse().ok());
        // `If-Range` needs a strong tag (RFC 9110, section 13.1.5).
        let etag = headers
            .get(header::ETAG)
            .filter(|tag| !tag.as_bytes().starts_with(b"W/"))
            .cloned();
        let bytes: Box<dyn Read + 'a> = match (length, etag) {
            (Some(length), Some(etag)) => Box::new(Download::new(
                self.paced(body),
                length,
                Box::new(move |at: u64, failures: u32, error: &PullError| {
                    let pause = error.pause_after(failures);
                    note(&format!(
                        "{dataset}: {error}; resuming in {} s",
                        pause.as_secs_f64().ceil()
                    ));
                    sleep(pause);
                    self.rest(dataset, &target, &etag, at, length)
                }),
            )),
            _ => self.paced(body),
        };
        Export::new(announced, decoded(&headers, bytes), &self.limits)
    }

    /// Requests the bytes of a file from `at` on; `None` if its tag has changed.
    fn rest(
        &self,
        dataset: Dataset,
        target: &str,
        etag: &HeaderValue,
        at: u64,
        length: u64,
    ) -> Result<Option<Bytes>> {
        let request = self
            .request(Method::GET, target)
            .header(header::RANGE, format!("bytes={at}-"))
            .header(header::IF_RANGE, etag);
        let answer = request.send().map_err(|error| self.unreachable(&error))?;
        let range = answer
            .headers()
            .get(header::CONTENT_RANGE)
            .and_then(|range| range.to_str().ok());
        let is_rest = range == Some(&format!("bytes {at}-{}/{length}", length - 1));
        if answer.status() == StatusCode::PARTIAL_CONTENT && is_rest {
            return Ok(Some(self.paced(answer)));
        }
        match self.checked(answer) {
            Ok(_) => Ok(None),
            Err(problem) if problem.status == StatusCode::RANGE_NOT_SATISFIABLE => Ok(None),
            Err(problem) => Err(self.refusal(dataset, problem)),
        }
    }

    /// The digest of the service's content of a dataset, and its token: `HEAD /v1/exports/{dataset}`. Downloads the
    /// export if the service sends no digest.
    pub fn export_digest(&self, dataset: Dataset) -> Result<(String, ContentDigest)> {
        match self.ask(Method::HEAD, &format!("/v1/exports/{dataset}"))? {
            Ok(answer) => {
                if let Some(Announced {
                    token,
                    digest: Some(digest),
                    ..
                }) = Announced::read(answer.headers())?
                {
                    return Ok((token, digest));
                }
            }
            // A later request may get the digest.
            Err(problem) if matches!(problem.status.as_u16(), 429 | 500 | 502..=504) => {
                return Err(self.refusal(dataset, problem));
            }
            // The error of a HEAD request has no body. The GET request gets the explanation.
            Err(_) => {}
        }
        let mut export = self.export(dataset, &|_| ())?;
        while export.next_record()?.is_some() {}
        let content = export.content();
        Ok((export.announced.token, content))
    }

    fn ask(&self, method: Method, target: &str) -> Result<Result<Response, ServiceProblem>> {
        let answer = self
            .request(method, target)
            .send()
            .map_err(|error| self.unreachable(&error))?;
        Ok(self.checked(answer))
    }

    /// Returns an answer with the status 200, and reads any other one.
    fn checked(&self, answer: Response) -> Result<Response, ServiceProblem> {
        let status = answer.status();
        let headers = answer.headers().clone();
        if status == StatusCode::OK {
            return Ok(answer);
        }
        let mut json = Vec::new();
        // Without a readable body, the message shows the status only.
        let _ = self
            .bounded(answer, "the answer", MAX_PROBLEM_BYTES)
            .read_to_end(&mut json);
        Err(ServiceProblem::read(status, &headers, &json))
    }

    /// A body whose size is limited, both compressed and decompressed.
    fn bounded(&self, body: Response, what: &'static str, most: u64) -> impl Read {
        let headers = body.headers().clone();
        let wire = bounded(self.paced(body), what, most);
        bounded(decoded(&headers, wire), what, most)
    }

    /// A body that fails if it is too slow.
    fn paced(&self, body: Response) -> Bytes {
        Box::new(Paced::new(body, &self.limits))
    }

    fn request(&self, method: Method, target: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{target}", self.server))
            .header(header::AUTHORIZATION, &self.authorization)
            .header(header::ACCEPT_ENCODING, "gzip")
    }

    /// Maps an error response to a [`PullError`].
    fn refusal(&self, dataset: Dataset, problem: ServiceProblem) -> PullError {
        let ServiceProblem {
            status,
            code,
            detail,
            retry_after,
            location,
        } = problem;
        let server = &self.server;
        let message = match (code.as_str(), detail.as_str()) {
            ("", "") => format!(
                "{server} answered {status}, without the explanation of a medfeed service: something in between may have \
                 answered, such as a proxy, a firewall, a login page, or a server that expects https{}",
                self.proxy_advice()
            ),
            (_, detail) => format!("{server} answered {status}: {detail}"),
        };
        if let Some(address) = location.and_then(|location| self.server.redirected(&location)) {
            PullError::Redirected(format!(
                "{message}: the service redirects to {address}; use that address if you trust it; the key was not sent there"
            ))
        } else if status == StatusCode::FORBIDDEN && code == Code::DatasetNotLicensed.as_str() {
            PullError::NotLicensed(dataset)
        } else if code == Code::InvalidSyncToken.as_str() {
            PullError::Unusable(format!(
                "{server} did not issue the sync token of the copy of `{dataset}`: it is another service, or its \
                 database was created again; check the address, or replace the copy's content with --reload"
            ))
        } else if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            PullError::Refused(message)
        } else if status.is_redirection()
            || matches!(
                status,
                StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
            )
        {
            PullError::failed(format!(
                "{message}; check the address: no medfeed service answers there"
            ))
        } else {
            PullError::Failed {
                message,
                retry_after,
            }
        }
    }

    /// The proxy in between, as the end of a message; empty if there is none.
    fn proxy_advice(&self) -> String {
        if self.server.is_loopback {
            return String::new();
        }
        transport::proxy_advice(&self.server.to_string())
    }

    fn unreachable(&self, error: &transport::Error) -> PullError {
        let cause = root_cause(error);
        let reason = tls::reason_in(error).unwrap_or_else(|| {
            match (error.is_timeout(), error.is_connect()) {
                (true, true) => {
                    "timed out while connecting; check the address and the network".to_owned()
                }
                (true, false) => format!(
                    "timed out: no answer in {} s",
                    self.limits.read_timeout.as_secs()
                ),
                (false, true) => {
                    format!("{cause}; check the address, the network and the server")
                }
                // A server that expects TLS answers with an alert.
                (false, false) if cause.starts_with("invalid HTTP") => {
                    "the server there does not answer in HTTP; if it speaks HTTPS, use an address that begins with https://"
                        .to_owned()
                }
                (false, false) => cause,
            }
        });
        let advice = self.proxy_advice();
        PullError::failed(format!(
            "{} cannot be reached: {reason}{advice}",
            self.server
        ))
    }

    fn broken(&self, error: io::Error) -> PullError {
        // A body that is too long or too slow has its own error.
        let own = error.downcast::<PullError>();
        own.unwrap_or_else(|error| {
            PullError::failed(format!(
                "the connection to {} broke: {}",
                self.server,
                root_cause(&error)
            ))
        })
    }
}

/// A body without its `Content-Encoding`.
fn decoded<'a>(headers: &HeaderMap, body: impl Read + 'a) -> Box<dyn Read + 'a> {
    let coding = headers
        .get(header::CONTENT_ENCODING)
        .map(HeaderValue::as_bytes);
    let is_packed = coding.is_some_and(|coding| coding.eq_ignore_ascii_case(b"gzip"));
    if is_packed {
        Box::new(MultiGzDecoder::new(body))
    } else {
        Box::new(body)
    }
}

impl ServiceProblem {
    fn read(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ServiceProblem {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Members {
            r#type: String,
            detail: String,
        }
        // Other bodies, such as a proxy's page, have neither member.
        let Members { r#type, mut detail } = serde_json::from_slice(body).unwrap_or_default();
        if let Some((end, _)) = detail.char_indices().nth(MAX_DETAIL_CHARS) {
            detail.truncate(end);
            detail.push('…');
        }
        let code = r#type
            .rsplit_once("/errors/")
            .map(|(_, code)| code.to_owned())
            .unwrap_or_default();
        let text = |name| {
            headers
                .get(name)
                .and_then(|value: &HeaderValue| value.to_str().ok())
        };
        // A time is compared with the service's own clock.
        let sent_at = text(header::DATE)
            .and_then(parse_http_date)
            .unwrap_or_else(now);
        let retry_after_s = text(header::RETRY_AFTER).and_then(|value| {
            value.parse().ok().or_else(|| {
                parse_http_date(value).map(|at| {
                    at.unix_s()
                        .saturating_sub(sent_at.unix_s())
                        .try_into()
                        .unwrap_or(0)
                })
            })
        });
        let location = text(header::LOCATION)
            .filter(|_| status.is_redirection())
            .map(str::to_owned);
        ServiceProblem {
            status,
            code,
            detail,
            retry_after: retry_after_s.map(Duration::from_secs),
            location,
        }
    }

    fn is(&self, code: Code) -> bool {
        self.code == code.as_str()
    }
}

/// Reads a key from a file. The file may begin with the byte-order mark of UTF-8.
pub fn key_in(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read =
        File::open(file).and_then(|file| file.take(MAX_KEY_FILE_BYTES).read_to_string(&mut text));
    match read.map(|_| text) {
        Ok(text) if !text.contains('\0') => {
            Ok(text.trim_start_matches('\u{feff}').trim().to_owned())
        }
        Err(error) if error.kind() != io::ErrorKind::InvalidData => Err(describe_at(file, &error)),
        _ => Err(format!(
            "{}: the file is not UTF-8 text (UTF-16, perhaps); save the key as UTF-8",
            file.display()
        )),
    }
}
