//! The metrics of the process, with the standard names of Prometheus client libraries.

use prometheus_client::registry::Registry;

/// The metrics of the process, updated before each scrape. Empty on systems without `/proc`.
#[derive(Debug, Default)]
pub struct ProcessMetrics {
    /// Their registry. They have no prefix, unlike the server's metrics.
    pub registry: Registry,
    #[cfg(target_os = "linux")]
    linux: linux::Gauges,
}

impl ProcessMetrics {
    pub fn new() -> ProcessMetrics {
        #[cfg_attr(not(target_os = "linux"), allow(unused_mut, reason = "there is nothing to register"))]
        let mut metrics = ProcessMetrics::default();
        #[cfg(target_os = "linux")]
        metrics.linux.register(&mut metrics.registry);
        metrics
    }

    /// Reads the current values. Unreadable values stay unchanged.
    pub fn update(&self) {
        #[cfg(target_os = "linux")]
        if let Err(error) = self.linux.update() {
            tracing::debug!(%error, "the metrics of the process cannot be read");
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io;
    use std::sync::atomic::{AtomicU64, Ordering};

    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;
    use prometheus_client::registry::{Registry, Unit};
    use rustix::param::page_size;
    use rustix::process::{Resource, getrlimit};
    use rustix::time::{ClockId, clock_gettime};

    use crate::model::time::now;

    type UnsignedGauge = Gauge<u64, AtomicU64>;

    #[derive(Debug, Default)]
    pub struct Gauges {
        cpu: Counter<f64, AtomicU64>,
        resident: UnsignedGauge,
        virtual_memory: UnsignedGauge,
        open_fds: UnsignedGauge,
        max_fds: UnsignedGauge,
        threads: UnsignedGauge,
        started: Gauge<i64>,
    }

    impl Gauges {
        pub fn register(&self, registry: &mut Registry) {
            // Not from /proc: it has the time since the machine's start, and may hide that start.
            self.started.set(now().unix_s());
            let seconds = Unit::Seconds;
            registry.register_with_unit("process_cpu", "CPU time", seconds.clone(), self.cpu.clone());
            let start = "Time of the start, since the epoch";
            registry.register_with_unit("process_start_time", start, seconds, self.started.clone());
            let resident = "Resident memory";
            registry.register_with_unit("process_resident_memory", resident, Unit::Bytes, self.resident.clone());
            let addressed = "Virtual memory";
            registry.register_with_unit("process_virtual_memory", addressed, Unit::Bytes, self.virtual_memory.clone());
            registry.register("process_open_fds", "Open files and sockets", self.open_fds.clone());
            registry.register("process_max_fds", "Maximum number of open files and sockets", self.max_fds.clone());
            registry.register("process_threads", "Threads", self.threads.clone());
        }

        pub fn update(&self) -> io::Result<()> {
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
}
