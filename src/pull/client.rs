//! The requests that keeping a copy takes, and what their answers mean.

use std::fmt::{self, Display};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde::Deserialize;
use tokio_rustls::rustls::crypto::ring;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::WithoutBody;
use ureq::{Agent, Body, RequestBuilder};
use url::{Host, Url};

use super::digest::{ContentDigest, Hasher};
use super::download::{Bytes, Download};
use super::entry::{Entry, Page};
use super::error::PullError;
use super::pause::pause_after;
use crate::contract::Code;
use crate::model::Dataset;

/// How long a connection may take to come about.
const CONNECTING: Duration = Duration::from_secs(15);

/// How long a connection may be silent: an export may wait for its turn, and is built before its first byte is sent.
const SILENCE: Duration = Duration::from_secs(90);

/// The longest time for which a service can be asked to hold an empty page back, in seconds. Less than [`SILENCE`].
const LONGEST_WAIT_S: u64 = 60;

/// The most that a page of the feed may take, in bytes, so that a wrong server does not fill the memory.
const PAGE_BYTES: u64 = 1 << 30;

/// The most that is read of an error's body, in bytes.
const PROBLEM_BYTES: u64 = 1 << 16;

/// The base URL of a service: what stands before `/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    text: String,
    is_https: bool,
    is_loopback: bool,
}

impl ServerUrl {
    /// Whether keys would travel in plain text beyond this machine.
    pub fn is_exposed(&self) -> bool {
        !self.is_https && !self.is_loopback
    }
}

impl FromStr for ServerUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<ServerUrl, String> {
        let url = Url::parse(text).map_err(|error| format!("{error}; write it as https://feed.example.org"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("`{}` is neither https nor http; write it as https://feed.example.org", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            return Err("write the service's address alone, such as https://feed.example.org; the key goes into \
                        MEDFEED_KEY or --key-file"
                .to_owned());
        }
        let is_loopback = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
            Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
            None => false,
        };
        let base = url.as_str().trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base);
        Ok(ServerUrl { text: base.to_owned(), is_https: url.scheme() == "https", is_loopback })
    }
}

impl Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A caller with a key.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    server: ServerUrl,
    authorization: String,
    /// Whether the service is taken to know `wait`, until it says that it does not.
    takes_wait: AtomicBool,
}

/// The answer of a change feed.
#[derive(Debug)]
pub enum Changes {
    /// What changed after the token.
    Page(Page),
    /// The token does not lead to the present any more: load the export (410).
    ResyncRequired,
}

/// How a request begins.
type Method = fn(&Agent, String) -> RequestBuilder<WithoutBody>;

/// What the service answered.
enum Answer {
    Success(HeaderMap, Body),
    Problem(Problem),
}

impl Answer {
    fn read(answer: Response<Body>) -> Answer {
        let (head, body) = answer.into_parts();
        if head.status == StatusCode::OK {
            return Answer::Success(head.headers, body);
        }
        let mut json = Vec::new();
        // An error without a readable body is told by its status.
        let _ = decoded(&head.headers, body.into_reader()).take(PROBLEM_BYTES).read_to_end(&mut json);
        Answer::Problem(Problem::read(head.status, &head.headers, &json))
    }
}

/// An error that the service answered with.
struct Problem {
    status: StatusCode,
    code: String,
    detail: String,
    retry_after: Option<Duration>,
}

impl Client {
    /// A caller who trusts the certificates of the system, or those of a PEM file alone.
    ///
    /// # Errors
    /// When the key cannot be sent or there are no certificates to trust, in words.
    pub fn new(server: ServerUrl, key: &str, ca_file: Option<&Path>) -> Result<Client, String> {
        let is_plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain {
            return Err("the key is empty or holds characters that no key has; a key is `mfk_` and 38 letters and \
                        digits"
                .to_owned());
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // A key goes to no other place than the one it was given for.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("medfeed/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECTING))
            .timeout_per_read(Some(SILENCE))
            .timeout_per_write(Some(SILENCE));
        if server.is_loopback {
            config = config.proxy(None);
        }
        if server.is_https {
            let roots = trusted(ca_file)?;
            let provider = Arc::new(ring::default_provider());
            let tls = TlsConfig::builder().root_certs(RootCerts::from(roots));
            config = config.tls_config(tls.unversioned_rustls_crypto_provider(provider).build());
        }
        Ok(Client {
            agent: config.build().new_agent(),
            server,
            authorization: format!("Bearer {key}"),
            takes_wait: AtomicBool::new(true),
        })
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
    pub fn changes(&self, dataset: Dataset, since: &str, wait_s: u64) -> Result<Changes, PullError> {
        let waits = wait_s > 0 && self.takes_wait();
        let wait = waits.then(|| ("wait", wait_s.min(LONGEST_WAIT_S).to_string()));
        match self.page(dataset, since, wait)? {
            Ok(page) => Ok(Changes::Page(page)),
            Err(problem) if problem.status == StatusCode::GONE => Ok(Changes::ResyncRequired),
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
    pub fn difference(&self, dataset: Dataset, since: &str) -> Result<Changes, PullError> {
        match self.page(dataset, since, Some(("resync", "diff".to_owned())))? {
            Ok(page) => Ok(Changes::Page(page)),
            Err(problem) if problem.status == StatusCode::GONE => Ok(Changes::ResyncRequired),
            Err(problem) if problem.code == Code::UnknownParameter.as_str() => Ok(Changes::ResyncRequired),
            Err(problem) => Err(self.refusal(dataset, problem)),
        }
    }

    /// A page of the change feed, asked for with an extension of the feed or without.
    fn page(
        &self,
        dataset: Dataset,
        since: &str,
        extension: Option<(&str, String)>,
    ) -> Result<Result<Page, Problem>, PullError> {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("since", since).extend_pairs(extension);
        match self.get(&format!("/v1/{dataset}/changes?{}", query.finish()))? {
            Answer::Success(headers, body) => {
                let mut json = Vec::new();
                let body = decoded(&headers, body.into_reader()).take(PAGE_BYTES).read_to_end(&mut json);
                body.map_err(|error| self.broken(&error))?;
                Ok(Ok(Page::read(&json)?))
            }
            Answer::Problem(problem) => Ok(Err(problem)),
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
            Answer::Success(headers, body) => (headers, body.into_reader()),
            Answer::Problem(problem) => return Err(self.refusal(dataset, problem)),
        };
        let Some(Announced { token, records, digest }) = Announced::read(&headers) else {
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
                let go_on = move |at: u64, failures: u32, error: &PullError| {
                    let pause = pause_after(failures, error);
                    note(&format!("{dataset}: {error}; going on in {} s", pause.as_secs_f64().ceil()));
                    sleep(pause);
                    self.rest(dataset, &target, &etag, at, length)
                };
                Box::new(Download::new(Box::new(body), length, Box::new(go_on)))
            }
            _ => Box::new(body),
        };
        // The decoder stands above the connections and knows nothing of them.
        let lines = BufReader::new(MultiGzDecoder::new(decoded(&headers, bytes)));
        let hasher = Hasher::default();
        Ok(Export { token, records, digest, lines, line: Vec::new(), came: 0, last_id: 0, hasher })
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
            .request(Agent::get, target)
            .header(header::RANGE, format!("bytes={at}-"))
            .header(header::IF_RANGE, etag);
        let answer = request.call().map_err(|error| self.unreachable(&error))?;
        let range = answer.headers().get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok());
        let is_rest = range == Some(&format!("bytes {at}-{}/{length}", length - 1));
        if answer.status() == StatusCode::PARTIAL_CONTENT && is_rest {
            return Ok(Some(Box::new(answer.into_body().into_reader())));
        }
        match Answer::read(answer) {
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
        if let Answer::Success(headers, _) = self.ask(Agent::head, &format!("/v1/exports/{dataset}"))?
            && let Some(Announced { token, digest: Some(digest), .. }) = Announced::read(&headers)
        {
            return Ok((token, digest));
        }
        let mut export = self.export(dataset, &|_| ())?;
        while export.next_record()?.is_some() {}
        Ok((export.token, export.hasher.finish()))
    }

    fn get(&self, target: &str) -> Result<Answer, PullError> {
        self.ask(Agent::get, target)
    }

    fn ask(&self, method: Method, target: &str) -> Result<Answer, PullError> {
        let answer = self.request(method, target).call().map_err(|error| self.unreachable(&error))?;
        Ok(Answer::read(answer))
    }

    fn request(&self, method: Method, target: &str) -> RequestBuilder<WithoutBody> {
        method(&self.agent, format!("{}{target}", self.server))
            .header(header::AUTHORIZATION, &self.authorization)
            .header(header::ACCEPT_ENCODING, "gzip")
    }

    /// What an answer other than success means for the copy of a dataset.
    fn refusal(&self, dataset: Dataset, problem: Problem) -> PullError {
        let Problem { status, code, detail, retry_after } = problem;
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

    fn unreachable(&self, error: &ureq::Error) -> PullError {
        PullError::failed(format!("{} cannot be reached: {error}", self.server))
    }

    fn broken(&self, error: &std::io::Error) -> PullError {
        PullError::failed(format!("the connection to {} broke: {error}", self.server))
    }
}

/// A body, decompressed when it was compressed for transport.
fn decoded<'a>(headers: &HeaderMap, body: impl Read + 'a) -> Box<dyn Read + 'a> {
    let is_packed = headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding.as_bytes() == b"gzip");
    if is_packed { Box::new(MultiGzDecoder::new(body)) } else { Box::new(body) }
}

impl Problem {
    fn read(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Problem {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Members {
            r#type: String,
            detail: String,
        }
        // What is no problem, such as a proxy's page, has neither.
        let Members { r#type, detail } = serde_json::from_slice(body).unwrap_or_default();
        let code = r#type.rsplit_once("/errors/").map(|(_, code)| code.to_owned()).unwrap_or_default();
        let retry_after = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        Problem { status, code, detail, retry_after: retry_after.map(Duration::from_secs) }
    }
}

/// What the headers of an export say of it.
struct Announced {
    token: String,
    records: u64,
    /// Older services do not say it.
    digest: Option<ContentDigest>,
}

impl Announced {
    fn read(headers: &HeaderMap) -> Option<Announced> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let token = text("x-sync-token")?.to_owned();
        let records = text("x-record-count")?.parse().ok()?;
        let digest = text("x-records-digest").and_then(|field| ContentDigest::announced(records, field));
        Some(Announced { token, records, digest })
    }
}

/// An export, read record by record.
pub struct Export<'a> {
    /// The token to go on with once all records are saved.
    pub token: String,
    /// How many records the service announced.
    pub records: u64,
    digest: Option<ContentDigest>,
    lines: BufReader<MultiGzDecoder<Box<dyn Read + 'a>>>,
    line: Vec<u8>,
    came: u64,
    last_id: i64,
    hasher: Hasher,
}

impl fmt::Debug for Export<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Export({} of {} records)", self.came, self.records)
    }
}

impl Export<'_> {
    /// The next record, in the order of ids; `None` after the last one, when all have come as they were announced.
    ///
    /// # Errors
    /// When the export ends early, was changed on its way, or is not one.
    pub fn next_record(&mut self) -> Result<Option<Entry>, PullError> {
        self.line.clear();
        let read = self.lines.read_until(b'\n', &mut self.line);
        let length = read.map_err(|error| {
            // What ended the download tells itself.
            let told = error.downcast::<PullError>();
            told.unwrap_or_else(|error| PullError::failed(format!("the export did not come whole: {error}")))
        })?;
        if length == 0 {
            if self.came != self.records {
                return Err(PullError::failed(format!(
                    "the export did not come whole: {} of {} records",
                    self.came, self.records
                )));
            }
            if self.digest.as_ref().is_some_and(|digest| *digest != self.hasher.clone().finish()) {
                return Err(PullError::failed(
                    "the export was changed on its way: its records are not those that `X-Records-Digest` tells; the copy \
                     stays as it was; check what stands between this machine and the service, such as a proxy",
                ));
            }
            return Ok(None);
        }
        let line = self.line.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
        let line = line.ok_or_else(|| PullError::failed("the export holds a line that is cut off or no text"))?;
        let entry = Entry::read(line)?;
        if entry.id <= self.last_id || entry.is_removal {
            return Err(PullError::failed(format!(
                "the export is not in the order of ids: {} stands after {}",
                entry.id, self.last_id
            )));
        }
        self.hasher.add(line.as_bytes());
        self.last_id = entry.id;
        self.came += 1;
        Ok(Some(entry))
    }
}

/// The certificates that are trusted: those of a PEM file, or of the system.
///
/// # Errors
/// When there are none, in words.
pub(super) fn trusted(ca_file: Option<&Path>) -> Result<Vec<Certificate<'static>>, String> {
    ca_file.map_or_else(system_certificates, certificates_in)
}

/// The certificates of a PEM file.
fn certificates_in(file: &Path) -> Result<Vec<Certificate<'static>>, String> {
    let pem = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let items = parse_pem(&pem).collect::<Result<Vec<_>, _>>();
    let items = items.map_err(|error| format!("{}: {error}", file.display()))?;
    let certificates: Vec<_> = items
        .into_iter()
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(format!("{} holds no certificate; give a PEM file with `BEGIN CERTIFICATE`", file.display()));
    }
    Ok(certificates)
}

fn system_certificates() -> Result<Vec<Certificate<'static>>, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err("the system has no certificates of authorities; install them (on Debian the package \
                    `ca-certificates`), or give --ca-file"
            .to_owned());
    }
    Ok(found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect())
}

/// Reads the key of a file, without the line's end.
///
/// # Errors
/// When the file cannot be read, in words.
pub fn key_in(file: &PathBuf) -> Result<String, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let cases = [
            ("https://feed.example.org", Some(("https://feed.example.org", false))),
            ("https://feed.example.org/", Some(("https://feed.example.org", false))),
            ("https://feed.example.org/v1/", Some(("https://feed.example.org", false))),
            ("https://EXAMPLE.org:443/feeds/a", Some(("https://example.org/feeds/a", false))),
            ("http://127.0.0.1:8080", Some(("http://127.0.0.1:8080", false))),
            ("http://[::1]:8080", Some(("http://[::1]:8080", false))),
            ("http://localhost", Some(("http://localhost", false))),
            ("http://feed.example.org", Some(("http://feed.example.org", true))),
            ("http://192.0.2.1", Some(("http://192.0.2.1", true))),
            ("feed.example.org", None),
            ("ftp://feed.example.org", None),
            ("https://mfk_x@feed.example.org", None),
            ("https://feed.example.org?key=x", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let read = text.parse::<ServerUrl>().ok().map(|url| (url.to_string(), url.is_exposed()));
            let expected = expected.map(|(url, is_exposed)| (url.to_owned(), is_exposed));
            assert_eq!(read, expected, "{text}");
        }
    }
}
