//! What operators and their monitoring look at: a running server.

use std::sync::Arc;

use tokio::sync::watch;

use super::lag::LagHistory;
use crate::api::Service;
use crate::model::Timestamp;
use crate::serve::connection::server::Limits;
use crate::serve::following::upstream::Upstream;
use crate::serve::following::watcher::Watcher;
use crate::serve::operators::metrics::Metrics;
use crate::serve::operators::usage::Usage;

/// A running server.
#[derive(Debug)]
pub struct Subject {
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The watched database.
    pub watcher: Arc<Watcher>,
    /// Where the database's commits come from, if it is a replica.
    pub upstream: Option<Arc<dyn Upstream>>,
    /// The API.
    pub service: Arc<Service>,
    /// The record of key usage.
    pub usage: Option<Arc<Usage>>,
    /// The lag of keys over the last day.
    pub lags: LagHistory,
    /// The server's limits.
    pub limits: Limits,
    /// When the server started.
    pub started_at: Timestamp,
    /// True once the server stops.
    pub stopping: watch::Receiver<bool>,
}

impl Subject {
    /// Why the server should get no new callers.
    pub fn unready(&self) -> Option<String> {
        if *self.stopping.borrow() {
            return Some("the server is stopping".to_owned());
        }
        if !self.watcher.is_followed() {
            return Some("the database file cannot be followed; the last state is served".to_owned());
        }
        let upstream = self.upstream.as_ref().filter(|upstream| !upstream.is_fit());
        self.watcher.trouble().or_else(|| upstream.and_then(|upstream| upstream.trouble()))
    }

    /// What the operator should know of a server that is ready. A replica whose bucket is away answers for a while: taken out
    /// of a balancer at once, no replica would be left.
    pub fn remark(&self) -> Option<String> {
        self.watcher.backlog().or_else(|| self.upstream.as_ref().and_then(|upstream| upstream.trouble()))
    }
}
