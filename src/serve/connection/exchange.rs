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

/// How long a connection that was told to close may stay for a last request, which then gets its answer: a caller that
/// is just sending one would otherwise see the connection break.
const LAST_REQUEST_GRACE: Duration = Duration::from_secs(2);

/// What a connection may use.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// How long its caller may take to ask.
    pub timeouts: Timeouts,
    /// How fast its caller must take its answers.
    pub pace: Pace,
    /// The largest head, in bytes; hyper takes no less than 8 KiB.
    pub header_bytes: usize,
    /// The most headers of a request.
    pub headers: usize,
}

/// What every connection of a server shares.
#[derive(Debug)]
pub struct Shared {
    /// The API.
    pub service: Arc<Service>,
    /// Answers the requests of all connections.
    pub dispatcher: Dispatcher,
    /// The limits.
    pub limits: ConnectionLimits,
    /// The proxies whose header names the caller's address.
    pub proxies: TrustedProxies,
    /// Whether callers are told to come by HTTPS only.
    pub strict_transport: bool,
}

/// Serves a connection until its caller leaves, or until `closing` turns true and what is in flight is done.
pub async fn serve_connection<S>(
    stream: S,
    peer: IpAddr,
    shared: Arc<Shared>,
    state: ConnectionState,
    mut closing: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = shared.limits;
    let stream = GuardedStream::new(stream, limits.timeouts, state.clone());
    let stream = ProblemStream::new(stream, Arc::clone(&shared.service), shared.strict_transport);
    let told = closing.clone();
    let service = service_fn(move |request| {
        let (shared, state, mut told) = (Arc::clone(&shared), state.clone(), told.clone());
        let begun = state.begin();
        async move {
            if !begun {
                // The connection is about to be dropped.
                std::future::pending::<()>().await;
            }
            let (mut response, has_key) = answer(request, peer, &shared, &state, &mut told).await;
            // Another connection may have this one's slot already.
            if *told.borrow() || state.given_up().is_some() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            state.end(has_key);
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(limits.header_bytes)
        .max_headers(limits.headers)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let told_to_close = async {
        // An error means that the server is gone, which closes too.
        let _ = closing.wait_for(|closing| *closing).await;
        tokio::time::sleep(LAST_REQUEST_GRACE).await;
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = told_to_close => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // A caller that went away or stalled: nothing that the operator could mend.
        tracing::debug!(%peer, %error, "a connection broke");
    }
}

/// The answer to a request, and whether that had a usable key.
async fn answer(
    request: http::Request<Incoming>,
    peer: IpAddr,
    shared: &Shared,
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
