//! The listener for operators and their monitoring: a page, `/metrics`, `/livez`, `/readyz`.
//!
//! In reading order: [`subject`] is what they look at, [`traffic`] reads the server's own metrics, [`page`] is made of both; this
//! file answers.

pub mod page;
pub mod subject;
pub mod traffic;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use self::subject::Subject;
use super::host::is_own;

/// The time limit for a request's head.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the page may take to make.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// The page needs its style and nothing else.
const PAGE_POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TEXT: &str = "text/plain; charset=utf-8";

/// Where operators are answered.
#[derive(Debug)]
pub struct AdminSetup {
    /// The listener.
    pub listener: TcpListener,
    /// Names of this machine that requests may carry in `Host`, beside addresses and `localhost`.
    pub hosts: Vec<String>,
}

/// Answers until the process ends, also while the server drains.
pub async fn run(subject: Subject, setup: AdminSetup) {
    let (subject, hosts) = (Arc::new(subject), Arc::<[String]>::from(setup.hosts));
    loop {
        match setup.listener.accept().await {
            Ok((stream, _)) => {
                let (subject, hosts) = (Arc::clone(&subject), Arc::clone(&hosts));
                let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                    let (subject, hosts) = (Arc::clone(&subject), Arc::clone(&hosts));
                    async move { Ok::<_, Infallible>(answer(subject, &hosts, request.into_parts().0).await) }
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

async fn answer(subject: Arc<Subject>, hosts: &[String], request: http::request::Parts) -> Response<Full<Bytes>> {
    let path = request.uri.path();
    let (status, kind, body) = match path {
        _ if !matches!(request.method, Method::GET | Method::HEAD) => {
            (StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET\n".to_owned())
        }
        "/livez" => (StatusCode::OK, TEXT, "ok\n".to_owned()),
        "/readyz" => match subject.unready() {
            None => {
                let remark = subject.remark().map(|remark| format!("{remark}\n"));
                (StatusCode::OK, TEXT, format!("ok\n{}", remark.unwrap_or_default()))
            }
            Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{reason}\n")),
        },
        // A page of the web may have its name lead here, and then read what only operators are to see.
        "/" | "/page.css" | "/metrics" if !is_own(&request.headers, hosts) => (
            StatusCode::MISDIRECTED_REQUEST,
            TEXT,
            "the request's Host is no address and no known name of this machine; ask for the address, or start the server \
             with --admin-host NAME\n"
                .to_owned(),
        ),
        "/metrics" => (
            StatusCode::OK,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            subject.metrics.render(&subject.watcher, &subject.service),
        ),
        "/page.css" => (StatusCode::OK, "text/css; charset=utf-8", page::STYLE.to_owned()),
        "/" => page_of(subject).await,
        _ => (StatusCode::NOT_FOUND, TEXT, "there are /, /metrics, /livez and /readyz\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    *response.headers_mut() = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY)),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ]);
    response
}

/// The page, made in a thread that may wait: it reads the history and the files of other servers.
async fn page_of(subject: Arc<Subject>) -> (StatusCode, &'static str, String) {
    let made = tokio::task::spawn_blocking(move || page::render(&subject));
    let Ok(made) = tokio::time::timeout(PAGE_TIMEOUT, made).await else {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            TEXT,
            "the page waits for the disk, which does not answer\n".to_owned(),
        );
    };
    match made {
        Ok(Ok(page)) => (StatusCode::OK, "text/html; charset=utf-8", page),
        Ok(Err(error)) => {
            tracing::error!(%error, "the operators' page cannot be made");
            (StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("the page cannot be made: {error}\n"))
        }
        // The panic is in the log.
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, TEXT, "the page cannot be made; the log tells why\n".to_owned()),
    }
}
