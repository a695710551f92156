//! Registers metrics and those of the process, and writes the text of a scrape.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::model::time::now;

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

/// The metrics of the process, updated before each scrape. Empty on systems without `/proc`.
#[derive(Debug, Default)]
pub struct ProcessMetrics {
    /// Their registry. They have no prefix, unlike the server's metrics.
    pub registry: Registry,
    cpu: Counter<f64, AtomicU64>,
    resident: UnsignedGauge,
    virtual_memory: UnsignedGauge,
    open_fds: UnsignedGauge,
    max_fds: UnsignedGauge,
    threads: UnsignedGauge,
}

impl ProcessMetrics {
    pub fn new() -> ProcessMetrics {
        let mut metrics = ProcessMetrics::default();
        if !Path::new("/proc/self/statm").exists() {
            return metrics;
        }
        let registry = &mut metrics.registry;
        let seconds = Unit::Seconds;
        registry.register_with_unit("process_cpu", "CPU time", seconds.clone(), metrics.cpu.clone());
        // Not from /proc: it has the time since the machine's start, and may hide that start.
        let started = SignedGauge::default();
        started.set(now().unix_s());
        registry.register_with_unit("process_start_time", "Time of the start, since the epoch", seconds, started);
        let resident = "Resident memory";
        registry.register_with_unit("process_resident_memory", resident, Unit::Bytes, metrics.resident.clone());
        let addressed = "Virtual memory";
        registry.register_with_unit("process_virtual_memory", addressed, Unit::Bytes, metrics.virtual_memory.clone());
        registry.register("process_open_fds", "Open files and sockets", metrics.open_fds.clone());
        registry.register("process_max_fds", "Maximum number of open files and sockets", metrics.max_fds.clone());
        registry.register("process_threads", "Threads", metrics.threads.clone());
        metrics
    }

    /// Reads the current values. Unreadable values stay unchanged.
    fn update(&self) {
        if let Err(error) = self.read_proc() {
            tracing::debug!(%error, "the metrics of the process cannot be read");
        }
    }

    fn read_proc(&self) -> io::Result<()> {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        #[allow(clippy::cast_precision_loss, reason = "nobody runs for so long")]
        let cpu_s = used.tv_sec as f64 + used.tv_nsec as f64 / 1e9;
        self.cpu.inner().store(cpu_s.to_bits(), Ordering::Relaxed);
        // proc_pid_statm(5): the sizes of all memory and of the resident memory come first, in pages.
        let sizes = fs::read_to_string("/proc/self/statm")?;
        let mut sizes = sizes.split_ascii_whitespace().map(|pages| pages.parse().unwrap_or(0) * page_size() as u64);
        self.virtual_memory.set(sizes.next().unwrap_or_default());
        self.resident.set(sizes.next().unwrap_or_default());
        self.threads.set(fs::read_dir("/proc/self/task")?.count() as u64);
        // The folder itself is open while it is read.
        self.open_fds.set((fs::read_dir("/proc/self/fd")?.count() as u64).saturating_sub(1));
        if let Some(files) = getrlimit(Resource::Nofile).current {
            self.max_fds.set(files);
        }
        Ok(())
    }
}
