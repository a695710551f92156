//! What the API needs of an HTTP request.

use std::net::IpAddr;
use std::time::Instant;

use http::{HeaderMap, Method};

use crate::model::Timestamp;

/// A request, with the two clocks that its answer may depend on.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path and query as sent: not decoded.
    pub target: String,
    /// The headers.
    pub headers: HeaderMap,
    /// Whether a body follows.
    pub has_body: bool,
    /// What HTTP forbids about it, and what to send instead.
    pub flaw: Option<&'static str>,
    /// The caller's address; an IPv4 address mapped to IPv6 is IPv4.
    pub address: IpAddr,
    /// When it came, on the monotonic clock: for rate windows.
    pub at: Instant,
    /// When it came, on the wall clock: for expiries and `/v1/status`.
    pub wall: Timestamp,
}

impl Request {
    /// The path as sent.
    pub fn path(&self) -> &str {
        self.target.split_once('?').map_or(&self.target, |(path, _)| path)
    }

    /// The query as sent, without its `?`.
    pub fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// Whether the answer's body is to be left out.
    pub fn is_head(&self) -> bool {
        self.method == Method::HEAD
    }
}
