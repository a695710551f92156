//! Web pages that send requests.
//!
//! **CORS** (the Fetch standard, "HTTP CORS protocol") is off unless the operator names origins. Keys are sent in
//! headers, never in cookies, so requests with credentials are not supported.
//!
//! **DNS rebinding.** A web page can point its own name at this machine's address. Then its scripts can read responses
//! like those of their own site. The browser still sends the page's name in `Host`. So endpoints that show secrets
//! without a key reject unknown names ([`is_own`]).

use std::net::IpAddr;
use std::str::FromStr;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method};
use url::Url;

use crate::api::request::Request;
use crate::contract::codes::ALLOWED_METHODS;

/// The allowed request headers, in addition to those that always are, for a preflight that names none.
const REQUEST_HEADERS: &str = "Authorization, X-API-Key, If-None-Match, Range, If-Range";
/// A preflight that asks for more bytes of header names gets only the usual ones.
const MAX_REQUEST_HEADERS_BYTES: usize = 1 << 10;
/// The response headers that applications may read, in addition to those that they always may.
const ANSWER_HEADERS: &str = "Accept-Ranges, Content-Disposition, Content-Encoding, Content-Range, ETag, \
                              RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Repr-Digest, Retry-After, \
                              WWW-Authenticate, X-Record-Count, X-Records-Digest, X-Request-Id, X-Sync-Token";
/// The request headers on which the response to a preflight depends.
const PREFLIGHT_VARY: &str =
    "Origin, Access-Control-Request-Method, Access-Control-Request-Headers";
/// The time for which browsers may cache a preflight, in seconds. They accept at most two hours.
const MAX_AGE_S: &str = "7200";

/// An allowed origin, as browsers write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Every origin: `*`.
    Any,
    /// `scheme://host[:port]`, without the scheme's default port.
    One(String),
}

impl FromStr for Origin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Origin, &'static str> {
        const RULE: &str =
            "write scheme://host[:port], such as https://app.example.org, or * for every origin";
        if text == "*" {
            return Ok(Origin::Any);
        }
        let url = Url::parse(text).map_err(|_| RULE)?;
        let origin = url.origin().ascii_serialization();
        // Reject paths and wildcards, which would be ignored.
        let is_bare = url.as_str().strip_suffix('/') == Some(&origin)
            && !text.ends_with('/')
            && !text.contains('*');
        if matches!(url.scheme(), "http" | "https") && is_bare {
            Ok(Origin::One(origin))
        } else {
            Err(RULE)
        }
    }
}

#[derive(Debug, Default)]
pub struct Cors {
    /// The allowed origins.
    pub origins: Vec<Origin>,
}

impl Cors {
    /// The value of `Access-Control-Allow-Origin` for a request.
    fn allowed(&self, request: &Request) -> Option<HeaderValue> {
        let sent = request.headers.get(ORIGIN)?;
        if self.origins.contains(&Origin::Any) {
            return Some(HeaderValue::from_static("*"));
        }
        self.origins
            .iter()
            .any(|origin| matches!(origin, Origin::One(text) if text.as_bytes() == sent.as_bytes()))
            .then(|| sent.clone())
    }

    /// Whether a request is a preflight of an allowed origin.
    pub(crate) fn is_preflight(&self, request: &Request) -> bool {
        request.method == Method::OPTIONS
            && request.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
            && self.allowed(request).is_some()
    }

    /// The headers of the response to a preflight. The server ignores headers that it does not know, such as those of
    /// tracing, so all are allowed, if they are few.
    pub(crate) fn preflight_headers(request: &Request) -> HeaderMap {
        let asked = request
            .headers
            .get(ACCESS_CONTROL_REQUEST_HEADERS)
            .filter(|asked| (1..=MAX_REQUEST_HEADERS_BYTES).contains(&asked.len()));
        let allowed = asked
            .cloned()
            .unwrap_or(HeaderValue::from_static(REQUEST_HEADERS));
        HeaderMap::from_iter([
            (
                ACCESS_CONTROL_ALLOW_METHODS,
                HeaderValue::from_static(ALLOWED_METHODS),
            ),
            (ACCESS_CONTROL_ALLOW_HEADERS, allowed),
            (ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE_S)),
            (VARY, HeaderValue::from_static(PREFLIGHT_VARY)),
        ])
    }

    pub(crate) fn add_headers(&self, request: &Request, headers: &mut HeaderMap) {
        if self.origins.is_empty() {
            return;
        }
        if !self.origins.contains(&Origin::Any)
            && !headers.contains_key(ACCESS_CONTROL_ALLOW_METHODS)
        {
            // Caches must not use a response for another origin.
            headers.append(VARY, HeaderValue::from_static("Origin"));
        }
        if let Some(allowed) = self.allowed(request) {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
            headers.insert(
                ACCESS_CONTROL_EXPOSE_HEADERS,
                HeaderValue::from_static(ANSWER_HEADERS),
            );
        }
    }
}

/// Whether `Host` is an address, `localhost`, or one of `names`. A request without `Host` is allowed, since no browser
/// sends one.
pub fn is_own(headers: &HeaderMap, names: &[String]) -> bool {
    let mut values = headers.get_all(HOST).iter();
    let (value, None) = (values.next(), values.next()) else {
        return false;
    };
    let Some(value) = value else { return true };
    let Ok(host) = value.to_str() else {
        return false;
    };
    let host = match host
        .strip_prefix('[')
        .and_then(|literal| literal.split_once(']'))
    {
        Some((address, port)) if port.is_empty() || port.starts_with(':') => address,
        Some(_) => return false,
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    let is_named = ["localhost"]
        .into_iter()
        .chain(names.iter().map(String::as_str));
    host.parse::<IpAddr>().is_ok()
        || is_named
            .into_iter()
            .any(|name| name.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn origins_are_read_as_browsers_write_them() {
        let cases: [(&str, Option<&str>); 22] = outcomes![
            "*" => Some("*");
            "https://app.example.org" "HTTPS://App.Example.org:443" => Some("https://app.example.org");
            "http://localhost:3000" => Some("http://localhost:3000");
            "http://127.0.0.1:5173" => Some("http://127.0.0.1:5173");
            "http://[::1]:5173" => Some("http://[::1]:5173");
            "http://example.org:80" => Some("http://example.org");
            "https://bücher.example" => Some("https://xn--bcher-kva.example");
            "" "null" "app.example.org" "https://" "https://app.example.org/"
            "https://app.example.org/app" "https://app.example.org?x" "https://app.example.org?"
            "https://app.example.org#" "https://user@app.example.org" "https://*.example.org"
            "ftp://example.org" "file:///tmp" "https://a.example,https://b.example" => None;
        ];
        for (text, expected) in cases {
            let written = text.parse().ok().map(|origin| match origin {
                Origin::Any => "*".to_owned(),
                Origin::One(text) => text,
            });
            assert_eq!(written.as_deref(), expected, "{text:?}");
        }
    }

    fn request(origin: Option<&str>) -> Request {
        let mut headers = HeaderMap::new();
        headers.extend(origin.map(|origin| (ORIGIN, HeaderValue::from_str(origin).unwrap())));
        Request {
            method: Method::GET,
            target: "/v1/status".to_owned(),
            headers,
            has_body: false,
            flaw: None,
            address: [192, 0, 2, 7].into(),
            at: std::time::Instant::now(),
            wall: crate::model::time::now(),
        }
    }

    #[test]
    fn an_origin_is_compared_whole() {
        let of = |origins: &[&str]| Cors {
            origins: origins
                .iter()
                .map(|origin| origin.parse().unwrap())
                .collect(),
        };
        let two = ["https://app.example.org", "http://localhost:3000"];
        /// The origin of a request, the allowed origins, and the one in the answer.
        type Case<'a> = (&'a str, (&'a [&'a str], Option<&'a str>));
        let cases: [Case<'_>; 22] = outcomes![
            "https://app.example.org" => (&two, Some("https://app.example.org"));
            "http://localhost:3000" => (&two, Some("http://localhost:3000"));
            "https://app.example.org.evil.net" "https://app.example.org."
            "https://app.example.org:443" "https://app.example.org:8443"
            "https://evilapp.example.org" "https://evil.app.example.org" "https://app.example.or"
            "http://app.example.org" "app.example.org" "https://App.example.org"
            "http://localhost:300" "http://localhost:30000" "http://localhost" "null" "" "*"
                => (&two, None);
            "https://evil.example" "null" => (&["*"], Some("*"));
            "https://evil.example" => (&["https://app.example.org", "*"], Some("*"));
            "https://app.example.org" => (&[], None);
        ];
        for (sent, (origins, expected)) in cases {
            let cors = of(origins);
            let mut headers =
                HeaderMap::from_iter([(VARY, HeaderValue::from_static("Authorization"))]);
            cors.add_headers(&request(Some(sent)), &mut headers);
            let allowed = headers
                .get(ACCESS_CONTROL_ALLOW_ORIGIN)
                .map(|value| value.to_str().unwrap());
            assert_eq!(allowed, expected, "{origins:?} {sent:?}");
            let contains_key = headers.contains_key(ACCESS_CONTROL_EXPOSE_HEADERS);
            assert_eq!(contains_key, expected.is_some(), "{origins:?} {sent:?}");
            // A cache may use a response for all origins only if all get the same.
            let varies = !origins.is_empty() && !origins.contains(&"*");
            let vary: Vec<&HeaderValue> = headers.get_all(VARY).iter().collect();
            assert_eq!(
                vary.len(),
                if varies { 2 } else { 1 },
                "{origins:?} {sent:?}: {vary:?}"
            );
            assert_eq!(vary[0], "Authorization", "{origins:?}");
        }
        // Also a response without an origin varies by it.
        let mut headers = HeaderMap::new();
        of(&two).add_headers(&request(None), &mut headers);
        assert_eq!(headers.get(VARY), Some(&HeaderValue::from_static("Origin")));
        assert_eq!(headers.len(), 1);
    }

    #[test]
    fn a_preflight_is_an_options_request_of_an_allowed_origin() {
        let cors = Cors {
            origins: vec!["https://app.example.org".parse().unwrap()],
        };
        let cases = cases![
            "OPTIONS", Some("https://app.example.org"), true, true;
            "GET", Some("https://app.example.org"), true, false;
            "OPTIONS", Some("https://app.example.org"), false, false;
            "OPTIONS", Some("https://app.example.org.evil.net"), true, false;
            "OPTIONS", None, true, false;
        ];
        for (method, origin, names_method, expected) in cases {
            let mut request = request(origin);
            request.method = Method::from_bytes(method.as_bytes()).unwrap();
            if names_method {
                let value = HeaderValue::from_static("GET");
                request.headers.insert(ACCESS_CONTROL_REQUEST_METHOD, value);
            }
            let is_preflight = cors.is_preflight(&request);
            assert_eq!(is_preflight, expected, "{method} {origin:?} {names_method}");
        }
    }

    #[test]
    fn foreign_names_are_rejected() {
        let names = ["Feed-1.internal", "example.org"].map(str::to_owned);
        let cases: [(&[&str], bool); 46] = [
            (&[], true),
            (&["127.0.0.1"], true),
            (&["127.0.0.1:9090"], true),
            (&["192.0.2.7:9090"], true),
            (&["[::1]:9090"], true),
            (&["[fe80::1]"], true),
            (&["localhost:9090"], true),
            (&["LocalHost"], true),
            (&["feed-1.internal:9090"], true),
            (&["feed-2.internal"], false),
            (&["localhost.evil.example"], false),
            (&["127.0.0.1.evil.example:9090"], false),
            (&["evil.example"], false),
            (&[""], false),
            (&["localhost", "localhost"], false),
            (&["[evil.example]"], false),
            // Every name is compared whole. A host that only begins with it, ends with it or continues it is rejected.
            (&["example.org"], true),
            (&["example.org:8080"], true),
            (&["EXAMPLE.ORG"], true),
            (&["Example.Org:8080"], true),
            (&["evilexample.org"], false),
            (&["evil.example.org"], false),
            (&["evilexample.org:8080"], false),
            (&["example.org.evil.net"], false),
            (&["example.org.evil.net:8080"], false),
            (&["example.orgevil"], false),
            (&["example.org."], false),
            (&[".example.org"], false),
            (&["xample.org"], false),
            (&["example.or"], false),
            (&["org"], false),
            (&["evilfeed-1.internal"], false),
            (&["feed-1.internal.evil.net"], false),
            (&["evillocalhost"], false),
            (&["localhost."], false),
            (&["localhos"], false),
            (&["ocalhost:8080"], false),
            (&[":8080"], false),
            (&["example.org", "evil.example"], false),
            (&["evil.example", "example.org"], false),
            (&["127.0.0.1", "127.0.0.1"], false),
            (&["127.0.0.1."], false),
            (&["[::ffff:127.0.0.1]:9090"], true),
            (&["[::1].evil.example"], false),
            (&["[::1]evil.example"], false),
            (&["[::1"], false),
        ];
        for (hosts, expected) in cases {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, HeaderValue::from_static(host));
            }
            assert_eq!(is_own(&headers, &names), expected, "{hosts:?}");
        }
        let named = HeaderMap::from_iter([(HOST, HeaderValue::from_static("example.org"))]);
        assert!(
            !is_own(&named, &[]),
            "without names there are only addresses and localhost"
        );
    }
}
