//! The listener for operators and monitoring: a page, `/metrics`, `/livez`, `/readyz`.
//!
//! `Monitored` is the interface of a monitored program, and `MonitoredServer` has the parts of a server. `page` renders
//! its page. This file handles the requests.

pub(crate) mod monitored;
pub(crate) mod page;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use self::monitored::Monitored;
use crate::api::browsers::is_own;
use crate::serve::operators::registrar::{OPEN_METRICS, PLAIN, accepts_open_metrics, plain};

const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// A failure to accept connections is logged again only if there was none for this time.
const QUIET_TIME: Duration = Duration::from_secs(60);
/// The time limit for building the page or a scrape.
const BUILD_TIMEOUT: Duration = Duration::from_secs(10);
/// The page loads its style and its script. The script reloads the page.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; \
                           form-action 'none'; frame-ancestors 'none'";
const TEXT: &str = "text/plain; charset=utf-8";

/// The listener for operators, and its allowed names.
pub struct AdminSetup {
    /// The socket on which it listens.
    pub listener: TcpListener,
    /// Additional names that are allowed in `Host`. Addresses and `localhost` always are.
    pub hosts: Vec<String>,
}

/// Serves until the process ends, also while a server drains.
pub async fn run(monitored: Arc<dyn Monitored>, setup: AdminSetup) {
    let hosts = Arc::<[String]>::from(setup.hosts);
    let mut last_failure: Option<Instant> = None;
    loop {
        match setup.listener.accept().await {
            Ok((stream, _)) => {
                let monitored = Arc::clone(&monitored);
                let hosts = Arc::clone(&hosts);
                let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                    let monitored = Arc::clone(&monitored);
                    let hosts = Arc::clone(&hosts);
                    async move {
                        Ok::<_, Infallible>(answer(monitored, &hosts, request.into_parts().0).await)
                    }
                });
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEADER_TIMEOUT)
                    .half_close(true)
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!(%error, "an admin connection broke");
                    }
                });
            }
            Err(error) => {
                // While files are short, attempts fail and succeed in turn.
                if last_failure.is_none_or(|last| last.elapsed() >= QUIET_TIME) {
                    tracing::warn!(%error, "an admin connection could not be accepted");
                }
                last_failure = Some(Instant::now());
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
        "/metrics" => match run_blocking(move || monitored.scrape()).await {
            Ok(text) if accepts_open_metrics(&request.headers) => (StatusCode::OK, OPEN_METRICS, text),
            Ok(text) => (StatusCode::OK, PLAIN, plain(&text)),
            Err(answer) => answer,
        },
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
        (
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(PAGE_POLICY),
        ),
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

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    /// The state that a program reports.
    #[derive(Clone, Debug, Default)]
    struct Says {
        unready: Option<&'static str>,
        warning: Option<&'static str>,
        page: Option<Result<&'static str, &'static str>>,
    }

    impl Monitored for Says {
        fn unready(&self) -> Option<String> {
            self.unready.map(str::to_owned)
        }

        fn warning(&self) -> Option<String> {
            self.warning.map(str::to_owned)
        }

        fn scrape(&self) -> String {
            "# TYPE a counter\na_total 1\n# EOF\n".to_owned()
        }

        fn page(&self) -> Option<Result<String, String>> {
            self.page
                .map(|page| page.map(str::to_owned).map_err(str::to_owned))
        }
    }

    async fn ask(
        says: &Says,
        method: &str,
        path: &str,
        hosts: &[&str],
    ) -> (u16, HeaderMap, String) {
        let names = ["feed-1.internal", "example.org"].map(str::to_owned);
        let mut request = http::Request::builder().method(method).uri(path);
        for host in hosts {
            request = request.header("host", *host);
        }
        let service = Arc::new(says.clone());
        let answer = answer(service, &names, request.body(()).unwrap().into_parts().0).await;
        let (head, body) = answer.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (
            head.status.as_u16(),
            head.headers,
            String::from_utf8(body.to_vec()).unwrap(),
        )
    }

    #[tokio::test]
    async fn requests_with_a_foreign_host_get_421() {
        let says = Says {
            page: Some(Ok("<p>")),
            ..Says::default()
        };
        let cases: [(&[&str], bool); 15] = [
            (&["example.org"], true),
            (&["example.org:8080"], true),
            (&["EXAMPLE.org"], true),
            (&["feed-1.internal"], true),
            (&["localhost:9090"], true),
            (&["127.0.0.1:9090"], true),
            (&["[::1]:9090"], true),
            (&[], true),
            (&["evilexample.org"], false),
            (&["evil.example.org"], false),
            (&["example.org.evil.net"], false),
            (&["example.org."], false),
            (&["evil.example"], false),
            (&[""], false),
            (&["example.org", "evil.example"], false),
        ];
        for (hosts, is_own) in cases {
            for method in ["GET", "HEAD"] {
                for path in words!["/" "/page.css" "/page.js" "/metrics" "/readyz" "/metrics?x=1"] {
                    let (status, _, body) = ask(&says, method, path, hosts).await;
                    assert_eq!(
                        status,
                        if is_own { 200 } else { 421 },
                        "{method} {path} of {hosts:?}: {body}"
                    );
                    assert!(is_own || body.contains("--admin-host"), "{body}");
                }
                assert_eq!(
                    ask(&says, method, "/livez", hosts).await.0,
                    200,
                    "{hosts:?}"
                );
                assert_eq!(
                    ask(&says, method, "/other", hosts).await.0,
                    404,
                    "{hosts:?}"
                );
            }
        }
        // The target may be a whole URL. Its path counts, and `Host` still does.
        for (host, status) in [("example.org", 200), ("evilexample.org", 421)] {
            assert_eq!(
                ask(&says, "GET", "http://example.org/metrics", &[host])
                    .await
                    .0,
                status,
                "{host}"
            );
        }
    }

    #[tokio::test]
    async fn the_admin_listener_answers_each_path() {
        let own = ["localhost"];
        let (ok, page) = (
            Says::default(),
            Says {
                page: Some(Ok("<p>")),
                ..Says::default()
            },
        );
        let warned = Says {
            warning: Some("the bucket fails"),
            ..Says::default()
        };
        let unready = Says {
            unready: Some("it stops"),
            ..warned.clone()
        };
        let broken = Says {
            page: Some(Err("the disk fails")),
            ..Says::default()
        };
        let cases = cases![
            &ok, "GET", "/readyz", 200, "ok\n";
            &warned, "GET", "/readyz", 200, "ok\nthe bucket fails\n";
            &unready, "GET", "/readyz", 503, "it stops\n";
            &unready, "GET", "/livez", 200, "ok\n";
            &unready, "GET", "/metrics", 200, "# TYPE a_total counter\na_total 1\n";
            &page, "GET", "/", 200, "<p>";
            &ok, "GET", "/", 404, "there are /metrics, /livez and /readyz\n";
            &broken, "GET", "/", 500, "the page could not be built: the disk fails\n";
            &page, "GET", "/metrics/", 404, "there are /, /metrics, /livez and /readyz\n";
            &page, "GET", "/page.css", 200, page::STYLE;
            &page, "GET", "/page.js", 200, page::SCRIPT;
            &page, "POST", "/livez", 405, "only GET\n";
            &page, "OPTIONS", "/metrics", 405, "only GET\n";
        ];
        for (says, method, path, status, body) in cases {
            let (found, headers, text) = ask(says, method, path, &own).await;
            assert_eq!(found, status, "{method} {path} of {says:?}");
            assert_eq!(text.as_str(), body, "{method} {path} of {says:?}");
            let kind = match (path, status) {
                ("/metrics", 200) => "text/plain; version=0.0.4; charset=utf-8",
                ("/page.css", _) => "text/css; charset=utf-8",
                ("/page.js", _) => "text/javascript; charset=utf-8",
                ("/", 200) => "text/html; charset=utf-8",
                _ => "text/plain; charset=utf-8",
            };
            let expected = [
                ("content-type", kind),
                ("cache-control", "no-store"),
                ("vary", "accept"),
                ("content-security-policy", PAGE_POLICY),
                ("referrer-policy", "no-referrer"),
                ("x-content-type-options", "nosniff"),
            ];
            for (name, value) in expected {
                assert_eq!(headers[name], value, "{method} {path}");
            }
        }
    }
}
