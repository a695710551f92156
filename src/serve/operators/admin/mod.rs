//! The listener for operators and monitoring: a page, `/metrics`, `/livez`, `/readyz`.
//!
//! In reading order: `monitored` is the trait of a monitored program. For servers, `server` implements readiness,
//! `traffic` parses the server's own metrics, `page` renders the page. This file handles the requests.

pub mod lag;
pub(crate) mod monitored;
pub(crate) mod page;
pub(crate) mod server;
pub(crate) mod traffic;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use self::monitored::Monitored;
use crate::api::own_host::is_own;
use crate::serve::operators::exposition::Exposition;

const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for building the page or a scrape.
const BUILD_TIMEOUT: Duration = Duration::from_secs(10);
/// The page loads its style and its script. The script reloads the page.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; \
                           form-action 'none'; frame-ancestors 'none'";
const TEXT: &str = "text/plain; charset=utf-8";

/// The listener for operators, and its allowed names.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names explain the other fields")]
pub struct AdminSetup {
    pub listener: TcpListener,
    /// Additional names that are allowed in `Host`. Addresses and `localhost` always are.
    pub hosts: Vec<String>,
}

/// Serves until the process ends, also while a server drains.
pub async fn run(monitored: Arc<dyn Monitored>, setup: AdminSetup) {
    let hosts = Arc::<[String]>::from(setup.hosts);
    loop {
        match setup.listener.accept().await {
            Ok((stream, _)) => {
                let (monitored, hosts) = (Arc::clone(&monitored), Arc::clone(&hosts));
                let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                    let (monitored, hosts) = (Arc::clone(&monitored), Arc::clone(&hosts));
                    async move { Ok::<_, Infallible>(answer(monitored, &hosts, request.into_parts().0).await) }
                });
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEADER_TIMEOUT)
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!(%error, "an admin connection broke");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "an admin connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

async fn answer(
    monitored: Arc<dyn Monitored>,
    hosts: &[String],
    request: http::request::Parts,
) -> Response<Full<Bytes>> {
    let path = request.uri.path();
    let (status, kind, body) = match path {
        _ if !matches!(request.method, Method::GET | Method::HEAD) => {
            (StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET\n".to_owned())
        }
        // Any `Host` is fine: there is nothing secret, and a probe by name must not cause a restart.
        "/livez" => (StatusCode::OK, TEXT, "ok\n".to_owned()),
        // Scripts of other web pages must not read this (DNS rebinding).
        "/" | "/page.css" | "/page.js" | "/metrics" | "/readyz" if !is_own(&request.headers, hosts) => (
            StatusCode::MISDIRECTED_REQUEST,
            TEXT,
            "the request's Host is neither an address nor a known name of this machine; use the address, or start the \
             server with --admin-host NAME\n"
                .to_owned(),
        ),
        "/readyz" => match monitored.unready() {
            None => {
                let warning = monitored.warning().map(|warning| format!("{warning}\n"));
                (StatusCode::OK, TEXT, format!("ok\n{}", warning.unwrap_or_default()))
            }
            Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{reason}\n")),
        },
        "/metrics" => {
            let exposition = Exposition::accepted(&request.headers);
            match run_blocking(move || exposition.of(monitored.scrape())).await {
                Ok(text) => (StatusCode::OK, exposition.content_type(), text),
                Err(answer) => answer,
            }
        }
        "/page.css" => (StatusCode::OK, "text/css; charset=utf-8", page::STYLE.to_owned()),
        "/page.js" => (StatusCode::OK, "text/javascript; charset=utf-8", page::SCRIPT.to_owned()),
        "/" => match run_blocking(move || monitored.page()).await {
            Ok(Some(Ok(page))) => (StatusCode::OK, "text/html; charset=utf-8", page),
            Ok(Some(Err(error))) => {
                tracing::error!(%error, "the operators' page could not be built");
                (StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("the page could not be built: {error}\n"))
            }
            Ok(None) => (StatusCode::NOT_FOUND, TEXT, "there are /metrics, /livez and /readyz\n".to_owned()),
            Err(answer) => answer,
        },
        _ => (StatusCode::NOT_FOUND, TEXT, "there are /, /metrics, /livez and /readyz\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    *response.headers_mut() = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (VARY, HeaderValue::from_static("accept")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY)),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ]);
    response
}

/// Runs `build` on a blocking thread: the page reads the history and the files of other servers.
async fn run_blocking<T: Send + 'static>(
    build: impl FnOnce() -> T + Send + 'static,
) -> Result<T, (StatusCode, &'static str, String)> {
    match tokio::time::timeout(BUILD_TIMEOUT, tokio::task::spawn_blocking(build)).await {
        Ok(Ok(built)) => Ok(built),
        Ok(Err(_)) => Err((
            StatusCode::INTERNAL_SERVER_ERROR,
            TEXT,
            "the page could not be built; the log has the reason\n".to_owned(),
        )),
        Err(_) => Err((
            StatusCode::SERVICE_UNAVAILABLE,
            TEXT,
            "the page could not be built in time; the disk may be slow\n".to_owned(),
        )),
    }
}
