//! The listener: accepts connections until it is told to stop, then lets what is in flight finish.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::api::Service;
use crate::api::observe::{ConnectionLimit, GivenUp};
use crate::model::network::network_of;
use crate::serve::connection::address::TrustedProxies;
use crate::serve::connection::dispatch::Dispatcher;
use crate::serve::connection::exchange::{ConnectionLimits, Shared, serve_connection};
use crate::serve::connection::guard::Timeouts;
use crate::serve::connection::limiter::{ConnectionLimiter, Slot};
use crate::serve::connection::listen::{drop_new, prepare};
use crate::serve::connection::long_polls::LongPolls;
use crate::serve::connection::pace::{Pace, PacedStream};
use crate::serve::connection::permits::Permits;
use crate::serve::connection::state::ConnectionState;
use crate::serve::connection::tls::{self, Tls};
use crate::serve::connection::workers::Workers;

/// What a server may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once. For a further one, one that is idle, unfinished or slow is given up, or one that waits for news
    /// is answered and closed; else it waits.
    pub connections: usize,
    /// Connections that wait for a slot at most; further ones are closed.
    pub waiting: usize,
    /// Connections at once from one address (IPv6: one /64). For a further one, one of its own that is idle, unfinished
    /// or slow is given up, or one that waits for news is answered and closed; else it is closed. Trusted proxies may have
    /// any number.
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
    /// Requests that wait for news of a change feed at once; further ones are answered at once.
    pub held: usize,
    /// Those of one key.
    pub held_per_key: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 1024,
            waiting: 1024,
            connections_per_address: 64,
            connection: ConnectionLimits {
                timeouts: Timeouts { header: Duration::from_secs(10), idle: Duration::from_secs(60) },
                pace: Pace { write_timeout: Duration::from_secs(30), least_rate: 1024 },
                header_bytes: 16 << 10,
                headers: 64,
            },
            handshake: Duration::from_secs(5),
            drain: Duration::from_secs(30),
            exports: 8,
            exports_per_key: 2,
            held: 1024,
            held_per_key: 256,
        }
    }
}

/// The pause after a failure to accept, such as too many open files: connections at work free some meanwhile.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// The time between two attempts to give up a connection for one that waits.
const RETRY: Duration = Duration::from_millis(50);

/// A server that is ready to run.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    service: Arc<Service>,
    proxies: TrustedProxies,
    tls: Option<Arc<Tls>>,
    limits: Limits,
    shares_address: bool,
}

impl Server {
    /// A server of an API on a listener.
    pub fn new(
        listener: TcpListener,
        service: Arc<Service>,
        proxies: TrustedProxies,
        tls: Option<Arc<Tls>>,
        limits: Limits,
    ) -> Server {
        Server { listener, service, proxies, tls, limits, shares_address: false }
    }

    /// Says that a newer server listens on the same address when this one stops.
    pub fn sharing_address(mut self, shares_address: bool) -> Server {
        self.shares_address = shares_address;
        self
    }

    /// Serves until `stop` resolves, then takes what is queued, closes the listener and lets what is in flight finish.
    /// Returns how many connections were cut off at the end of the drain time.
    ///
    /// # Errors
    /// When the operating system gives no threads.
    pub async fn run(self, stop: impl Future<Output = ()>) -> io::Result<usize> {
        let Server { listener, service, proxies, tls, limits, shares_address } = self;
        let (connection, strict_transport) = (limits.connection, tls.is_some());
        let permits = Permits::new(limits.exports, limits.exports_per_key);
        let long_polls = LongPolls::new(limits.held, limits.held_per_key);
        let dispatcher = Dispatcher::new(permits, long_polls, Handle::current());
        let shared = Arc::new(Shared { service, dispatcher, limits: connection, proxies, strict_transport });
        let told = Arc::downgrade(&shared);
        shared.service.subscribe(Box::new(move || {
            let shared = told.upgrade();
            shared.inspect(|shared| shared.dispatcher.long_polls().notify(&shared.service)).is_some()
        }));
        let (close, closing) = watch::channel(false);
        let limiter = ConnectionLimiter::new(limits.connections, limits.connections_per_address);
        let (workers, waiting, connections) = (Workers::start()?, VecDeque::new(), JoinSet::new());
        let mut acceptor = Acceptor { shared, tls, limits, limiter, closing, waiting, workers, connections };
        let mut stop = std::pin::pin!(stop);
        loop {
            let some_wait = !acceptor.waiting.is_empty();
            let arrived = tokio::select! {
                () = stop.as_mut() => break,
                (stream, peer) = accept(&listener) => Some(Arrived { stream, peer, at: Instant::now() }),
                () = acceptor.limiter.freed(), if some_wait => None,
                () = tokio::time::sleep(RETRY), if some_wait => None,
            };
            acceptor.admit_waiting().await;
            if let Some(arrived) = arrived {
                acceptor.admit(arrived).await;
            }
            while acceptor.connections.try_join_next().is_some() {}
        }
        // Whoever is in the listener's queue would be turned away by its closing.
        if shares_address && let Err(error) = drop_new(&listener) {
            tracing::warn!(%error, "connections may be turned away while the listener closes");
        }
        while let Some((stream, peer)) = accept_queued(&listener).await {
            acceptor.waiting.push_back(Arrived { stream, peer, at: Instant::now() });
        }
        acceptor.admit_rest();
        drop(listener);
        // Every connection may be gone already.
        let _ = close.send(true);
        let Acceptor { mut connections, workers: _workers, .. } = acceptor;
        let drained = tokio::time::timeout(limits.drain, async { while connections.join_next().await.is_some() {} });
        Ok(if drained.await.is_err() { connections.len() } else { 0 })
    }
}

/// A connection that was accepted.
struct Arrived {
    stream: TcpStream,
    peer: SocketAddr,
    at: Instant,
}

/// Admits connections. It never waits for a caller: one without a slot is queued, so that later ones, from networks with
/// fewer connections, get theirs.
struct Acceptor {
    shared: Arc<Shared>,
    tls: Option<Arc<Tls>>,
    limits: Limits,
    limiter: Arc<ConnectionLimiter>,
    closing: watch::Receiver<bool>,
    waiting: VecDeque<Arrived>,
    workers: Workers,
    connections: JoinSet<()>,
}

impl Acceptor {
    /// The network that a connection counts for; `None` for trusted proxies.
    fn network(&self, peer: SocketAddr) -> Option<IpAddr> {
        let address = peer.ip().to_canonical();
        (!self.shared.proxies.trusts(address)).then(|| network_of(address))
    }

    /// Serves a new connection, or has it wait, or closes it.
    async fn admit(&mut self, arrived: Arrived) {
        let admitted = self.limiter.admit(self.network(arrived.peer)).await;
        if let Some(limit) = admitted.as_ref().map_or_else(|limit| Some(*limit), |slot| slot.met) {
            self.shared.service.observer().met_limit(limit);
        }
        match admitted {
            Ok(slot) => self.serve(arrived, slot),
            Err(ConnectionLimit::Total) if self.waiting.len() < self.limits.waiting => self.waiting.push_back(arrived),
            Err(limit) => self.refuse(&arrived, limit),
        }
    }

    /// Serves those who wait, in their order, as far as there are slots.
    async fn admit_waiting(&mut self) {
        while let Some(arrived) = self.waiting.pop_front() {
            if arrived.at.elapsed() > self.limits.connection.timeouts.header {
                self.refuse(&arrived, ConnectionLimit::Total);
                continue;
            }
            match self.limiter.admit(self.network(arrived.peer)).await {
                Ok(slot) => self.serve(arrived, slot),
                Err(ConnectionLimit::Total) => return self.waiting.push_front(arrived),
                Err(limit) => self.refuse(&arrived, limit),
            }
        }
    }

    /// Serves all who wait, beyond the limits.
    fn admit_rest(&mut self) {
        while let Some(arrived) = self.waiting.pop_front() {
            let slot = self.limiter.admit_beyond(self.network(arrived.peer));
            self.serve(arrived, slot);
        }
    }

    fn refuse(&self, arrived: &Arrived, limit: ConnectionLimit) {
        self.shared.service.observer().refused_connection(limit);
        tracing::debug!(peer = %arrived.peer.ip(), %limit, "refused a connection");
    }

    fn serve(&mut self, arrived: Arrived, slot: Slot) {
        let (shared, tls, closing) = (Arc::clone(&self.shared), self.tls.clone(), self.closing.clone());
        let (handshake, peer) = (self.limits.handshake, arrived.peer.ip().to_canonical());
        let Ok(stream) = arrived.stream.into_std() else { return };
        let connection = async move {
            let Ok(stream) = TcpStream::from_std(stream) else { return };
            let observer = shared.service.observer();
            observer.connected();
            tokio::select! {
                biased;
                () = serve_stream(stream, peer, &shared, tls.as_deref(), handshake, &slot.state, closing) => {}
                () = slot.state.closed() => {}
            }
            observer.disconnected();
            if let Some((reason, cause)) = slot.state.given_up() {
                observer.given_up(reason, cause);
                tracing::debug!(%peer, %reason, %cause, "gave up a connection");
            }
        };
        self.connections.spawn_on(connection, self.workers.take_turn());
    }
}

async fn serve_stream(
    stream: TcpStream,
    peer: IpAddr,
    shared: &Arc<Shared>,
    tls: Option<&Tls>,
    handshake: Duration,
    state: &ConnectionState,
    closing: watch::Receiver<bool>,
) {
    if let Err(error) = prepare(&stream) {
        tracing::debug!(%error, "an option of a connection was refused");
    }
    let (shared, state) = (Arc::clone(shared), state.clone());
    let stream = PacedStream::new(stream, shared.limits.pace, state.clone(), discard_unsent);
    match tls {
        None => serve_connection(stream, peer, shared, state, closing).await,
        Some(tls) => match tls::handshake(tls, stream, handshake).await {
            Ok(stream) => serve_connection(stream, peer, shared, state, closing).await,
            Err(error) => {
                if error.kind() == io::ErrorKind::TimedOut {
                    state.expire(GivenUp::Unfinished);
                }
                tracing::debug!(%peer, %error, "a TLS handshake failed");
            }
        },
    }
}

/// Closing a connection ends it at once, whatever the system still holds for its caller.
fn discard_unsent(stream: &TcpStream) {
    if let Err(error) = stream.set_zero_linger() {
        tracing::debug!(%error, "SO_LINGER was refused");
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
