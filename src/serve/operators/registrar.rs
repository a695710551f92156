//! Registers metrics, reads those of the process, and writes the text of a scrape, in one of two formats.
//!
//! The metrics library writes OpenMetrics 1.0. Older tools, and `promtool check metrics`, read the Prometheus text
//! format 0.0.4. Both have the same sample lines, but different comments. So the second is derived from the first.

use std::fs;
use std::io;

use http::HeaderMap;
use http::header::ACCEPT;
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
#[derive(Default)]
pub(crate) struct Registrar(Registry);

impl Registrar {
    /// A set without metrics, whose names begin with `medfeed`.
    pub fn new() -> Registrar {
        Registrar(Registry::with_prefix("medfeed"))
    }

    /// Adds the version of the program.
    pub fn add_build(&mut self, help: &str) {
        self.0.register(
            "build",
            help,
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
    }

    pub fn add<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        let metric = M::default();
        self.0.register(name, help, metric.clone());
        metric
    }

    pub fn add_in<M: Metric + Clone>(
        &mut self,
        unit: Unit,
        name: &str,
        help: &str,
        metric: M,
    ) -> M {
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
        self.0
            .register_with_unit(name, help, unit, ConstGauge::new(value));
    }

    /// Adds a counter with its value.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.0.register(name, help, ConstCounter::new(value));
    }
}

/// The text of a scrape: the metrics of the process, then the given ones.
pub(crate) fn text_of(started_at: Timestamp, sets: &[&Registrar]) -> String {
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
    let mut sizes = sizes
        .split_ascii_whitespace()
        .map(|pages| pages.parse().unwrap_or(0) * page_size() as u64);
    let used = clock_gettime(ClockId::ProcessCPUTime);
    #[allow(clippy::cast_precision_loss, reason = "nobody runs for so long")]
    let cpu_s = used.tv_sec as f64 + used.tv_nsec as f64 / 1e9;
    all.0.register_with_unit(
        "process_cpu",
        "CPU time",
        Unit::Seconds,
        ConstCounter::new(cpu_s),
    );
    // Not from /proc: it has the time since the machine's start, and may hide that start.
    let started_s = started_at.unix_s();
    all.gauge_in(
        Unit::Seconds,
        "process_start_time",
        "Time of the start, since the epoch",
        started_s,
    );
    let addressed = sizes.next().unwrap_or_default();
    let resident = sizes.next().unwrap_or_default();
    all.gauge_in(
        Unit::Bytes,
        "process_resident_memory",
        "Resident memory",
        resident,
    );
    all.gauge_in(
        Unit::Bytes,
        "process_virtual_memory",
        "Virtual memory",
        addressed,
    );
    let max_fds = getrlimit(Resource::Nofile).current.unwrap_or_default();
    all.gauge(
        "process_max_fds",
        "Maximum number of open files and sockets",
        max_fds,
    );
    // The folder itself is open while it is read.
    let open_fds = (fs::read_dir("/proc/self/fd")?.count() as u64).saturating_sub(1);
    all.gauge("process_open_fds", "Open files and sockets", open_fds);
    all.gauge(
        "process_threads",
        "Threads",
        fs::read_dir("/proc/self/task")?.count() as u64,
    );
    Ok(())
}

pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
pub const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether `Accept` names OpenMetrics. Prometheus does; people and older tools get the other format.
pub fn accepts_open_metrics(headers: &HeaderMap) -> bool {
    let values = headers
        .get_all(ACCEPT)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    values.into_iter().any(|value| {
        value
            .to_ascii_lowercase()
            .contains("application/openmetrics-text")
    })
}

/// Converts an OpenMetrics text without exemplars to the Prometheus text format.
///
/// - The names of families have the suffix of their samples: `_total` for counters, `_info` for infos.
/// - The type `info` becomes `gauge`, and `unknown` becomes `untyped`.
/// - `# UNIT` and `# EOF` are omitted.
pub fn plain(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    // The name of a family depends on its type, which follows its help.
    let mut help = None;
    for line in open_metrics.lines() {
        let comment = line
            .strip_prefix("# ")
            .map(|comment| comment.splitn(3, ' ').collect::<Vec<_>>());
        match comment.as_deref() {
            Some(["HELP", name, words]) => help = Some((name.to_owned(), words.to_owned())),
            Some(["TYPE", name, kind]) => {
                let (ending, kind) = match *kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "unknown" => ("", "untyped"),
                    kind => ("", kind),
                };
                if let Some((_, words)) = help.take().filter(|(helped, _)| helped == name) {
                    text.extend(["# HELP ", name, ending, " ", words, "\n"]);
                }
                text.extend(["# TYPE ", name, ending, " ", kind, "\n"]);
            }
            Some(_) => {}
            None => text.extend([line, "\n"]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn requests_that_name_open_metrics_get_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3";
        let cases: [(&[&str], bool); 6] = cases![
            &[], false;
            &["*/*"], false;
            &["text/plain;version=0.0.4"], false;
            &[prometheus], true;
            &["Application/OpenMetrics-Text; Version=\"1.0.0\""], true;
            &["text/plain; q=0.5", "application/openmetrics-text; q=0.7"], true;
        ];
        for (values, expected) in cases {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(ACCEPT, HeaderValue::from_static(value));
            }
            assert_eq!(accepts_open_metrics(&headers), expected, "{values:?}");
        }
    }

    #[test]
    fn families_are_named_as_their_samples() {
        let open_metrics = "# HELP a_build The program that serves.\n# TYPE a_build info\na_build_info{version=\"1\"} 1\n\
                            # HELP a_requests Requests: # HELP is no comment here.\n# TYPE a_requests counter\n\
                            a_requests_total{license=\"# TYPE x counter\"} 3\n\
                            # HELP a_lag_seconds Time.\n# TYPE a_lag_seconds gauge\n# UNIT a_lag_seconds seconds\na_lag_seconds 1.5\n\
                            # TYPE a_took_seconds histogram\na_took_seconds_bucket{le=\"+Inf\"} 2\n\
                            # HELP a_some Some.\n# TYPE a_some unknown\na_some 1\n# EOF\n";
        let expected = "# HELP a_build_info The program that serves.\n# TYPE a_build_info gauge\na_build_info{version=\"1\"} 1\n\
                        # HELP a_requests_total Requests: # HELP is no comment here.\n# TYPE a_requests_total counter\n\
                        a_requests_total{license=\"# TYPE x counter\"} 3\n\
                        # HELP a_lag_seconds Time.\n# TYPE a_lag_seconds gauge\na_lag_seconds 1.5\n\
                        # TYPE a_took_seconds histogram\na_took_seconds_bucket{le=\"+Inf\"} 2\n\
                        # HELP a_some Some.\n# TYPE a_some untyped\na_some 1\n";
        assert_eq!(plain(open_metrics), expected);
    }
}
