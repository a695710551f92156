//! Registers metrics, and writes the text of a scrape.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};

use crate::serve::operators::process::ProcessMetrics;

/// A gauge that may be negative.
pub(in crate::serve) type SignedGauge = Gauge<i64>;
/// A gauge that is never negative.
pub(in crate::serve) type UnsignedGauge = Gauge<u64, AtomicU64>;

/// The kind of a sampled metric.
#[derive(Clone, Copy, Debug)]
pub(in crate::serve) enum MetricKind {
    Gauge,
    Seconds,
    Bytes,
    Counter,
}

/// A metric that is read from a source at each scrape: its name, kind, help, and reader.
pub(in crate::serve) type Sampled<S> = (&'static str, MetricKind, &'static str, ReadValue<S>);

/// Reads the value of a metric.
type ReadValue<S> = fn(&S) -> i64;

#[derive(Debug)]
pub(in crate::serve) struct SampledMetrics<S>(Vec<(GaugeOrCounter, ReadValue<S>)>);

#[derive(Debug)]
enum GaugeOrCounter {
    Gauge(SignedGauge),
    Counter(Counter),
}

impl<S> SampledMetrics<S> {
    pub fn read(&self, source: &S) {
        for (metric, read) in &self.0 {
            match metric {
                GaugeOrCounter::Gauge(gauge) => {
                    gauge.set(read(source));
                }
                GaugeOrCounter::Counter(counter) => {
                    counter.inner().store(u64::try_from(read(source)).unwrap_or_default(), Ordering::Relaxed);
                }
            }
        }
    }
}

/// Converts a count to the value of a metric.
pub(in crate::serve) fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(in crate::serve) struct Registrar(Registry);

impl Registrar {
    pub fn new(help: &str) -> Registrar {
        let mut registry = Registry::with_prefix("medfeed");
        registry.register("build", help, Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        Registrar(registry)
    }

    pub fn add<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        let metric = M::default();
        self.0.register(name, help, metric.clone());
        metric
    }

    pub fn add_in<M: Metric + Clone>(&mut self, unit: Unit, name: &str, help: &str, metric: M) -> M {
        self.0.register_with_unit(name, help, unit, metric.clone());
        metric
    }

    pub fn add_sampled<S>(&mut self, table: &[Sampled<S>]) -> SampledMetrics<S> {
        let register = |(name, kind, help, read): &Sampled<S>| {
            let metric = match kind {
                MetricKind::Gauge => GaugeOrCounter::Gauge(self.add(name, help)),
                MetricKind::Seconds => {
                    GaugeOrCounter::Gauge(self.add_in(Unit::Seconds, name, help, SignedGauge::default()))
                }
                MetricKind::Bytes => {
                    GaugeOrCounter::Gauge(self.add_in(Unit::Bytes, name, help, SignedGauge::default()))
                }
                MetricKind::Counter => GaugeOrCounter::Counter(self.add(name, help)),
            };
            (metric, *read)
        };
        SampledMetrics(table.iter().map(register).collect())
    }

    pub fn into_registry(self) -> Registry {
        self.0
    }
}

pub(in crate::serve) fn text_of(process: &ProcessMetrics, registry: &Registry) -> String {
    process.update();
    let mut text = String::new();
    // Writing to a string never fails.
    let _ = prometheus_client::encoding::text::encode_registry(&mut text, &process.registry);
    let _ = prometheus_client::encoding::text::encode(&mut text, registry);
    text
}
