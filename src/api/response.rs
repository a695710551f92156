//! What goes out. Every answer passes through [`Response::finish`], which puts on it what every answer carries.

use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH,
    VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::content::Content;
use super::etag::{self, ETag};
use super::observe::FeedUse;
use super::problem::Code;
use super::rate::Window;
use super::request::Request;
use crate::query::packed::Packer;
use crate::store::Rope;

/// The id that every answer carries.
pub static X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The change-feed position of an export.
pub static X_SYNC_TOKEN: HeaderName = HeaderName::from_static("x-sync-token");
/// The number of records in an export.
pub static X_RECORD_COUNT: HeaderName = HeaderName::from_static("x-record-count");
static RATELIMIT_LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
static RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
static RATELIMIT_RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// Room for so many headers is made at once.
const HEADERS_EXPECTED: usize = 12;

/// An answer in the making.
#[must_use = "an answer that is not sent leaves its caller waiting"]
#[derive(Clone, Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers so far.
    pub headers: HeaderMap,
    /// The body, once the answer is finished.
    pub body: Rope,
    /// The kind of error, of a problem.
    pub problem: Option<Code>,
    /// Where the caller stands in a change feed.
    pub feed: Option<FeedUse>,
    /// Whether the request had a key that is usable from where it came.
    pub has_key: bool,
    content: Content,
    etag: Option<ETag>,
}

impl Response {
    /// An answer that must not be stored.
    pub fn new(status: StatusCode, content_type: &'static str, content: Content) -> Response {
        let mut headers = HeaderMap::with_capacity(HEADERS_EXPECTED);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        Response {
            status,
            headers,
            body: Rope::default(),
            problem: None,
            feed: None,
            has_key: false,
            content,
            etag: None,
        }
    }

    /// A JSON answer that must not be stored.
    pub fn json(content: Content) -> Response {
        Response::new(StatusCode::OK, "application/json", content)
    }

    /// A JSON answer that may be revalidated.
    pub fn revalidatable(content: Content, etag: ETag) -> Response {
        Response { etag: Some(etag), ..Response::json(content) }
    }

    /// Puts a header on.
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Response {
        self.headers.insert(name, value);
        self
    }

    /// What every answer carries: its id, the rate window under `/v1`, how it may be stored, its length; 304 where the
    /// caller has the content already; no body for HEAD.
    pub fn finish(mut self, request: &Request, request_id: &str, window: Option<&Window>, packer: &Packer) -> Response {
        let headers = &mut self.headers;
        if let Ok(id) = HeaderValue::from_str(request_id) {
            headers.insert(X_REQUEST_ID.clone(), id);
        }
        if let Some(window) = window {
            headers.insert(RATELIMIT_LIMIT.clone(), window.limit.into());
            headers.insert(RATELIMIT_REMAINING.clone(), window.remaining.into());
            headers.insert(RATELIMIT_RESET.clone(), window.reset_s.into());
        }
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        match &self.etag {
            None => {
                headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            }
            Some(etag) => {
                headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
                headers.insert(VARY, HeaderValue::from_static("Authorization, X-API-Key, Accept-Encoding"));
                headers.insert(ETAG, etag.header());
                if etag::matches(request.headers.get_all(IF_NONE_MATCH).iter(), etag) {
                    self.status = StatusCode::NOT_MODIFIED;
                    headers.remove(CONTENT_TYPE);
                    headers.remove(X_CONTENT_TYPE_OPTIONS);
                    return self;
                }
            }
        }
        let packed = if accepts_gzip(&request.headers) { self.content.packed(packer) } else { None };
        let body = match packed {
            Some(packed) => {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                packed
            }
            None => std::mem::replace(&mut self.content, Content::Bytes(Rope::default())).plain(),
        };
        headers.insert(CONTENT_LENGTH, body.len().into());
        if !request.is_head() {
            self.body = body;
        }
        self
    }
}

/// Whether the caller takes gzip (RFC 9110, section 12.5.3): named, or meant by `*`, with a weight above 0.
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    let mut named = None;
    let mut any = None;
    for value in headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()) {
        for item in value.split(',') {
            let mut parts = item.split(';').map(str::trim);
            let coding = parts.next().unwrap_or_default();
            let weight = parts
                .find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")))
                .map_or(1.0, |weight| weight.parse::<f32>().unwrap_or(0.0));
            if coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") {
                named = Some(weight > 0.0);
            } else if coding == "*" {
                any = Some(weight > 0.0);
            }
        }
    }
    named.or(any).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_those_who_take_it() {
        let cases = [
            ("gzip", true),
            ("GZip", true),
            ("br, gzip;q=0.5", true),
            ("*", true),
            ("gzip;q=0", false),
            ("gzip; q=0, *", false),
            ("*;q=0", false),
            ("br", false),
            ("identity", false),
            ("", false),
        ];
        for (value, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(accepts_gzip(&headers), expected, "{value:?}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
