//! Responses: status, headers and body.

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING,
    CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::answers::{Answer, Body};
use super::browsers::Cors;
use super::conditional::{self, RequestedPart};
use super::observe::FeedUse;
use super::problem::{Code, Problem};
use super::rate::Window;
use super::request::Request;
use crate::model::KeyHash;

pub static X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub static X_SYNC_TOKEN: HeaderName = HeaderName::from_static("x-sync-token");
pub static X_RECORD_COUNT: HeaderName = HeaderName::from_static("x-record-count");
/// The SHA-256 of the whole file, also in partial responses (RFC 9530, section 3).
pub static REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");
/// The SHA-256 of an uncompressed export.
pub static X_RECORDS_DIGEST: HeaderName = HeaderName::from_static("x-records-digest");
static RATELIMIT_LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
static RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
static RATELIMIT_RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

const EXPECTED_HEADERS: usize = 16;

/// A finished response.
#[must_use = "an answer that is not sent leaves its caller waiting"]
pub struct Response {
    /// The HTTP status.
    pub status: StatusCode,
    /// All headers.
    pub headers: HeaderMap,
    /// The body; empty for HEAD.
    pub body: Bytes,
    /// The error code, if it is a problem.
    pub problem: Option<Code>,
    /// The caller's position in a change feed, if it sent a sync token.
    pub feed: Option<FeedUse>,
    /// The key of the request, if it is usable from its address.
    pub key: Option<KeyHash>,
}

impl Response {
    /// A response without a body, with the headers that all have: the request id, and the rate window under `/v1`.
    fn begin(status: StatusCode, request_id: &str, window: Option<&Window>) -> Response {
        let mut headers = HeaderMap::with_capacity(EXPECTED_HEADERS);
        if let Ok(id) = HeaderValue::from_str(request_id) {
            headers.insert(X_REQUEST_ID.clone(), id);
        }
        if let Some(window) = window {
            headers.insert(RATELIMIT_LIMIT.clone(), window.limit.into());
            headers.insert(RATELIMIT_REMAINING.clone(), window.remaining.into());
            headers.insert(RATELIMIT_RESET.clone(), window.reset_s.into());
        }
        Response {
            status,
            headers,
            body: Bytes::new(),
            problem: None,
            feed: None,
            key: None,
        }
    }

    /// The response to a request, including 304, partial content (206, or 416 beyond the end), and HEAD.
    pub(super) fn new(
        answer: &Answer,
        request: &Request,
        request_id: &str,
        window: Option<&Window>,
    ) -> Result<Response, Problem> {
        let mut response = Response::begin(StatusCode::OK, request_id, window);
        response.feed = answer.feed;
        match &answer.etag {
            None => {
                response.set(CACHE_CONTROL, "no-store");
            }
            Some(etag) => {
                response.set(CACHE_CONTROL, "private, no-cache");
                response.set(VARY, "Authorization, X-API-Key, Accept-Encoding");
                response.headers.insert(ETAG, etag.header().clone());
                if conditional::matches(request.headers.get_all(IF_NONE_MATCH).iter(), etag) {
                    // Equal bytes may have a newer sync token, which the caller needs after a change of the license.
                    response.headers.extend(headers_without_body(answer));
                    response.status = StatusCode::NOT_MODIFIED;
                    return Ok(response);
                }
            }
        }
        response.set(CONTENT_TYPE, answer.content_type);
        response.set(X_CONTENT_TYPE_OPTIONS, "nosniff");
        for (name, value) in &answer.headers {
            response.headers.insert(name, value.clone());
        }
        if let Body::Export { name, ending, .. } = &answer.body {
            let name = format!(
                "attachment; filename=\"{name}-{}.{ending}\"",
                request.wall.date()
            );
            if let Ok(name) = HeaderValue::try_from(name) {
                response.headers.insert(CONTENT_DISPOSITION, name);
            }
        }
        let gzip = accepts_gzip(&request.headers)
            .then(|| answer.gzip())
            .flatten();
        if gzip.is_some() {
            response.set(CONTENT_ENCODING, "gzip");
        }
        let mut body = gzip.unwrap_or_else(|| answer.plain());
        if answer.is_file()
            && let Some(etag) = &answer.etag
        {
            body = response.cut(body, request, answer, etag)?;
        }
        response.put_body(body, request);
        Ok(response)
    }

    /// Cuts a file to the part that the request asks for.
    fn cut(
        &mut self,
        file: Bytes,
        request: &Request,
        answer: &Answer,
        etag: &conditional::ETag,
    ) -> Result<Bytes, Problem> {
        self.set(ACCEPT_RANGES, "bytes");
        match RequestedPart::of(&request.method, &request.headers, etag, file.len()) {
            RequestedPart::Whole => Ok(file),
            RequestedPart::Part(part) => {
                let range = format!("bytes {}-{}/{}", part.start, part.end - 1, file.len());
                let range = HeaderValue::try_from(range).map_err(Problem::internal)?;
                self.headers.insert(CONTENT_RANGE, range);
                self.status = StatusCode::PARTIAL_CONTENT;
                Ok(file.slice(part))
            }
            RequestedPart::Beyond => {
                let of_file = headers_without_body(answer).chain([(ETAG, etag.header().clone())]);
                Err(Problem::range_beyond(file.len(), of_file.collect()))
            }
        }
    }

    pub(super) fn of_problem(
        problem: Problem,
        docs_url: &str,
        request: &Request,
        request_id: &str,
        window: Option<&Window>,
    ) -> Response {
        problem.log(request_id);
        let mut response = Response::begin(problem.status, request_id, window);
        response.problem = Some(problem.code);
        response.set(CONTENT_TYPE, "application/problem+json");
        response.set(X_CONTENT_TYPE_OPTIONS, "nosniff");
        response.set(CACHE_CONTROL, "no-store");
        response.put_body(problem.body(docs_url, request_id).into(), request);
        response.headers.extend(problem.headers);
        response
    }

    pub(super) fn preflight(
        request: &Request,
        request_id: &str,
        window: Option<&Window>,
    ) -> Response {
        let mut response = Response::begin(StatusCode::NO_CONTENT, request_id, window);
        response.set(CACHE_CONTROL, "no-store");
        response.headers.extend(Cors::preflight_headers(request));
        response
    }

    fn set(&mut self, name: HeaderName, value: &'static str) {
        self.headers.insert(name, HeaderValue::from_static(value));
    }

    fn put_body(&mut self, body: Bytes, request: &Request) {
        self.headers.insert(CONTENT_LENGTH, body.len().into());
        if !request.is_head() {
            self.body = body;
        }
    }
}

/// The headers of an answer whose bytes are not sent.
fn headers_without_body(answer: &Answer) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    answer
        .headers
        .iter()
        .filter(|(name, _)| *name != CONTENT_ENCODING)
        .cloned()
}

/// Whether the caller accepts gzip, by name or `*`, with a weight above 0 (RFC 9110, section 12.5.3).
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    let mut named = None;
    let mut any = None;
    for item in items(headers, &ACCEPT_ENCODING) {
        let mut parts = item.split(';').map(str::trim);
        let coding = parts.next().unwrap_or_default();
        let weight =
            parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let is_accepted =
            weight.is_none_or(|weight| weight.parse::<f32>().is_ok_and(|weight| weight > 0.0));
        if coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") {
            named = Some(is_accepted);
        } else if coding == "*" {
            any = Some(is_accepted);
        }
    }
    named.or(any).unwrap_or(false)
}

/// Whether the caller names HTML and not JSON, as browsers do. Weights do not count.
pub fn prefers_html(headers: &HeaderMap) -> bool {
    let names = |kind: &str| {
        items(headers, &ACCEPT).any(|item| item.to_ascii_lowercase().starts_with(kind))
    };
    names("text/html") && !names("application/json") && !names("application/problem+json")
}

/// The items of a list header.
fn items<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers
        .get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_if_accepted() {
        let cases = outcomes![
            "gzip" "GZip" "x-gzip" "gzip;q=1.0" "identity;q=0, *;q=0.5" "br, gzip;q=0.5" "*" => true;
            "gzip;q=0.000, *" "gzip;q=0" "gzip; q=0, *" "*;q=0" "br" "identity" "" => false;
        ];
        for (value, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(accepts_gzip(&headers), expected, "{value:?}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn html_is_sent_if_named_without_json() {
        let cases: [(&[&str], bool); 10] = cases![
            &["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"], true;
            &["text/html, */*"], true;
            &["Text/HTML;q=0.5"], true;
            &["image/png", "text/html"], true;
            &["*/*"], false;
            &[""], false;
            &["text/*"], false;
            &["application/json, text/html"], false;
            &["text/html", "application/problem+json"], false;
            &[], false;
        ];
        for (lines, expected) in cases {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(ACCEPT, HeaderValue::from_static(line));
            }
            assert_eq!(prefers_html(&headers), expected, "{lines:?}");
        }
    }

    #[test]
    fn all_lines_of_a_list_header_count() {
        let cases: [(&[&str], bool); 9] = [
            (&["br", "gzip"], true),
            (&["gzip", "br"], true),
            (&["br", "deflate"], false),
            (&["*", "gzip;q=0"], false),
            (&["gzip;q=0", "*"], false),
            (&["*;q=0", "gzip"], true),
            (&["gzip;q=0.001"], true),
            (&["gzip;level=9;q=0"], false),
            (&["gzip;Q=0"], false),
        ];
        for (lines, expected) in cases {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(ACCEPT_ENCODING, HeaderValue::from_static(line));
            }
            assert_eq!(accepts_gzip(&headers), expected, "{lines:?}");
        }
    }
}
