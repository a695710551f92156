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
mod tests {
    use std::net::Ipv4Addr;

    use tokio::time::advance;

    use super::*;

    /// The key of a request: none, a key that only its network has, or one that all share.
    #[derive(Clone, Copy, Debug)]
    enum With {
        N,
        K,
        S,
    }
    use With::{K, N, S};

    #[derive(Clone, Copy, Debug)]
    enum Does {
        New,
        /// It got a response.
        Idle(With),
        Answering,
        /// It reads this number of bytes per second.
        Reading(With, usize),
        LongPolling,
    }
    use Does::{Answering, Idle, LongPolling, New, Reading};

    /// The position of the closed connection, or the limit if none can be closed.
    type Outcome = Result<usize, NoSlot>;

    /// A connection's network, activity, and the seconds for which it lasts.
    type Member = (u8, Does, u64);

    fn network(number: u8) -> Option<IpAddr> {
        Some(Ipv4Addr::new(192, 0, 2, number).into())
    }

    fn connections(connections: usize, connections_per_address: usize) -> Arc<Connections> {
        Connections::new(Limits {
            connections,
            connections_per_address,
            ..Limits::default()
        })
    }

    fn start(does: Does, connection: &Connection) {
        let with = match does {
            New => return,
            Idle(with) | Reading(with, _) => with,
            Answering | LongPolling => K,
        };
        let own_key = KeyHash::of(format!("{:?}", connection.network).as_bytes());
        assert!(connection.start_answer());
        match (does, with) {
            (LongPolling, _) => connection.start_long_poll(own_key),
            (Answering, _) => {}
            (_, N) => connection.finish_answer(None),
            (_, K) => connection.finish_answer(Some(own_key)),
            (_, S) => connection.finish_answer(Some(KeyHash::of(b"shared"))),
        }
        if let Idle(_) = does {
            connection.finish_sending();
        }
    }

    /// Opens connections, each at its time.
    async fn open(connections: &Arc<Connections>, members: &[Member]) -> Vec<Slot> {
        let mut slots: Vec<Option<Slot>> = members.iter().map(|_| None).collect();
        for second in (0..=members.iter().map(|member| member.2).max().unwrap()).rev() {
            for ((number, does, since), slot) in members.iter().zip(&mut slots) {
                if *since == second {
                    let new = connections.enter(network(*number)).expect("a free slot");
                    start(*does, &new.connection);
                    *slot = Some(new);
                } else if let (Reading(_, rate), Some(slot)) = (*does, &slot) {
                    slot.connection.note_sent(rate);
                    connections.close_overdue();
                }
            }
            advance(Duration::from_millis(if second == 0 { 1 } else { 1000 })).await;
        }
        slots.into_iter().flatten().collect()
    }

    /// Lets a connection of a network enter at a limit, and returns the outcome.
    fn closed_for(connections: &Arc<Connections>, slots: &[Slot], new: u8) -> Outcome {
        let full = connections
            .enter(network(new))
            .expect_err("a limit is reached");
        let is_closed = |slot: &Slot| slot.connection.close_reason().is_some();
        let Some(closed) = slots.iter().position(is_closed) else {
            return Err(full);
        };
        assert!(
            !full.is_refused && connections.enter(network(new)).is_ok(),
            "its slot is free"
        );
        assert_eq!(
            slots.iter().filter(|slot| is_closed(slot)).count(),
            1,
            "one is enough"
        );
        Ok(closed)
    }

    #[tokio::test(start_paused = true)]
    async fn connections_are_closed_in_one_order() {
        const GOOD: usize = 65_536;
        let waits = Err(NoSlot {
            limit: ConnectionLimit::Total,
            is_refused: false,
        });
        // Every connection has a network of its own. The first one of the order is closed, if any.
        let cases: [([(Does, u64); 3], Outcome); 24] = cases![
            [(Idle(N), 3), (Idle(N), 5), (Idle(N), 4)], Ok(1);
            [(Idle(N), 3), (New, 5), (Reading(N, 0), 9)], Ok(2);
            [(Idle(K), 30), (Idle(N), 2), (New, 0)], Ok(1);
            [(Idle(K), 30), (Reading(N, 5), 2), (New, 0)], Ok(1);
            [(Idle(K), 30), (Answering, 60), (New, 0)], Ok(0);
            [(Reading(N, 5000), 9), (Reading(K, 10), 9), (Answering, 9)], Ok(0);
            [(Reading(N, 5000), 9), (Reading(N, 10), 9), (Answering, 9)], Ok(1);
            [(Reading(N, GOOD), 99), (Reading(N, 10), 9), (Answering, 9)], Ok(1);
            // A key protects no slow reader.
            [(Idle(K), 5), (Reading(K, 10), 60), (Answering, 9)], Ok(1);
            [(Reading(K, 4096), 2), (Reading(K, GOOD), 99), (Answering, 9)], Ok(0);
            [(Reading(K, 60_000), 20), (Reading(K, 50_000), 9), (New, 0)], Ok(1);
            // Of owners, the one with the most connections loses one first.
            [(Idle(K), 60), (Reading(S, 4096), 9), (Reading(S, 4096), 20)], Ok(2);
            [(Idle(S), 9), (Idle(S), 12), (Idle(K), 50)], Ok(1);
            [(Idle(S), 9), (Reading(S, GOOD), 12), (Idle(K), 50)], Ok(0);
            [(Reading(S, GOOD), 9), (Reading(S, GOOD), 12), (Idle(K), 50)], Ok(2);
            // Long polls are last, but for connections in their grace period.
            [(LongPolling, 90), (Idle(K), 5), (Answering, 9)], Ok(1);
            [(LongPolling, 90), (Idle(K), 0), (Answering, 9)], Ok(0);
            [(LongPolling, 12), (LongPolling, 15), (Answering, 99)], Ok(1);
            [(LongPolling, 6), (LongPolling, 9), (New, 0)], waits;
            // There is a grace period.
            [(New, 0), (Idle(N), 0), (Idle(K), 7)], Ok(2);
            [(Idle(K), 0), (New, 0), (Answering, 99)], waits;
            [(Reading(S, 0), 0), (Idle(S), 0), (Idle(S), 0)], waits;
            // Connections that are served keep their slots.
            [(Answering, 99), (Answering, 99), (Answering, 99)], waits;
            [(Reading(N, GOOD), 99), (Reading(K, 2 * GOOD), 99), (Answering, 99)], waits;
        ];
        for (members, expected) in cases {
            let connections = connections(3, 3);
            let members: Vec<Member> = (1..)
                .zip(members)
                .map(|(number, (does, since))| (number, does, since))
                .collect();
            let slots = open(&connections, &members).await;
            assert_eq!(closed_for(&connections, &slots, 9), expected, "{members:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_address_with_the_most_connections_loses_one_first() {
        let [waits, refused] = [false, true].map(|is_refused| {
            Err(NoSlot {
                limit: ConnectionLimit::Total,
                is_refused,
            })
        });
        // The networks of four new connections in four slots and of a fifth one, and the closed connection.
        let cases = [
            ([1, 1, 1, 2], 9, Ok(0)),
            ([2, 1, 1, 1], 9, Ok(1)),
            ([1, 2, 2, 3], 9, Ok(1)),
            ([1, 2, 3, 4], 9, waits),
            // An address that has the most connections replaces none of others.
            ([1, 1, 1, 2], 2, Ok(0)),
            ([1, 1, 1, 2], 1, refused),
            ([1, 1, 2, 2], 1, refused),
            ([1, 1, 2, 3], 2, Ok(0)),
        ];
        for (networks, new, expected) in cases {
            let connections = connections(4, 64);
            let slots = open(&connections, &networks.map(|number| (number, New, 0))).await;
            assert_eq!(
                closed_for(&connections, &slots, new),
                expected,
                "{networks:?}, then {new}"
            );
        }
        // Three connections of network 2 beside an idle one of network 1, which has a key, or its long poll.
        let cases = [
            (Idle(K), New, 0, 3, Ok(1)),
            (Idle(K), Reading(N, 0), 0, 3, Ok(1)),
            (Idle(K), Idle(K), 0, 3, Ok(0)),
            (Idle(K), Idle(K), 2, 3, Ok(1)),
            (Idle(K), Reading(K, 0), 9, 3, Ok(1)),
            (Idle(K), New, 2, 2, Ok(1)),
            (Idle(K), Idle(K), 2, 2, Ok(1)),
            (Idle(K), New, 0, 2, refused),
            // They belong to a key, so the address of the new one has none.
            (Idle(K), Idle(K), 0, 2, Ok(0)),
            (LongPolling, New, 0, 2, refused),
        ];
        for (single, does, since, new, expected) in cases {
            let connections = connections(4, 64);
            let crowd = (2, does, since);
            let slots = open(&connections, &[(1, single, 50), crowd, crowd, crowd]).await;
            assert_eq!(
                closed_for(&connections, &slots, new),
                expected,
                "{single:?} beside {does:?}, then {new}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_makes_room_among_its_own() {
        let refused = Err(NoSlot {
            limit: ConnectionLimit::Address,
            is_refused: true,
        });
        // Network 1 may have two. The connection of network 2 has been idle for long.
        let cases: [([(Does, u64); 2], Outcome); 13] = [
            ([(LongPolling, 12), (LongPolling, 14)], Ok(1)),
            ([(LongPolling, 9), (LongPolling, 14)], Ok(1)),
            ([(LongPolling, 30), (Reading(N, 10), 7)], Ok(1)),
            ([(LongPolling, 30), (Reading(K, 10), 7)], Ok(1)),
            ([(LongPolling, 30), (Idle(K), 7)], Ok(1)),
            ([(New, 0), (New, 2)], Ok(1)),
            ([(New, 0), (Idle(K), 50)], Ok(1)),
            // A request that is on its way stays, also beside a long poll.
            ([(New, 0), (LongPolling, 30)], Ok(1)),
            ([(Idle(K), 0), (LongPolling, 30)], Ok(1)),
            ([(LongPolling, 3), (LongPolling, 9)], refused),
            ([(New, 0), (LongPolling, 9)], refused),
            ([(Reading(K, 10), 0), (Reading(K, 65_536), 50)], refused),
            ([(Answering, 0), (Answering, 50)], refused),
        ];
        for (members, expected) in cases {
            for slots in [3, 100] {
                let connections = connections(slots, 2);
                let [(first, since), (second, since_too)] = members;
                let members = [(1, first, since), (1, second, since_too), (2, New, 55)];
                let slots = open(&connections, &members[..]).await;
                assert_eq!(closed_for(&connections, &slots, 1), expected, "{members:?}");
            }
        }
        // Trusted proxies have no limit of their own.
        let connections = connections(9, 2);
        let proxied: Vec<_> = (0..9)
            .map(|_| connections.enter(None).expect("a slot"))
            .collect();
        let waits = NoSlot {
            limit: ConnectionLimit::Total,
            is_refused: false,
        };
        assert_eq!(connections.enter(None).expect_err("all are taken"), waits);
        assert_eq!(
            connections
                .enter(None)
                .expect_err("they have a grace period"),
            waits
        );
        advance(GRACE).await;
        assert_eq!(connections.enter(None).expect_err("all are taken"), waits);
        connections.enter(None).expect("one is closed");
        drop(proxied);
    }

    #[tokio::test(start_paused = true)]
    async fn time_limits_end_connections_that_wait_for_their_callers() {
        let (idle, slow) = (Some(CloseReason::Idle), Some(CloseReason::Slow));
        let cases = [
            (New, 59, None),
            (New, 61, idle),
            (Idle(K), 61, idle),
            (Answering, 9999, None),
            (LongPolling, 9999, None),
            (Reading(K, 0), 599, None),
            (Reading(K, 0), 601, slow),
            (Reading(K, 1024), 600, None),
            (Reading(K, 1024), 620, slow),
            (Reading(N, 60_000), 7000, None),
            (Reading(N, 60_000), 7500, slow),
            (Reading(N, 66_000), 9999, None),
        ];
        for (does, seconds, expected) in cases {
            let connections = connections(9, 9);
            let slots = open(&connections, &[(1, does, seconds)]).await;
            connections.close_overdue();
            let reason = slots[0].connection.close_reason();
            assert_eq!(
                reason,
                expected.map(|reason| (reason, CloseCause::Timeout)),
                "{does:?} for {seconds} s"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_connection_answers_no_more_but_a_long_poll() {
        let connections = connections(1, 1);
        let slot = connections.enter(network(1)).expect("a slot");
        advance(Duration::from_secs(1)).await;
        connections.enter(network(2)).expect_err("it is taken");
        slot.connection.closed().await;
        assert!(!slot.connection.start_answer() && !slot.connection.is_answering());
        assert_eq!(
            slot.connection.close_reason(),
            Some((CloseReason::Idle, CloseCause::Capacity))
        );

        let slot = connections
            .enter(network(1))
            .expect("it is free before the other one has ended");
        let key = KeyHash::of(b"key");
        slot.connection.start_long_poll(key);
        assert!(!slot.connection.is_answering(), "there is no request");
        start(LongPolling, &slot.connection);
        slot.connection.finish_long_poll();
        connections.enter(network(2)).expect_err("it is taken");
        assert!(slot.connection.close_reason().is_none(), "it is answered");
        slot.connection.start_long_poll(key);
        advance(Duration::from_secs(10)).await;
        connections.enter(network(2)).expect_err("it is taken");
        assert_eq!(slot.connection.woken().await, WaitEnd::Capacity);
        assert_eq!(
            slot.connection.close_reason(),
            Some((CloseReason::Waiting, CloseCause::Capacity))
        );
        assert!(slot.connection.is_answering(), "the answer goes out");
    }

    #[tokio::test(start_paused = true)]
    async fn closed_connections_free_their_slots() {
        let connections = connections(2, 2);
        let [first, second] =
            [network(1), None].map(|network| connections.enter(network).expect("a slot"));
        start(Answering, &first.connection);
        start(Answering, &second.connection);
        assert_eq!(
            connections
                .enter(network(1))
                .expect_err("all are taken")
                .limit,
            ConnectionLimit::Total
        );
        let beyond = connections.enter_always(network(1));
        start(Answering, &beyond.connection);
        assert_eq!(
            connections
                .enter(network(1))
                .expect_err("two are taken")
                .limit,
            ConnectionLimit::Address
        );
        drop((second, beyond));
        connections.freed().await;
        let third = connections.enter(network(1)).expect("a slot");
        drop((first, third));
        let table = connections.table.lock();
        assert!(table.open.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_belongs_to_the_key_of_its_last_usable_request() {
        let owners = |connections: &Connections| connections.table.lock().count_by_owner();
        let connections = connections(9, 9);
        let [direct, proxied] =
            [network(1), None].map(|network| connections.enter(network).expect("a slot"));
        let address = Some(Owner::Address(network(1).unwrap()));
        assert_eq!(owners(&connections), HashMap::from([(address, 1)]));
        let [first, second] = [b"first", b"other"].map(|text| KeyHash::of(text));
        let [one, other] = [first, second].map(|key| Some(Owner::Key(key)));
        let steps = [
            (None, [(address, 1)].into()),
            (Some(first), [(one, 2)].into()),
            (None, [(one, 2)].into()),
            (Some(second), [(other, 2)].into()),
        ];
        for (key, expected) in steps {
            for slot in [&direct, &proxied] {
                assert!(slot.connection.start_answer());
                slot.connection.finish_answer(key);
                slot.connection.finish_sending();
            }
            assert_eq!(owners(&connections), expected, "{key:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_connection_may_wait_for_a_long_poll_of_its_address() {
        // What two connections of an address do, and for how long; the seconds after which a third one gets a slot.
        let cases = [
            ([(LongPolling, 3), (LongPolling, 8)], Some(2)),
            ([(LongPolling, 0), (Answering, 8)], Some(10)),
            ([(Idle(K), 0), (Answering, 8)], Some(1)),
            ([(Answering, 0), (Answering, 8)], None),
        ];
        for (members, expected) in cases {
            let connections = connections(32, 2);
            let members = members.map(|(does, since)| (1, does, since));
            let _slots = open(&connections, &members).await;
            let begun = Instant::now();
            let late = connections.enter_late(network(1)).expect("few wait");
            let slot = late.await;
            let seconds = begun.elapsed().as_secs_f64().round();
            assert_eq!(
                slot.map(|_| seconds),
                expected.map(f64::from),
                "{members:?}"
            );
        }
        let connections = connections(32, 1);
        let late = || connections.enter_late(network(1));
        let waiting = [late(), late()];
        assert!(
            waiting.iter().all(Option::is_some) && late().is_none(),
            "two of 32"
        );
        drop(waiting);
        assert!(late().is_some());
    }
}
