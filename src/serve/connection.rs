//! One connection: hyper reads requests, the API answers them.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::exports::Exports;
use super::refusal::ProblemStream;
use crate::api::{Answer, Request, Service};
use crate::model::time::now;

/// What a connection may use.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// How long a request's head may take to come, the wait for a next request included.
    pub header_timeout: Duration,
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
    /// The exports.
    pub exports: Exports,
    /// The limits.
    pub limits: ConnectionLimits,
}

/// Serves a connection until its caller leaves, or until `closing` turns true and what is in flight is done.
pub async fn serve_connection<S>(stream: S, peer: IpAddr, shared: Arc<Shared>, mut closing: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = shared.limits;
    let stream = TokioIo::new(ProblemStream::new(stream, Arc::clone(&shared.service)));
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answer(request, peer, &shared).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(limits.header_bytes)
        .max_headers(limits.headers)
        .serve_connection(stream, service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = closed(&mut closing) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // A caller that went away or stalled: nothing that the operator could mend.
        tracing::debug!(%peer, %error, "a connection broke");
    }
}

async fn closed(closing: &mut watch::Receiver<bool>) {
    // An error means that the server is gone, which closes too.
    let _ = closing.wait_for(|closing| *closing).await;
}

async fn answer(request: http::Request<Incoming>, peer: IpAddr, shared: &Shared) -> http::Response<Full<Bytes>> {
    let has_body = !request.body().is_end_stream();
    let (head, _) = request.into_parts();
    let request = Request {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().map(str::to_owned),
        headers: head.headers,
        has_body,
        address: peer.to_canonical(),
        at: Instant::now(),
        wall: now(),
    };
    let answered = match shared.service.answer(request) {
        Answer::Ready(response) => response,
        Answer::Export(pending) => shared.exports.answer(pending).await,
    };
    let mut response = http::Response::new(Full::new(answered.body));
    *response.status_mut() = answered.status;
    *response.headers_mut() = answered.headers;
    response
}
