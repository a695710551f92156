//! The limits of connections, and the order in which they are closed when there are too many.
//!
//! | cost | at most | beyond that |
//! | --- | --- | --- |
//! | connections | 1,024, or fewer if fewer files may be open | another one is closed, or the new one waits |
//! | connections of an address | 64, except trusted proxies | another one of the address is closed, or the new one |
//! | size of a request's head | 16 KiB, 64 headers | 431, then closed |
//! | time until the head is complete | 1 minute, with the TLS handshake or the idling before | closed |
//! | size of a request's body | 0: none is read | 400, then closed |
//! | time to read a response | 10 minutes more than at 64 KiB/s | closed |
//! | time in which the caller receives nothing of a response | 30 seconds | the kernel closes it |
//! | unsent part of a response in the kernel | 16 KiB | the server waits |
//! | long polls | 1,024, 256 of a key | answered at once |
//! | exports being built | 8, 2 of a key | wait for 30 seconds, then 429 |
//! | time after the server's stop | 30 seconds | cut off |
//!
//! # Which one is closed
//!
//! A connection belongs to its address (an IPv6 /64) until its first usable key is known, then to the key of its last
//! usable request. Those of trusted proxies belong to nobody before.
//!
//! Stream and requests set a connection's phase: awaiting a request, answering, long-polling, sending, or closed. Each
//! phase has a time since which the caller keeps the server waiting. Sent bytes move this time forward by what 64 KiB/s
//! would take, but not beyond now. Once a second the limits of time close those that are over.
//!
//! A new connection at a limit closes another one. It closes one of its own address if that is at its limit, or if no
//! owner has more connections:
//!
//! 1. one without a key whose caller has kept the server waiting for a second;
//! 2. one without a key for which this second is not over, of an address that has more of them than the new one's;
//! 3. one with a key whose caller has kept the server waiting for a second;
//! 4. a long poll that has lasted 10 seconds. It gets its empty page.
//!
//! Of several, the owner with the most connections loses the one that has waited longest. A connection whose request is
//! being answered is never closed. If there is no other, the new one waits in the kernel's queue. If it could close
//! only one of its own address, it waits aside for some seconds, then it is refused. So a crowd excludes only itself.
//!
//! Bytes count as sent once the kernel has them, so its buffer must stay small (`TCP_NOTSENT_LOWAT`). Callers
//! that receive nothing for 30 seconds are left to the kernel (`TCP_USER_TIMEOUT`), which also frees what it still
//! holds for closed connections.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use crate::api::observe::{CloseCause, CloseReason, ConnectionLimit, WaitEnd};
use crate::model::KeyHash;

/// The largest head of a request, in bytes. hyper requires at least 8 KiB.
pub const MAX_HEAD_BYTES: usize = 16 << 10;
/// The maximum number of headers in a request.
pub const MAX_HEADERS: usize = 64;
/// A caller that reads at this rate does not keep the server waiting, in bytes per second. Half a megabit is less than
/// any office or data center has.
const GOOD_RATE: f64 = 65_536.0;
/// The time for which a caller may keep the server waiting before its connection is closed for a new one. Callers need
/// it to send their first request, or the next one.
const GRACE: Duration = Duration::from_secs(1);
/// The time between two checks of the time limits.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// The longest pause before another attempt to admit a connection.
pub const ADMISSION_RETRY: Duration = Duration::from_millis(50);
/// Of so many connections, one more may wait for others of its address, and at least one.
const LATE_SHARE: usize = 16;
/// A reached limit is logged again only if it was not reached for this time.
const QUIET_TIME: Duration = Duration::from_secs(60);

/// The limits of a server. All programs use the defaults, which suit the design size; tests use smaller ones.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Concurrent connections.
    pub connections: usize,
    /// Concurrent connections of one address (IPv6: one /64), except trusted proxies.
    pub connections_per_address: usize,
    /// The time to send the head of a request, from the start of the connection or the end of the last response.
    pub request: Duration,
    /// The time by which the reading of a response may be behind [`GOOD_RATE`].
    pub response: Duration,
    /// The time for open connections to finish when the server stops.
    pub drain: Duration,
    /// Exports that are built concurrently.
    pub exports: usize,
    /// The same of one key.
    pub exports_per_key: usize,
    /// Concurrent long polls.
    pub long_polls: usize,
    /// The same of one key.
    pub long_polls_per_key: usize,
    /// The time in which a long poll is not ended for a new connection. So pages of one address do not displace each
    /// other without end.
    pub long_poll_grace: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 1024,
            connections_per_address: 64,
            request: Duration::from_secs(60),
            response: Duration::from_secs(600),
            drain: Duration::from_secs(30),
            exports: 8,
            exports_per_key: 2,
            long_polls: 1024,
            long_polls_per_key: 256,
            long_poll_grace: Duration::from_secs(10),
        }
    }
}

/// The order in which connections are closed for new ones: whether it is a long poll, has a key, and is within its grace
/// period; then the number of connections of its owner, and the time for which its caller has kept the server waiting.
type ClosingOrder = (bool, bool, bool, Reverse<usize>, Reverse<Duration>);

/// The owner of a connection: the key of its last usable request, or else its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Owner {
    Address(IpAddr),
    Key(KeyHash),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    AwaitingRequest,
    Answering,
    LongPolling,
    Sending,
    Closed,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// The time since which the caller has kept the server waiting in this phase.
    since: Instant,
    owner: Option<Owner>,
    closed: Option<(CloseReason, CloseCause)>,
}

/// An open connection. Its stream and its requests set the phase; [`Connections`] closes it.
#[derive(Debug)]
pub struct Connection {
    network: Option<IpAddr>,
    state: Mutex<State>,
    closed: Notify,
    woken: Notify,
}

impl Default for Connection {
    fn default() -> Connection {
        Connection::of(None)
    }
}

impl Connection {
    fn of(network: Option<IpAddr>) -> Connection {
        let state = State {
            phase: Phase::AwaitingRequest,
            since: Instant::now(),
            owner: network.map(Owner::Address),
            closed: None,
        };
        Connection {
            network,
            state: Mutex::new(state),
            closed: Notify::new(),
            woken: Notify::new(),
        }
    }

    /// Goes from one phase to another. Returns false, and does nothing, if the connection is not in the first one, such as
    /// after it was closed. A connection whose request is being answered is never closed.
    fn pass_if(&self, from: Phase, to: Phase) -> bool {
        let mut state = self.state.lock();
        if state.phase != from {
            return false;
        }
        state.phase = to;
        state.since = Instant::now();
        true
    }

    /// Notes that a request is complete. Returns false if the connection was closed before; the request then gets no
    /// response.
    pub fn start_answer(&self) -> bool {
        self.pass_if(Phase::AwaitingRequest, Phase::Answering)
    }

    /// Notes that the request of a key begins to wait for a change.
    pub fn start_long_poll(&self, key: KeyHash) {
        self.state.lock().owner = Some(Owner::Key(key));
        self.pass_if(Phase::Answering, Phase::LongPolling);
    }

    /// Notes that the request no longer waits. Does nothing if the connection was closed: it is then being answered.
    pub fn finish_long_poll(&self) {
        self.pass_if(Phase::LongPolling, Phase::Answering);
    }

    /// Notes that the response is ready to be sent, and the key of the request if it is usable.
    pub fn finish_answer(&self, key: Option<KeyHash>) {
        if let Some(key) = key {
            self.state.lock().owner = Some(Owner::Key(key));
        }
        self.pass_if(Phase::Answering, Phase::Sending);
    }

    /// Notes sent bytes of a response.
    pub fn note_sent(&self, bytes: usize) {
        let mut state = self.state.lock();
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        state.since =
            Instant::now().min(state.since + Duration::from_secs_f64(f64::from(bytes) / GOOD_RATE));
    }

    /// Notes that the response is sent. Does nothing if none was being sent: hyper also flushes at other times.
    pub fn finish_sending(&self) {
        self.pass_if(Phase::Sending, Phase::AwaitingRequest);
    }

    /// Whether a request is being answered, or its response is being sent.
    pub fn is_answering(&self) -> bool {
        matches!(
            self.state.lock().phase,
            Phase::Answering | Phase::LongPolling | Phase::Sending
        )
    }

    /// Notes that the caller closed its sending half. A long poll ends, since its caller may be gone.
    pub fn note_half_closed(&self) {
        self.woken.notify_one();
    }

    /// Resolves when a long poll must be answered early. Returns the cause.
    pub async fn woken(&self) -> WaitEnd {
        self.woken.notified().await;
        if self.close_reason().is_some() {
            WaitEnd::Capacity
        } else {
            WaitEnd::Left
        }
    }

    /// Resolves when the connection must be dropped.
    pub async fn closed(&self) {
        self.closed.notified().await;
    }

    /// The reason and cause, if the server closed the connection.
    pub fn close_reason(&self) -> Option<(CloseReason, CloseCause)> {
        self.state.lock().closed
    }

    /// Closes the connection. A long poll is answered first.
    fn close(&self, state: &mut State, cause: CloseCause) {
        let reason = match state.phase {
            Phase::LongPolling => CloseReason::Waiting,
            Phase::Sending => CloseReason::Slow,
            _ => CloseReason::Idle,
        };
        state.closed = Some((reason, cause));
        if reason == CloseReason::Waiting {
            state.phase = Phase::Answering;
            self.woken.notify_one();
        } else {
            state.phase = Phase::Closed;
            self.closed.notify_one();
        }
    }
}

impl State {
    /// The position among connections that are closed for a new one; `None` if this one must stay. `counts` has the
    /// number of connections of each owner, `own` is that of the new one's address.
    fn closing_order(
        &self,
        counts: &HashMap<Option<Owner>, usize>,
        own: usize,
        long_poll_grace: Duration,
    ) -> Option<ClosingOrder> {
        let count = counts.get(&self.owner).copied().unwrap_or_default();
        let waited = self.since.elapsed();
        let has_key = matches!(self.owner, Some(Owner::Key(_)));
        let grace = match self.phase {
            Phase::Answering | Phase::Closed => return None,
            Phase::LongPolling => long_poll_grace,
            Phase::AwaitingRequest | Phase::Sending => GRACE,
        };
        let is_in_grace = waited < grace;
        let is_of_crowd = !has_key && count > own.max(1);
        let order = (
            self.phase == Phase::LongPolling,
            has_key,
            is_in_grace,
            Reverse(count),
            Reverse(waited),
        );
        (!is_in_grace || is_of_crowd).then_some(order)
    }
}

/// The open connections of a server.
#[derive(Debug)]
pub struct Connections {
    limits: Limits,
    table: Mutex<Table>,
    freed: Notify,
    /// Connections that wait for others of their address.
    late: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Table {
    open: Vec<Arc<Connection>>,
    /// The time at which each limit was last reached.
    reached: HashMap<ConnectionLimit, Instant>,
}

/// The place of an open connection. Dropping it frees it.
#[derive(Debug)]
pub struct Slot {
    /// The connection.
    pub connection: Arc<Connection>,
    connections: Arc<Connections>,
}

/// A limit was reached, so there is no slot yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSlot {
    /// The limit.
    pub limit: ConnectionLimit,
    /// Whether the new one may close only connections of its address, and none of them can be closed. Otherwise there
    /// will be a slot, at the latest when a response is sent.
    pub is_refused: bool,
}

impl Connections {
    /// No connections, and their limits.
    pub fn new(limits: Limits) -> Arc<Connections> {
        Arc::new(Connections {
            limits,
            table: Mutex::default(),
            freed: Notify::new(),
            late: Arc::new(Semaphore::new((limits.connections / LATE_SHARE).max(1))),
        })
    }

    /// Returns a slot for a new connection of a network, or closes another one, whose slot is then free. `None`, for
    /// trusted proxies, has no limit per address.
    pub fn enter(self: &Arc<Self>, network: Option<IpAddr>) -> Result<Slot, NoSlot> {
        let mut table = self.table.lock();
        let limit = if network.is_some()
            && table.count_of(network) >= self.limits.connections_per_address
        {
            ConnectionLimit::Address
        } else if table.open.len() >= self.limits.connections {
            ConnectionLimit::Total
        } else {
            return Ok(self.add(&mut table, network));
        };
        drop(table);
        Err(self.make_room(limit, network))
    }

    /// Closes a connection because a limit is reached, which may be that of open files.
    pub fn make_room(&self, limit: ConnectionLimit, network: Option<IpAddr>) -> NoSlot {
        let mut table = self.table.lock();
        table.log(limit, network);
        let counts = table.count_by_owner();
        let own = counts.get(&network.map(Owner::Address)).copied();
        let own = own.unwrap_or_default();
        // A crowd that reconnects all the time must not keep the server busy with the connections of others.
        let is_largest = own > 0 && counts.values().all(|count| *count <= own);
        let is_among_own = limit == ConnectionLimit::Address || is_largest;
        let grace = self.limits.long_poll_grace;
        let is_closed = table.close_first(|connection, state| {
            let order = state.closing_order(&counts, own, grace)?;
            (!is_among_own || connection.network == network).then_some(order)
        });
        NoSlot {
            limit,
            is_refused: is_among_own && !is_closed,
        }
    }

    /// Returns a slot regardless of the limits, for connections in the listener's queue when the server stops.
    pub fn enter_always(self: &Arc<Self>, network: Option<IpAddr>) -> Slot {
        self.add(&mut self.table.lock(), network)
    }

    fn add(self: &Arc<Self>, table: &mut Table, network: Option<IpAddr>) -> Slot {
        let connection = Arc::new(Connection::of(network));
        table.open.push(Arc::clone(&connection));
        Slot {
            connection,
            connections: Arc::clone(self),
        }
    }

    /// Waits until another connection of the address makes room, which a long poll does after its grace period. `None` if
    /// too many connections wait for that. The future returns `None` if no connection made room.
    pub fn enter_late(
        self: &Arc<Self>,
        network: Option<IpAddr>,
    ) -> Option<impl Future<Output = Option<Slot>> + use<>> {
        let permit = Arc::clone(&self.late).try_acquire_owned().ok()?;
        let connections = Arc::clone(self);
        Some(async move {
            let _permit = permit;
            let end = Instant::now() + connections.limits.long_poll_grace + GRACE;
            while Instant::now() < end {
                let entered = connections.enter(network);
                // The second attempt takes the slot that the first one freed.
                if let Ok(slot) = entered.or_else(|_| connections.enter(network)) {
                    return Some(slot);
                }
                tokio::time::sleep(ADMISSION_RETRY).await;
            }
            None
        })
    }

    /// Resolves when a connection has ended since the last call.
    pub async fn freed(&self) {
        self.freed.notified().await;
    }

    /// Closes connections whose time is over, for ever.
    pub async fn close_all_overdue(&self) {
        let mut check = tokio::time::interval(CHECK_EVERY);
        loop {
            check.tick().await;
            self.close_overdue();
        }
    }

    fn close_overdue(&self) {
        let now = Instant::now();
        for connection in &self.table.lock().open {
            let mut state = connection.state.lock();
            let limit = match state.phase {
                Phase::AwaitingRequest => self.limits.request,
                Phase::Sending => self.limits.response,
                Phase::Answering | Phase::LongPolling | Phase::Closed => continue,
            };
            if now.saturating_duration_since(state.since) > limit {
                connection.close(&mut state, CloseCause::Timeout);
            }
        }
    }
}

impl Table {
    /// Trusted proxies are no crowd, however many connections they have.
    fn count_by_owner(&self) -> HashMap<Option<Owner>, usize> {
        let mut counts = HashMap::new();
        for connection in &self.open {
            *counts.entry(connection.state.lock().owner).or_default() += 1;
        }
        counts.remove(&None);
        counts
    }

    /// Closes the first connection by an order. Returns whether there was one.
    fn close_first(&mut self, order: impl Fn(&Connection, &State) -> Option<ClosingOrder>) -> bool {
        let ordered = self.open.iter().filter_map(|connection| {
            let order = order(connection, &connection.state.lock())?;
            Some((order, connection))
        });
        let Some((_, first)) = ordered.min_by_key(|(order, _)| *order) else {
            return false;
        };
        let first = Arc::clone(first);
        let mut state = first.state.lock();
        // It may have become active in the meantime.
        let is_closed = order(&first, &state).is_some();
        if is_closed {
            first.close(&mut state, CloseCause::Capacity);
            self.remove(&first);
        }
        is_closed
    }

    fn remove(&mut self, connection: &Arc<Connection>) {
        self.open.retain(|open| !Arc::ptr_eq(open, connection));
    }

    fn count_of(&self, network: Option<IpAddr>) -> usize {
        let own = self.open.iter().filter(|one| one.network == network);
        own.count()
    }

    fn log(&mut self, limit: ConnectionLimit, network: Option<IpAddr>) {
        let now = Instant::now();
        let last = self.reached.insert(limit, now);
        if last.is_some_and(|last| now.saturating_duration_since(last) < QUIET_TIME) {
            return;
        }
        match limit {
            ConnectionLimit::Total => tracing::warn!(
                connections = self.open.len(),
                "all connection slots are taken: idle, unfinished and slow connections are closed for new ones; if the \
                 callers are legitimate, serve behind a proxy, or raise the limit of open files if the log warned of it \
                 at the start"
            ),
            ConnectionLimit::Address => tracing::warn!(
                address = network.map(tracing::field::display),
                connections = self.count_of(network),
                "an address has reached its connection limit: its idle, unfinished and slow connections are closed for \
                 its new ones; if it is a proxy, name it with --trusted-proxy"
            ),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connections.table.lock().remove(&self.connection);
        self.connections.freed.notify_one();
    }
}

#[cfg(test)]
mod tests;
