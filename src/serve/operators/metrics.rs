//! The metrics of a server, for Prometheus. As the server's observer, they also forward responses to the request log
//! and the record of key usage.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Unit;

use crate::api::observe::{
    Answered, CloseCause, CloseReason, ConnectionLimit, Observer, RequestLog, WaitEnd,
};
use crate::api::{Code, Service, SnapshotSource};
use crate::model::{Dataset, Timestamp, now};
use crate::serve::connection::tls::Tls;
use crate::serve::operators::log::LostLines;
use crate::serve::operators::registrar::{Registrar, text_of};
use crate::serve::operators::usage::Usage;
use crate::serve::watching::replica_thread::ReplicaThread;
use crate::serve::watching::watcher::Watcher;
use crate::store::Snapshot;

/// Names of labels, with their values.
type Labels<const N: usize> = [(&'static str, &'static str); N];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    status: u16,
    license: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FeedLabels {
    license: String,
    key: String,
    dataset: &'static str,
}

type UnsignedGauge = Gauge<u64, AtomicU64>;

/// The upper bounds of the histograms of durations, in seconds.
const BOUNDS_S: [f64; 14] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0,
];

/// The traffic of a route since the server's start, for the operators' page. The metrics library does not list the
/// labels that it has.
#[derive(Clone, Copy, Default)]
pub struct RouteTraffic {
    pub requests: u64,
    /// Responses with 4xx.
    pub refused: u64,
    /// Responses with 5xx.
    pub failed: u64,
}

pub struct Metrics {
    /// The metrics that last from scrape to scrape.
    counted: Registrar,
    requests: Family<RequestLabels, Counter>,
    durations: Family<Labels<1>, Histogram, fn() -> Histogram>,
    routes: Mutex<BTreeMap<&'static str, RouteTraffic>>,
    refused_keys: Family<Labels<1>, Counter>,
    rate_limited: Counter,
    internal_errors: Counter,
    connections: Gauge,
    connections_opened: Counter,
    connections_given_up: Family<Labels<2>, Counter>,
    connections_at_limit: Family<Labels<1>, Counter>,
    connections_refused: Counter,
    waiting: Gauge,
    waits_ended: Family<Labels<1>, Counter>,
    lost_lines: LostLines,
    usage: Option<Arc<Usage>>,
    tls: Option<Arc<Tls>>,
}

fn new_duration_histogram() -> Histogram {
    Histogram::new(BOUNDS_S)
}

const LIMITS: [ConnectionLimit; 2] = [ConnectionLimit::Total, ConnectionLimit::Address];

/// The labels of connections that the server closed, except long polls.
fn close_labels() -> impl Iterator<Item = Labels<2>> {
    let reasons = [CloseReason::Idle, CloseReason::Slow];
    let causes = [CloseCause::Timeout, CloseCause::Capacity];
    reasons.into_iter().flat_map(move |reason| {
        causes.map(|cause| [("reason", reason.into()), ("cause", cause.into())])
    })
}

const REFUSED_KEYS: [Code; 4] = [
    Code::InvalidApiKey,
    Code::RevokedApiKey,
    Code::ExpiredApiKey,
    Code::IpNotAllowed,
];

impl Metrics {
    pub fn new(lost_lines: LostLines, usage: Option<Arc<Usage>>, tls: Option<Arc<Tls>>) -> Metrics {
        let mut all = Registrar::new();
        all.add_build("The serving program");
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
            lost_lines,
            usage,
            tls,
            counted: all,
        };
        metrics.begin_at_zero();
        metrics
    }

    /// Creates the metrics that alerts use, with value 0. Prometheus sees no increase if a metric first appears with
    /// value 1.
    fn begin_at_zero(&self) {
        for limit in LIMITS {
            self.connections_at_limit
                .get_or_create(&[("limit", limit.into())])
                .inc_by(0);
        }
        for labels in close_labels() {
            self.connections_given_up.get_or_create(&labels).inc_by(0);
        }
        for code in REFUSED_KEYS {
            self.refused_keys
                .get_or_create(&[("code", code.as_str())])
                .inc_by(0);
        }
    }

    /// The traffic of each route since the server's start.
    pub fn routes(&self) -> BTreeMap<&'static str, RouteTraffic> {
        self.routes.lock().clone()
    }

    /// Returns the text of a scrape. `started_at` is the start of the program.
    pub fn render(&self, watcher: &Watcher, service: &Service, started_at: Timestamp) -> String {
        let mut all = Registrar::new();
        add_database(&mut all, watcher);
        let (cached, cached_bytes) = service.cached();
        let cache_help = "Size of the cached responses, including compressed parts";
        all.gauge_in(Unit::Bytes, "answer_cache", cache_help, cached_bytes);
        all.gauge("answer_cache_entries", "Cached responses", cached as u64);
        let lost_help = "Log lines that could not be written or queued";
        all.counter("log_lines_lost", lost_help, self.lost_lines.count());
        if let Some(usage) = &self.usage {
            add_feeds(&mut all, usage, &watcher.newest());
        }
        if let Some(replica) = watcher.replica() {
            add_replica(&mut all, replica);
        }
        if let Some(tls) = &self.tls {
            add_tls(&mut all, tls);
        }
        text_of(started_at, &[&self.counted, &all])
    }
}

fn add_database(all: &mut Registrar, watcher: &Watcher) {
    let newest = watcher.newest();
    let shown = watcher.shown();
    let commit = shown.commit();
    all.gauge(
        "snapshot_seq",
        "The last seq of the served state",
        commit.seq,
    );
    let age_s = now().unix_s() - commit.time.unix_s();
    all.gauge_in(
        Unit::Seconds,
        "snapshot_age",
        "Age of the last served commit",
        age_s,
    );
    let changed: Family<Labels<1>, Gauge> = all.add_in(
        Unit::Seconds,
        "dataset_changed_timestamp",
        "Time at which a commit last changed the dataset, since 1970",
        Family::default(),
    );
    for dataset in Dataset::ALL {
        if let Some(time) = shown.totals().changed_at[dataset] {
            changed
                .get_or_create(&[("dataset", dataset.as_str())])
                .set(time.unix_s());
        }
    }
    all.gauge(
        "held_back",
        "1 while a commit is held back by the change delay",
        u64::from(newest.commit() != commit),
    );
    all.gauge_in(
        Unit::Seconds,
        "held_back",
        "Time for which the oldest held-back commit has waited",
        watcher.held_back_for().map_or(0, |time| time.as_secs()),
    );
    all.gauge(
        "database_followed",
        "1 while the database file exists and can be read; 0 means that an old state is served",
        u64::from(watcher.is_polled()),
    );
    all.gauge(
        "fenced",
        "1 if another publisher took over from this database: the server is not ready, and later responds with 503",
        u64::from(watcher.fence_reason().is_some()),
    );
}

/// Adds the position and lag of all usable keys, whichever server of the database they asked. The lag grows while a
/// key sends no request.
fn add_feeds(all: &mut Registrar, usage: &Usage, newest: &Snapshot) {
    let positions: Family<FeedLabels, UnsignedGauge> = all.add(
        "feed_position",
        "The position of the last sync token that a key sent",
    );
    let lags: Family<FeedLabels, UnsignedGauge> = all.add_in(
        Unit::Seconds,
        "feed_behind",
        "Age of the oldest entry that a key has not fetched from the feed; 0 if it has all",
        Family::default(),
    );
    let now = now();
    let uses = usage.all();
    let committed = newest.commit().time;
    for key in newest
        .list_keys()
        .into_iter()
        .filter(|key| key.status_after(now, committed).is_usable())
    {
        let Some(used) = uses.get(&key.id) else {
            continue;
        };
        for (dataset, seen) in &used.feeds {
            let Some(lag_s) = seen.lag_s(*dataset, key, newest, now) else {
                continue;
            };
            let labels = FeedLabels {
                license: key.license_name.clone(),
                key: key.id.clone(),
                dataset: dataset.as_str(),
            };
            positions.get_or_create(&labels).set(seen.position);
            lags.get_or_create(&labels).set(lag_s);
        }
    }
}

fn add_replica(all: &mut Registrar, replica: &ReplicaThread) {
    let status = replica.status();
    let progress = status.progress();
    all.gauge(
        "replica_slot",
        "The slot of the last applied entry of the origin's log",
        progress.slot,
    );
    all.gauge("replica_seq", "The last applied seq", progress.head.seq);
    all.gauge_in(
        Unit::Seconds,
        "replica_stale",
        "Time since the end of the origin's log was reached, or since the start",
        status
            .stale_for()
            .unwrap_or_else(|| status.running_for())
            .as_secs(),
    );
    all.gauge_in(
        Unit::Seconds,
        "replica_publisher_silence",
        "Time since the publisher's last heartbeat was received, or since the start",
        status.silent_for().as_secs(),
    );
    all.counter(
        "replica_entries_applied",
        "Applied entries of the origin's log",
        progress.applied,
    );
    all.counter("replica_loads", "Loaded whole states", progress.loads);
    all.counter(
        "replica_digest_failures",
        "Number of times that the rows differed from the origin's",
        progress.digest_failures,
    );
    all.counter(
        "replica_unusable_objects",
        "Polls of the bucket that found a damaged or misplaced object",
        progress.unusable_objects,
    );
    all.gauge(
        "replica_fit",
        "1 while the replica is new enough to be served; 0 means that it responds with 503",
        u64::from(replica.is_fresh()),
    );
}

fn add_tls(all: &mut Registrar, tls: &Tls) {
    all.gauge_in(
        Unit::Seconds,
        "tls_certificate_expires_timestamp",
        "Time until which the certificate in use is valid, since 1970; 0 if it cannot be read",
        tls.expires_at(),
    );
    all.gauge(
        "tls_reload_failed",
        "1 if the last reload of certificate and key failed, so that an old pair is in use",
        u64::from(tls.is_reload_failed()),
    );
}

impl Observer for Metrics {
    fn answered(&self, answered: &Answered<'_>) {
        RequestLog.answered(answered);
        if let Some(usage) = &self.usage {
            usage.answered(answered);
        }
        let license = answered
            .key
            .map(|key| key.license_name.clone())
            .unwrap_or_default();
        let labels = RequestLabels {
            route: answered.route,
            status: answered.status,
            license,
        };
        self.requests.get_or_create(&labels).inc();
        self.durations
            .get_or_create(&[("route", answered.route)])
            .observe(answered.duration.as_secs_f64());
        let mut routes = self.routes.lock();
        let traffic = routes.entry(answered.route).or_default();
        traffic.requests += 1;
        traffic.refused += u64::from((400..500).contains(&answered.status));
        traffic.failed += u64::from(answered.status >= 500);
        drop(routes);
        match answered.problem {
            Some(code) if REFUSED_KEYS.contains(&code) => {
                self.refused_keys
                    .get_or_create(&[("code", code.as_str())])
                    .inc();
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
        self.connections_given_up
            .get_or_create(&[("reason", reason.into()), ("cause", cause.into())])
            .inc();
    }

    fn reached_limit(&self, limit: ConnectionLimit) {
        self.connections_at_limit
            .get_or_create(&[("limit", limit.into())])
            .inc();
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

    fn answered<'a>(
        key: Option<&'a KeyRecord>,
        status: u16,
        problem: Option<Code>,
    ) -> Answered<'a> {
        Answered {
            request_id: "1",
            method: &Method::GET,
            route: "/v1/conferences",
            status,
            problem,
            key,
            sent_key: key,
            address: [127, 0, 0, 1].into(),
            bytes: 0,
            duration: Duration::from_millis(30),
            feed: None,
        }
    }

    fn new() -> Metrics {
        Metrics::new(LostLines::default(), None, None)
    }

    fn value(metrics: &Metrics, series: &str) -> Option<String> {
        let text = text_of(now(), &[&metrics.counted]);
        text.lines().find_map(|line| {
            line.strip_prefix(series)?
                .strip_prefix(' ')
                .map(str::to_owned)
        })
    }

    #[test]
    fn metrics_of_alerts_begin_at_zero() {
        let metrics = new();
        let mut series =
            words!["rate_limited_total" "internal_errors_total" "connections_refused_total"]
                .map(str::to_owned)
                .to_vec();
        for code in words!["invalid_api_key" "revoked_api_key" "expired_api_key" "ip_not_allowed"] {
            series.push(format!("refused_keys_total{{code=\"{code}\"}}"));
        }
        for limit in ["total", "address"] {
            series.push(format!("connections_at_limit_total{{limit=\"{limit}\"}}"));
        }
        for reason in ["idle", "slow"] {
            for cause in ["timeout", "capacity"] {
                series.push(format!(
                    "connections_given_up_total{{reason=\"{reason}\",cause=\"{cause}\"}}"
                ));
            }
        }
        for name in series {
            assert_eq!(
                value(&metrics, &format!("medfeed_{name}")).as_deref(),
                Some("0"),
                "{name}"
            );
        }
    }

    #[test]
    fn each_problem_has_its_counter() {
        let cases = cases![
            None, "";
            Some(Code::InvalidApiKey), "refused_keys_total{code=\"invalid_api_key\"}";
            Some(Code::RevokedApiKey), "refused_keys_total{code=\"revoked_api_key\"}";
            Some(Code::ExpiredApiKey), "refused_keys_total{code=\"expired_api_key\"}";
            Some(Code::IpNotAllowed), "refused_keys_total{code=\"ip_not_allowed\"}";
            Some(Code::RateLimited), "rate_limited_total";
            Some(Code::InternalError), "internal_errors_total";
            Some(Code::MissingApiKey), "";
            Some(Code::DatasetNotLicensed), "";
            Some(Code::NotFound), "";
            Some(Code::Unavailable), "";
        ];
        let counters = cases.iter().map(|(_, counter)| *counter);
        let counters: Vec<&str> = counters.filter(|name| !name.is_empty()).collect();
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
            let requests = format!(
                "medfeed_requests_total{{route=\"/v1/conferences\",status=\"{status}\",license=\"\"}}"
            );
            assert_eq!(
                value(&metrics, &requests).as_deref(),
                Some("1"),
                "{problem:?}"
            );
        }
    }

    #[test]
    fn names_are_escaped_in_labels() {
        let cases = [
            ("plain", "plain"),
            ("a\"b", "a\\\"b"),
            ("a\\b", "a\\\\b"),
            ("a\nb", "a\\nb"),
            ("é ü", "é ü"),
        ];
        for (license, label) in cases {
            let metrics = new();
            let key = key(license);
            metrics.answered(&answered(Some(&key), 200, None));
            let requests = format!(
                "medfeed_requests_total{{route=\"/v1/conferences\",status=\"200\",license=\"{label}\"}}"
            );
            assert_eq!(
                value(&metrics, &requests).as_deref(),
                Some("1"),
                "{license:?}"
            );
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
        let cases = cases![
            "connections", "2";
            "connections_opened_total", "3";
            "waiting", "2";
            "waits_ended_total{by=\"stop\"}", "1";
            "connections_given_up_total{reason=\"slow\",cause=\"timeout\"}", "1";
            "connections_given_up_total{reason=\"slow\",cause=\"capacity\"}", "0";
            "connections_at_limit_total{limit=\"address\"}", "1";
            "connections_at_limit_total{limit=\"total\"}", "0";
            "connections_refused_total", "1";
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
        assert_eq!(traffic.requests, 8);
        assert_eq!(traffic.refused, 3);
        assert_eq!(traffic.failed, 2);
    }
}
