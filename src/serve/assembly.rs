//! Builds a server from its parts and runs it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::api::observe::Observer;
use crate::api::{Service, Settings, SnapshotSource};
use crate::model::{Dataset, now};
use crate::serve::connection::address::TrustedProxies;
use crate::serve::connection::limits::Limits;
use crate::serve::connection::server::Server;
use crate::serve::connection::tls::Tls;
use crate::serve::operators::admin::monitored::MonitoredServer;
use crate::serve::operators::admin::{self, AdminSetup};
use crate::serve::operators::log::LostLines;
use crate::serve::operators::metrics::Metrics;
use crate::serve::operators::usage::Usage;
use crate::serve::watching::watcher::Watcher;

/// Runs a server on a new runtime until it ends.
pub fn run_to_end<T>(server: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(server);
    // Do not wait for tasks that the disk blocks.
    runtime.shutdown_background();
    Ok(done)
}

/// The parts of a server.
pub struct Setup {
    /// The socket on which the API listens.
    pub listener: TcpListener,
    /// The database that is served.
    pub watcher: Arc<Watcher>,
    /// The settings of the API.
    pub settings: Settings,
    /// The proxies whose header names the caller's address.
    pub proxies: TrustedProxies,
    /// The certificate, for HTTPS.
    pub tls: Option<Arc<Tls>>,
    /// The limits of connections.
    pub limits: Limits,
    /// The listener for operators, if there is one.
    pub admin: Option<AdminSetup>,
    /// The record of key usage, if it is kept.
    pub usage: Option<Arc<Usage>>,
    /// The number of log lines that were lost.
    pub lost_lines: LostLines,
    /// Whether another server may listen on the same address.
    pub shares_address: bool,
    /// The signals that stop the server.
    pub stop: StopSignals,
}

/// The signals that stop a server. They are caught from the creation of this value on.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Option<Signal>,
}

impl StopSignals {
    /// SIGTERM and Ctrl-C. SIGHUP reloads the certificate.
    pub fn of_service() -> io::Result<StopSignals> {
        Ok(StopSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: None,
        })
    }

    /// The same, and SIGHUP: the server ends when its terminal is closed.
    pub fn of_terminal() -> io::Result<StopSignals> {
        Ok(StopSignals {
            hangup: Some(signal(SignalKind::hangup())?),
            ..StopSignals::of_service()?
        })
    }

    /// Waits for one of the signals.
    pub async fn received(mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = hangup => {}
        }
    }
}

/// Serves until one of the signals arrives. Calls `ready` once connections are accepted.
pub async fn serve(setup: Setup, ready: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let _watching = setup.watcher.start()?;
    log_start(&setup)?;
    let metrics = Arc::new(Metrics::new(
        setup.lost_lines,
        setup.usage.clone(),
        setup.tls.clone(),
    ));
    let source: Arc<dyn SnapshotSource> = Arc::<Watcher>::clone(&setup.watcher);
    let observer: Arc<dyn Observer> = Arc::<Metrics>::clone(&metrics);
    let service = Arc::new(Service::observed(setup.settings, source, observer));
    let (stop, stopping) = watch::channel(false);
    if let Some(admin) = setup.admin {
        let monitored = MonitoredServer {
            metrics,
            watcher: setup.watcher,
            service: Arc::clone(&service),
            usage: setup.usage,
            started_at: now(),
            stopping,
        };
        tokio::spawn(admin::run(Arc::new(monitored), admin));
    }
    if setup.stop.hangup.is_none() {
        tokio::spawn(reload(setup.tls.clone(), signal(SignalKind::hangup())?));
    }
    let signals = setup.stop;
    let server = Server {
        listener: setup.listener,
        service,
        proxies: setup.proxies,
        tls: setup.tls,
        limits: setup.limits,
        shares_address: setup.shares_address,
    };
    // In its own thread: `ready` prints, which blocks while the reader of standard output is slow.
    std::thread::Builder::new()
        .name("ready".to_owned())
        .spawn(ready)?;
    notify(&[NotifyState::Ready]);
    let cut_off = server
        .run(async move {
            signals.received().await;
            tracing::info!("stopping: finishing what is in flight");
            notify(&[NotifyState::Stopping]);
            let _ = stop.send(true);
        })
        .await?;
    if cut_off > 0 {
        tracing::warn!(
            connections = cut_off,
            "the drain time is over; connections were cut off"
        );
    }
    Ok(())
}

/// Logs the database, the addresses and the transport.
fn log_start(setup: &Setup) -> io::Result<()> {
    let state = setup.watcher.newest();
    let commit = state.commit();
    let usable = state
        .list_keys()
        .into_iter()
        .filter(|key| key.status_after(now(), commit.time).is_usable());
    let admin = setup
        .admin
        .as_ref()
        .map(|admin| admin.listener.local_addr())
        .transpose()?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        file = %setup.watcher.path().display(),
        replica_of = setup.watcher.replica().map(|replica| tracing::field::display(replica.url())),
        conferences = state.totals().records[Dataset::Conferences],
        journals = state.totals().records[Dataset::Journals],
        licenses = state.list_licenses().len(),
        usable_keys = usable.count(),
        api = %setup.listener.local_addr()?,
        admin = %admin.map_or("none".to_owned(), |address| address.to_string()),
        transport = if setup.tls.is_some() { "HTTPS" } else { "plain HTTP" },
        "serving"
    );
    Ok(())
}

/// Reloads the certificate when its files change, and on SIGHUP. On SIGHUP it also notifies systemd.
async fn reload(tls: Option<Arc<Tls>>, mut hangup: Signal) {
    const POLL_EVERY: Duration = Duration::from_secs(2);
    loop {
        let is_signaled = tokio::select! {
            received = hangup.recv() => received.is_some(),
            () = tokio::time::sleep(POLL_EVERY) => false,
        };
        if is_signaled {
            let began = NotifyState::monotonic_usec_now().ok();
            notify(
                &[Some(NotifyState::Reloading), began]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>(),
            );
        }
        // Read the files in another thread: the disk may be slow.
        let tls = tls.clone();
        let reloaded = tokio::task::spawn_blocking(move || {
            if let Some(tls) = tls {
                if is_signaled {
                    tls.reload()
                } else {
                    tls.reload_if_changed()
                }
            }
        });
        if reloaded.await.is_err() {
            tracing::error!("reloading the certificate failed");
        }
        if is_signaled {
            notify(&[NotifyState::Ready]);
        }
    }
}

/// Notifies systemd, if it started this process.
pub fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "systemd could not be notified");
    }
}
