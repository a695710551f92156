//! Registers of metrics, and the text of a scrape.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};

use crate::serve::operators::process::ProcessMetrics;

/// A gauge that may be negative.
pub(in crate::serve) type Number = Gauge<i64>;
/// A gauge that is never negative.
pub(in crate::serve) type Unsigned = Gauge<u64, AtomicU64>;

/// The kind of a metric that is read for each scrape.
#[derive(Clone, Copy, Debug)]
pub(in crate::serve) enum Kind {
    Gauge,
    /// A gauge in seconds.
    Seconds,
    /// A gauge in bytes.
    Bytes,
    Counter,
}

/// A metric that is read from a source for each scrape: its name, kind and help, and how it is read.
pub(in crate::serve) type Sampled<S> = (&'static str, Kind, &'static str, ReadValue<S>);

/// Reads the value of a metric.
type ReadValue<S> = fn(&S) -> i64;

/// The registered metrics of a table of [`Sampled`].
#[derive(Debug)]
pub(in crate::serve) struct Samples<S>(Vec<(Cell, ReadValue<S>)>);

#[derive(Debug)]
enum Cell {
    Gauge(Number),
    Counter(Counter),
}

impl<S> Samples<S> {
    /// Reads all of them.
    pub fn read(&self, source: &S) {
        for (cell, read) in &self.0 {
            match cell {
                Cell::Gauge(gauge) => {
                    gauge.set(read(source));
                }
                Cell::Counter(counter) => {
                    counter.inner().store(u64::try_from(read(source)).unwrap_or_default(), Ordering::Relaxed);
                }
            }
        }
    }
}

/// A count as the value of a metric.
pub(in crate::serve) fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Creates metrics, registered under their names.
pub(in crate::serve) struct Registrar(Registry);

impl Registrar {
    /// A register that begins with the program's version; `what` says what the program does.
    pub fn new(what: &str) -> Registrar {
        let mut registry = Registry::with_prefix("medfeed");
        registry.register("build", what, Info::new([("version", env!("CARGO_PKG_VERSION"))]));
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

    pub fn add_sampled<S>(&mut self, table: &[Sampled<S>]) -> Samples<S> {
        let register = |(name, kind, help, read): &Sampled<S>| {
            let cell = match kind {
                Kind::Gauge => Cell::Gauge(self.add(name, help)),
                Kind::Seconds => Cell::Gauge(self.add_in(Unit::Seconds, name, help, Number::default())),
                Kind::Bytes => Cell::Gauge(self.add_in(Unit::Bytes, name, help, Number::default())),
                Kind::Counter => Cell::Counter(self.add(name, help)),
            };
            (cell, *read)
        };
        Samples(table.iter().map(register).collect())
    }

    pub fn into_registry(self) -> Registry {
        self.0
    }
}

/// The OpenMetrics text of a scrape: the process and what it does.
pub(in crate::serve) fn text_of(process: &ProcessMetrics, registry: &Registry) -> String {
    process.update();
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = prometheus_client::encoding::text::encode_registry(&mut text, &process.registry);
    let _ = prometheus_client::encoding::text::encode(&mut text, registry);
    text
}
