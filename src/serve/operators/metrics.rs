//! The metrics of a server, for Prometheus. As the server's observer, they also forward responses to the request log
//! and the record of key usage.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::api::observe::{Answered, CloseCause, CloseReason, ConnectionLimit, Observer, RequestLog, WaitEnd};
use crate::api::{Code, Service, SnapshotSource};
use crate::model::Dataset;
use crate::model::time::now;
use crate::serve::connection::tls::Tls;
use crate::serve::operators::log::LostLines;
use crate::serve::operators::registrar::{
    MetricKind, ProcessMetrics, Registrar, Sampled, SampledMetrics, SignedGauge, UnsignedGauge, count, text_of,
};
use crate::serve::operators::usage::Usage;
use crate::serve::watching::replica_thread::ReplicaThread;
use crate::serve::watching::watcher::Watcher;
use crate::store::Snapshot;

/// Names of labels, with their values.
type Labels<const N: usize> = [(&'static str, &'static str); N];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    status: u16,
    license: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FeedLabels {
    license: String,
    key: String,
    dataset: &'static str,
}

/// The upper bounds of the histograms of durations, in seconds.
const BOUNDS_S: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// The traffic of a route since the server's start, for the operators' page. The metrics library does not list the
/// labels that it has.
#[derive(Clone, Copy, Debug, Default)]
pub struct RouteTraffic {
    pub requests: u64,
    /// Responses with 4xx.
    pub refused: u64,
    /// Responses with 5xx.
    pub failed: u64,
}

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<Labels<1>, Histogram, fn() -> Histogram>,
    routes: Mutex<BTreeMap<&'static str, RouteTraffic>>,
    refused_keys: Family<Labels<1>, Counter>,
    rate_limited: Counter,
    internal_errors: Counter,
    connections: SignedGauge,
    connections_opened: Counter,
    connections_given_up: Family<Labels<2>, Counter>,
    connections_at_limit: Family<Labels<1>, Counter>,
    connections_refused: Counter,
    waiting: SignedGauge,
    waits_ended: Family<Labels<1>, Counter>,
    feed_position: Family<FeedLabels, UnsignedGauge>,
    feed_behind: Family<FeedLabels, UnsignedGauge>,
    /// The feeds of the last scrape.
    feeds: Mutex<HashSet<FeedLabels>>,
    samples: SampledMetrics<ScrapeSource>,
    lost_lines: LostLines,
    usage: Option<Arc<Usage>>,
    replica: Option<ReplicaSamples>,
    tls: Option<(SampledMetrics<Arc<Tls>>, Arc<Tls>)>,
    dataset_changed: Family<Labels<1>, SignedGauge>,
    process: ProcessMetrics,
}

/// The source of the sampled metrics.
#[derive(Debug)]
struct ScrapeSource {
    watcher: Arc<Watcher>,
    service: Arc<Service>,
    lost_lines: LostLines,
}

const SAMPLED: &[Sampled<ScrapeSource>] = &[
    ("snapshot_seq", MetricKind::Gauge, "The last seq of the served state", |scrape| {
        count(scrape.watcher.shown().commit().seq)
    }),
    ("snapshot_age", MetricKind::Seconds, "Age of the last served commit", |scrape| {
        now().unix_s() - scrape.watcher.shown().commit().time.unix_s()
    }),
    ("held_back", MetricKind::Gauge, "1 while a commit is held back by the change delay", |scrape| {
        i64::from(scrape.watcher.newest().commit() != scrape.watcher.shown().commit())
    }),
    ("held_back", MetricKind::Seconds, "Time for which the oldest held-back commit has waited", |scrape| {
        scrape.watcher.held_back_for().map_or(0, |time| count(time.as_secs()))
    }),
    (
        "database_followed",
        MetricKind::Gauge,
        "1 while the database file exists and can be read; 0 means that an old state is served",
        |scrape| i64::from(scrape.watcher.is_followed()),
    ),
    (
        "fenced",
        MetricKind::Gauge,
        "1 if another publisher took over from this database: the server is not ready, and later responds with 503",
        |scrape| i64::from(scrape.watcher.is_fenced()),
    ),
    ("answer_cache", MetricKind::Bytes, "Size of the cached responses, including compressed parts", |scrape| {
        count(scrape.service.cached().1)
    }),
    ("answer_cache_entries", MetricKind::Gauge, "Cached responses", |scrape| {
        i64::try_from(scrape.service.cached().0).unwrap_or(i64::MAX)
    }),
    ("log_lines_lost", MetricKind::Counter, "Log lines that could not be written or queued", |scrape| {
        count(scrape.lost_lines.count())
    }),
];

const SAMPLED_OF_TLS: &[Sampled<Arc<Tls>>] = &[
    (
        "tls_certificate_expires_timestamp",
        MetricKind::Seconds,
        "Time until which the certificate in use is valid, since 1970; 0 if it cannot be read",
        |tls| tls.expires_at(),
    ),
    (
        "tls_reload_failed",
        MetricKind::Gauge,
        "1 if the last reload of certificate and key failed, so that an old pair is in use",
        |tls| i64::from(tls.is_reload_failed()),
    ),
];

/// The metrics of a replica, with their source.
type ReplicaSamples = (SampledMetrics<Arc<ReplicaThread>>, Arc<ReplicaThread>);

const SAMPLED_OF_REPLICAS: &[Sampled<Arc<ReplicaThread>>] = &[
    ("replica_slot", MetricKind::Gauge, "The slot of the last applied entry of the origin's log", |upstream| {
        count(upstream.status().progress().slot)
    }),
    ("replica_seq", MetricKind::Gauge, "The last applied seq", |upstream| count(upstream.status().progress().head.seq)),
    (
        "replica_stale",
        MetricKind::Seconds,
        "Time since the end of the origin's log was reached, or since the start",
        |upstream| count(upstream.status().stale_for().unwrap_or_else(|| upstream.status().running_for()).as_secs()),
    ),
    (
        "replica_publisher_silence",
        MetricKind::Seconds,
        "Time since the publisher's last heartbeat was received, or since the start",
        |upstream| count(upstream.status().silent_for().as_secs()),
    ),
    ("replica_entries_applied", MetricKind::Counter, "Applied entries of the origin's log", |upstream| {
        count(upstream.status().progress().applied)
    }),
    ("replica_loads", MetricKind::Counter, "Loaded whole states", |upstream| count(upstream.status().progress().loads)),
    (
        "replica_digest_failures",
        MetricKind::Counter,
        "Number of times that the rows differed from the origin's",
        |upstream| count(upstream.status().progress().digest_failures),
    ),
    (
        "replica_unusable_objects",
        MetricKind::Counter,
        "Polls of the bucket that found a damaged or misplaced object",
        |upstream| count(upstream.status().progress().unusable_objects),
    ),
    (
        "replica_fit",
        MetricKind::Gauge,
        "1 while the replica is new enough to be served; 0 means that it responds with 503",
        |upstream| i64::from(upstream.is_fresh()),
    ),
];

fn new_duration_histogram() -> Histogram {
    Histogram::new(BOUNDS_S)
}

const LIMITS: [ConnectionLimit; 2] = [ConnectionLimit::Total, ConnectionLimit::Address];

/// The labels of connections that the server closed, except long polls.
fn close_labels() -> impl Iterator<Item = Labels<2>> {
    let reasons = [CloseReason::Idle, CloseReason::Slow];
    let causes = [CloseCause::Timeout, CloseCause::Capacity];
    reasons.into_iter().flat_map(move |reason| causes.map(|cause| [("reason", reason.into()), ("cause", cause.into())]))
}

const REFUSED_KEYS: [Code; 4] = [Code::InvalidApiKey, Code::RevokedApiKey, Code::ExpiredApiKey, Code::IpNotAllowed];

impl Metrics {
    pub fn new(
        lost_lines: LostLines,
        usage: Option<Arc<Usage>>,
        upstream: Option<Arc<ReplicaThread>>,
        tls: Option<Arc<Tls>>,
    ) -> Metrics {
        let mut all = Registrar::new("The serving program");
        let metrics = Metrics {
            requests: all.add("requests", "Answered requests"),
            durations: all.add_in(
                Unit::Seconds,
                "request_duration",
                "Time to build a response, without sending it",
                Family::new_with_constructor(new_duration_histogram),
            ),
            routes: Mutex::default(),
            refused_keys: all.add("refused_keys", "Requests with an unusable key"),
            rate_limited: all.add("rate_limited", "Requests answered with 429"),
            internal_errors: all.add(
                "internal_errors",
                "Requests answered with 500: a damaged database, or a bug; the log has the cause",
            ),
            connections: all.add("connections", "Open connections"),
            connections_opened: all.add("connections_opened", "Connections accepted"),
            connections_given_up: all.add(
                "connections_given_up",
                "Connections closed by the server, by reason (idle: no complete request came; slow: the response was read slowly; or \
                 waiting for a change) and cause (timeout, or capacity for new ones)",
            ),
            connections_at_limit: all.add(
                "connections_at_limit",
                "New connections that reached a limit: of all connections (total), or of their address (address)",
            ),
            connections_refused: all.add(
                "connections_refused",
                "New connections refused because their address has too many, and none could be closed for them",
            ),
            waiting: all.add("waiting", "Requests that wait for a change (long polls)"),
            waits_ended: all.add(
                "waits_ended",
                "Long polls, by the event that ended them: a change, the end of their time, the need for their connection \
                 (capacity), the server's stop, or the caller's disconnect (left)",
            ),
            feed_position: all.add("feed_position", "The position of the last sync token that a key sent"),
            feed_behind: all.add_in(
                Unit::Seconds,
                "feed_behind",
                "Age of the oldest entry that a key has not fetched from the feed; 0 if it has all",
                Family::default(),
            ),
            feeds: Mutex::default(),
            samples: all.add_sampled(SAMPLED),
            lost_lines,
            usage,
            replica: upstream.map(|upstream| (all.add_sampled(SAMPLED_OF_REPLICAS), upstream)),
            tls: tls.map(|tls| (all.add_sampled(SAMPLED_OF_TLS), tls)),
            dataset_changed: all.add_in(
                Unit::Seconds,
                "dataset_changed_timestamp",
                "Time at which a commit last changed the dataset, since 1970",
                Family::default(),
            ),
            process: ProcessMetrics::new(),
            registry: all.into_registry(),
        };
        metrics.begin_at_zero();
        metrics
    }

    /// Creates the metrics that alerts use, with value 0. Prometheus sees no increase if a metric first appears with
    /// value 1.
    fn begin_at_zero(&self) {
        for limit in LIMITS {
            self.connections_at_limit.get_or_create(&[("limit", limit.into())]).inc_by(0);
        }
        for labels in close_labels() {
            self.connections_given_up.get_or_create(&labels).inc_by(0);
        }
        for code in REFUSED_KEYS {
            self.refused_keys.get_or_create(&[("code", code.as_str())]).inc_by(0);
        }
    }

    /// The traffic of each route since the server's start.
    pub fn routes(&self) -> BTreeMap<&'static str, RouteTraffic> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Updates the lag of all usable keys, whichever server of the database they asked: it grows while a key sends no
    /// request. Drops the other keys.
    fn update_feeds(&self, newest: &Snapshot) {
        let now = now();
        let Some(uses) = self.usage.as_ref().map(|usage| usage.all()) else { return };
        let mut feeds = Vec::new();
        for key in newest.list_keys().into_iter().filter(|key| key.is_usable(now)) {
            let Some(used) = uses.get(&key.id) else { continue };
            for (dataset, seen) in &used.feeds {
                let Some(lag_s) = seen.lag_s(*dataset, key, newest, now) else { continue };
                let (license_name, key) = (key.license_name.clone(), key.id.clone());
                let labels = FeedLabels { license: license_name, key, dataset: dataset.as_str() };
                feeds.push((labels, seen.position, lag_s));
            }
        }
        // Locked after the files were read, so that a slow disk delays only its own scrape.
        let mut shown = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        let mut former = std::mem::take(&mut *shown);
        for (labels, position, behind_s) in feeds {
            self.feed_position.get_or_create(&labels).set(position);
            self.feed_behind.get_or_create(&labels).set(behind_s);
            former.remove(&labels);
            shown.insert(labels);
        }
        for labels in former {
            self.feed_position.remove(&labels);
            self.feed_behind.remove(&labels);
        }
    }

    pub fn render(&self, watcher: &Arc<Watcher>, service: &Arc<Service>) -> String {
        let lost_lines = self.lost_lines.clone();
        self.samples.read(&ScrapeSource { watcher: Arc::clone(watcher), service: Arc::clone(service), lost_lines });
        self.update_feeds(&watcher.newest());
        if let Some((samples, upstream)) = &self.replica {
            samples.read(upstream);
        }
        if let Some((samples, tls)) = &self.tls {
            samples.read(tls);
        }
        for dataset in Dataset::ALL {
            if let Some(time) = watcher.shown().totals().changed_at[dataset] {
                self.dataset_changed.get_or_create(&[("dataset", dataset.as_str())]).set(time.unix_s());
            }
        }
        text_of(&self.process, &self.registry)
    }
}

impl Observer for Metrics {
    fn answered(&self, answered: &Answered<'_>) {
        RequestLog.answered(answered);
        if let Some(usage) = &self.usage {
            usage.answered(answered);
        }
        let license = answered.key.map(|key| key.license_name.clone()).unwrap_or_default();
        let labels = RequestLabels { route: answered.route, status: answered.status, license };
        self.requests.get_or_create(&labels).inc();
        self.durations.get_or_create(&[("route", answered.route)]).observe(answered.duration.as_secs_f64());
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let traffic = routes.entry(answered.route).or_default();
        traffic.requests += 1;
        traffic.refused += u64::from((400..500).contains(&answered.status));
        traffic.failed += u64::from(answered.status >= 500);
        drop(routes);
        match answered.problem {
            Some(code) if REFUSED_KEYS.contains(&code) => {
                self.refused_keys.get_or_create(&[("code", code.as_str())]).inc();
            }
            Some(Code::RateLimited) => {
                self.rate_limited.inc();
            }
            Some(Code::InternalError) => {
                self.internal_errors.inc();
            }
            _ => {}
        }
    }

    fn connected(&self) {
        self.connections.inc();
        self.connections_opened.inc();
    }

    fn disconnected(&self) {
        self.connections.dec();
    }

    fn long_poll_started(&self) {
        self.waiting.inc();
    }

    fn long_poll_ended(&self, end: WaitEnd) {
        self.waiting.dec();
        self.waits_ended.get_or_create(&[("by", end.into())]).inc();
    }

    fn closed_connection(&self, reason: CloseReason, cause: CloseCause) {
        self.connections_given_up.get_or_create(&[("reason", reason.into()), ("cause", cause.into())]).inc();
    }

    fn reached_limit(&self, limit: ConnectionLimit) {
        self.connections_at_limit.get_or_create(&[("limit", limit.into())]).inc();
    }

    fn refused_connection(&self) {
        self.connections_refused.inc();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::Method;

    use super::*;
    use crate::model::{KeyRecord, LicenseId};

    fn key(license: &str) -> KeyRecord {
        KeyRecord {
            id: "key_1".to_owned(),
            label: None,
            license: LicenseId(1),
            license_name: license.to_owned(),
            created_at: now(),
            expires_at: None,
            allowed_ips: Vec::new(),
            revoked_at: None,
            replaced_by: None,
        }
    }

    fn answered<'a>(key: Option<&'a KeyRecord>, status: u16, problem: Option<Code>) -> Answered<'a> {
        Answered {
            request_id: "1",
            method: &Method::GET,
            route: "/v1/conferences",
            status,
            problem,
            key,
            address: [127, 0, 0, 1].into(),
            bytes: 0,
            duration: Duration::from_millis(30),
            feed: None,
        }
    }

    fn new() -> Metrics {
        Metrics::new(LostLines::default(), None, None, None)
    }

    fn value(metrics: &Metrics, series: &str) -> Option<String> {
        let text = text_of(&metrics.process, &metrics.registry);
        text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ').map(str::to_owned))
    }

    #[test]
    fn metrics_of_alerts_begin_at_zero() {
        let metrics = new();
        let mut series =
            ["rate_limited_total", "internal_errors_total", "connections_refused_total"].map(str::to_owned).to_vec();
        for code in ["invalid_api_key", "revoked_api_key", "expired_api_key", "ip_not_allowed"] {
            series.push(format!("refused_keys_total{{code=\"{code}\"}}"));
        }
        for limit in ["total", "address"] {
            series.push(format!("connections_at_limit_total{{limit=\"{limit}\"}}"));
        }
        for reason in ["idle", "slow"] {
            for cause in ["timeout", "capacity"] {
                series.push(format!("connections_given_up_total{{reason=\"{reason}\",cause=\"{cause}\"}}"));
            }
        }
        for name in series {
            assert_eq!(value(&metrics, &format!("medfeed_{name}")).as_deref(), Some("0"), "{name}");
        }
    }

    #[test]
    fn each_problem_has_its_counter() {
        let cases = [
            (None, ""),
            (Some(Code::InvalidApiKey), "refused_keys_total{code=\"invalid_api_key\"}"),
            (Some(Code::RevokedApiKey), "refused_keys_total{code=\"revoked_api_key\"}"),
            (Some(Code::ExpiredApiKey), "refused_keys_total{code=\"expired_api_key\"}"),
            (Some(Code::IpNotAllowed), "refused_keys_total{code=\"ip_not_allowed\"}"),
            (Some(Code::RateLimited), "rate_limited_total"),
            (Some(Code::InternalError), "internal_errors_total"),
            (Some(Code::MissingApiKey), ""),
            (Some(Code::DatasetNotLicensed), ""),
            (Some(Code::NotFound), ""),
            (Some(Code::Unavailable), ""),
        ];
        let counters: Vec<&str> = cases.iter().map(|(_, counter)| *counter).filter(|name| !name.is_empty()).collect();
        for (problem, counter) in cases {
            let metrics = new();
            let status = problem.map_or(200, |code| code.info().status.as_u16());
            metrics.answered(&answered(None, status, problem));
            for name in &counters {
                let expected = if *name == counter { "1" } else { "0" };
                assert_eq!(
                    value(&metrics, &format!("medfeed_{name}")).as_deref(),
                    Some(expected),
                    "{problem:?} {name}"
                );
            }
            let requests =
                format!("medfeed_requests_total{{route=\"/v1/conferences\",status=\"{status}\",license=\"\"}}");
            assert_eq!(value(&metrics, &requests).as_deref(), Some("1"), "{problem:?}");
        }
    }

    #[test]
    fn names_are_escaped_in_labels() {
        let cases = [("plain", "plain"), ("a\"b", "a\\\"b"), ("a\\b", "a\\\\b"), ("a\nb", "a\\nb"), ("é ü", "é ü")];
        for (license, label) in cases {
            let metrics = new();
            let key = key(license);
            metrics.answered(&answered(Some(&key), 200, None));
            let requests =
                format!("medfeed_requests_total{{route=\"/v1/conferences\",status=\"200\",license=\"{label}\"}}");
            assert_eq!(value(&metrics, &requests).as_deref(), Some("1"), "{license:?}");
        }
    }

    #[test]
    fn connections_and_waits_are_counted_up_and_down() {
        let metrics = new();
        let gauge = |name: &str| value(&metrics, &format!("medfeed_{name}")).unwrap_or_default();
        for _ in 0..3 {
            metrics.connected();
            metrics.long_poll_started();
        }
        metrics.disconnected();
        metrics.long_poll_ended(WaitEnd::Stop);
        metrics.closed_connection(CloseReason::Slow, CloseCause::Timeout);
        metrics.reached_limit(ConnectionLimit::Address);
        metrics.refused_connection();
        let cases = [
            ("connections", "2"),
            ("connections_opened_total", "3"),
            ("waiting", "2"),
            ("waits_ended_total{by=\"stop\"}", "1"),
            ("connections_given_up_total{reason=\"slow\",cause=\"timeout\"}", "1"),
            ("connections_given_up_total{reason=\"slow\",cause=\"capacity\"}", "0"),
            ("connections_at_limit_total{limit=\"address\"}", "1"),
            ("connections_at_limit_total{limit=\"total\"}", "0"),
            ("connections_refused_total", "1"),
        ];
        for (name, expected) in cases {
            assert_eq!(gauge(name), expected, "{name}");
        }
    }

    #[test]
    fn responses_are_counted_by_status() {
        let metrics = new();
        for status in [200, 304, 404, 429, 500, 503, 499, 206] {
            metrics.answered(&answered(None, status, None));
        }
        let traffic = metrics.routes()["/v1/conferences"];
        assert_eq!((traffic.requests, traffic.refused, traffic.failed), (8, 3, 2));
    }
}
