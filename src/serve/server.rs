//! The listener: accepts connections until it is told to stop, then lets what is in flight finish.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::address::TrustedProxies;
use super::connection::{ConnectionLimits, Shared, serve_connection};
use super::exports::Exports;
use super::guard::Timeouts;
use super::listen::drop_new;
use super::places::{Activity, Place, Places};
use super::tls::{self, Tls};
use super::waiting::Waiting;
use crate::api::Service;

/// What a server may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once; a further one takes the place of who idles longest, or waits.
    pub connections: usize,
    /// Connections at once from one address; further ones are closed. Trusted proxies may have any number.
    pub connections_per_address: usize,
    /// What one connection may use.
    pub connection: ConnectionLimits,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long what is in flight may take after the listener closed.
    pub drain: Duration,
    /// Exports built at once.
    pub exports: usize,
    /// Exports built at once for one key.
    pub exports_per_key: usize,
    /// Finished exports that are kept, in bytes.
    pub export_cache_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 1024,
            connections_per_address: 64,
            connection: ConnectionLimits {
                timeouts: Timeouts {
                    header: Duration::from_secs(10),
                    idle: Duration::from_secs(60),
                    stalled_write: Duration::from_secs(30),
                },
                header_bytes: 16 << 10,
                headers: 64,
            },
            handshake: Duration::from_secs(5),
            drain: Duration::from_secs(30),
            exports: 8,
            exports_per_key: 2,
            export_cache_bytes: 64 << 20,
        }
    }
}

/// How long accepting rests after a failure, such as too many open files: what is at work goes on and frees some.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// A server that is ready to run.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
    tls: Option<Arc<Tls>>,
    limits: Limits,
    shares_address: bool,
}

impl Server {
    /// A server of an API on a listener.
    pub fn new(
        listener: TcpListener,
        service: Arc<Service>,
        exports: Arc<Exports>,
        proxies: TrustedProxies,
        tls: Option<Arc<Tls>>,
        limits: Limits,
    ) -> Server {
        let strict_transport = tls.is_some();
        let (waiting, limits_of_one) = (Waiting::default(), limits.connection);
        let shared = Shared { service, exports, waiting, limits: limits_of_one, proxies, strict_transport };
        Server { listener, shared: Arc::new(shared), tls, limits, shares_address: false }
    }

    /// Says that a newer server listens on the same address when this one stops.
    pub fn sharing_address(mut self, shares_address: bool) -> Server {
        self.shares_address = shares_address;
        self
    }

    /// Serves until `stop` resolves, then takes what is queued, closes the listener and lets what is in flight finish.
    /// Returns how many connections were cut off at the end of the drain time.
    pub async fn run(self, stop: impl Future<Output = ()>) -> usize {
        let Server { listener, shared, tls, limits, shares_address } = self;
        let (close, closing) = watch::channel(false);
        let places = Places::new(limits.connections);
        let addresses = Arc::new(Addresses { most: limits.connections_per_address, counts: Mutex::default() });
        let mut connections = JoinSet::new();
        let enter = |peer: SocketAddr| {
            let address = peer.ip().to_canonical();
            let counted = addresses.enter(address, shared.proxies.trusts(address));
            if counted.is_none() {
                tracing::debug!(%address, "refused a connection: too many from this address");
            }
            counted
        };
        let serve = |connections: &mut JoinSet<()>, stream: TcpStream, counted: Counted, place: Option<Place>| {
            let (shared, tls, closing) = (Arc::clone(&shared), tls.clone(), closing.clone());
            connections.spawn(async move {
                let peer = counted.address;
                let activity = place.as_ref().map_or_else(Activity::default, Place::activity);
                shared.service.observer().connected();
                tokio::select! {
                    () = serve_stream(stream, peer, &shared, tls.as_deref(), limits.handshake, &activity, closing) => {}
                    () = activity.closed() => tracing::debug!(%peer, "closed an idle connection: its place was needed"),
                }
                shared.service.observer().disconnected();
                drop((counted, place));
            });
        };
        let mut stop = std::pin::pin!(stop);
        loop {
            let (stream, peer) = tokio::select! {
                () = stop.as_mut() => break,
                accepted = accept(&listener) => accepted,
            };
            // Who is refused costs nobody a place.
            let Some(counted) = enter(peer) else { continue };
            let place = tokio::select! {
                () = stop.as_mut() => None,
                place = places.take() => Some(place),
            };
            let stopping = place.is_none();
            serve(&mut connections, stream, counted, place);
            while connections.try_join_next().is_some() {}
            if stopping {
                break;
            }
        }
        // Whoever is in the listener's queue would be turned away by its closing.
        if shares_address && let Err(error) = drop_new(&listener) {
            tracing::warn!(%error, "connections may be turned away while the listener closes");
        }
        while let Some((stream, peer)) = accept_queued(&listener).await {
            if let Some(counted) = enter(peer) {
                serve(&mut connections, stream, counted, None);
            }
        }
        drop(listener);
        // Every connection may be gone already.
        let _ = close.send(true);
        let drained = tokio::time::timeout(limits.drain, async { while connections.join_next().await.is_some() {} });
        if drained.await.is_err() { connections.len() } else { 0 }
    }
}

async fn serve_stream(
    stream: TcpStream,
    peer: IpAddr,
    shared: &Arc<Shared>,
    tls: Option<&Tls>,
    handshake: Duration,
    activity: &Activity,
    closing: watch::Receiver<bool>,
) {
    // Answers are written whole: waiting for more to send only delays them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY was refused");
    }
    let (shared, activity) = (Arc::clone(shared), activity.clone());
    match tls {
        None => serve_connection(stream, peer, shared, activity, closing).await,
        Some(tls) => match tls::handshake(tls, stream, handshake).await {
            Ok(stream) => serve_connection(stream, peer, shared, activity, closing).await,
            Err(error) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
        },
    }
}

/// The next connection.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}

/// A connection that waits in the listener's queue, without waiting for one.
async fn accept_queued(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    let accepted: Option<io::Result<_>> = tokio::select! {
        biased;
        accepted = listener.accept() => Some(accepted),
        () = std::future::ready(()) => None,
    };
    accepted?.ok()
}

/// How many connections each address has.
#[derive(Debug)]
struct Addresses {
    most: usize,
    counts: Mutex<HashMap<IpAddr, usize>>,
}

/// A counted connection.
#[derive(Debug)]
struct Counted {
    addresses: Arc<Addresses>,
    address: IpAddr,
}

impl Addresses {
    /// Counts a connection; `None` when its address has as many as it may.
    fn enter(self: &Arc<Self>, address: IpAddr, trusted: bool) -> Option<Counted> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_insert(0);
        if *count >= self.most && !trusted {
            return None;
        }
        *count += 1;
        Some(Counted { addresses: Arc::clone(self), address })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.addresses.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}
