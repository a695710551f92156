//! A request, as the API needs it.

use std::net::IpAddr;
use std::time::Instant;

use http::{HeaderMap, Method};

use crate::model::Timestamp;

/// A request, with its time on two clocks.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names explain the other fields")]
pub struct Request {
    pub method: Method,
    /// The path and query as sent, not decoded.
    pub target: String,
    pub headers: HeaderMap,
    pub has_body: bool,
    /// An error message if the request is invalid in HTTP.
    pub flaw: Option<&'static str>,
    /// The caller's address. IPv4 mapped to IPv6 becomes IPv4.
    pub address: IpAddr,
    /// The time of arrival on the monotonic clock, for rate windows.
    pub at: Instant,
    /// The time of arrival on the wall clock, for expiry and `/v1/status`.
    pub wall: Timestamp,
}

impl Request {
    /// The path as sent.
    pub fn path(&self) -> &str {
        self.target
            .split_once('?')
            .map_or(&self.target, |(path, _)| path)
    }

    /// The query as sent, without its `?`.
    pub fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// Whether the method is GET or HEAD.
    pub fn is_reading(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// Whether the response must have no body.
    pub fn is_head(&self) -> bool {
        self.method == Method::HEAD
    }
}
