//! The other side of the comparison: hyper alone, which answers the recorded bytes from memory.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use medfeed::serve::connection::resources::Workers;
use tokio::net::{TcpListener, TcpStream};

use crate::exchange::{self, ROW_HEADER};

struct Prepared {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// Serves the answers of a folder until the process is ended.
pub fn run(folder: &Path) {
    let answers: Vec<Prepared> = exchange::load(folder)
        .into_iter()
        .map(|recorded| {
            let (status, mut headers) = exchange::parse_head(&recorded.head);
            // hyper writes these by itself, as it does for the real server.
            for name in [DATE, CONNECTION] {
                headers.remove(name);
            }
            if status == StatusCode::NOT_MODIFIED {
                headers.remove(CONTENT_LENGTH);
            }
            Prepared {
                status,
                headers,
                body: recorded.body.into(),
            }
        })
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the runtime can be started");
    runtime.block_on(serve(Arc::new(answers)))
}

async fn serve(answers: Arc<Vec<Prepared>>) {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port of 127.0.0.1 can be listened on");
    // The same threads as the real server's, a runtime each.
    let mut workers = Workers::start().expect("threads can be started");
    println!(
        "listening on http://{}",
        listener.local_addr().expect("a listener has an address")
    );
    loop {
        let (stream, _) = listener.accept().await.expect("the connection is accepted");
        stream.set_nodelay(true).expect("TCP_NODELAY can be set");
        let stream = stream.into_std().expect("a stream leaves its runtime");
        let answers = Arc::clone(&answers);
        workers.next_worker().spawn(async move {
            let stream = TcpStream::from_std(stream).expect("a stream comes into a runtime");
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let row = request.headers().get(ROW_HEADER);
                let row = row.and_then(|row| row.to_str().ok());
                let answer = row.and_then(|row| answers.get(row.parse::<usize>().ok()?));
                let response = match answer {
                    None => {
                        let mut response = Response::new(Full::default());
                        *response.status_mut() = StatusCode::NOT_FOUND;
                        response
                    }
                    Some(prepared) => {
                        let mut response = Response::new(Full::new(prepared.body.clone()));
                        *response.status_mut() = prepared.status;
                        *response.headers_mut() = prepared.headers.clone();
                        response
                    }
                };
                std::future::ready(Ok::<_, Infallible>(response))
            });
            // The client closes the connection.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
