//! Requests to the API without a socket.

use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use medfeed::api::Exchange;
use medfeed::api::service::CheckedRequest;
use medfeed::api::{Request, Response, Service};
use medfeed::model::time::now;

/// A GET of a target with a key, from this machine, now.
pub fn request(key: &str, target: &str, headers: &[(&str, &str)]) -> Request {
    let mut map = HeaderMap::new();
    for (name, value) in [("x-api-key", key), ("accept", "*/*")]
        .iter()
        .chain(headers)
    {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a header has a valid name");
        map.insert(
            name,
            HeaderValue::from_str(value).expect("a header has a valid value"),
        );
    }
    Request {
        method: Method::GET,
        target: target.to_owned(),
        headers: map,
        has_body: false,
        flaw: None,
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        at: Instant::now(),
        wall: now(),
    }
}

/// Answers a request in this thread. No other caller may request the same meanwhile.
pub fn respond(service: &Service, request: Request) -> Response {
    let mut exchange = Exchange::new(request);
    let answer = match service.check(&mut exchange) {
        Ok(CheckedRequest::Answered(answer)) => Ok(answer),
        Ok(CheckedRequest::Passed(job, _)) => {
            let joined =
                pin!(service.join(&exchange, &job)).poll(&mut Context::from_waker(Waker::noop()));
            let Poll::Ready(Err(guard)) = joined else {
                panic!("the answer is made elsewhere")
            };
            let made = service
                .build(job)
                .unwrap_or_else(|job| service.build_caught_up(job));
            made.inspect(|answer| drop(guard.insert(Arc::clone(answer))))
        }
        Ok(checked) => panic!("no request of a benchmark: {checked:?}"),
        Err(problem) => Err(problem),
    };
    service.finish(&exchange, answer)
}
