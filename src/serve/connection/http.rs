//! HTTP/1.1 on one connection: hyper reads requests, the API answers them.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
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
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

use crate::api::Request;
use crate::model::{KeyHash, now};
use crate::serve::connection::address::TrustedProxies;
use crate::serve::connection::dispatch::Dispatcher;
use crate::serve::connection::limits::{Connection, MAX_HEAD_BYTES, MAX_HEADERS};
use crate::serve::connection::malformed::{find_host_flaw, refuse};
use crate::serve::connection::stream::ConnectionStream;
use crate::serve::connection::tls::{STRICT_TRANSPORT, Tls};

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
