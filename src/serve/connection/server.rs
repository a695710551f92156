//! Accepts connections until the server stops, then waits for the remaining ones.
//!
//! # Stopping
//!
//! A stopping server accepts the connections in the queue, and responds with `Connection: close`. Idle callers get two
//! seconds for a last request. Everything ends after the drain time. Listeners that share an address (`--reuse-port`)
//! first drop new connections by a packet filter, because closing a listener would refuse the callers in its queue.
//!
//! HTTP/1.1 on one connection: hyper reads requests, the API answers them.
//!
//! Requests that are no HTTP/1.1: the response to those that hyper cannot parse, and the check of `Host` (RFC 9112,
//! section 3.2).
//!
//! The stream between TLS and hyper. It notes the phases of the connection that only a stream can see.

use std::convert::Infallible;
use std::future::{Future, poll_fn, ready};
use std::io;
use std::net::{self, IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
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
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::api::observe::ConnectionLimit;
use crate::api::request::new_request_id;
use crate::api::{Problem, Request, Service};
use crate::model::{KeyHash, network_of, now};
use crate::serve::connection::address::TrustedProxies;
use crate::serve::connection::dispatch::{Dispatcher, Permits};
use crate::serve::connection::limits::{
    ADMISSION_RETRY, Connection, Connections, Limits, MAX_HEAD_BYTES, MAX_HEADERS, NoSlot, Slot,
};
use crate::serve::connection::listen::{drop_new, prepare};
use crate::serve::connection::resources::Workers;
use crate::serve::connection::tls::{STRICT_TRANSPORT, Tls};

/// The pause after a failure to accept, such as too many open files. In the meantime a connection ends.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A server that is ready to run.
pub struct Server {
    /// The socket on which it listens.
    pub listener: TcpListener,
    /// The API.
    pub service: Arc<Service>,
    /// The proxies whose header names the caller's address.
    pub proxies: TrustedProxies,
    /// The certificate, for HTTPS.
    pub tls: Option<Arc<Tls>>,
    /// The limits of connections.
    pub limits: Limits,
    /// Whether another server may listen on the same address when this one stops.
    pub shares_address: bool,
}

impl Server {
    /// Serves until `stop` resolves. Then it accepts the queued connections, closes the listener and waits for all
    /// connections. Returns the number of connections that were cut off at the end of the drain time.
    pub async fn run(self, stop: impl Future<Output = ()>) -> io::Result<usize> {
        let Server {
            listener,
            service,
            proxies,
            tls,
            limits,
            shares_address,
        } = self;
        let dispatcher = Dispatcher::new(service, Permits::new(&limits), Handle::current());
        let shared = Arc::new(ServerContext {
            dispatcher,
            proxies,
            tls,
        });
        let (close, closing) = watch::channel(false);
        let mut acceptor = Acceptor {
            accepted: None,
            shared,
            slots: Connections::new(limits),
            closing,
            workers: Workers::start()?,
            connections: JoinSet::new(),
        };
        let slots = Arc::clone(&acceptor.slots);
        tokio::select! {
            () = stop => {}
            () = slots.close_all_overdue() => {}
            () = async { loop { acceptor.serve_next(&listener).await } } => {}
        }
        // Closing the listener resets the connections in its queue, so accept them first.
        if shares_address && let Err(error) = drop_new(&listener) {
            tracing::warn!(%error, "connections may be reset while the listener closes");
        }
        // tokio has not heard of all of them yet.
        let listener = listener.into_std()?;
        let queued = std::iter::from_fn(|| {
            let (stream, peer) = listener.accept().ok()?;
            stream.set_nonblocking(true).ok()?;
            Some((stream, peer))
        });
        for (stream, peer) in acceptor.accepted.take().into_iter().chain(queued) {
            let slot = acceptor.slots.enter_always(acceptor.network(peer));
            acceptor.serve(stream, peer, ready(Some(slot)));
        }
        drop(listener);
        let mut connections = acceptor.connections;
        let _ = close.send(true);
        let drained = tokio::time::timeout(limits.drain, async {
            while connections.join_next().await.is_some() {}
        });
        Ok(if drained.await.is_err() {
            connections.len()
        } else {
            0
        })
    }
}

struct Acceptor {
    /// A connection that waits for a slot.
    accepted: Option<(net::TcpStream, SocketAddr)>,
    shared: Arc<ServerContext>,
    slots: Arc<Connections>,
    closing: watch::Receiver<bool>,
    workers: Workers,
    connections: JoinSet<()>,
}

impl Acceptor {
    /// Accepts the next connection, and serves it as soon as there is a slot. It can be cancelled without losing it.
    async fn serve_next(&mut self, listener: &TcpListener) {
        let observer = self.shared.dispatcher.service.observer();
        if self.accepted.is_none() {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    self.accepted = stream.into_std().ok().map(|stream| (stream, peer))
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection could not be accepted");
                    self.slots.make_room(ConnectionLimit::Total, None);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        let Some((_, peer)) = self.accepted else {
            return;
        };
        let mut reached = None;
        let slot = loop {
            let NoSlot { limit, is_refused } = match self.slots.enter(self.network(peer)) {
                Ok(slot) => break Some(slot),
                Err(full) => full,
            };
            if reached.replace(limit).is_none() {
                observer.reached_limit(limit);
            }
            if is_refused {
                break None;
            }
            // A connection that is being closed still holds its file.
            let _ = tokio::time::timeout(ADMISSION_RETRY, self.slots.freed()).await;
        };
        if let Some((stream, peer)) = self.accepted.take() {
            match slot {
                Some(slot) => self.serve(stream, peer, ready(Some(slot))),
                None => match self.slots.enter_late(self.network(peer)) {
                    Some(slot) => self.serve(stream, peer, slot),
                    None => self
                        .shared
                        .dispatcher
                        .service
                        .observer()
                        .refused_connection(),
                },
            }
        }
    }

    /// The network of a peer for the limits; `None` for trusted proxies.
    fn network(&self, peer: SocketAddr) -> Option<IpAddr> {
        let address = peer.ip().to_canonical();
        (!self.shared.proxies.trusts(address)).then(|| network_of(address))
    }

    /// Serves a connection as soon as there is a slot.
    fn serve(
        &mut self,
        stream: net::TcpStream,
        peer: SocketAddr,
        slot: impl Future<Output = Option<Slot>> + Send + 'static,
    ) {
        let shared = Arc::clone(&self.shared);
        let closing = self.closing.clone();
        let peer = peer.ip().to_canonical();
        // Forget those that have ended.
        while self.connections.try_join_next().is_some() {}
        let connection = async move {
            let Ok(stream) = TcpStream::from_std(stream) else {
                return;
            };
            let observer = shared.dispatcher.service.observer();
            let Some(slot) = slot.await else {
                observer.refused_connection();
                return;
            };
            observer.connected();
            tokio::select! {
                biased;
                ended = serve_stream(stream, peer, &shared, &slot.connection, closing) => {
                    if let Err(error) = ended {
                        tracing::debug!(%peer, %error, "a connection broke");
                    }
                }
                () = slot.connection.closed() => {}
            }
            observer.disconnected();
            if let Some((reason, cause)) = slot.connection.close_reason() {
                observer.closed_connection(reason, cause);
                tracing::debug!(%peer, %reason, %cause, "closed a connection");
            }
        };
        self.connections
            .spawn_on(connection, self.workers.next_worker());
    }
}

async fn serve_stream(
    stream: TcpStream,
    peer: IpAddr,
    shared: &Arc<ServerContext>,
    connection: &Arc<Connection>,
    closing: watch::Receiver<bool>,
) -> io::Result<()> {
    if let Err(error) = prepare(&stream) {
        tracing::debug!(%error, "a socket option could not be set");
    }
    match &shared.tls {
        None => serve_connection(stream, peer, shared, connection, closing).await,
        Some(tls) => {
            serve_connection(
                tls.acceptor().accept(stream).await?,
                peer,
                shared,
                connection,
                closing,
            )
            .await
        }
    }
}

/// The time for which a connection stays open for a last request after the server began to stop. So a request that is
/// on its way gets a response.
const LAST_REQUEST_GRACE: Duration = Duration::from_secs(2);

/// The context that all connections of a server share.
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
            let docs_url = &shared.dispatcher.service.settings().docs_url;
            let refusal = refuse(docs_url, shared.tls.is_some(), &error, &parts.read_buf);
            stream.write_all(&refusal).await?;
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

/// A stream of a connection.
///
/// - A caller may close its sending half after a request. hyper would drop the request, so it sees the end of the
///   stream only after the response.
/// - To a request that it cannot parse, hyper writes a bare status line. This stream drops it, and `http` sends a
///   problem.
pub struct ConnectionStream<S> {
    inner: S,
    connection: Arc<Connection>,
    /// Whether the caller closed its sending half, and hyper has not seen it yet.
    is_half_closed: bool,
}

impl<S: AsyncWrite + Unpin> ConnectionStream<S> {
    pub fn new(inner: S, connection: Arc<Connection>) -> ConnectionStream<S> {
        ConnectionStream {
            inner,
            connection,
            is_half_closed: false,
        }
    }

    fn write_noted(
        &mut self,
        bytes: usize,
        write: impl FnOnce(Pin<&mut S>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if !self.connection.is_answering() {
            return Poll::Ready(Ok(bytes));
        }
        let written = ready!(write(Pin::new(&mut self.inner)))?;
        self.connection.note_sent(written);
        Poll::Ready(Ok(written))
    }
}

/// Whether a read found the end of the stream. TLS reports an end without a goodbye as an error.
fn is_end(read: &io::Result<()>, bytes: usize) -> bool {
    match read {
        Ok(()) => bytes == 0,
        Err(error) => error.kind() == io::ErrorKind::UnexpectedEof,
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ConnectionStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let is_answering = self.connection.is_answering();
        if self.is_half_closed {
            // `poll_flush` wakes the task after the response.
            return if is_answering {
                Poll::Pending
            } else {
                Poll::Ready(Ok(()))
            };
        }
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.inner).poll_read(cx, buffer));
        if is_answering && is_end(&read, buffer.filled().len() - before) {
            self.is_half_closed = true;
            self.connection.note_half_closed();
            return Poll::Pending;
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ConnectionStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write_noted(bytes.len(), |inner| inner.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = slices.iter().map(|slice| slice.len()).sum();
        self.write_noted(bytes, |inner| inner.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.inner).poll_flush(cx));
        self.connection.finish_sending();
        if self.is_half_closed && !self.connection.is_answering() {
            cx.waker().wake_by_ref();
        }
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod malformed_tests {
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
