//! Accepts connections until the server stops, then waits for the remaining ones.
//!
//! # Stopping
//!
//! A stopping server accepts the connections in the queue, and responds with `Connection: close`. Idle callers get two
//! seconds for a last request. Everything ends after the drain time. Listeners that share an address (`--reuse-port`)
//! first drop new connections by a packet filter, because closing a listener would refuse the callers in its queue.

use std::future::{Future, ready};
use std::io;
use std::net::{self, IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::api::Service;
use crate::api::observe::ConnectionLimit;
use crate::model::network_of;
use crate::serve::connection::address::TrustedProxies;
use crate::serve::connection::dispatch::Dispatcher;
use crate::serve::connection::http::{ServerContext, serve_connection};
use crate::serve::connection::limits::{
    ADMISSION_RETRY, Connection, Connections, Limits, NoSlot, Slot,
};
use crate::serve::connection::listen::{drop_new, prepare};
use crate::serve::connection::permits::Permits;
use crate::serve::connection::resources::Workers;
use crate::serve::connection::tls::Tls;

/// The pause after a failure to accept, such as too many open files. In the meantime a connection ends.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A server that is ready to run.
pub struct Server {
    /// The socket on which it listens.
    pub listener: TcpListener,
    /// The API.
    pub service: Arc<Service>,
    /// The proxies whose header names the caller's address.
    pub proxies: TrustedProxies,
    /// The certificate, for HTTPS.
    pub tls: Option<Arc<Tls>>,
    /// The limits of connections.
    pub limits: Limits,
    /// Whether another server may listen on the same address when this one stops.
    pub shares_address: bool,
}

impl Server {
    /// Serves until `stop` resolves. Then it accepts the queued connections, closes the listener and waits for all
    /// connections. Returns the number of connections that were cut off at the end of the drain time.
    pub async fn run(self, stop: impl Future<Output = ()>) -> io::Result<usize> {
        let Server {
            listener,
            service,
            proxies,
            tls,
            limits,
            shares_address,
        } = self;
        let dispatcher = Dispatcher::new(service, Permits::new(&limits), Handle::current());
        let shared = Arc::new(ServerContext {
            dispatcher,
            proxies,
            tls,
        });
        let (close, closing) = watch::channel(false);
        let mut acceptor = Acceptor {
            accepted: None,
            shared,
            slots: Connections::new(limits),
            closing,
            workers: Workers::start()?,
            connections: JoinSet::new(),
        };
        let slots = Arc::clone(&acceptor.slots);
        tokio::select! {
            () = stop => {}
            () = slots.close_all_overdue() => {}
            () = async { loop { acceptor.serve_next(&listener).await } } => {}
        }
        // Closing the listener resets the connections in its queue, so accept them first.
        if shares_address && let Err(error) = drop_new(&listener) {
            tracing::warn!(%error, "connections may be reset while the listener closes");
        }
        // tokio has not heard of all of them yet.
        let listener = listener.into_std()?;
        let queued = std::iter::from_fn(|| {
            let (stream, peer) = listener.accept().ok()?;
            stream.set_nonblocking(true).ok()?;
            Some((stream, peer))
        });
        for (stream, peer) in acceptor.accepted.take().into_iter().chain(queued) {
            let slot = acceptor.slots.enter_always(acceptor.network(peer));
            acceptor.serve(stream, peer, ready(Some(slot)));
        }
        drop(listener);
        let mut connections = acceptor.connections;
        let _ = close.send(true);
        let drained = tokio::time::timeout(limits.drain, async {
            while connections.join_next().await.is_some() {}
        });
        Ok(if drained.await.is_err() {
            connections.len()
        } else {
            0
        })
    }
}

struct Acceptor {
    /// A connection that waits for a slot.
    accepted: Option<(net::TcpStream, SocketAddr)>,
    shared: Arc<ServerContext>,
    slots: Arc<Connections>,
    closing: watch::Receiver<bool>,
    workers: Workers,
    connections: JoinSet<()>,
}

impl Acceptor {
    /// Accepts the next connection, and serves it as soon as there is a slot. It can be cancelled without losing it.
    async fn serve_next(&mut self, listener: &TcpListener) {
        let observer = self.shared.dispatcher.service.observer();
        if self.accepted.is_none() {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    self.accepted = stream.into_std().ok().map(|stream| (stream, peer))
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection could not be accepted");
                    self.slots.make_room(ConnectionLimit::Total, None);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        let Some((_, peer)) = self.accepted else {
            return;
        };
        let mut reached = None;
        let slot = loop {
            let NoSlot { limit, is_refused } = match self.slots.enter(self.network(peer)) {
                Ok(slot) => break Some(slot),
                Err(full) => full,
            };
            if reached.replace(limit).is_none() {
                observer.reached_limit(limit);
            }
            if is_refused {
                break None;
            }
            // A connection that is being closed still holds its file.
            let _ = tokio::time::timeout(ADMISSION_RETRY, self.slots.freed()).await;
        };
        if let Some((stream, peer)) = self.accepted.take() {
            match slot {
                Some(slot) => self.serve(stream, peer, ready(Some(slot))),
                None => match self.slots.enter_late(self.network(peer)) {
                    Some(slot) => self.serve(stream, peer, slot),
                    None => self
                        .shared
                        .dispatcher
                        .service
                        .observer()
                        .refused_connection(),
                },
            }
        }
    }

    /// The network of a peer for the limits; `None` for trusted proxies.
    fn network(&self, peer: SocketAddr) -> Option<IpAddr> {
        let address = peer.ip().to_canonical();
        (!self.shared.proxies.trusts(address)).then(|| network_of(address))
    }

    /// Serves a connection as soon as there is a slot.
    fn serve(
        &mut self,
        stream: net::TcpStream,
        peer: SocketAddr,
        slot: impl Future<Output = Option<Slot>> + Send + 'static,
    ) {
        let shared = Arc::clone(&self.shared);
        let closing = self.closing.clone();
        let peer = peer.ip().to_canonical();
        // Forget those that have ended.
        while self.connections.try_join_next().is_some() {}
        let connection = async move {
            let Ok(stream) = TcpStream::from_std(stream) else {
                return;
            };
            let observer = shared.dispatcher.service.observer();
            let Some(slot) = slot.await else {
                observer.refused_connection();
                return;
            };
            observer.connected();
            tokio::select! {
                biased;
                ended = serve_stream(stream, peer, &shared, &slot.connection, closing) => {
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
        self.connections
            .spawn_on(connection, self.workers.next_worker());
    }
}

async fn serve_stream(
    stream: TcpStream,
    peer: IpAddr,
    shared: &Arc<ServerContext>,
    connection: &Arc<Connection>,
    closing: watch::Receiver<bool>,
) -> io::Result<()> {
    if let Err(error) = prepare(&stream) {
        tracing::debug!(%error, "a socket option could not be set");
    }
    match &shared.tls {
        None => serve_connection(stream, peer, shared, connection, closing).await,
        Some(tls) => {
            serve_connection(
                tls.acceptor().accept(stream).await?,
                peer,
                shared,
                connection,
                closing,
            )
            .await
        }
    }
}
