//! The interface of a monitored program, and a server as operators and monitoring see it.

use std::sync::Arc;

use tokio::sync::watch;

use crate::api::Service;
use crate::model::Timestamp;
use crate::serve::operators::metrics::Metrics;
use crate::serve::operators::usage::Usage;
use crate::serve::watching::watcher::Watcher;

/// A monitored program. [`Monitored::unready`] and [`Monitored::warning`] must not block.
pub trait Monitored: Send + Sync + 'static {
    /// The reason why it is not ready; `None` if it is.
    fn unready(&self) -> Option<String>;

    /// A warning for the operator of a ready program.
    fn warning(&self) -> Option<String> {
        None
    }

    /// The OpenMetrics text of a scrape.
    fn scrape(&self) -> String;

    /// The operators' page, or an error message; `None` for a program without a page.
    fn page(&self) -> Option<Result<String, String>> {
        None
    }
}

/// A running server.
pub(crate) struct MonitoredServer {
    pub metrics: Arc<Metrics>,
    pub watcher: Arc<Watcher>,
    pub service: Arc<Service>,
    pub usage: Option<Arc<Usage>>,
    pub started_at: Timestamp,
    /// Whether the server is stopping.
    pub stopping: watch::Receiver<bool>,
}
