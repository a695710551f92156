//! The listener: accepts connections until it is told to stop, then lets what is in flight finish.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::connection::{ConnectionLimits, Shared, serve_connection};
use super::exports::Exports;
use crate::api::Service;

/// What a server may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once; further ones wait in the listener's queue.
    pub connections: usize,
    /// What one connection may use.
    pub connection: ConnectionLimits,
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
            connection: ConnectionLimits {
                header_timeout: Duration::from_secs(10),
                header_bytes: 16 << 10,
                headers: 64,
            },
            drain: Duration::from_secs(30),
            exports: 8,
            exports_per_key: 2,
            export_cache_bytes: 256 << 20,
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
    limits: Limits,
}

impl Server {
    /// A server of an API on a listener.
    pub fn new(listener: TcpListener, service: Arc<Service>, limits: Limits) -> Server {
        let exports = Exports::new(limits.exports, limits.exports_per_key, limits.export_cache_bytes);
        Server { listener, shared: Arc::new(Shared { service, exports, limits: limits.connection }), limits }
    }

    /// Serves until `stop` resolves, then closes the listener and lets what is in flight finish. Returns how many
    /// connections were cut off at the end of the drain time.
    pub async fn run(self, stop: impl Future<Output = ()>) -> usize {
        let Server { listener, shared, limits } = self;
        let (close, closing) = watch::channel(false);
        let places = Arc::new(Semaphore::new(limits.connections));
        let mut connections = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = stop.as_mut() => break,
                accepted = accept(&listener, &places) => accepted,
            };
            let Some((stream, peer, place)) = accepted else { break };
            let shared = Arc::clone(&shared);
            let closing = closing.clone();
            connections.spawn(async move {
                serve_connection(stream, peer.ip(), shared, closing).await;
                drop(place);
            });
            while connections.try_join_next().is_some() {}
        }
        drop(listener);
        // Every connection may be gone already.
        let _ = close.send(true);
        let drained = tokio::time::timeout(limits.drain, async { while connections.join_next().await.is_some() {} });
        if drained.await.is_err() { connections.len() } else { 0 }
    }
}

type Accepted = (tokio::net::TcpStream, std::net::SocketAddr, tokio::sync::OwnedSemaphorePermit);

/// The next connection, once there is a place for it. `None` never comes while the semaphore is open.
async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> Option<Accepted> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Answers are written whole: waiting for more to send only delays them.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "TCP_NODELAY was refused");
                }
                return Some((stream, peer, place));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}
