//! A whole server, put together: the watched database, the API, the listeners, the certificate, and what systemd is told.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::address::TrustedProxies;
use super::admin::Admin;
use super::log::LostLines;
use super::metrics::Metrics;
use super::server::{Limits, Server};
use super::tls::Tls;
use super::usage::Usage;
use super::watcher::Watcher;
use crate::api::observe::{Answered, Cause, ConnectionLimit, GivenUp, Observer};
use crate::api::{Service, Settings, SnapshotSource};

/// Starts the runtime, runs a server on it to its end, and returns what that says.
///
/// # Errors
/// When the operating system gives no threads.
pub fn run_to_end<T>(server: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(server);
    // Work that still waits for a disk must not hold up the end.
    runtime.shutdown_background();
    Ok(done)
}

/// What a server is put together from.
#[derive(Debug)]
pub struct Setup {
    /// Where connections come in.
    pub listener: TcpListener,
    /// The database.
    pub watcher: Arc<Watcher>,
    /// What the API is told.
    pub settings: Settings,
    /// Whose word on a caller's address is taken.
    pub proxies: TrustedProxies,
    /// The certificate, for HTTPS.
    pub tls: Option<Arc<Tls>>,
    /// What the server may use.
    pub limits: Limits,
    /// Where monitoring comes in.
    pub admin: Option<TcpListener>,
    /// The record of who is behind.
    pub usage: Option<Arc<Usage>>,
    /// What the log lost.
    pub lost_lines: LostLines,
    /// Whether another server may listen on the same address.
    pub shares_address: bool,
}

/// The server's observer: tells the metrics and the record of who is behind.
struct Telemetry {
    metrics: Arc<Metrics>,
    usage: Option<Arc<Usage>>,
}

impl Observer for Telemetry {
    fn answered(&self, answered: &Answered<'_>) {
        self.metrics.answered(answered);
        if let Some(usage) = &self.usage {
            usage.answered(answered);
        }
    }

    fn connected(&self) {
        self.metrics.connected();
    }

    fn disconnected(&self) {
        self.metrics.disconnected();
    }

    fn given_up(&self, reason: GivenUp, cause: Cause) {
        self.metrics.given_up(reason, cause);
    }

    fn met_limit(&self, limit: ConnectionLimit) {
        self.metrics.met_limit(limit);
    }

    fn refused_connection(&self, limit: ConnectionLimit) {
        self.metrics.refused_connection(limit);
    }
}

/// Serves until SIGTERM or Ctrl-C; calls `ready` once connections are taken.
///
/// # Errors
/// When the operating system gives no thread or no signal.
pub async fn serve(setup: Setup, ready: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let _watching = setup.watcher.start()?;
    let metrics = Arc::new(Metrics::new(setup.lost_lines));
    let observer = Telemetry { metrics: Arc::clone(&metrics), usage: setup.usage };
    let source: Arc<dyn SnapshotSource> = Arc::<Watcher>::clone(&setup.watcher);
    let service = Arc::new(Service::observed(setup.settings, source, Arc::new(observer)));
    let (stop, stopping) = watch::channel(false);
    if let Some(listener) = setup.admin {
        let (watcher, service) = (Arc::clone(&setup.watcher), Arc::clone(&service));
        tokio::spawn(Admin { metrics, watcher, service, stopping }.run(listener));
    }
    tokio::spawn(reload(setup.tls.clone(), signal(SignalKind::hangup())?));
    let server = Server::new(setup.listener, service, setup.proxies, setup.tls, setup.limits)
        .sharing_address(setup.shares_address);
    // In a thread of its own: nobody may take what is printed.
    std::thread::Builder::new().name("ready".to_owned()).spawn(ready)?;
    notify(&[NotifyState::Ready]);
    let cut_off = server
        .run(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("stopping: finishing what is in flight");
            notify(&[NotifyState::Stopping]);
            // The admin listener may not be there to hear it.
            let _ = stop.send(true);
        })
        .await?;
    if cut_off > 0 {
        tracing::warn!(connections = cut_off, "the drain time is over; connections were cut off");
    }
    Ok(())
}

/// Reloads the certificate when its files change, and on SIGHUP, of which systemd is told.
async fn reload(tls: Option<Arc<Tls>>, mut hangup: Signal) {
    const LOOK_EVERY: Duration = Duration::from_secs(2);
    loop {
        let asked = tokio::select! {
            asked = hangup.recv() => asked.is_some(),
            () = tokio::time::sleep(LOOK_EVERY) => false,
        };
        if asked {
            let began = NotifyState::monotonic_usec_now().ok();
            notify(&[Some(NotifyState::Reloading), began].into_iter().flatten().collect::<Vec<_>>());
        }
        // Reading two small files hardly blocks; a slow disk must not hold up answers all the same.
        let tls = tls.clone();
        let reloaded = tokio::task::spawn_blocking(move || {
            if let Some(tls) = tls {
                if asked { tls.reload() } else { tls.reload_if_changed() }
            }
        });
        if reloaded.await.is_err() {
            tracing::error!("reloading the certificate failed");
        }
        if asked {
            notify(&[NotifyState::Ready]);
        }
    }
}

/// Tells systemd, where it started this process.
fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "systemd could not be told");
    }
}
