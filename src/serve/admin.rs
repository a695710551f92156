//! The listener for monitoring: `/metrics`, `/livez`, `/readyz`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::metrics::Metrics;
use super::watcher::Watcher;
use crate::api::Service;

/// The time limit for a request's head.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// What monitoring reads.
#[derive(Debug)]
pub struct Admin {
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The watched database.
    pub watcher: Arc<Watcher>,
    /// The API.
    pub service: Arc<Service>,
    /// True once the server stops.
    pub stopping: watch::Receiver<bool>,
}

impl Admin {
    /// Answers until the process ends, also while the server drains.
    pub async fn run(self, listener: TcpListener) {
        let admin = Arc::new(self);
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let admin = Arc::clone(&admin);
                    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                        let response = admin.answer(request.method(), request.uri().path());
                        async move { Ok::<_, Infallible>(response) }
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

    fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        let (status, kind, body) = match path {
            _ if !matches!(*method, Method::GET | Method::HEAD) => {
                (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET\n".to_owned())
            }
            "/metrics" => (
                StatusCode::OK,
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                self.metrics.render(&self.watcher, &self.service),
            ),
            "/livez" => (StatusCode::OK, "text/plain", "ok\n".to_owned()),
            "/readyz" => match self.unready() {
                None => (StatusCode::OK, "text/plain", "ok\n".to_owned()),
                Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, "text/plain", format!("{reason}\n")),
            },
            _ => (StatusCode::NOT_FOUND, "text/plain", "there are /metrics, /livez and /readyz\n".to_owned()),
        };
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    }

    fn unready(&self) -> Option<&'static str> {
        if *self.stopping.borrow() {
            return Some("the server is stopping");
        }
        (!self.watcher.is_followed()).then_some("the database file cannot be followed; the last state is served")
    }
}
