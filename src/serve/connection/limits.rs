//! What a connection may cost, and which one is closed when there are too many.
//!
//! A connection costs a file and some memory for as long as its caller likes. So the server closes connections whose
//! callers keep it waiting: after a time limit ([`Limits`]), or earlier when a new connection needs the room
//! ([`Rank`]). It never closes a connection while it builds a response, and none with a usable key while the caller
//! reads the response at [`GOOD_RATE`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::api::observe::{CloseCause, CloseReason, ConnectionLimit, WaitEnd};

/// The largest head of a request, in bytes. hyper requires at least 8 KiB.
pub const MAX_HEAD_BYTES: usize = 16 << 10;
/// The maximum number of headers in a request.
pub const MAX_HEADERS: usize = 64;
/// A caller that reads at this rate does not keep the server waiting, in bytes per second. Half a megabit is less than
/// any office or data center has.
const GOOD_RATE: f64 = 65_536.0;
/// An address with more than all connections divided by this number is a crowd.
const CROWD_PART: usize = 100;
/// The time between two checks of the time limits.
pub const CHECK_EVERY: Duration = Duration::from_secs(1);
/// A reached limit is logged again only if it was not reached for this time.
const QUIET_TIME: Duration = Duration::from_secs(60);

/// The time for which a caller may keep the server waiting before its connection is closed for a new one. Callers need
/// it to send their first request, or the next one. A crowd has less, so that it excludes only itself when it reconnects
/// all the time.
fn grace(has_key: bool, is_crowd: bool) -> Duration {
    Duration::from_millis(match (has_key, is_crowd) {
        (true, false) => 5000,
        (true, true) | (false, false) => 1000,
        (false, true) => 250,
    })
}

/// The limits of a server. All programs use the defaults, which suit the design size; tests use smaller ones.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Concurrent connections. Further ones wait in the kernel's queue if none can be closed for them.
    pub connections: usize,
    /// Concurrent connections of one address (IPv6: one /64), except trusted proxies. Further ones are closed if none
    /// of the address can be closed for them.
    pub connections_per_address: usize,
    /// The time to send the head of a request, from the start of the connection or the end of the last response. It
    /// includes the TLS handshake.
    pub request: Duration,
    /// The time by which the reading of a response may be behind [`GOOD_RATE`].
    pub response: Duration,
    /// The time for open connections to finish when the server stops.
    pub drain: Duration,
    /// Exports that are built concurrently; further ones wait.
    pub exports: usize,
    /// The same of one key.
    pub exports_per_key: usize,
    /// Concurrent long polls; further ones are answered at once.
    pub long_polls: usize,
    /// The same of one key.
    pub long_polls_per_key: usize,
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
        }
    }
}

/// The order in which connections are closed for new ones. Within a rank, the address with the most connections loses
/// one first, and of its connections the one that has waited longest for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The last request had no usable key, or there was none.
    WithoutKey,
    WithKey,
    /// It has waited for less than the grace period. It is closed only for its own address.
    InGrace,
    /// It is answered at once, and closed after that.
    LongPolling,
}

type ClosingOrder = (Rank, Reverse<usize>, Reverse<Duration>);

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
    has_key: bool,
    closed: Option<(CloseReason, CloseCause)>,
}

/// An open connection. Its stream and its requests set the phase; [`Connections`] closes it.
#[derive(Debug)]
pub struct Connection {
    network: Option<IpAddr>,
    state: Mutex<State>,
    /// The sent bytes that `State::since` does not include yet.
    sent: AtomicUsize,
    closed: Notify,
    woken: Notify,
    ended: Notify,
}

impl Default for Connection {
    fn default() -> Connection {
        Connection::of(None)
    }
}

impl Connection {
    fn of(network: Option<IpAddr>) -> Connection {
        let state = State { phase: Phase::AwaitingRequest, since: Instant::now(), has_key: false, closed: None };
        let (closed, woken, ended) = Default::default();
        Connection { network, state: Mutex::new(state), sent: AtomicUsize::new(0), closed, woken, ended }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a phase if the connection is in one of these. Returns whether it was.
    fn pass(&self, from: &[Phase], to: Phase) -> bool {
        let mut state = self.lock();
        let passes = from.contains(&state.phase);
        if passes {
            (state.phase, state.since) = (to, Instant::now());
            self.sent.store(0, Ordering::Relaxed);
        }
        passes
    }

    /// Notes that a request is complete. Returns false if the connection was closed before; the request then gets no
    /// response.
    pub fn start_answer(&self) -> bool {
        self.pass(&[Phase::AwaitingRequest], Phase::Answering)
    }

    /// Notes that the request begins to wait for a change.
    pub fn start_long_poll(&self) {
        self.pass(&[Phase::Answering], Phase::LongPolling);
    }

    /// Notes that the request no longer waits.
    pub fn finish_long_poll(&self) {
        self.pass(&[Phase::LongPolling], Phase::Answering);
    }

    /// Notes that the response is ready to be sent, and whether the request had a usable key.
    pub fn finish_answer(&self, has_key: bool) {
        self.lock().has_key = has_key;
        self.pass(&[Phase::Answering], Phase::Sending);
    }

    /// Notes sent bytes of a response.
    pub fn note_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes that the response is sent.
    pub fn finish_sending(&self) {
        self.pass(&[Phase::Sending], Phase::AwaitingRequest);
    }

    /// Whether a request is being answered, or its response is being sent.
    pub fn is_answering(&self) -> bool {
        matches!(self.lock().phase, Phase::Answering | Phase::LongPolling | Phase::Sending)
    }

    /// Notes that the caller closed its sending half. A long poll ends, since its caller may be gone.
    pub fn note_half_closed(&self) {
        self.woken.notify_one();
    }

    /// Resolves when a long poll must be answered early. Returns the cause.
    pub async fn woken(&self) -> WaitEnd {
        self.woken.notified().await;
        if self.close_reason().is_some() { WaitEnd::Capacity } else { WaitEnd::Left }
    }

    /// Resolves when the connection must be dropped.
    pub async fn closed(&self) {
        self.closed.notified().await;
    }

    /// Resolves when the connection has been dropped.
    pub async fn ended(&self) {
        self.ended.notified().await;
    }

    /// The reason and cause, if the server closed the connection.
    pub fn close_reason(&self) -> Option<(CloseReason, CloseCause)> {
        self.lock().closed
    }

    /// The time for which the caller has kept the server waiting.
    fn waited(&self, state: &mut State, now: Instant) -> Duration {
        if state.phase == Phase::Sending {
            let bytes = u32::try_from(self.sent.swap(0, Ordering::Relaxed)).unwrap_or(u32::MAX);
            state.since = now.min(state.since + Duration::from_secs_f64(f64::from(bytes) / GOOD_RATE));
        }
        now.saturating_duration_since(state.since)
    }

    /// The position among connections that are closed for new ones; `None` if this one must stay. `count` is the number
    /// of connections of its address.
    fn closing_order(&self, state: &mut State, count: usize, crowd: usize, now: Instant) -> Option<ClosingOrder> {
        let waited = self.waited(state, now);
        let in_grace = waited < grace(state.has_key, count > crowd);
        let rank = match state.phase {
            Phase::Answering | Phase::Closed => return None,
            Phase::Sending if state.has_key && in_grace => return None,
            Phase::LongPolling => Rank::LongPolling,
            _ if in_grace => Rank::InGrace,
            _ if state.has_key => Rank::WithKey,
            _ => Rank::WithoutKey,
        };
        Some((rank, Reverse(count), Reverse(waited)))
    }

    /// Closes the connection. A long poll is answered first.
    fn close(&self, state: &mut State, cause: CloseCause) {
        let (reason, phase, notify) = match state.phase {
            Phase::LongPolling => (CloseReason::Waiting, Phase::Answering, &self.woken),
            Phase::Sending => (CloseReason::Slow, Phase::Closed, &self.closed),
            _ => (CloseReason::Idle, Phase::Closed, &self.closed),
        };
        (state.phase, state.closed) = (phase, Some((reason, cause)));
        notify.notify_one();
    }
}

/// The open connections of a server.
#[derive(Debug)]
pub struct Connections {
    limits: Limits,
    table: Mutex<Table>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    count: usize,
    /// The connections of each network by number. Those of trusted proxies have no network.
    networks: HashMap<Option<IpAddr>, BTreeMap<u64, Arc<Connection>>>,
    last_at_total: Option<Instant>,
    last_at_address: Option<Instant>,
}

/// The place of an open connection. Dropping it frees it.
#[derive(Debug)]
pub struct Slot {
    number: u64,
    /// The connection.
    pub connection: Arc<Connection>,
    connections: Arc<Connections>,
}

/// A limit was reached, so there is no slot yet.
#[derive(Debug)]
pub struct Full {
    /// The limit.
    pub limit: ConnectionLimit,
    /// The connection that is being closed. Its slot is free. `None` if no connection can be closed.
    pub closed: Option<Arc<Connection>>,
}

impl Connections {
    /// No connections, and their limits.
    pub fn new(limits: Limits) -> Arc<Connections> {
        Arc::new(Connections { limits, table: Mutex::default(), freed: Notify::new() })
    }

    /// Returns a slot for a new connection of a network, or closes another one. `None`, for trusted proxies, has no
    /// limit per address.
    pub fn enter(self: &Arc<Self>, network: Option<IpAddr>) -> Result<Slot, Full> {
        let now = Instant::now();
        let mut table = self.lock();
        let own = table.networks.get(&network).map_or(0, BTreeMap::len);
        let limit = if network.is_some() && own >= self.limits.connections_per_address {
            ConnectionLimit::Address
        } else if table.count >= self.limits.connections {
            ConnectionLimit::Total
        } else {
            return Ok(self.add(&mut table, network));
        };
        table.log(limit, network, now);
        let crowd = self.limits.connections.div_ceil(CROWD_PART);
        Err(Full { limit, closed: table.close_one(limit, network, crowd, now) })
    }

    /// Returns a slot regardless of the limits, for connections in the listener's queue when the server stops.
    pub fn enter_always(self: &Arc<Self>, network: Option<IpAddr>) -> Slot {
        self.add(&mut self.lock(), network)
    }

    fn add(self: &Arc<Self>, table: &mut Table, network: Option<IpAddr>) -> Slot {
        let (number, connection) = (table.next, Arc::new(Connection::of(network)));
        table.next += 1;
        table.count += 1;
        table.networks.entry(network).or_default().insert(number, Arc::clone(&connection));
        Slot { number, connection, connections: Arc::clone(self) }
    }

    /// Resolves when a slot has been freed since the last call.
    pub async fn freed(&self) {
        self.freed.notified().await;
    }

    /// Closes the connections whose time is over.
    pub fn close_overdue(&self) {
        let now = Instant::now();
        for connection in self.lock().networks.values().flat_map(BTreeMap::values) {
            let mut state = connection.lock();
            let limit = match state.phase {
                Phase::AwaitingRequest => self.limits.request,
                Phase::Sending => self.limits.response,
                Phase::Answering | Phase::LongPolling | Phase::Closed => continue,
            };
            if connection.waited(&mut state, now) > limit {
                connection.close(&mut state, CloseCause::Timeout);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Closes the first connection by [`ClosingOrder`], at the limit of an address the first one of this network.
    fn close_one(
        &mut self,
        limit: ConnectionLimit,
        network: Option<IpAddr>,
        crowd: usize,
        now: Instant,
    ) -> Option<Arc<Connection>> {
        loop {
            let networks = self.networks.iter().filter(|(one, _)| limit == ConnectionLimit::Total || **one == network);
            let candidates = networks.flat_map(|(_, open)| open.iter().map(|(number, one)| (*number, one, open.len())));
            let ordered = candidates.filter_map(|(number, one, count)| {
                // Trusted proxies are no crowd.
                let count = one.network.map_or(0, |_| count);
                let order = one.closing_order(&mut one.lock(), count, crowd, now)?;
                (limit == ConnectionLimit::Address || order.0 != Rank::InGrace).then_some((order, number, count, one))
            });
            let (first, number, count, connection) = ordered.min_by_key(|(order, number, ..)| (*order, *number))?;
            let mut state = connection.lock();
            // It may have become active in the meantime.
            if connection.closing_order(&mut state, count, crowd, now) == Some(first) {
                connection.close(&mut state, CloseCause::Capacity);
                drop(state);
                let network = connection.network;
                return self.remove(network, number);
            }
        }
    }

    fn remove(&mut self, network: Option<IpAddr>, number: u64) -> Option<Arc<Connection>> {
        let open = self.networks.get_mut(&network)?;
        let connection = open.remove(&number)?;
        if open.is_empty() {
            self.networks.remove(&network);
        }
        self.count -= 1;
        Some(connection)
    }

    fn log(&mut self, limit: ConnectionLimit, network: Option<IpAddr>, now: Instant) {
        let last = match limit {
            ConnectionLimit::Total => &mut self.last_at_total,
            ConnectionLimit::Address => &mut self.last_at_address,
        };
        if last.replace(now).is_some_and(|last| now.saturating_duration_since(last) < QUIET_TIME) {
            return;
        }
        match limit {
            ConnectionLimit::Total => tracing::warn!(
                connections = self.count,
                addresses = self.networks.len(),
                "all connection slots are taken: idle, unfinished and slow connections are closed for new ones; if the \
                 callers are legitimate, serve behind a proxy, or raise the limit of open files if the log warned of it \
                 at the start"
            ),
            ConnectionLimit::Address => tracing::warn!(
                address = network.map(tracing::field::display),
                connections = self.networks.get(&network).map_or(0, BTreeMap::len),
                "an address has reached its connection limit: its idle, unfinished and slow connections are closed for \
                 its new ones; if it is a proxy, name it with --trusted-proxy"
            ),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connections.lock().remove(self.connection.network, self.number);
        self.connection.ended.notify_one();
        self.connections.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::time::advance;

    use super::*;

    const K: bool = true;

    #[derive(Clone, Copy, Debug)]
    enum Does {
        New,
        /// It got a response: with a key, or without.
        Idle(bool),
        Answering,
        /// It reads this number of bytes per second.
        Reading(bool, usize),
        LongPolling,
    }
    use Does::{Answering, Idle, LongPolling, New, Reading};

    /// A connection's network, activity, and the seconds for which it lasts.
    type Member = (u8, Does, u64);

    fn network(number: u8) -> Option<IpAddr> {
        Some(Ipv4Addr::new(192, 0, 2, number).into())
    }

    fn connections(connections: usize, connections_per_address: usize) -> Arc<Connections> {
        Connections::new(Limits { connections, connections_per_address, ..Limits::default() })
    }

    fn start(does: Does, connection: &Connection) {
        let has_key = match does {
            New => return,
            Idle(has_key) | Reading(has_key, _) => has_key,
            Answering | LongPolling => K,
        };
        assert!(connection.start_answer());
        match does {
            LongPolling => connection.start_long_poll(),
            Answering => {}
            _ => connection.finish_answer(has_key),
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

    /// The position of the connection that is closed for a new one of a network, or the limit if none can be closed.
    fn closed_for(connections: &Arc<Connections>, slots: &[Slot], new: u8) -> Result<usize, ConnectionLimit> {
        let full = connections.enter(network(new)).expect_err("a limit is reached");
        let Some(closed) = full.closed else { return Err(full.limit) };
        let _admitted = connections.enter(network(new)).expect("the slot is free");
        let reasons = slots.iter().filter(|slot| slot.connection.close_reason().is_some());
        assert_eq!(reasons.count(), 1, "one is enough");
        Ok(slots.iter().position(|slot| Arc::ptr_eq(&slot.connection, &closed)).expect("one of them"))
    }

    #[tokio::test(start_paused = true)]
    async fn who_keeps_the_server_waiting_without_a_key_goes_first() {
        const GOOD: usize = 65_536;
        let total = Err(ConnectionLimit::Total);
        // Every connection has a network of its own. The first one of the order is closed, if any.
        let cases: [([(Does, u64); 3], Result<usize, ConnectionLimit>); 18] = [
            ([(Idle(false), 3), (Idle(false), 5), (Idle(false), 4)], Ok(1)),
            ([(Idle(false), 3), (New, 5), (Reading(false, 0), 9)], Ok(2)),
            ([(Idle(K), 30), (Idle(false), 2), (New, 0)], Ok(1)),
            ([(Idle(K), 30), (Reading(false, 5), 2), (New, 0)], Ok(1)),
            ([(Idle(K), 30), (Answering, 60), (New, 0)], Ok(0)),
            ([(Reading(false, 5000), 9), (Reading(K, 10), 9), (Answering, 9)], Ok(0)),
            ([(Reading(K, 5000), 9), (Reading(K, 10), 9), (Answering, 9)], Ok(1)),
            ([(Reading(K, GOOD), 99), (Reading(K, 10), 9), (Answering, 9)], Ok(1)),
            ([(Idle(K), 5), (Reading(K, 10), 60), (Answering, 9)], Ok(1)),
            // Long polls are last, but for connections in their grace period.
            ([(LongPolling, 90), (Idle(K), 5), (Answering, 9)], Ok(1)),
            ([(LongPolling, 90), (Idle(K), 0), (Answering, 9)], Ok(0)),
            ([(LongPolling, 6), (LongPolling, 9), (Answering, 99)], Ok(1)),
            // New connections and those with a key have a grace period.
            ([(New, 0), (Idle(false), 0), (Idle(K), 7)], Ok(2)),
            ([(Idle(K), 4), (Idle(K), 3), (New, 1)], Ok(2)),
            ([(Idle(K), 4), (New, 0), (Answering, 99)], total),
            // Connections that are served keep their slots.
            ([(Answering, 99), (Answering, 99), (Answering, 99)], total),
            ([(Reading(K, GOOD), 99), (Reading(K, 2 * GOOD), 99), (Answering, 99)], total),
            ([(Reading(K, 0), 4), (Reading(K, GOOD), 99), (Answering, 99)], total),
        ];
        for (members, expected) in cases {
            let connections = connections(3, 3);
            let members: Vec<Member> =
                (1..).zip(members).map(|(number, (does, since))| (number, does, since)).collect();
            let slots = open(&connections, &members).await;
            assert_eq!(closed_for(&connections, &slots, 9), expected, "{members:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_largest_address_loses_one_first() {
        let total = Err(ConnectionLimit::Total);
        // The networks of four new connections in four slots, and the closed connection.
        let cases = [([1, 1, 1, 2], Ok(0)), ([2, 1, 1, 1], Ok(1)), ([1, 2, 2, 3], Ok(1)), ([1, 2, 3, 4], total)];
        for (networks, expected) in cases {
            let connections = connections(4, 64);
            let slots = open(&connections, &networks.map(|number| (number, New, 0))).await;
            advance(Duration::from_millis(300)).await;
            assert_eq!(closed_for(&connections, &slots, 9), expected, "{networks:?}");
        }
        // A crowd without a key has little grace, so it is closed before an idle connection with a key.
        let cases = [
            (New, 0, Ok(1)),
            (Reading(false, 0), 0, Ok(1)),
            (Idle(K), 0, Ok(0)),
            (Reading(K, 0), 0, Ok(0)),
            (Reading(K, 0), 2, Ok(1)),
            (Reading(K, 65_536), 9, Ok(0)),
        ];
        for (does, since, expected) in cases {
            let connections = connections(4, 64);
            let crowd = (2, does, since);
            let slots = open(&connections, &[(1, Idle(K), 50), crowd, crowd, crowd]).await;
            advance(Duration::from_millis(300)).await;
            assert_eq!(closed_for(&connections, &slots, 3), expected, "{does:?}");
        }
        // A long poll is answered before a request on its way is lost.
        let connections = connections(4, 64);
        let slots = open(&connections, &[(1, LongPolling, 0), (2, New, 0), (2, New, 0), (2, New, 0)]).await;
        assert_eq!(closed_for(&connections, &slots, 2), Ok(0));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_makes_room_among_its_own() {
        let address = Err(ConnectionLimit::Address);
        // Network 1 may have two. The connection of network 2 has been idle for long.
        let cases: [([(Does, u64); 2], Result<usize, ConnectionLimit>); 8] = [
            ([(LongPolling, 0), (LongPolling, 2)], Ok(1)),
            ([(LongPolling, 9), (Reading(K, 10), 7)], Ok(1)),
            ([(New, 0), (New, 2)], Ok(1)),
            ([(New, 0), (Idle(K), 50)], Ok(1)),
            ([(New, 0), (Answering, 50)], Ok(0)),
            ([(Idle(K), 0), (Answering, 50)], Ok(0)),
            ([(Reading(K, 10), 0), (Reading(K, 65_536), 50)], address),
            ([(Answering, 0), (Answering, 50)], address),
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
        let proxied: Vec<_> = (0..9).map(|_| connections.enter(None).expect("a slot")).collect();
        let full = connections.enter(None).expect_err("all are taken");
        assert!(full.limit == ConnectionLimit::Total && full.closed.is_none(), "they have a grace period");
        advance(Duration::from_secs(1)).await;
        assert!(connections.enter(None).expect_err("all are taken").closed.is_some());
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
            (Reading(false, 60_000), 7000, None),
            (Reading(false, 60_000), 7500, slow),
            (Reading(false, 66_000), 9999, None),
        ];
        for (does, seconds, expected) in cases {
            let connections = connections(9, 9);
            let slots = open(&connections, &[(1, does, seconds)]).await;
            connections.close_overdue();
            let reason = slots[0].connection.close_reason();
            assert_eq!(reason, expected.map(|reason| (reason, CloseCause::Timeout)), "{does:?} for {seconds} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_connection_answers_no_more_but_a_long_poll() {
        let connections = connections(1, 1);
        let slot = connections.enter(network(1)).expect("a slot");
        advance(Duration::from_secs(1)).await;
        assert!(connections.enter(network(2)).expect_err("it is taken").closed.is_some());
        slot.connection.closed().await;
        assert!(!slot.connection.start_answer() && !slot.connection.is_answering());
        assert_eq!(slot.connection.close_reason(), Some((CloseReason::Idle, CloseCause::Capacity)));

        let slot = connections.enter(network(1)).expect("it is free before the other one has ended");
        slot.connection.start_long_poll();
        assert!(!slot.connection.is_answering(), "there is no request");
        start(LongPolling, &slot.connection);
        slot.connection.finish_long_poll();
        assert!(connections.enter(network(2)).expect_err("it is taken").closed.is_none(), "it is answered");
        slot.connection.start_long_poll();
        assert!(connections.enter(network(2)).expect_err("it is taken").closed.is_some());
        assert_eq!(slot.connection.woken().await, WaitEnd::Capacity);
        assert_eq!(slot.connection.close_reason(), Some((CloseReason::Waiting, CloseCause::Capacity)));
        assert!(slot.connection.is_answering(), "the answer goes out");
    }

    #[tokio::test(start_paused = true)]
    async fn slots_are_given_back() {
        let connections = connections(2, 2);
        let [first, second] = [network(1), None].map(|network| connections.enter(network).expect("a slot"));
        start(Answering, &first.connection);
        start(Answering, &second.connection);
        assert_eq!(connections.enter(network(1)).expect_err("all are taken").limit, ConnectionLimit::Total);
        let beyond = connections.enter_always(network(1));
        start(Answering, &beyond.connection);
        assert_eq!(connections.enter(network(1)).expect_err("two are taken").limit, ConnectionLimit::Address);
        let ended = Arc::clone(&beyond.connection);
        drop((second, beyond));
        ended.ended().await;
        connections.freed().await;
        let third = connections.enter(network(1)).expect("a slot");
        drop((first, third));
        let table = connections.lock();
        assert!(table.count == 0 && table.networks.is_empty());
    }
}
