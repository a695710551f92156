//! The metrics of a server, for Prometheus. As the server's observer they also pass answers on to the
//! request log and the record of key usage.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::api::observe::{Answered, Cause, ConnectionLimit, GivenUp, Observer, RequestLog, WaitEnd};
use crate::api::{Code, Service, SnapshotSource};
use crate::model::time::now;
use crate::model::{Dataset, LicenseId, Timestamp};
use crate::serve::following::upstream::Upstream;
use crate::serve::following::watcher::Watcher;
use crate::serve::operators::log::LostLines;
use crate::serve::operators::process::ProcessMetrics;
use crate::serve::operators::registrar::{Kind, Number, Registrar, Sampled, Samples, Unsigned, count, text_of};
use crate::serve::operators::usage::Usage;
use crate::store::Snapshot;
use crate::view::View;

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

/// Where a key's last token stands in a feed.
#[derive(Clone, Copy, Debug)]
struct Standing {
    license: LicenseId,
    dataset: Dataset,
    position: u64,
    /// The time of that position.
    time: Timestamp,
}

/// The metrics of a server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<Labels<1>, Histogram, fn() -> Histogram>,
    refused_keys: Family<Labels<1>, Counter>,
    rate_limited: Counter,
    internal_errors: Counter,
    connections: Number,
    connections_opened: Counter,
    connections_given_up: Family<Labels<2>, Counter>,
    connections_at_limit: Family<Labels<1>, Counter>,
    connections_refused: Family<Labels<1>, Counter>,
    waiting: Number,
    waits_ended: Family<Labels<1>, Counter>,
    feed_position: Family<FeedLabels, Unsigned>,
    feed_behind: Family<FeedLabels, Unsigned>,
    standings: Mutex<HashMap<FeedLabels, Standing>>,
    samples: Samples<Scrape>,
    lost_lines: LostLines,
    usage: Option<Arc<Usage>>,
    replica: Option<ReplicaSamples>,
    process: ProcessMetrics,
}

/// The source of the metrics that are read for each scrape.
#[derive(Debug)]
struct Scrape {
    watcher: Arc<Watcher>,
    service: Arc<Service>,
    lost_lines: LostLines,
}

const SAMPLED: &[Sampled<Scrape>] = &[
    ("snapshot_seq", Kind::Gauge, "The last seq of the state that is served", |scrape| {
        count(scrape.watcher.published().commit().seq)
    }),
    ("snapshot_age", Kind::Seconds, "Time since the commit that is served was made", |scrape| {
        now().unix_s() - scrape.watcher.published().commit().time.unix_s()
    }),
    ("held_back", Kind::Gauge, "1 while a commit waits for the change delay, or to be published", |scrape| {
        i64::from(scrape.watcher.newest().commit() != scrape.watcher.published().commit())
    }),
    (
        "held_back",
        Kind::Seconds,
        "Time since the oldest commit came that waits for the change delay, or to be published",
        |scrape| scrape.watcher.held_back_for().map_or(0, |time| count(time.as_secs())),
    ),
    (
        "database_followed",
        Kind::Gauge,
        "1 while the database file is there and can be read; 0 means that an old state is served",
        |scrape| i64::from(scrape.watcher.is_followed()),
    ),
    (
        "fenced",
        Kind::Gauge,
        "1 when another publisher took over from this database: the server is not ready, and then answers 503",
        |scrape| i64::from(scrape.watcher.is_fenced()),
    ),
    (
        "answer_cache",
        Kind::Bytes,
        "Size of the finished answers, and of compressed parts of further ones, that are cached",
        |scrape| count(scrape.service.cached().1),
    ),
    ("answer_cache_entries", Kind::Gauge, "Finished answers that are kept in memory", |scrape| {
        i64::try_from(scrape.service.cached().0).unwrap_or(i64::MAX)
    }),
    ("feed_cache", Kind::Bytes, "Size of the feeds, and of what filters run over, that are kept in memory", |scrape| {
        count(scrape.watcher.published().feed_cache().weight())
    }),
    ("record_cache", Kind::Bytes, "Size of the records' texts that are kept in memory", |scrape| {
        count(scrape.watcher.published().record_cache().weight())
    }),
    ("log_lines_lost", Kind::Counter, "Log lines that could not be written, or came while too many waited", |scrape| {
        count(scrape.lost_lines.count())
    }),
];

/// The metrics of a replica, with their source.
type ReplicaSamples = (Samples<Arc<dyn Upstream>>, Arc<dyn Upstream>);

/// The metrics of replicas alone.
const SAMPLED_OF_REPLICAS: &[Sampled<Arc<dyn Upstream>>] = &[
    ("replica_slot", Kind::Gauge, "The last entry of the origin's log that was applied", |upstream| {
        count(upstream.figures().slot)
    }),
    ("replica_seq", Kind::Gauge, "The last seq after it", |upstream| count(upstream.figures().seq)),
    (
        "replica_stale",
        Kind::Seconds,
        "Time since the end of the origin's log was seen, or since the start",
        |upstream| count(upstream.figures().stale_s),
    ),
    (
        "replica_publisher_silence",
        Kind::Seconds,
        "Time since the publisher's last heartbeat that came here, or since the start",
        |upstream| count(upstream.figures().silence_s),
    ),
    ("replica_entries_applied", Kind::Counter, "Entries of the origin's log that were applied", |upstream| {
        count(upstream.figures().applied)
    }),
    ("replica_loads", Kind::Counter, "Whole states that were loaded", |upstream| count(upstream.figures().loads)),
    ("replica_digest_failures", Kind::Counter, "How often the rows were not the origin's", |upstream| {
        count(upstream.figures().digest_failures)
    }),
    (
        "replica_unusable_objects",
        Kind::Counter,
        "Looks at the bucket that met an object which is damaged, or not in its place",
        |upstream| count(upstream.figures().unusable_objects),
    ),
    ("replica_fit", Kind::Gauge, "1 while what the replica has is new enough to be served; 0 means 503", |upstream| {
        i64::from(upstream.is_fit())
    }),
];

fn new_duration_histogram() -> Histogram {
    Histogram::new([0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0])
}

/// What is answered to keys that cannot be used.
const REFUSED_KEYS: [Code; 4] = [Code::InvalidApiKey, Code::RevokedApiKey, Code::ExpiredApiKey, Code::IpNotAllowed];

impl Metrics {
    /// Metrics that are all zero.
    pub fn new(lost_lines: LostLines, usage: Option<Arc<Usage>>, upstream: Option<Arc<dyn Upstream>>) -> Metrics {
        let mut all = Registrar::new("The program that serves");
        // They are listed in this order.
        let metrics = Metrics {
            requests: all.add("requests", "Answered requests"),
            durations: all.add_in(
                Unit::Seconds,
                "request_duration",
                "Time to make an answer, without sending it",
                Family::new_with_constructor(new_duration_histogram),
            ),
            refused_keys: all.add("refused_keys", "Requests with a key that cannot be used"),
            rate_limited: all.add("rate_limited", "Requests answered with 429"),
            internal_errors: all.add(
                "internal_errors",
                "Requests answered with 500: a damaged database, or a bug; the log tells which",
            ),
            connections: all.add("connections", "Open connections"),
            connections_opened: all.add("connections_opened", "Connections accepted"),
            connections_given_up: all.add(
                "connections_given_up",
                "Connections ended by the server: idle, unfinished, slow or waiting for news, for a timeout or for the sake of \
                 new ones",
            ),
            connections_at_limit: all.add(
                "connections_at_limit",
                "New connections that met a limit: all slots were taken (total), or those of their address (address)",
            ),
            connections_refused: all.add(
                "connections_refused",
                "New connections refused at a limit, since none could be given up for them",
            ),
            waiting: all.add("waiting", "Requests that wait for news of a change feed"),
            waits_ended: all.add(
                "waits_ended",
                "Requests that waited for news of a change feed, by what ended that: a change for their caller, their time, \
                 a connection that was needed (capacity), the server's stop, or that the caller left",
            ),
            feed_position: all.add("feed_position", "The position of the last sync token that a key sent"),
            feed_behind: all.add_in(
                Unit::Seconds,
                "feed_behind",
                "By how much the feed's newest entry is by now later than the last sync token that a key sent",
                Family::default(),
            ),
            standings: Mutex::default(),
            samples: all.add_sampled(SAMPLED),
            lost_lines,
            usage,
            replica: upstream.map(|upstream| (all.add_sampled(SAMPLED_OF_REPLICAS), upstream)),
            process: ProcessMetrics::new(),
            registry: all.into_registry(),
        };
        metrics.begin_at_zero();
        metrics
    }

    /// Shows what an alert watches before it happens for the first time: a rise from nothing is none to Prometheus.
    fn begin_at_zero(&self) {
        for limit in [ConnectionLimit::Total, ConnectionLimit::Address] {
            self.connections_at_limit.get_or_create(&[("limit", limit.into())]).inc_by(0);
            self.connections_refused.get_or_create(&[("limit", limit.into())]).inc_by(0);
        }
        for reason in [GivenUp::Idle, GivenUp::Unfinished, GivenUp::Slow] {
            for cause in [Cause::Timeout, Cause::Capacity] {
                self.connections_given_up
                    .get_or_create(&[("reason", reason.into()), ("cause", cause.into())])
                    .inc_by(0);
            }
        }
        for code in REFUSED_KEYS {
            self.refused_keys.get_or_create(&[("code", code.as_str())]).inc_by(0);
        }
    }

    fn standings(&self) -> MutexGuard<'_, HashMap<FeedLabels, Standing>> {
        self.standings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells how far keys are behind by now: who stands still falls behind without asking. Keys that cannot be used any more
    /// are behind nothing.
    fn update_feeds(&self, snapshot: &Snapshot) {
        let usable = snapshot.list_keys().into_iter().filter(|key| key.is_usable(now()));
        let usable: HashSet<&str> = usable.map(|key| key.id.as_str()).collect();
        self.standings().retain(|labels, standing| {
            let license = snapshot.find_license(standing.license).filter(|_| usable.contains(labels.key.as_str()));
            let view = license.and_then(|license| View::open(snapshot, license, standing.dataset).ok());
            let Some(newest) = view.map(|view| view.known_newest()) else {
                self.feed_position.remove(labels);
                self.feed_behind.remove(labels);
                return false;
            };
            let later = newest.filter(|(seq, _)| *seq > standing.position);
            let behind_s = later.map_or(0, |(_, time)| time.unix_s() - standing.time.unix_s());
            self.feed_behind.get_or_create(labels).set(u64::try_from(behind_s).unwrap_or(0));
            true
        });
    }

    /// The OpenMetrics text of a scrape.
    pub fn render(&self, watcher: &Arc<Watcher>, service: &Arc<Service>) -> String {
        let lost_lines = self.lost_lines.clone();
        self.samples.read(&Scrape { watcher: Arc::clone(watcher), service: Arc::clone(service), lost_lines });
        self.update_feeds(&watcher.newest());
        if let Some((samples, upstream)) = &self.replica {
            samples.read(upstream);
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
        let labels = RequestLabels { route: answered.route, status: answered.status, license: license.clone() };
        self.requests.get_or_create(&labels).inc();
        self.durations.get_or_create(&[("route", answered.route)]).observe(answered.duration.as_secs_f64());
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
        if let (Some(key), Some(feed)) = (answered.key, answered.feed) {
            let labels = FeedLabels { license, key: key.id.clone(), dataset: feed.dataset.as_str() };
            self.feed_position.get_or_create(&labels).set(feed.position);
            let time = feed.newest_at.plus_s(-i64::try_from(feed.behind_s).unwrap_or_default());
            let standing = Standing { license: key.license, dataset: feed.dataset, position: feed.position, time };
            self.standings().insert(labels, standing);
        }
    }

    fn connected(&self) {
        self.connections.inc();
        self.connections_opened.inc();
    }

    fn disconnected(&self) {
        self.connections.dec();
    }

    fn waits(&self) {
        self.waiting.inc();
    }

    fn waited(&self, end: WaitEnd) {
        self.waiting.dec();
        self.waits_ended.get_or_create(&[("by", end.into())]).inc();
    }

    fn given_up(&self, reason: GivenUp, cause: Cause) {
        self.connections_given_up.get_or_create(&[("reason", reason.into()), ("cause", cause.into())]).inc();
    }

    fn met_limit(&self, limit: ConnectionLimit) {
        self.connections_at_limit.get_or_create(&[("limit", limit.into())]).inc();
    }

    fn refused_connection(&self, limit: ConnectionLimit) {
        self.connections_refused.get_or_create(&[("limit", limit.into())]).inc();
    }
}
