//! The listener for operators and their monitoring: a page, `/metrics`, `/livez`, `/readyz`.
//!
//! In reading order: [`watched`] is what may be asked of a program; of a server [`subject`] is what they look at, [`traffic`] reads
//! its own metrics, [`page`] is made of both. This file answers.

pub mod lag;
pub mod page;
pub mod subject;
pub mod traffic;
pub mod watched;

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

use self::watched::Watched;
use crate::api::own_host::is_own;
use crate::serve::operators::exposition::Exposition;

/// The time limit for a request's head.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the page, or the text of a scrape, may take to make.
const MAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The page needs its style and its script, which loads the page again.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; \
                           form-action 'none'; frame-ancestors 'none'";
const TEXT: &str = "text/plain; charset=utf-8";

/// Where operators are answered.
#[derive(Debug)]
pub struct AdminSetup {
    /// The listener.
    pub listener: TcpListener,
    /// Names of this machine that requests may carry in `Host`, beside addresses and `localhost`.
    pub hosts: Vec<String>,
}

/// Answers until the process ends, also while a server drains.
pub async fn run(subject: Arc<dyn Watched>, setup: AdminSetup) {
    let hosts = Arc::<[String]>::from(setup.hosts);
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

async fn answer(subject: Arc<dyn Watched>, hosts: &[String], request: http::request::Parts) -> Response<Full<Bytes>> {
    let path = request.uri.path();
    let (status, kind, body) = match path {
        _ if !matches!(request.method, Method::GET | Method::HEAD) => {
            (StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET\n".to_owned())
        }
        // It says nothing, and a probe by name must not have a server restarted.
        "/livez" => (StatusCode::OK, TEXT, "ok\n".to_owned()),
        // The script of a web page must not read what is for operators.
        "/" | "/page.css" | "/page.js" | "/metrics" | "/readyz" if !is_own(&request.headers, hosts) => (
            StatusCode::MISDIRECTED_REQUEST,
            TEXT,
            "the request's Host is no address and no known name of this machine; ask for the address, or start the server \
             with --admin-host NAME\n"
                .to_owned(),
        ),
        "/readyz" => match subject.unready() {
            None => {
                let remark = subject.remark().map(|remark| format!("{remark}\n"));
                (StatusCode::OK, TEXT, format!("ok\n{}", remark.unwrap_or_default()))
            }
            Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{reason}\n")),
        },
        "/metrics" => {
            let exposition = Exposition::accepted(&request.headers);
            match made(move || exposition.of(subject.scrape())).await {
                Ok(text) => (StatusCode::OK, exposition.content_type(), text),
                Err(answer) => answer,
            }
        }
        "/page.css" => (StatusCode::OK, "text/css; charset=utf-8", page::STYLE.to_owned()),
        "/page.js" => (StatusCode::OK, "text/javascript; charset=utf-8", page::SCRIPT.to_owned()),
        "/" => match made(move || subject.page()).await {
            Ok(Some(Ok(page))) => (StatusCode::OK, "text/html; charset=utf-8", page),
            Ok(Some(Err(error))) => {
                tracing::error!(%error, "the operators' page cannot be made");
                (StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("the page cannot be made: {error}\n"))
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

/// Makes something in a thread that may wait: the page reads the history and the files of other servers.
async fn made<T: Send + 'static>(
    make: impl FnOnce() -> T + Send + 'static,
) -> Result<T, (StatusCode, &'static str, String)> {
    match tokio::time::timeout(MAKE_TIMEOUT, tokio::task::spawn_blocking(make)).await {
        Ok(Ok(made)) => Ok(made),
        // The panic is in the log.
        Ok(Err(_)) => {
            Err((StatusCode::INTERNAL_SERVER_ERROR, TEXT, "the page cannot be made; the log tells why\n".to_owned()))
        }
        Err(_) => Err((
            StatusCode::SERVICE_UNAVAILABLE,
            TEXT,
            "the page waits for the disk, which does not answer\n".to_owned(),
        )),
    }
}
