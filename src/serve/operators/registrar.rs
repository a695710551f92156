//! Registers metrics, reads those of the process, and writes the text of a scrape.

use std::fs;
use std::io;

use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::model::Timestamp;

/// A set of metrics. Those that a program counts live as long as it. Those that only a scrape reads are registered in a
/// new set at each scrape, with their values.
#[derive(Debug, Default)]
pub(in crate::serve) struct Registrar(Registry);

impl Registrar {
    /// A set without metrics, whose names begin with `medfeed`.
    pub fn new() -> Registrar {
        Registrar(Registry::with_prefix("medfeed"))
    }

    /// Adds the version of the program.
    pub fn add_build(&mut self, help: &str) {
        self.0.register("build", help, Info::new([("version", env!("CARGO_PKG_VERSION"))]));
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

    /// Adds a gauge with its value.
    pub fn gauge<N>(&mut self, name: &str, help: &str, value: N)
    where
        ConstGauge<N>: Metric,
    {
        self.0.register(name, help, ConstGauge::new(value));
    }

    /// Adds a gauge in a unit with its value.
    pub fn gauge_in<N>(&mut self, unit: Unit, name: &str, help: &str, value: N)
    where
        ConstGauge<N>: Metric,
    {
        self.0.register_with_unit(name, help, unit, ConstGauge::new(value));
    }

    /// Adds a counter with its value.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.0.register(name, help, ConstCounter::new(value));
    }
}

/// The text of a scrape: the metrics of the process, then the given ones.
pub(in crate::serve) fn text_of(started_at: Timestamp, sets: &[&Registrar]) -> String {
    let mut process = Registrar::default();
    if let Err(error) = add_process(&mut process, started_at) {
        tracing::debug!(%error, "the metrics of the process cannot be read");
    }
    let mut text = String::new();
    // Writing to a string never fails.
    for set in [&process].into_iter().chain(sets.iter().copied()) {
        let _ = encode_registry(&mut text, &set.0);
    }
    let _ = encode_eof(&mut text);
    text
}

/// Adds the metrics of the process: none on systems without `/proc`, and those before the first unreadable one. They
/// have no prefix, unlike those of the program.
fn add_process(all: &mut Registrar, started_at: Timestamp) -> io::Result<()> {
    // proc_pid_statm(5): the sizes of all memory and of the resident memory come first, in pages.
    let sizes = fs::read_to_string("/proc/self/statm")?;
    let mut sizes = sizes.split_ascii_whitespace().map(|pages| pages.parse().unwrap_or(0) * page_size() as u64);
    let used = clock_gettime(ClockId::ProcessCPUTime);
    #[allow(clippy::cast_precision_loss, reason = "nobody runs for so long")]
    let cpu_s = used.tv_sec as f64 + used.tv_nsec as f64 / 1e9;
    all.0.register_with_unit("process_cpu", "CPU time", Unit::Seconds, ConstCounter::new(cpu_s));
    // Not from /proc: it has the time since the machine's start, and may hide that start.
    let started_s = started_at.unix_s();
    all.gauge_in(Unit::Seconds, "process_start_time", "Time of the start, since the epoch", started_s);
    let (addressed, resident) = (sizes.next().unwrap_or_default(), sizes.next().unwrap_or_default());
    all.gauge_in(Unit::Bytes, "process_resident_memory", "Resident memory", resident);
    all.gauge_in(Unit::Bytes, "process_virtual_memory", "Virtual memory", addressed);
    let max_fds = getrlimit(Resource::Nofile).current.unwrap_or_default();
    all.gauge("process_max_fds", "Maximum number of open files and sockets", max_fds);
    // The folder itself is open while it is read.
    let open_fds = (fs::read_dir("/proc/self/fd")?.count() as u64).saturating_sub(1);
    all.gauge("process_open_fds", "Open files and sockets", open_fds);
    all.gauge("process_threads", "Threads", fs::read_dir("/proc/self/task")?.count() as u64);
    Ok(())
}
