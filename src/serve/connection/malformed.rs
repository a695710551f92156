//! Requests that are no HTTP/1.1: the response to those that hyper cannot parse, and the check of `Host` (RFC 9112,
//! section 3.2).

use std::net::Ipv6Addr;

use http::header::{HOST, STRICT_TRANSPORT_SECURITY};
use http::uri::Authority;
use http::{HeaderMap, StatusCode, Version};

use crate::api::Problem;
use crate::api::request::new_request_id;
use crate::serve::connection::tls::STRICT_TRANSPORT;

/// The beginning of HTTP/2 connections (RFC 9113, section 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

/// Returns an error message for an invalid `Host`; `None` if it is valid.
pub fn find_host_flaw(version: Version, headers: &HeaderMap) -> Option<&'static str> {
    let mut values = headers.get_all(HOST).iter();
    match (values.next(), values.next()) {
        (None, _) if version < Version::HTTP_11 => None,
        (None, _) => Some(
            "The request has no `Host` header, which HTTP/1.1 requires. Send the host of the URL.",
        ),
        (Some(_), Some(_)) => Some("The request has more than one `Host` header. Send one."),
        (Some(host), None) if is_host(host.as_bytes()) => None,
        (Some(_), None) => Some(
            "The `Host` header is not a host name or address with an optional port. Send the host of the URL.",
        ),
    }
}

/// Whether a text is a name or an address with an optional port. It may be empty, for URIs without an authority.
fn is_host(text: &[u8]) -> bool {
    let Ok(authority) = Authority::try_from(text) else {
        return text.is_empty();
    };
    let host = authority.host();
    let address = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_host = address.is_none_or(|address| address.parse::<Ipv6Addr>().is_ok());
    let port = authority
        .as_str()
        .strip_prefix(host)
        .filter(|port| port.is_empty() || port.starts_with(':'));
    is_host && port.is_some_and(|port| port.bytes().skip(1).all(|byte| byte.is_ascii_digit()))
}

/// Returns the whole response to a request that hyper rejected. `unread` is its head, `docs_url` the base of
/// error pages.
pub fn refuse(docs_url: &str, is_https: bool, error: &hyper::Error, unread: &[u8]) -> Vec<u8> {
    let (status, detail) = if error.is_parse_version_h2() || unread.starts_with(HTTP2_PREFACE) {
        let detail = "This server supports only HTTP/1.1, but the connection begins with HTTP/2. Use HTTP/1.1.";
        (StatusCode::HTTP_VERSION_NOT_SUPPORTED, detail)
    } else if error.is_parse_too_large() {
        let detail = "The request's headers are too large or too many. Send fewer or shorter ones.";
        (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
    } else {
        let detail = "The request is not valid HTTP/1.1. Check the request line and the headers.";
        (StatusCode::BAD_REQUEST, detail)
    };
    let request_id = new_request_id();
    let problem = Problem::invalid_request(status, detail);
    let body = problem.body(docs_url, &request_id);
    tracing::info!(
        request_id,
        status = status.as_u16(),
        "refused a malformed request"
    );
    let strict = match is_https {
        true => format!("{STRICT_TRANSPORT_SECURITY}: {STRICT_TRANSPORT}\r\n"),
        false => String::new(),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\nx-request-id: {request_id}\r\n\
         cache-control: no-store\r\nx-content-type-options: nosniff\r\n{strict}content-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len(),
    );
    [head.as_bytes(), &body].concat()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_well_formed_hosts_are_accepted() {
        let cases: [(&[u8], bool); 30] = [
            (b"", true),
            (b"x", true),
            (b"feed.example.org", true),
            (b"feed.example.org:8080", true),
            (b"feed.example.org:", true),
            (b"127.0.0.1:8080", true),
            (b"[::1]", true),
            (b"[::1]:8080", true),
            (b"[v1.fe80::a]", false),
            (b"a_b~c!$&'()*+,;=", true),
            (b"b%C3%BCcher.example", false),
            (b":8080", true),
            (b"example.org:80a", false),
            (b"example.org:80:80", false),
            (b"::1", false),
            (b"[::1", false),
            (b"[::1]x", false),
            (b"[::1]80", false),
            (b"[]", false),
            (b"[127.0.0.1]", false),
            (b"[v.a]", false),
            (b"[v1.]", false),
            (b"user@example.org", false),
            (b"http://example.org", false),
            (b"example.org/", false),
            (b"a b", false),
            (b"a,b", true),
            (b"%C", false),
            (b"%zz", false),
            (b"b\xc3\xbccher.example", false),
        ];
        for (value, expected) in cases {
            let found = is_host(value);
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(value));
        }
    }

    #[test]
    fn http_1_1_requires_exactly_one_host() {
        let cases: [(Version, &[&str], bool); 8] = [
            (Version::HTTP_11, &["x"], true),
            (Version::HTTP_11, &[""], true),
            (Version::HTTP_11, &[], false),
            (Version::HTTP_11, &["x", "x"], false),
            (Version::HTTP_11, &["x/y"], false),
            (Version::HTTP_10, &[], true),
            (Version::HTTP_10, &["x", "y"], false),
            (Version::HTTP_10, &["x/y"], false),
        ];
        for (version, hosts, expected) in cases {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, HeaderValue::from_static(host));
            }
            let found = find_host_flaw(version, &headers).is_none();
            assert_eq!(found, expected, "{version:?} {hosts:?}");
        }
    }
}
