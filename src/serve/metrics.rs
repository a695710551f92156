//! What an operator's monitoring sees (Prometheus / OpenMetrics text).

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::log::LostLines;
use super::watcher::Watcher;
use crate::api::observe::{Answered, Cause, ConnectionLimit, GivenUp, Observer, RequestLog};
use crate::api::{Code, Service, SnapshotSource};
use crate::model::time::now;

type Number = Gauge<i64>;
type Unsigned = Gauge<u64, AtomicU64>;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    status: u16,
    license: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CodeLabels {
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct GivenUpLabels {
    reason: &'static str,
    cause: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct LimitLabels {
    limit: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FeedLabels {
    license: String,
    key: String,
    dataset: &'static str,
}

/// The metrics of a server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram, fn() -> Histogram>,
    refused_keys: Family<CodeLabels, Counter>,
    rate_limited: Counter,
    internal_errors: Counter,
    connections: Number,
    connections_opened: Counter,
    connections_given_up: Family<GivenUpLabels, Counter>,
    connections_at_limit: Family<LimitLabels, Counter>,
    connections_refused: Family<LimitLabels, Counter>,
    feed_position: Family<FeedLabels, Unsigned>,
    feed_behind: Family<FeedLabels, Unsigned>,
    snapshot_seq: Unsigned,
    snapshot_age: Number,
    held_back: Number,
    database_followed: Number,
    answer_cache_bytes: Unsigned,
    answer_cache_entries: Unsigned,
    record_cache_bytes: Unsigned,
    feed_cache_bytes: Unsigned,
    log_lines_lost: Counter,
    lost_lines: LostLines,
}

fn new_duration_histogram() -> Histogram {
    Histogram::new([0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0])
}

impl Metrics {
    /// Metrics of a server that has answered nothing yet, and of the log that its lines go to.
    pub fn new(lost_lines: LostLines) -> Metrics {
        let mut registry = Registry::with_prefix("medfeed");
        let metrics = Metrics {
            requests: Family::default(),
            durations: Family::new_with_constructor(new_duration_histogram),
            refused_keys: Family::default(),
            rate_limited: Counter::default(),
            internal_errors: Counter::default(),
            connections: Number::default(),
            connections_opened: Counter::default(),
            connections_given_up: Family::default(),
            connections_at_limit: Family::default(),
            connections_refused: Family::default(),
            feed_position: Family::default(),
            feed_behind: Family::default(),
            snapshot_seq: Unsigned::default(),
            snapshot_age: Number::default(),
            held_back: Number::default(),
            database_followed: Number::default(),
            answer_cache_bytes: Unsigned::default(),
            answer_cache_entries: Unsigned::default(),
            record_cache_bytes: Unsigned::default(),
            feed_cache_bytes: Unsigned::default(),
            log_lines_lost: Counter::default(),
            lost_lines,
            registry: Registry::default(),
        };
        registry.register("requests", "Answered requests", metrics.requests.clone());
        registry.register_with_unit(
            "request_duration",
            "Time to make an answer, without sending it",
            Unit::Seconds,
            metrics.durations.clone(),
        );
        registry.register("refused_keys", "Requests with a key that cannot be used", metrics.refused_keys.clone());
        registry.register("rate_limited", "Requests answered with 429", metrics.rate_limited.clone());
        registry.register(
            "internal_errors",
            "Requests answered with 500: a damaged database, or a bug; the log tells which",
            metrics.internal_errors.clone(),
        );
        registry.register("connections", "Open connections", metrics.connections.clone());
        registry.register("connections_opened", "Connections accepted", metrics.connections_opened.clone());
        registry.register(
            "connections_given_up",
            "Connections ended by the server: idle, unfinished or slow, for a timeout or for the sake of new ones",
            metrics.connections_given_up.clone(),
        );
        registry.register(
            "connections_at_limit",
            "New connections that met a limit: all slots were taken (total), or those of their address (address)",
            metrics.connections_at_limit.clone(),
        );
        registry.register(
            "connections_refused",
            "New connections refused at a limit, since none could be given up for them",
            metrics.connections_refused.clone(),
        );
        registry.register(
            "feed_position",
            "The position of the last sync token that a key sent",
            metrics.feed_position.clone(),
        );
        registry.register_with_unit(
            "feed_behind",
            "By how much the feed's newest entry is later than the last sync token that a key sent",
            Unit::Seconds,
            metrics.feed_behind.clone(),
        );
        registry.register("snapshot_seq", "The last seq of the state that is served", metrics.snapshot_seq.clone());
        registry.register_with_unit(
            "snapshot_age",
            "Time since the commit that is served was made",
            Unit::Seconds,
            metrics.snapshot_age.clone(),
        );
        registry.register("held_back", "1 while a commit waits for the change delay", metrics.held_back.clone());
        registry.register(
            "database_followed",
            "1 while the database file is there and can be read; 0 means that an old state is served",
            metrics.database_followed.clone(),
        );
        registry.register_with_unit(
            "answer_cache",
            "Size of the finished answers that are kept in memory",
            Unit::Bytes,
            metrics.answer_cache_bytes.clone(),
        );
        registry.register_with_unit(
            "feed_cache",
            "Size of the feeds, and of what filters run over, that are kept in memory",
            Unit::Bytes,
            metrics.feed_cache_bytes.clone(),
        );
        registry.register_with_unit(
            "record_cache",
            "Size of the records' texts that are kept in memory",
            Unit::Bytes,
            metrics.record_cache_bytes.clone(),
        );
        registry.register(
            "log_lines_lost",
            "Log lines that could not be written, or came while too many waited",
            metrics.log_lines_lost.clone(),
        );
        registry.register(
            "answer_cache_entries",
            "Finished answers that are kept in memory",
            metrics.answer_cache_entries.clone(),
        );
        Metrics { registry, ..metrics }
    }

    /// The text for a scrape.
    pub fn render(&self, watcher: &Watcher, service: &Service) -> String {
        let published = watcher.published().commit();
        self.snapshot_seq.set(published.seq);
        self.snapshot_age.set(now().unix_s() - published.time.unix_s());
        self.held_back.set(i64::from(watcher.newest().commit() != published));
        self.database_followed.set(i64::from(watcher.is_followed()));
        self.feed_cache_bytes.set(watcher.published().feed_cache().bytes());
        self.record_cache_bytes.set(watcher.published().record_cache().bytes());
        self.answer_cache_entries.set(u64::try_from(service.answers().entries()).unwrap_or(u64::MAX));
        self.answer_cache_bytes.set(service.answers().bytes());
        self.log_lines_lost.inner().store(self.lost_lines.count(), Ordering::Relaxed);
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }
}

impl Observer for Metrics {
    fn answered(&self, answered: &Answered<'_>) {
        RequestLog.answered(answered);
        let license = answered.key.map(|key| key.license_name.clone()).unwrap_or_default();
        let labels = RequestLabels { route: answered.route, status: answered.status, license: license.clone() };
        self.requests.get_or_create(&labels).inc();
        let route = RouteLabels { route: answered.route };
        self.durations.get_or_create(&route).observe(answered.duration.as_secs_f64());
        match answered.problem {
            Some(code @ (Code::InvalidApiKey | Code::RevokedApiKey | Code::ExpiredApiKey | Code::IpNotAllowed)) => {
                self.refused_keys.get_or_create(&CodeLabels { code: code.as_str() }).inc();
            }
            Some(Code::RateLimited) => {
                self.rate_limited.inc();
            }
            Some(Code::InternalError) => {
                self.internal_errors.inc();
            }
            _ => {}
        }
        if let (Some(key), Some(feed)) = (answered.key, answered.feed) {
            let labels = FeedLabels { license, key: key.id.clone(), dataset: feed.dataset.as_str() };
            self.feed_position.get_or_create(&labels).set(feed.position);
            self.feed_behind.get_or_create(&labels).set(feed.behind_s);
        }
    }

    fn connected(&self) {
        self.connections.inc();
        self.connections_opened.inc();
    }

    fn disconnected(&self) {
        self.connections.dec();
    }

    fn given_up(&self, reason: GivenUp, cause: Cause) {
        let labels = GivenUpLabels { reason: reason.as_str(), cause: cause.as_str() };
        self.connections_given_up.get_or_create(&labels).inc();
    }

    fn met_limit(&self, limit: ConnectionLimit) {
        self.connections_at_limit.get_or_create(&LimitLabels { limit: limit.as_str() }).inc();
    }

    fn refused_connection(&self, limit: ConnectionLimit) {
        self.connections_refused.get_or_create(&LimitLabels { limit: limit.as_str() }).inc();
    }
}
