//! Turns hyper's own error responses (malformed requests, too large heads) into problems.
//!
//! hyper writes such a response straight to the socket, as a bare status line. The stream replaces every complete error
//! head without our request id.
//!
//! hyper closes a connection that begins with the HTTP/2 preface without a response. So hyper gets only the first lines
//! of the preface, which look like a request of an unknown version. It answers that one.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::StatusCode;
use http::header::STRICT_TRANSPORT_SECURITY;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::api::Service;

/// The value of `Strict-Transport-Security` in every response over HTTPS: one year.
pub(in crate::serve) const STRICT_TRANSPORT: &str = "max-age=31536000";

/// The maximum length of the head of hyper's own error responses, in bytes.
const LONGEST_OWN_HEAD: usize = 512;

/// The preface of HTTP/2 connections (RFC 9113, section 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The length of the part of the preface that looks like a request.
const HTTP2_REQUEST: usize = b"PRI * HTTP/2.0\r\n\r\n".len();

/// A stream that replaces hyper's error responses by problems.
#[derive(Debug)]
pub struct ProblemStream<S> {
    inner: S,
    service: Arc<Service>,
    strict_transport: bool,
    /// The replacement, the number of its bytes that are written, and the number of hyper's bytes that it replaces.
    replacement: Option<(Vec<u8>, usize, usize)>,
    preface: Preface,
}

/// Whether the connection begins with the HTTP/2 preface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preface {
    /// Only this number of its bytes was received so far.
    Partial(usize),
    Found,
    Absent,
}

impl Preface {
    /// Examines received bytes. Returns the number of them to pass on to hyper.
    fn accept(&mut self, bytes: &[u8]) -> usize {
        let Preface::Partial(before) = *self else { return bytes.len() };
        let rest = &HTTP2_PREFACE[before..HTTP2_REQUEST];
        if bytes.len() >= rest.len() && bytes.starts_with(rest) {
            *self = Preface::Found;
            return rest.len();
        }
        *self = if rest.starts_with(bytes) { Preface::Partial(before + bytes.len()) } else { Preface::Absent };
        bytes.len()
    }
}

impl<S> ProblemStream<S> {
    pub fn new(inner: S, service: Arc<Service>, strict_transport: bool) -> ProblemStream<S> {
        ProblemStream { inner, service, strict_transport, replacement: None, preface: Preface::Partial(0) }
    }

    fn render(&self, status: StatusCode) -> Vec<u8> {
        let is_http2 = self.preface == Preface::Found;
        let status = if is_http2 { StatusCode::HTTP_VERSION_NOT_SUPPORTED } else { status };
        let detail = match status {
            StatusCode::HTTP_VERSION_NOT_SUPPORTED => {
                "This server supports only HTTP/1.1, but the connection begins with HTTP/2. Use HTTP/1.1."
            }
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
                "The request's headers are too large or too many. Send fewer or shorter ones."
            }
            StatusCode::URI_TOO_LONG => "The path and query are too long. Send a shorter query.",
            _ => "The request is not valid HTTP/1.1. Check the request line and the headers.",
        };
        let (problem, request_id) = self.service.refuse_unread(status, detail);
        let body = problem.body(&self.service.settings().docs_url, &request_id);
        tracing::info!(request_id, status = status.as_u16(), "refused a malformed request");
        let reason = status.canonical_reason().unwrap_or("Error");
        let strict = if self.strict_transport {
            format!("{STRICT_TRANSPORT_SECURITY}: {STRICT_TRANSPORT}\r\n")
        } else {
            String::new()
        };
        let mut bytes = format!(
            "HTTP/1.1 {} {reason}\r\ncontent-type: application/problem+json\r\nx-request-id: {request_id}\r\n\
             cache-control: no-store\r\nx-content-type-options: nosniff\r\n{strict}content-length: {}\r\n\
             connection: close\r\n\r\n",
            status.as_u16(),
            body.len(),
        )
        .into_bytes();
        bytes.extend_from_slice(&body);
        bytes
    }
}

/// The status of a complete error head without our request id.
fn foreign_error(bytes: &[u8]) -> Option<StatusCode> {
    if bytes.len() > LONGEST_OWN_HEAD || !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let head = std::str::from_utf8(bytes).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ").or_else(|| head.strip_prefix("HTTP/1.0 "))?.get(..3)?;
    let status = StatusCode::from_bytes(status.as_bytes()).ok()?;
    let ours = head.lines().any(|line| line.to_ascii_lowercase().starts_with("x-request-id:"));
    (status.as_u16() >= 400 && !ours).then_some(status)
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ProblemStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.replacement.is_none()
            && let Some(status) = foreign_error(bytes)
        {
            this.replacement = Some((this.render(status), 0, bytes.len()));
        }
        let Some((replacement, written, replaced_bytes)) = &mut this.replacement else {
            return Pin::new(&mut this.inner).poll_write(cx, bytes);
        };
        while *written < replacement.len() {
            let more = ready!(Pin::new(&mut this.inner).poll_write(cx, &replacement[*written..]))?;
            if more == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *written += more;
        }
        let replaced_bytes = *replaced_bytes;
        this.replacement = None;
        Poll::Ready(Ok(replaced_bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut filled = slices.iter().filter(|slice| !slice.is_empty());
        match (filled.next(), filled.next()) {
            // hyper writes its own error heads in one slice.
            (Some(only), None) => self.poll_write(cx, only),
            _ => Pin::new(&mut self.inner).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ProblemStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.inner).poll_read(cx, buffer);
        if let Preface::Partial(_) = this.preface {
            let passed_on = this.preface.accept(&buffer.filled()[before..]);
            buffer.set_filled(before + passed_on);
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;
    use crate::api::Settings;
    use crate::serve::Watcher;
    use crate::store::Writer;

    #[test]
    fn the_preface_of_http_2_is_found_in_any_pieces() {
        let later = b"\x00\x00\x12\x04\x00";
        let whole = [HTTP2_PREFACE, later].concat();
        for first in 0..whole.len() {
            for second in first..whole.len() {
                let mut preface = Preface::Partial(0);
                let mut seen = Vec::new();
                for piece in [&whole[..first], &whole[first..second], &whole[second..]] {
                    // hyper reads nothing after the request that it rejects.
                    if preface != Preface::Found {
                        let count = preface.accept(piece);
                        seen.extend_from_slice(&piece[..count]);
                    }
                }
                assert_eq!((preface, seen.as_slice()), (Preface::Found, &whole[..HTTP2_REQUEST]), "{first} {second}");
            }
        }
        for other in ["GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/1.1\r\n\r\n", "PRI", "PROPFIND * HTTP/2.0\r\n\r\n"] {
            let mut preface = Preface::Partial(0);
            assert_eq!(preface.accept(other.as_bytes()), other.len(), "{other}");
            assert_ne!(preface, Preface::Found, "{other}");
        }
    }

    #[test]
    fn only_whole_foreign_errors_are_taken() {
        let cases: [(&[u8], Option<u16>); 8] = [
            (b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", Some(400)),
            (b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n", Some(431)),
            (b"HTTP/1.0 414 URI Too Long\r\n\r\n", Some(414)),
            (b"HTTP/1.1 404 Not Found\r\nx-request-id: 1\r\n\r\n", None),
            (b"HTTP/1.1 404 Not Found\r\nX-Request-Id: 1\r\n\r\n", None),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", None),
            (b"HTTP/1.1 400 Bad Request\r\ncontent-le", None),
            (b"{\"data\":[]}", None),
        ];
        for (bytes, expected) in cases {
            let found = foreign_error(bytes).map(|status| status.as_u16());
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[tokio::test]
    async fn a_problem_is_sent_once_in_any_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("feed.redb");
        Writer::open_or_create(&database, Duration::ZERO).unwrap().begin().unwrap().commit().unwrap();
        let watcher = Watcher::open(&database, Duration::ZERO).unwrap();
        let service = Arc::new(Service::new(Settings::of("http://feed.example"), Arc::new(watcher)));
        // The number of bytes that the socket takes at once.
        for at_once in [1, 7, 64, 100, 4096] {
            let (caller, server) = duplex(at_once);
            let mut stream = ProblemStream::new(server, Arc::clone(&service), false);
            let respond = async move {
                // It fails if the caller does not read to the end.
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
                drop(stream);
            };
            let receive = async move {
                let mut received = String::new();
                caller.take(10_000).read_to_string(&mut received).await.unwrap();
                received
            };
            let ((), received) = tokio::join!(respond, receive);
            let (head, body) = received.split_once("\r\n\r\n").unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            assert_eq!(length, Some(body.len().to_string().as_str()), "{at_once} at once: {received}");
            let problem: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(problem["status"], 400, "{at_once} at once");
        }
    }
}
