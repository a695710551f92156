//! What the server tells of its work: one call per answer, for logs, metrics and the record of who uses what.

use std::net::IpAddr;
use std::time::Duration;

use http::Method;

use crate::model::{Dataset, KeyRecord, Timestamp};

use super::problem::Code;

/// An answered request. It holds no token, query or record.
#[derive(Debug)]
pub struct Answered<'a> {
    /// The id on the answer.
    pub request_id: &'a str,
    /// The method, which may be any word.
    pub method: &'a Method,
    /// The route's pattern.
    pub route: &'static str,
    /// The status.
    pub status: u16,
    /// The kind of error, of a problem.
    pub problem: Option<Code>,
    /// The key, where it is usable.
    pub key: Option<&'a KeyRecord>,
    /// The caller's address.
    pub address: IpAddr,
    /// The length of the body, in bytes.
    pub bytes: usize,
    /// How long the answer took to make.
    pub duration: Duration,
    /// Where the caller stands in a change feed, of a request with a sync token.
    pub feed: Option<FeedUse>,
}

/// Where a caller stands in a change feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedUse {
    /// The feed's dataset.
    pub dataset: Dataset,
    /// The position of the token that was sent.
    pub position: u64,
    /// By how many seconds the newest entry of the feed is later than that position; 0 where nothing is new.
    pub behind_s: u64,
    /// The time of that newest entry.
    pub newest_at: Timestamp,
}

/// Why a connection was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum GivenUp {
    /// It waited for its next request.
    Idle,
    /// Its request, or its TLS handshake, did not come whole.
    Unfinished,
    /// Its caller took its answers too slowly.
    Slow,
}

/// What a connection was given up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Cause {
    /// A time limit was over.
    Timeout,
    /// Its slot was needed for another connection.
    Capacity,
}

/// Which limit a connection met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ConnectionLimit {
    /// The connections of all callers together.
    Total,
    /// The connections of its own address.
    Address,
}

/// Hears of every answer and connection.
pub trait Observer: Send + Sync {
    /// A request was answered.
    fn answered(&self, answered: &Answered<'_>);

    /// A connection was opened.
    fn connected(&self) {}

    /// A connection was closed.
    fn disconnected(&self) {}

    /// A connection was given up.
    fn given_up(&self, _reason: GivenUp, _cause: Cause) {}

    /// A new connection met a limit: another one was given up for it, or it waited, or it was refused.
    fn met_limit(&self, _limit: ConnectionLimit) {}

    /// A new connection was refused, since none could be given up for it.
    fn refused_connection(&self, _limit: ConnectionLimit) {}
}

/// A method may be any word, even a key by mistake: only known ones are logged.
fn name_of(method: &Method) -> &str {
    let known = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
        Method::TRACE,
        Method::CONNECT,
    ];
    if known.contains(method) { method.as_str() } else { "(other)" }
}

/// Writes one log line per request.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestLog;

impl Observer for RequestLog {
    fn answered(&self, answered: &Answered<'_>) {
        tracing::info!(
            request_id = answered.request_id,
            method = name_of(answered.method),
            route = answered.route,
            status = answered.status,
            problem = answered.problem.map(Code::as_str),
            key = answered.key.map(|key| key.id.as_str()),
            license = answered.key.map(|key| key.license_name.as_str()),
            address = %answered.address,
            bytes = answered.bytes,
            duration_us = u64::try_from(answered.duration.as_micros()).unwrap_or(u64::MAX),
            "answered"
        );
    }
}
