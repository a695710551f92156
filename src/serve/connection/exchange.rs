//! One connection: hyper reads requests, the API answers them.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderValue;
use http::header::{CONNECTION, STRICT_TRANSPORT_SECURITY};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::api::{Request, Service};
use crate::model::time::now;
use crate::serve::connection::address::TrustedProxies;
use crate::serve::connection::dispatch::Dispatcher;
use crate::serve::connection::guard::{GuardedStream, Timeouts};
use crate::serve::connection::host;
use crate::serve::connection::pace::Pace;
use crate::serve::connection::refusal::{ProblemStream, STRICT_TRANSPORT};
use crate::serve::connection::state::ConnectionState;

/// The time for which a connection stays open for a last request after the server began to stop. So a request that is
/// on its way gets a response.
const LAST_REQUEST_GRACE: Duration = Duration::from_secs(2);

/// The limits of one connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    pub timeouts: Timeouts,
    /// The least rate at which the caller must read responses.
    pub pace: Pace,
    /// The largest request head, in bytes. hyper requires at least 8 KiB.
    pub header_bytes: usize,
    /// The maximum number of headers in a request.
    pub headers: usize,
}

/// The context that all connections of a server share.
#[derive(Debug)]
pub struct ServerContext {
    pub service: Arc<Service>,
    pub dispatcher: Dispatcher,
    pub limits: ConnectionLimits,
    /// The proxies whose header names the caller's address.
    pub proxies: TrustedProxies,
    /// Whether responses have `Strict-Transport-Security`.
    pub strict_transport: bool,
}

/// Serves a connection until the caller disconnects, or until `closing` is true and the last response is sent.
pub async fn serve_connection<S>(
    stream: S,
    peer: IpAddr,
    shared: Arc<ServerContext>,
    state: ConnectionState,
    mut closing: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = shared.limits;
    let stream = GuardedStream::new(stream, limits.timeouts, state.clone());
    let stream = ProblemStream::new(stream, Arc::clone(&shared.service), shared.strict_transport);
    let closing_for_requests = closing.clone();
    let service = service_fn(move |request| {
        let (shared, state, mut closing) = (Arc::clone(&shared), state.clone(), closing_for_requests.clone());
        let is_open = state.start_answer();
        async move {
            if !is_open {
                // The connection is about to be dropped.
                std::future::pending::<()>().await;
            }
            let (mut response, has_key) = answer(request, peer, &shared, &state, &mut closing).await;
            // An evicted connection may have lost its slot already.
            if *closing.borrow() || state.close_reason().is_some() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            state.finish_answer(has_key);
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(limits.header_bytes)
        .max_headers(limits.headers)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let grace_is_over = async {
        let _ = closing.wait_for(|closing| *closing).await;
        tokio::time::sleep(LAST_REQUEST_GRACE).await;
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = grace_is_over => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection broke");
    }
}

/// Returns the response to a request, and whether the request had a usable key.
async fn answer(
    request: http::Request<Incoming>,
    peer: IpAddr,
    shared: &ServerContext,
    state: &ConnectionState,
    closing: &mut watch::Receiver<bool>,
) -> (http::Response<Full<Bytes>>, bool) {
    let has_body = !request.body().is_end_stream();
    let (head, _) = request.into_parts();
    let request = Request {
        method: head.method,
        target: match head.uri.query() {
            Some(query) => [head.uri.path(), "?", query].concat(),
            None => head.uri.path().to_owned(),
        },
        flaw: host::find_flaw(head.version, &head.headers),
        address: shared.proxies.caller(peer, &head.headers),
        headers: head.headers,
        has_body,
        at: Instant::now(),
        wall: now(),
    };
    let answered = shared.dispatcher.answer(&shared.service, request, state, closing).await;
    let has_key = answered.has_key;
    let mut response = http::Response::new(Full::new(answered.body));
    *response.status_mut() = answered.status;
    *response.headers_mut() = answered.headers;
    if shared.strict_transport {
        response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(STRICT_TRANSPORT));
    }
    (response, has_key)
}
