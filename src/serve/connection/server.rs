//! Accepts connections until the server stops, then waits for the remaining ones.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::api::Service;
use crate::api::observe::ConnectionLimit;
use crate::model::network::network_of;
use crate::serve::connection::address::TrustedProxies;
use crate::serve::connection::dispatch::Dispatcher;
use crate::serve::connection::exchange::{ServerContext, serve_connection};
use crate::serve::connection::limits::{CHECK_EVERY, Connection, Connections, Full, Limits, Slot};
use crate::serve::connection::listen::{drop_new, prepare};
use crate::serve::connection::long_polls::LongPolls;
use crate::serve::connection::permits::Permits;
use crate::serve::connection::tls::Tls;
use crate::serve::connection::workers::Workers;

/// The pause after a failure to accept, such as too many open files. In the meantime connections may end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause before another attempt to admit a connection.
const ADMISSION_RETRY: Duration = Duration::from_millis(50);

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
        let strict_transport = tls.is_some();
        let permits = Permits::new(limits.exports, limits.exports_per_key);
        let long_polls = LongPolls::new(limits.long_polls, limits.long_polls_per_key);
        let dispatcher = Dispatcher::new(permits, long_polls, Handle::current());
        let shared = Arc::new(ServerContext { service, dispatcher, proxies, strict_transport });
        let weak = Arc::downgrade(&shared);
        shared.service.subscribe(Box::new(move || {
            let shared = weak.upgrade();
            shared.inspect(|shared| shared.dispatcher.long_polls().notify(&shared.service)).is_some()
        }));
        let (close, closing) = watch::channel(false);
        let (slots, workers, connections) = (Connections::new(limits), Workers::start()?, JoinSet::new());
        let mut acceptor = Acceptor { shared, tls, slots, closing, workers, connections };
        let mut check = tokio::time::interval(CHECK_EVERY);
        let mut stop = std::pin::pin!(stop);
        let mut waiting = None;
        loop {
            let (stream, peer) = tokio::select! {
                () = stop.as_mut() => break,
                accepted = accept(&listener) => accepted,
                _ = check.tick() => {
                    acceptor.slots.close_overdue();
                    while acceptor.connections.try_join_next().is_some() {}
                    continue;
                }
            };
            tokio::select! {
                () = stop.as_mut() => {
                    waiting = Some((stream, peer));
                    break;
                }
                slot = acceptor.admit(peer) => {
                    if let Some(slot) = slot {
                        acceptor.serve(stream, peer, slot);
                    }
                }
            }
        }
        // Closing the listener resets the connections in its queue, so accept them first.
        if shares_address && let Err(error) = drop_new(&listener) {
            tracing::warn!(%error, "connections may be reset while the listener closes");
        }
        while let Some((stream, peer)) = match waiting.take() {
            Some(waiting) => Some(waiting),
            None => accept_queued(&listener).await,
        } {
            let slot = acceptor.slots.enter_always(acceptor.network(peer));
            acceptor.serve(stream, peer, slot);
        }
        drop(listener);
        let _ = close.send(true);
        let Acceptor { mut connections, workers: _workers, .. } = acceptor;
        let drained = tokio::time::timeout(limits.drain, async { while connections.join_next().await.is_some() {} });
        Ok(if drained.await.is_err() { connections.len() } else { 0 })
    }
}

struct Acceptor {
    shared: Arc<ServerContext>,
    tls: Option<Arc<Tls>>,
    slots: Arc<Connections>,
    closing: watch::Receiver<bool>,
    workers: Workers,
    connections: JoinSet<()>,
}

impl Acceptor {
    /// The network of a peer for the limits; `None` for trusted proxies.
    fn network(&self, peer: SocketAddr) -> Option<IpAddr> {
        let address = peer.ip().to_canonical();
        (!self.shared.proxies.trusts(address)).then(|| network_of(address))
    }

    /// Waits for a slot for a new connection. Returns `None` if its address has too many connections.
    async fn admit(&self, peer: SocketAddr) -> Option<Slot> {
        let (network, observer) = (self.network(peer), self.shared.service.observer());
        let mut reached = None;
        loop {
            let Full { limit, closed } = match self.slots.enter(network) {
                Ok(slot) => return Some(slot),
                Err(full) => full,
            };
            if reached.replace(limit).is_none() {
                observer.reached_limit(limit);
            }
            // A connection that is being closed still holds its file.
            let _ = match (closed, limit) {
                (Some(closed), _) => tokio::time::timeout(ADMISSION_RETRY, closed.ended()).await,
                (None, ConnectionLimit::Total) => tokio::time::timeout(ADMISSION_RETRY, self.slots.freed()).await,
                (None, ConnectionLimit::Address) => {
                    observer.refused_connection();
                    tracing::debug!(peer = %peer.ip(), "refused a connection");
                    return None;
                }
            };
        }
    }

    fn serve(&mut self, stream: TcpStream, peer: SocketAddr, slot: Slot) {
        let (shared, tls, closing) = (Arc::clone(&self.shared), self.tls.clone(), self.closing.clone());
        let peer = peer.ip().to_canonical();
        let Ok(stream) = stream.into_std() else { return };
        let connection = async move {
            let Ok(stream) = TcpStream::from_std(stream) else { return };
            let observer = shared.service.observer();
            observer.connected();
            tokio::select! {
                biased;
                ended = serve_stream(stream, peer, &shared, tls.as_deref(), &slot.connection, closing) => {
                    if let Err(error) = ended {
                        tracing::debug!(%peer, %error, "a connection broke");
                    }
                }
                () = slot.connection.closed() => {}
            }
            observer.disconnected();
            if let Some((reason, cause)) = slot.connection.close_reason() {
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
    connection: &Arc<Connection>,
    closing: watch::Receiver<bool>,
) -> io::Result<()> {
    if let Err(error) = prepare(&stream) {
        tracing::debug!(%error, "a socket option could not be set");
    }
    match tls {
        None => serve_connection(stream, peer, shared, connection, closing).await,
        Some(tls) => serve_connection(tls.acceptor().accept(stream).await?, peer, shared, connection, closing).await,
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
