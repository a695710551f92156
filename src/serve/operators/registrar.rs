//! Registers of metrics, and the text of a scrape.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};

use crate::serve::operators::process::ProcessMetrics;

/// A gauge that may be negative.
pub(in crate::serve) type Number = Gauge<i64>;
/// A gauge that is never negative.
pub(in crate::serve) type Unsigned = Gauge<u64, AtomicU64>;

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
