//! Requests to the API without a socket.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use medfeed::api::Request;
use medfeed::model::time::now;

/// A GET of a target with a key, from this machine, now.
pub fn request(key: &str, target: &str, headers: &[(&str, &str)]) -> Request {
    let mut map = HeaderMap::new();
    for (name, value) in [("x-api-key", key), ("accept", "*/*")].iter().chain(headers) {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a header has a valid name");
        map.insert(name, HeaderValue::from_str(value).expect("a header has a valid value"));
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
