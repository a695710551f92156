//! HTTP/1.1 on one connection: hyper reads requests, the API answers them. Here are the responses to those that hyper
//! cannot parse, and the check of their `Host` (RFC 9112, section 3.2).

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONNECTION, HOST, STRICT_TRANSPORT_SECURITY};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, StatusCode, Version};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

use crate::api::exchange::new_request_id;
use crate::api::{Problem, Request};
use crate::model::KeyHash;
use crate::model::time::now;
use crate::serve::connection::address::TrustedProxies;
use crate::serve::connection::dispatch::Dispatcher;
use crate::serve::connection::limits::{Connection, MAX_HEAD_BYTES, MAX_HEADERS};
use crate::serve::connection::stream::ConnectionStream;
use crate::serve::connection::tls::Tls;

/// The time for which a connection stays open for a last request after the server began to stop. So a request that is
/// on its way gets a response.
const LAST_REQUEST_GRACE: Duration = Duration::from_secs(2);

/// The value of `Strict-Transport-Security` in every response over HTTPS: one year.
const STRICT_TRANSPORT: &str = "max-age=31536000";

/// The beginning of HTTP/2 connections (RFC 9113, section 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

/// The context that all connections of a server share.
#[derive(Debug)]
pub struct ServerContext {
    pub dispatcher: Dispatcher,
    /// The proxies whose header names the caller's address.
    pub proxies: TrustedProxies,
    /// The certificate, for HTTPS.
    pub tls: Option<Arc<Tls>>,
}

/// Serves a connection until the caller disconnects, or until `closing` is true and the last response is sent.
pub async fn serve_connection<S>(
    stream: S,
    peer: IpAddr,
    shared: &Arc<ServerContext>,
    connection: &Arc<Connection>,
    closing: watch::Receiver<bool>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = ConnectionStream::new(stream, Arc::clone(connection));
    let service = service_fn(|request| {
        let is_open = connection.start_answer();
        let mut closing = closing.clone();
        Box::pin(async move {
            if !is_open {
                // The connection is about to be dropped.
                std::future::pending::<()>().await;
            }
            let (mut response, key) = answer(request, peer, shared, connection, &mut closing).await;
            // A long poll whose connection is closed for another one is answered first.
            if *closing.borrow() || connection.close_reason().is_some() {
                response
                    .headers_mut()
                    .insert(CONNECTION, HeaderValue::from_static("close"));
            }
            connection.finish_answer(key);
            Ok::<_, Infallible>(response)
        })
    });
    let mut http = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let grace_is_over = async {
        let mut closing = closing.clone();
        let _ = closing.wait_for(|closing| *closing).await;
        tokio::time::sleep(LAST_REQUEST_GRACE).await;
    };
    let ended = tokio::select! {
        ended = poll_fn(|cx| http.poll_without_shutdown(cx)) => ended,
        () = grace_is_over => {
            std::pin::Pin::new(&mut http).graceful_shutdown();
            poll_fn(|cx| http.poll_without_shutdown(cx)).await
        }
    };
    let parts = http.into_parts();
    let mut stream = parts.io.into_inner();
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection broke");
        if error.is_parse() && connection.start_answer() {
            connection.finish_answer(None);
            stream
                .write_all(&refuse(shared, &error, &parts.read_buf))
                .await?;
        }
    }
    stream.shutdown().await
}

/// Returns the response to a request, and the key of the request if it is usable.
async fn answer(
    request: http::Request<Incoming>,
    peer: IpAddr,
    shared: &ServerContext,
    connection: &Connection,
    closing: &mut watch::Receiver<bool>,
) -> (http::Response<Full<Bytes>>, Option<KeyHash>) {
    let has_body = !request.body().is_end_stream();
    let (head, _) = request.into_parts();
    let request = Request {
        method: head.method,
        target: match head.uri.query() {
            Some(query) => [head.uri.path(), "?", query].concat(),
            None => head.uri.path().to_owned(),
        },
        flaw: find_host_flaw(head.version, &head.headers),
        address: shared.proxies.caller(peer, &head.headers),
        headers: head.headers,
        has_body,
        at: Instant::now(),
        wall: now(),
    };
    let answered = shared.dispatcher.answer(request, connection, closing).await;
    let key = answered.key;
    let mut response = http::Response::new(Full::new(answered.body));
    *response.status_mut() = answered.status;
    *response.headers_mut() = answered.headers;
    if shared.tls.is_some() {
        response.headers_mut().insert(
            STRICT_TRANSPORT_SECURITY,
            HeaderValue::from_static(STRICT_TRANSPORT),
        );
    }
    (response, key)
}

/// Returns an error message for an invalid `Host`; `None` if it is valid.
fn find_host_flaw(version: Version, headers: &HeaderMap) -> Option<&'static str> {
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

/// Returns the whole response to a request that hyper rejected. `unread` is its head.
fn refuse(shared: &ServerContext, error: &hyper::Error, unread: &[u8]) -> Vec<u8> {
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
    let problem = Problem::invalid_request(status, detail);
    let request_id = new_request_id();
    let body = problem.body(&shared.dispatcher.service.settings().docs_url, &request_id);
    tracing::info!(
        request_id,
        status = status.as_u16(),
        "refused a malformed request"
    );
    let strict = match shared.tls.is_some() {
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
            assert_eq!(
                is_host(value),
                expected,
                "{}",
                String::from_utf8_lossy(value)
            );
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
            assert_eq!(
                find_host_flaw(version, &headers).is_none(),
                expected,
                "{version:?} {hosts:?}"
            );
        }
    }
}
