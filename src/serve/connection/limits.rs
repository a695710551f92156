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
//! Stream and requests set a connection's phase: awaiting a request, answering, long-polling, sending, or closed. Each
//! phase has a time since which the caller keeps the server waiting. Sent bytes move this time forward by what 64 KiB/s
//! would take, but not beyond now. So one number says how long an idle caller, an unfinished request or a slow reader
//! has cost a connection. Once a second the limits of time close those that are over.
//!
//! A new connection at a limit closes another one. It closes one of its own address (an IPv6 /64) if that is at its
//! limit, or has the most connections:
//!
//! 1. one without a usable key that has kept the server waiting for longer than a second;
//! 2. one without a usable key for which this second is not over, of an address with more connections than the new
//!    one's;
//! 3. one with a usable key that has kept the server waiting for longer than a second;
//! 4. at the limit of its address, one for which this second is not over;
//! 5. a request that waits for changes. It gets its empty page.
//!
//! Of several, the address with the most connections loses the one that has waited longest. A connection whose request
//! is being answered is never closed, and with a usable key not until the response is sent. If there is no other, a
//! new connection waits in the kernel's queue. It is refused if it could close only one of its own address. So a crowd
//! that reconnects all the time excludes only itself, and refusing it costs little.
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
/// The time for which a caller may keep the server waiting before its connection is closed for a new one. Callers need
/// it to send their first request, or the next one.
const GRACE: Duration = Duration::from_secs(1);
/// The time between two checks of the time limits.
const CHECK_EVERY: Duration = Duration::from_secs(1);
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
    /// The same within [`GRACE`], of an address with more connections than the new one's. So a crowd that reconnects
    /// all the time excludes only itself.
    OfCrowd,
    WithKey,
    /// Within [`GRACE`]. It is closed only for its own address.
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
            has_key: false,
            closed: None,
        };
        Connection {
            network,
            state: Mutex::new(state),
            closed: Notify::new(),
            woken: Notify::new(),
        }
    }

    /// Goes from one phase to another if the connection is in the first one. Returns whether it was.
    fn pass(&self, from: Phase, to: Phase) -> bool {
        let mut state = self.state.lock();
        let passes = state.phase == from;
        if passes {
            (state.phase, state.since) = (to, Instant::now());
        }
        passes
    }

    /// Notes that a request is complete. Returns false if the connection was closed before; the request then gets no
    /// response.
    pub fn start_answer(&self) -> bool {
        self.pass(Phase::AwaitingRequest, Phase::Answering)
    }

    /// Notes that the request begins to wait for a change.
    pub fn start_long_poll(&self) {
        self.pass(Phase::Answering, Phase::LongPolling);
    }

    /// Notes that the request no longer waits.
    pub fn finish_long_poll(&self) {
        self.pass(Phase::LongPolling, Phase::Answering);
    }

    /// Notes that the response is ready to be sent, and whether the request had a usable key.
    pub fn finish_answer(&self, has_key: bool) {
        self.state.lock().has_key = has_key;
        self.pass(Phase::Answering, Phase::Sending);
    }

    /// Notes sent bytes of a response.
    pub fn note_sent(&self, bytes: usize) {
        let mut state = self.state.lock();
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        state.since =
            Instant::now().min(state.since + Duration::from_secs_f64(f64::from(bytes) / GOOD_RATE));
    }

    /// Notes that the response is sent.
    pub fn finish_sending(&self) {
        self.pass(Phase::Sending, Phase::AwaitingRequest);
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
        let (reason, phase, notify) = match state.phase {
            Phase::LongPolling => (CloseReason::Waiting, Phase::Answering, &self.woken),
            Phase::Sending => (CloseReason::Slow, Phase::Closed, &self.closed),
            _ => (CloseReason::Idle, Phase::Closed, &self.closed),
        };
        (state.phase, state.closed) = (phase, Some((reason, cause)));
        notify.notify_one();
    }
}

impl State {
    /// The position among connections that are closed for a new one; `None` if this one must stay. `count` is the
    /// number of connections of its address, `new_count` that of the new connection's.
    fn closing_order(&self, count: usize, new_count: usize, now: Instant) -> Option<ClosingOrder> {
        let waited = now.saturating_duration_since(self.since);
        let rank = match (self.phase, self.has_key) {
            (Phase::Answering | Phase::Closed, _) | (Phase::Sending, true) => return None,
            (Phase::LongPolling, _) => Rank::LongPolling,
            (_, false) if waited >= GRACE => Rank::WithoutKey,
            (_, true) if waited >= GRACE => Rank::WithKey,
            (_, false) if count > new_count.max(1) => Rank::OfCrowd,
            _ => Rank::InGrace,
        };
        Some((rank, Reverse(count), Reverse(waited)))
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
    count: usize,
    /// The connections of each network, the oldest first. Those of trusted proxies have no network.
    networks: HashMap<Option<IpAddr>, Vec<Arc<Connection>>>,
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
pub struct Full {
    /// The limit.
    pub limit: ConnectionLimit,
    /// Whether no connection can be closed for the new one, and its address has the most connections. Otherwise there
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
        })
    }

    /// Returns a slot for a new connection of a network, or closes another one, whose slot is then free. `None`, for
    /// trusted proxies, has no limit per address.
    pub fn enter(self: &Arc<Self>, network: Option<IpAddr>) -> Result<Slot, Full> {
        let now = Instant::now();
        let mut table = self.table.lock();
        let own = table.count_of(network);
        let limit = if own >= self.limits.connections_per_address {
            ConnectionLimit::Address
        } else if table.count >= self.limits.connections {
            ConnectionLimit::Total
        } else {
            return Ok(self.add(&mut table, network));
        };
        table.log(limit, network, now);
        // A crowd that reconnects all the time must not keep the server busy with the connections of others.
        let is_largest = || {
            table
                .networks
                .keys()
                .all(|other| table.count_of(*other) <= own)
        };
        let is_among_own = limit == ConnectionLimit::Address || (own > 0 && is_largest());
        let is_closed = table.close_one(limit, network, is_among_own, now);
        Err(Full {
            limit,
            is_refused: is_among_own && !is_closed,
        })
    }

    /// Returns a slot regardless of the limits, for connections in the listener's queue when the server stops.
    pub fn enter_always(self: &Arc<Self>, network: Option<IpAddr>) -> Slot {
        self.add(&mut self.table.lock(), network)
    }

    fn add(self: &Arc<Self>, table: &mut Table, network: Option<IpAddr>) -> Slot {
        let connection = Arc::new(Connection::of(network));
        table.count += 1;
        table
            .networks
            .entry(network)
            .or_default()
            .push(Arc::clone(&connection));
        Slot {
            connection,
            connections: Arc::clone(self),
        }
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
        for connection in self.table.lock().networks.values().flatten() {
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
    /// The number of connections of a network. Trusted proxies are no crowd, however many they have.
    fn count_of(&self, network: Option<IpAddr>) -> usize {
        network
            .and_then(|_| self.networks.get(&network))
            .map_or(0, Vec::len)
    }

    /// Closes the first connection by [`ClosingOrder`] for a new one of a network, if `is_among_own` the first one of
    /// this network. Returns whether there was one.
    fn close_one(
        &mut self,
        limit: ConnectionLimit,
        network: Option<IpAddr>,
        is_among_own: bool,
        now: Instant,
    ) -> bool {
        let own = self.count_of(network);
        loop {
            let candidates = self
                .networks
                .iter()
                .filter(|(other, _)| !is_among_own || **other == network);
            let ordered = candidates.flat_map(|(other, open)| {
                let count = self.count_of(*other);
                open.iter().filter_map(move |connection| {
                    let order = connection.state.lock().closing_order(count, own, now)?;
                    let is_spared = limit == ConnectionLimit::Total && order.0 == Rank::InGrace;
                    (!is_spared).then_some((order, count, connection))
                })
            });
            let Some((first, count, connection)) = ordered.min_by_key(|(order, ..)| *order) else {
                return false;
            };
            let mut state = connection.state.lock();
            // It may have become active in the meantime.
            if state.closing_order(count, own, now) == Some(first) {
                connection.close(&mut state, CloseCause::Capacity);
                drop(state);
                self.remove(&Arc::clone(connection));
                return true;
            }
        }
    }

    fn remove(&mut self, connection: &Arc<Connection>) {
        let Some(open) = self.networks.get_mut(&connection.network) else {
            return;
        };
        let before = open.len();
        open.retain(|one| !Arc::ptr_eq(one, connection));
        self.count -= before - open.len();
        if open.is_empty() {
            self.networks.remove(&connection.network);
        }
    }

    fn log(&mut self, limit: ConnectionLimit, network: Option<IpAddr>, now: Instant) {
        if self
            .reached
            .insert(limit, now)
            .is_some_and(|last| now.saturating_duration_since(last) < QUIET_TIME)
        {
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

    /// The position of the closed connection, or the limit if none can be closed.
    type Outcome = Result<usize, Full>;

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
        let waits = Err(Full {
            limit: ConnectionLimit::Total,
            is_refused: false,
        });
        // Every connection has a network of its own. The first one of the order is closed, if any.
        let cases: [([(Does, u64); 3], Outcome); 18] = [
            (
                [(Idle(false), 3), (Idle(false), 5), (Idle(false), 4)],
                Ok(1),
            ),
            ([(Idle(false), 3), (New, 5), (Reading(false, 0), 9)], Ok(2)),
            ([(Idle(K), 30), (Idle(false), 2), (New, 0)], Ok(1)),
            ([(Idle(K), 30), (Reading(false, 5), 2), (New, 0)], Ok(1)),
            ([(Idle(K), 30), (Answering, 60), (New, 0)], Ok(0)),
            (
                [
                    (Reading(false, 5000), 9),
                    (Reading(K, 10), 9),
                    (Answering, 9),
                ],
                Ok(0),
            ),
            (
                [
                    (Reading(false, 5000), 9),
                    (Reading(false, 10), 9),
                    (Answering, 9),
                ],
                Ok(1),
            ),
            (
                [
                    (Reading(false, GOOD), 99),
                    (Reading(false, 10), 9),
                    (Answering, 9),
                ],
                Ok(1),
            ),
            ([(Idle(K), 5), (Reading(K, 10), 60), (Answering, 9)], Ok(0)),
            // Long polls are last, but for connections in their grace period.
            ([(LongPolling, 90), (Idle(K), 5), (Answering, 9)], Ok(1)),
            ([(LongPolling, 90), (Idle(K), 0), (Answering, 9)], Ok(0)),
            ([(LongPolling, 6), (LongPolling, 9), (Answering, 99)], Ok(1)),
            // There is a grace period.
            ([(New, 0), (Idle(false), 0), (Idle(K), 7)], Ok(2)),
            ([(Idle(K), 4), (Idle(K), 3), (New, 1)], Ok(2)),
            ([(Idle(K), 0), (New, 0), (Answering, 99)], waits),
            // Connections that are served keep their slots.
            ([(Answering, 99), (Answering, 99), (Answering, 99)], waits),
            (
                [
                    (Reading(false, GOOD), 99),
                    (Reading(false, 2 * GOOD), 99),
                    (Answering, 99),
                ],
                waits,
            ),
            (
                [
                    (Reading(K, 0), 0),
                    (Reading(K, 10), 99),
                    (Reading(K, GOOD), 99),
                ],
                waits,
            ),
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
            Err(Full {
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
            (Idle(K), Reading(false, 0), 0, 3, Ok(1)),
            (Idle(K), Idle(K), 0, 3, Ok(0)),
            (Idle(K), Idle(K), 2, 3, Ok(1)),
            (Idle(K), Reading(K, 0), 9, 3, Ok(0)),
            (Idle(K), New, 2, 2, Ok(1)),
            (Idle(K), Idle(K), 2, 2, Ok(1)),
            (Idle(K), New, 0, 2, refused),
            (Idle(K), Idle(K), 0, 2, refused),
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
        let refused = Err(Full {
            limit: ConnectionLimit::Address,
            is_refused: true,
        });
        // Network 1 may have two. The connection of network 2 has been idle for long.
        let cases: [([(Does, u64); 2], Outcome); 9] = [
            ([(LongPolling, 0), (LongPolling, 2)], Ok(1)),
            ([(LongPolling, 9), (Reading(false, 10), 7)], Ok(1)),
            ([(LongPolling, 9), (Reading(K, 10), 7)], Ok(0)),
            ([(New, 0), (New, 2)], Ok(1)),
            ([(New, 0), (Idle(K), 50)], Ok(1)),
            ([(New, 0), (Answering, 50)], Ok(0)),
            ([(Idle(K), 0), (Answering, 50)], Ok(0)),
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
        let waits = Full {
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
            (Reading(false, 60_000), 7000, None),
            (Reading(false, 60_000), 7500, slow),
            (Reading(false, 66_000), 9999, None),
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
        slot.connection.start_long_poll();
        assert!(!slot.connection.is_answering(), "there is no request");
        start(LongPolling, &slot.connection);
        slot.connection.finish_long_poll();
        connections.enter(network(2)).expect_err("it is taken");
        assert!(slot.connection.close_reason().is_none(), "it is answered");
        slot.connection.start_long_poll();
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
        assert!(table.count == 0 && table.networks.is_empty());
    }
}
