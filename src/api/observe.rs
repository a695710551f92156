//! Events of the server: one call per response, for logs, metrics and the record of key usage.

use std::net::IpAddr;
use std::time::Duration;

use http::Method;

use crate::model::{Dataset, KeyRecord, Timestamp, Witness};

use super::problem::Code;

/// An answered request, without its token, query and records.
pub struct Answered<'a> {
    /// Its id, as sent to the caller.
    pub request_id: &'a str,
    /// The method; callers may send any word.
    pub method: &'a Method,
    /// The endpoint's pattern.
    pub route: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// The error code, if the response is a problem.
    pub problem: Option<Code>,
    /// The key, if it is usable.
    pub key: Option<&'a KeyRecord>,
    /// The key that was sent, also if it is not usable.
    pub sent_key: Option<&'a KeyRecord>,
    /// The caller's address.
    pub address: IpAddr,
    /// The size of the body.
    pub bytes: usize,
    /// The time from its arrival to the answer.
    pub duration: Duration,
    /// The caller's position in a change feed, if it sent a sync token.
    pub feed: Option<FeedUse>,
}

/// The position of a caller in a change feed.
#[derive(Clone, Copy, Debug)]
pub struct FeedUse {
    /// The dataset of the feed.
    pub dataset: Dataset,
    /// The position in the sync token.
    pub position: u64,
    /// The state of the feed at the time of the answer.
    pub witness: Witness,
    /// The time of the oldest entry that the caller has not fetched; `None` if it has all of that state.
    pub behind_since: Option<Timestamp>,
}

/// The reason why the server closed a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum CloseReason {
    /// It sent no complete request.
    Idle,
    /// It read its response too slowly.
    Slow,
    /// It was long-polling. It was answered at once, then closed.
    Waiting,
}

/// The event that ended a long poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum WaitEnd {
    /// A change that the caller sees: in its feed, its license or its key.
    Change,
    /// The end of the time that the request named.
    Time,
    /// Its connection was needed for another one.
    Capacity,
    /// The server's stop.
    Stop,
    /// The caller's disconnect.
    Left,
}

/// The cause for which the server closed a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum CloseCause {
    /// A time limit was over.
    Timeout,
    /// A new connection needed its place.
    Capacity,
}

/// A limit of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ConnectionLimit {
    /// Of all connections.
    Total,
    /// Of the connections of one address.
    Address,
}

/// Observes responses and connections.
pub trait Observer: Send + Sync {
    /// Called for every response.
    fn answered(&self, answered: &Answered<'_>);

    /// Called when a connection was accepted.
    fn connected(&self) {}

    /// Called when a connection has ended.
    fn disconnected(&self) {}

    /// Called when a request begins to wait for changes.
    fn long_poll_started(&self) {}

    /// Called when such a request no longer waits.
    fn long_poll_ended(&self, _end: WaitEnd) {}

    /// Called when the server closed a connection.
    fn closed_connection(&self, _reason: CloseReason, _cause: CloseCause) {}

    /// Called when a new connection reached a limit: another one was closed for it, or it waited, or it was refused.
    fn reached_limit(&self, _limit: ConnectionLimit) {}

    /// Called when a new connection was refused: its address has too many, and none could be closed for it.
    fn refused_connection(&self) {}
}

/// The name of a known method. Others are not logged, since a caller may send a key as the method by mistake.
fn loggable_name(method: &Method) -> &str {
    const KNOWN: [&str; 9] = [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT",
    ];
    if KNOWN.contains(&method.as_str()) {
        method.as_str()
    } else {
        "(other)"
    }
}

/// Writes one log line per request.
#[derive(Clone, Copy, Default)]
pub struct RequestLog;

impl Observer for RequestLog {
    fn answered(&self, answered: &Answered<'_>) {
        tracing::info!(
            request_id = answered.request_id,
            method = loggable_name(answered.method),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_methods_are_not_logged() {
        for known in [
            "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT",
        ] {
            assert_eq!(
                loggable_name(&Method::from_bytes(known.as_bytes()).unwrap()),
                known
            );
        }
        for other in ["get", "GETX", "PROPFIND", "mfk_0123456789", "X"] {
            assert_eq!(
                loggable_name(&Method::from_bytes(other.as_bytes()).unwrap()),
                "(other)",
                "{other}"
            );
        }
    }
}
