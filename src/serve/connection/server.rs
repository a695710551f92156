//! Accepts connections until the server stops, then waits for the remaining ones.

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
use crate::api::observe::{CloseReason, ConnectionLimit};
use crate::model::network::network_of;
use crate::serve::connection::address::TrustedProxies;
use crate::serve::connection::dispatch::Dispatcher;
use crate::serve::connection::exchange::{ConnectionLimits, ServerContext, serve_connection};
use crate::serve::connection::guard::Timeouts;
use crate::serve::connection::limiter::{ConnectionLimiter, Slot};
use crate::serve::connection::listen::{drop_new, prepare};
use crate::serve::connection::long_polls::LongPolls;
use crate::serve::connection::pace::{Pace, PacedStream};
use crate::serve::connection::permits::Permits;
use crate::serve::connection::state::ConnectionState;
use crate::serve::connection::tls::{self, Tls};
use crate::serve::connection::workers::Workers;

/// The limits of a server. All programs use the defaults, which suit the design size; tests use smaller ones.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names explain the other fields")]
pub struct Limits {
    /// Concurrent connections. For a further one an idle, unfinished, slow or long-polling connection is closed. If
    /// there is none, the new connection waits.
    pub connections: usize,
    /// Connections that may wait for a slot; further ones are closed.
    pub waiting: usize,
    /// Concurrent connections of one address (IPv6: one /64), except trusted proxies. For a further one an idle,
    /// unfinished, slow or long-polling connection of this address is closed. If there is none, the new connection is
    /// closed.
    pub connections_per_address: usize,
    pub connection: ConnectionLimits,
    /// The time limit for a TLS handshake.
    pub handshake: Duration,
    /// The time for open connections to finish after the listener is closed.
    pub drain: Duration,
    pub exports: usize,
    pub exports_per_key: usize,
    /// Concurrent long-polling requests; further ones are answered at once.
    pub long_polls: usize,
    pub long_polls_per_key: usize,
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
            long_polls: 1024,
            long_polls_per_key: 256,
        }
    }
}

/// The pause after a failure to accept, such as too many open files. In the meantime connections may end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The time between two attempts to close a connection for a waiting one.
const EVICTION_RETRY: Duration = Duration::from_millis(50);

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
    /// Creates a server of an API on a listener.
    pub fn new(
        listener: TcpListener,
        service: Arc<Service>,
        proxies: TrustedProxies,
        tls: Option<Arc<Tls>>,
        limits: Limits,
    ) -> Server {
        Server { listener, service, proxies, tls, limits, shares_address: false }
    }

    /// Sets whether another server may listen on the same address when this one stops.
    pub fn sharing_address(mut self, shares_address: bool) -> Server {
        self.shares_address = shares_address;
        self
    }

    /// Serves until `stop` resolves. Then it accepts the queued connections, closes the listener and waits for all
    /// connections. Returns the number of connections that were cut off at the end of the drain time.
    pub async fn run(self, stop: impl Future<Output = ()>) -> io::Result<usize> {
        let Server { listener, service, proxies, tls, limits, shares_address } = self;
        let (connection, strict_transport) = (limits.connection, tls.is_some());
        let permits = Permits::new(limits.exports, limits.exports_per_key);
        let long_polls = LongPolls::new(limits.long_polls, limits.long_polls_per_key);
        let dispatcher = Dispatcher::new(permits, long_polls, Handle::current());
        let shared = Arc::new(ServerContext { service, dispatcher, limits: connection, proxies, strict_transport });
        let weak = Arc::downgrade(&shared);
        shared.service.subscribe(Box::new(move || {
            let shared = weak.upgrade();
            shared.inspect(|shared| shared.dispatcher.long_polls().notify(&shared.service)).is_some()
        }));
        let (close, closing) = watch::channel(false);
        let limiter = ConnectionLimiter::new(limits.connections, limits.connections_per_address);
        let (workers, waiting, connections) = (Workers::start()?, VecDeque::new(), JoinSet::new());
        let mut acceptor = Acceptor { shared, tls, limits, limiter, closing, waiting, workers, connections };
        let mut stop = std::pin::pin!(stop);
        loop {
            let some_wait = !acceptor.waiting.is_empty();
            let new = tokio::select! {
                () = stop.as_mut() => break,
                (stream, peer) = accept(&listener) => Some(NewConnection { stream, peer, at: Instant::now() }),
                () = acceptor.limiter.freed(), if some_wait => None,
                () = tokio::time::sleep(EVICTION_RETRY), if some_wait => None,
            };
            acceptor.admit_waiting().await;
            if let Some(new) = new {
                acceptor.admit(new).await;
            }
            while acceptor.connections.try_join_next().is_some() {}
        }
        // Closing the listener resets the connections in its queue, so accept them first.
        if shares_address && let Err(error) = drop_new(&listener) {
            tracing::warn!(%error, "connections may be reset while the listener closes");
        }
        while let Some((stream, peer)) = accept_queued(&listener).await {
            acceptor.waiting.push_back(NewConnection { stream, peer, at: Instant::now() });
        }
        acceptor.admit_rest();
        drop(listener);
        let _ = close.send(true);
        let Acceptor { mut connections, workers: _workers, .. } = acceptor;
        let drained = tokio::time::timeout(limits.drain, async { while connections.join_next().await.is_some() {} });
        Ok(if drained.await.is_err() { connections.len() } else { 0 })
    }
}

struct NewConnection {
    stream: TcpStream,
    peer: SocketAddr,
    at: Instant,
}

/// Admits connections. It never waits for a caller: a connection without a slot is queued, and later connections of
/// networks with fewer connections may get one before it.
struct Acceptor {
    shared: Arc<ServerContext>,
    tls: Option<Arc<Tls>>,
    limits: Limits,
    limiter: Arc<ConnectionLimiter>,
    closing: watch::Receiver<bool>,
    waiting: VecDeque<NewConnection>,
    workers: Workers,
    connections: JoinSet<()>,
}

impl Acceptor {
    /// The network of a peer for the limits; `None` for trusted proxies.
    fn network(&self, peer: SocketAddr) -> Option<IpAddr> {
        let address = peer.ip().to_canonical();
        (!self.shared.proxies.trusts(address)).then(|| network_of(address))
    }

    /// Serves a new connection, queues it, or closes it.
    async fn admit(&mut self, new: NewConnection) {
        let admitted = self.limiter.admit(self.network(new.peer)).await;
        if let Some(limit) = admitted.as_ref().map_or_else(|limit| Some(*limit), |slot| slot.reached) {
            self.shared.service.observer().reached_limit(limit);
        }
        match admitted {
            Ok(slot) => self.serve(new, slot),
            Err(ConnectionLimit::Total) if self.waiting.len() < self.limits.waiting => self.waiting.push_back(new),
            Err(limit) => self.refuse(&new, limit),
        }
    }

    /// Serves waiting connections in their order, as long as there are slots.
    async fn admit_waiting(&mut self) {
        while let Some(new) = self.waiting.pop_front() {
            if new.at.elapsed() > self.limits.connection.timeouts.header {
                self.refuse(&new, ConnectionLimit::Total);
                continue;
            }
            match self.limiter.admit(self.network(new.peer)).await {
                Ok(slot) => self.serve(new, slot),
                Err(ConnectionLimit::Total) => return self.waiting.push_front(new),
                Err(limit) => self.refuse(&new, limit),
            }
        }
    }

    fn admit_rest(&mut self) {
        while let Some(new) = self.waiting.pop_front() {
            let slot = self.limiter.admit_always(self.network(new.peer));
            self.serve(new, slot);
        }
    }

    fn refuse(&self, new: &NewConnection, limit: ConnectionLimit) {
        self.shared.service.observer().refused_connection(limit);
        tracing::debug!(peer = %new.peer.ip(), %limit, "refused a connection");
    }

    fn serve(&mut self, new: NewConnection, slot: Slot) {
        let (shared, tls, closing) = (Arc::clone(&self.shared), self.tls.clone(), self.closing.clone());
        let (handshake, peer) = (self.limits.handshake, new.peer.ip().to_canonical());
        let Ok(stream) = new.stream.into_std() else { return };
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
            if let Some((reason, cause)) = slot.state.close_reason() {
                observer.closed_connection(reason, cause);
                tracing::debug!(%peer, %reason, %cause, "closed a connection");
            }
        };
        self.connections.spawn_on(connection, self.workers.next_worker());
    }
}

async fn serve_stream(
    stream: TcpStream,
    peer: IpAddr,
    shared: &Arc<ServerContext>,
    tls: Option<&Tls>,
    handshake: Duration,
    state: &ConnectionState,
    closing: watch::Receiver<bool>,
) {
    if let Err(error) = prepare(&stream) {
        tracing::debug!(%error, "a socket option could not be set");
    }
    let (shared, state) = (Arc::clone(shared), state.clone());
    let stream = PacedStream::new(stream, shared.limits.pace, state.clone(), discard_unsent);
    match tls {
        None => serve_connection(stream, peer, shared, state, closing).await,
        Some(tls) => match tls::handshake(tls, stream, handshake).await {
            Ok(stream) => serve_connection(stream, peer, shared, state, closing).await,
            Err(error) => {
                if error.kind() == io::ErrorKind::TimedOut {
                    state.expire(CloseReason::Unfinished);
                }
                tracing::debug!(%peer, %error, "a TLS handshake failed");
            }
        },
    }
}

/// Makes the kernel drop the unsent bytes when the connection is closed.
fn discard_unsent(stream: &TcpStream) {
    if let Err(error) = stream.set_zero_linger() {
        tracing::debug!(%error, "SO_LINGER could not be set");
    }
}

/// Accepts the next connection. Retries after errors.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Accepts a connection from the listener's queue, if there is one.
async fn accept_queued(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    let accepted: Option<io::Result<_>> = tokio::select! {
        biased;
        accepted = listener.accept() => Some(accepted),
        () = std::future::ready(()) => None,
    };
    accepted?.ok()
}
