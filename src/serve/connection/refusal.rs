//! The problem for a request that hyper cannot parse: malformed, too large, or HTTP/2.

use http::StatusCode;
use http::header::STRICT_TRANSPORT_SECURITY;

use crate::api::Service;

/// The value of `Strict-Transport-Security` in every response over HTTPS: one year.
pub(in crate::serve) const STRICT_TRANSPORT: &str = "max-age=31536000";

/// The beginning of HTTP/2 connections (RFC 9113, section 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

/// Returns the whole response to a request that hyper rejected. `unread` is its head.
pub fn refuse(service: &Service, error: &hyper::Error, unread: &[u8], strict_transport: bool) -> Vec<u8> {
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
    let (problem, request_id) = service.refuse_unread(status, detail);
    let body = problem.body(&service.settings().docs_url, &request_id);
    tracing::info!(request_id, status = status.as_u16(), "refused a malformed request");
    let strict = match strict_transport {
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
