//! Limits connections, in total and per network, and chooses which connection is closed for a new one.
//!
//! Idle connections, incomplete requests and slow readers are closed first, so they cannot shut out other callers. A
//! connection is never closed while its request is being answered, or while its caller reads at a good rate.
//! Long-polling requests are last: they are answered at once, and then closed.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::api::observe::{CloseReason, ConnectionLimit};
use crate::serve::connection::state::{ConnectionState, Evictable};

/// The time for which a connection may be idle, unfinished or slow before it can be closed for another network. New
/// callers need it to send their request.
const GRACE: Duration = Duration::from_secs(1);

/// The grace period of a connection whose last request had a usable key.
const GRACE_WITH_KEY: Duration = Duration::from_secs(5);

/// A reached limit is logged again only if it was not reached for this time.
const QUIET_TIME: Duration = Duration::from_secs(60);

/// The limiter. Each connection takes a slot.
#[derive(Debug)]
pub struct ConnectionLimiter {
    slots: usize,
    per_network: usize,
    table: Mutex<ConnectionTable>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct ConnectionTable {
    next: u64,
    open: HashMap<u64, OpenConnection>,
    networks: HashMap<IpAddr, usize>,
    last_at_total: Option<Instant>,
    last_at_network: Option<Instant>,
}

#[derive(Debug)]
struct OpenConnection {
    network: Option<IpAddr>,
    state: ConnectionState,
    closed: Arc<Notify>,
}

/// A connection's slot. Dropping it frees it.
#[derive(Debug)]
pub struct Slot {
    number: u64,
    pub state: ConnectionState,
    /// The limit because of which another connection was closed for this one.
    pub reached: Option<ConnectionLimit>,
    limiter: Arc<ConnectionLimiter>,
}

struct Evicted {
    number: u64,
    reason: CloseReason,
    closed: Arc<Notify>,
}

enum Decision {
    Slot(Slot),
    /// The slot becomes free when this connection, which is being closed, ends.
    AfterClosing(Arc<Notify>, ConnectionLimit),
    /// No connection can be closed for it now.
    Refused(ConnectionLimit),
}

impl ConnectionLimiter {
    /// Creates a limiter of `slots` in total and `per_network` for one network.
    pub fn new(slots: usize, per_network: usize) -> Arc<ConnectionLimiter> {
        Arc::new(ConnectionLimiter { slots, per_network, table: Mutex::default(), freed: Notify::new() })
    }

    /// Returns a slot for a new connection of a network, or the limit that it reached. `None`, for trusted proxies, has
    /// no limit per network. Waits at most until the task of an evicted connection has run.
    pub async fn admit(self: &Arc<Self>, network: Option<IpAddr>) -> Result<Slot, ConnectionLimit> {
        let mut reached = None;
        loop {
            match self.decide(network) {
                Decision::Slot(mut slot) => {
                    slot.reached = slot.reached.or(reached);
                    return Ok(slot);
                }
                Decision::AfterClosing(closed, limit) => {
                    reached = Some(limit);
                    closed.notified().await;
                }
                Decision::Refused(limit) => return Err(limit),
            }
        }
    }

    /// Returns a slot regardless of the limits, for connections in the listener's queue when the server stops.
    pub fn admit_always(self: &Arc<Self>, network: Option<IpAddr>) -> Slot {
        self.enter(&mut self.lock(), network)
    }

    /// Resolves when a slot has been freed since the last call.
    pub async fn freed(&self) {
        self.freed.notified().await;
    }

    fn decide(self: &Arc<Self>, network: Option<IpAddr>) -> Decision {
        let now = Instant::now();
        let mut table = self.lock();
        let own = table.count(network);
        let (limit, evicted) = if network.is_some() && own >= self.per_network {
            table.warn_at_network(now, network, own);
            (ConnectionLimit::Address, table.evict_own(network, now))
        } else if table.open.len() >= self.slots {
            table.warn_at_total(now, self.slots);
            (ConnectionLimit::Total, table.evict_any(now).or_else(|| table.evict_from_larger(own, now)))
        } else {
            return Decision::Slot(self.enter(&mut table, network));
        };
        match evicted {
            // It still sends its response, but no longer counts.
            Some(Evicted { number, reason: CloseReason::Waiting, .. }) => {
                table.remove(number);
                let mut slot = self.enter(&mut table, network);
                slot.reached = Some(limit);
                Decision::Slot(slot)
            }
            Some(Evicted { closed, .. }) => Decision::AfterClosing(closed, limit),
            None => Decision::Refused(limit),
        }
    }

    fn enter(self: &Arc<Self>, table: &mut ConnectionTable, network: Option<IpAddr>) -> Slot {
        let number = table.next;
        table.next += 1;
        let state = ConnectionState::default();
        table.open.insert(number, OpenConnection { network, state: state.clone(), closed: Arc::default() });
        if let Some(network) = network {
            *table.networks.entry(network).or_default() += 1;
        }
        Slot { number, state, reached: None, limiter: Arc::clone(self) }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The order in which connections are closed: without a key before with one. Then idle or unfinished, slow (slowest
/// first), long-polling. Then the longest time in this phase.
fn eviction_order(evictable: &Evictable) -> impl Ord + use<> {
    let rank = match evictable.reason {
        CloseReason::Idle | CloseReason::Unfinished => 0,
        CloseReason::Slow => 1,
        CloseReason::Waiting => 2,
    };
    (evictable.has_key, rank, evictable.rate, Reverse(evictable.duration))
}

/// Whether it is too early to call a reader slow. Without a key all responses are small, so no time is needed.
fn is_too_early(evictable: &Evictable) -> bool {
    evictable.reason == CloseReason::Slow && evictable.has_key && evictable.duration < GRACE
}

impl ConnectionTable {
    fn count(&self, network: Option<IpAddr>) -> usize {
        network.and_then(|network| self.networks.get(&network)).copied().unwrap_or_default()
    }

    fn evict_own(&self, network: Option<IpAddr>, now: Instant) -> Option<Evicted> {
        let own = |open: &OpenConnection, evictable: &Evictable| {
            (open.network == network && !is_too_early(evictable)).then(|| eviction_order(evictable))
        };
        self.evict(now, own)
    }

    /// Closes a connection whose grace period is over.
    fn evict_any(&self, now: Instant) -> Option<Evicted> {
        self.evict(now, |_, evictable| {
            let grace = if evictable.has_key { GRACE_WITH_KEY } else { GRACE };
            (evictable.duration >= grace).then(|| eviction_order(evictable))
        })
    }

    /// Closes a connection of the network with the most connections, if that has more than the new connection's network
    /// would have. So a network that keeps reconnecting shuts out only itself.
    fn evict_from_larger(&self, own: usize, now: Instant) -> Option<Evicted> {
        self.evict(now, |open, evictable| {
            let count = self.count(open.network);
            (count > own + 1 && !is_too_early(evictable)).then(|| (Reverse(count), eviction_order(evictable)))
        })
    }

    /// Closes the first connection by `order`, which returns `None` for connections that must stay.
    fn evict<O: Ord>(&self, now: Instant, order: impl Fn(&OpenConnection, &Evictable) -> Option<O>) -> Option<Evicted> {
        loop {
            let candidates = self.open.iter().filter_map(|(number, open)| {
                let evictable = open.state.evictable(now)?;
                Some((order(open, &evictable)?, evictable, *number, open))
            });
            let (_, evictable, number, open) = candidates.min_by(|(one, ..), (other, ..)| one.cmp(other))?;
            // It may have become active in the meantime.
            if open.state.evict(now, evictable.duration)
                && let Some((reason, _)) = open.state.close_reason()
            {
                return Some(Evicted { number, reason, closed: Arc::clone(&open.closed) });
            }
        }
    }

    fn remove(&mut self, number: u64) -> Option<OpenConnection> {
        let open = self.open.remove(&number)?;
        if let Some(network) = open.network
            && let Some(count) = self.networks.get_mut(&network)
        {
            *count -= 1;
            if *count == 0 {
                self.networks.remove(&network);
            }
        }
        Some(open)
    }

    fn warn_at_total(&mut self, now: Instant, slots: usize) {
        if should_log(&mut self.last_at_total, now) {
            tracing::warn!(
                slots,
                networks = self.networks.len(),
                "all connection slots are taken: idle, unfinished and slow connections are closed for new ones; if the \
                 callers are legitimate, serve behind a proxy, or raise the limit of open files if the log warned of it \
                 at the start"
            );
        }
    }

    fn warn_at_network(&mut self, now: Instant, network: Option<IpAddr>, connections: usize) {
        if should_log(&mut self.last_at_network, now) {
            tracing::warn!(
                address = network.map(tracing::field::display),
                connections,
                "an address has reached its connection limit: its idle, unfinished and slow connections are closed for \
                 its new ones; if it is a proxy, name it with --trusted-proxy"
            );
        }
    }
}

/// Whether to log now: the last time is at least [`QUIET_TIME`] ago.
fn should_log(last: &mut Option<Instant>, now: Instant) -> bool {
    last.replace(now).is_none_or(|last| now.saturating_duration_since(last) >= QUIET_TIME)
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(open) = self.limiter.lock().remove(self.number) else { return };
        open.closed.notify_one();
        self.limiter.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::time::{advance, timeout};

    use super::*;

    fn network(number: u8) -> Option<IpAddr> {
        Some(Ipv4Addr::new(192, 0, 2, number).into())
    }

    #[derive(Clone, Copy, Debug)]
    enum Does {
        New,
        /// It got a response: with a key, or without.
        Idle(bool),
        Answering,
        Fast(bool),
        /// It reads this number of bytes per second.
        Slow(bool, usize),
        LongPolling,
    }
    use Does::{Answering, Fast, Idle, LongPolling, New, Slow};

    /// A connection's name and activity, and the seconds for which it lasts.
    type Member = (&'static str, Does, u64);

    /// The connection that is evicted, or the limit because of which the new one is refused.
    type Outcome = Result<&'static str, ConnectionLimit>;

    struct Crowd(Vec<(&'static str, Slot)>);

    impl Crowd {
        /// Opens connections with a name, network, activity and its duration in seconds.
        async fn of(limiter: &Arc<ConnectionLimiter>, members: &[(&'static str, u8, Does, u64)]) -> Crowd {
            let mut slots: Vec<(&'static str, Slot)> = Vec::new();
            let longest = members.iter().map(|member| member.3).max().unwrap();
            for second in (0..=longest).rev() {
                for (name, number, does, since) in members {
                    if *since == second {
                        let slot = limiter.admit(network(*number)).await.expect("a free slot");
                        start(*does, &slot.state);
                        slots.push((*name, slot));
                    } else if let Slow(_, rate) = *does
                        && *since > second
                    {
                        let (_, slot) = slots.iter().find(|(other, _)| other == name).unwrap();
                        assert!(slot.state.note_written(rate));
                        slot.state.note_blocked();
                    }
                }
                advance(Duration::from_millis(if second == 0 { 1 } else { 1000 })).await;
            }
            Crowd(slots)
        }

        /// Admits another connection. Returns the one that was evicted for it.
        async fn admit(mut self, limiter: &Arc<ConnectionLimiter>, number: u8) -> Outcome {
            let admitting = tokio::spawn({
                let limiter = Arc::clone(limiter);
                async move { limiter.admit(network(number)).await }
            });
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            if admitting.is_finished() {
                let slot = admitting.await.unwrap()?;
                assert!(slot.reached.is_some(), "no slot was free");
                let released = self.0.iter().position(|(_, slot)| slot.state.close_reason().is_some()).expect("one is");
                let (name, old) = self.0.remove(released);
                timeout(Duration::ZERO, old.state.woken_early()).await.expect("it is woken");
                drop(old);
                assert_eq!(limiter.lock().open.len(), self.0.len() + 1, "it had left its slot");
                return Ok(name);
            }
            let closed =
                self.0.iter().position(|(_, slot)| slot.state.close_reason().is_some()).expect("one is evicted");
            let (name, slot) = self.0.remove(closed);
            timeout(Duration::ZERO, slot.state.closed()).await.expect("it is closed");
            drop(slot);
            let admitted = timeout(Duration::from_millis(1), admitting).await.expect("at once").unwrap();
            assert!(admitted.expect("its slot is free").reached.is_some());
            assert!(self.0.iter().all(|(_, slot)| slot.state.close_reason().is_none()), "one is enough");
            Ok(name)
        }
    }

    fn start(does: Does, state: &ConnectionState) {
        let answered = match does {
            New => return,
            Answering | LongPolling => None,
            Idle(has_key) | Fast(has_key) | Slow(has_key, _) => Some(has_key),
        };
        assert!(state.start_answer());
        if let Some(has_key) = answered {
            state.finish_answer(has_key);
        }
        match does {
            Idle(_) => state.finish_sending(),
            Slow(..) => state.note_blocked(),
            LongPolling => state.start_long_poll(),
            _ => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_least_useful_connection_is_evicted() {
        const K: bool = true;
        let total = Err(ConnectionLimit::Total);
        // Every connection has a network of its own.
        let cases: [(&[Member], Outcome); 18] = [
            (&[("a", Idle(false), 3), ("b", Idle(false), 5), ("c", Idle(false), 4)], Ok("b")),
            (&[("a", Idle(false), 3), ("b", New, 5), ("c", Slow(false, 0), 9)], Ok("b")),
            (&[("a", Idle(K), 30), ("b", Idle(false), 2), ("c", New, 0)], Ok("b")),
            (&[("a", Idle(K), 30), ("b", Slow(false, 5), 2), ("c", New, 0)], Ok("b")),
            (&[("a", Idle(K), 30), ("b", Answering, 60), ("c", New, 0)], Ok("a")),
            (&[("a", Slow(false, 900), 9), ("b", Slow(false, 300), 3), ("c", Slow(false, 500), 20)], Ok("b")),
            (&[("a", Slow(false, 5000), 9), ("b", Slow(K, 10), 9), ("c", Answering, 9)], Ok("a")),
            (&[("a", Slow(K, 5000), 9), ("b", Slow(K, 10), 9), ("c", Answering, 9)], Ok("b")),
            (&[("a", Fast(K), 99), ("b", Slow(K, 10), 9), ("c", Fast(false), 99)], Ok("b")),
            (&[("a", Idle(K), 5), ("b", Slow(K, 10), 60), ("c", Answering, 9)], Ok("a")),
            // Long-polling connections are last.
            (&[("a", LongPolling, 90), ("b", Idle(K), 5), ("c", Slow(K, 10), 9)], Ok("b")),
            (&[("a", LongPolling, 6), ("b", LongPolling, 9), ("c", Answering, 99)], Ok("b")),
            (&[("a", LongPolling, 4), ("b", Fast(K), 9), ("c", Answering, 99)], total),
            // New connections and those with a key have a grace period.
            (&[("a", New, 0), ("b", New, 0), ("c", Idle(false), 0)], total),
            (&[("a", Slow(false, 0), 0), ("b", Answering, 99), ("c", New, 0)], total),
            (&[("a", Idle(K), 4), ("b", Slow(K, 0), 4), ("c", Answering, 99)], total),
            // Connections that are served keep their slots.
            (&[("a", Answering, 99), ("b", Answering, 99), ("c", Answering, 99)], total),
            (&[("a", Fast(K), 99), ("b", Fast(false), 99), ("c", Answering, 99)], total),
        ];
        for (members, expected) in cases {
            let limiter = ConnectionLimiter::new(3, 3);
            let numbered = (1..).zip(members);
            let members: Vec<_> = numbered.map(|(at, (name, does, since))| (*name, at, *does, *since)).collect();
            let crowd = Crowd::of(&limiter, &members).await;
            assert_eq!(crowd.admit(&limiter, 9).await, expected, "{members:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_makes_room_among_its_own() {
        const K: bool = true;
        let address = Err(ConnectionLimit::Address);
        // Network 1 may have two. The connection of network 2 has been idle for long.
        let cases: [([Member; 2], Outcome); 10] = [
            ([("a", LongPolling, 0), ("b", LongPolling, 2)], Ok("b")),
            ([("a", LongPolling, 9), ("b", Slow(K, 10), 2)], Ok("b")),
            ([("a", New, 0), ("b", New, 2)], Ok("b")),
            ([("a", New, 0), ("b", Idle(K), 50)], Ok("a")),
            ([("a", Slow(false, 10), 0), ("b", Answering, 50)], Ok("a")),
            ([("a", Idle(K), 0), ("b", Answering, 50)], Ok("a")),
            ([("a", Slow(K, 10), 2), ("b", Fast(K), 50)], Ok("a")),
            ([("a", Slow(K, 10), 0), ("b", Fast(K), 50)], address),
            ([("a", Answering, 0), ("b", Fast(K), 50)], address),
            ([("a", Answering, 50), ("b", Answering, 50)], address),
        ];
        for (members, expected) in cases {
            for slots in [3, 100] {
                let limiter = ConnectionLimiter::new(slots, 2);
                let [(first, does, since), (second, does_too, since_too)] = members;
                let members = [(first, 1, does, since), (second, 1, does_too, since_too), ("other", 2, New, 99)];
                let crowd = Crowd::of(&limiter, &members).await;
                assert_eq!(crowd.admit(&limiter, 1).await, expected, "{members:?} of {slots}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_largest_network_makes_room_for_smaller_ones() {
        let total = Err(ConnectionLimit::Total);
        // The networks of four new connections in four slots, the network of a fifth one, and the evicted network.
        let cases: [([u8; 4], u8, Outcome); 6] = [
            ([1, 1, 1, 2], 3, Ok("1")),
            ([2, 1, 1, 1], 2, Ok("1")),
            ([1, 2, 2, 3], 4, Ok("2")),
            ([1, 1, 2, 2], 2, total),
            ([1, 2, 3, 4], 5, total),
            ([1, 1, 1, 1], 1, total),
        ];
        for (networks, number, expected) in cases {
            let limiter = ConnectionLimiter::new(4, 64);
            let members = networks.map(|number| (["", "1", "2", "3", "4"][usize::from(number)], number, New, 0));
            let crowd = Crowd::of(&limiter, &members).await;
            assert_eq!(crowd.admit(&limiter, number).await, expected, "{networks:?} and {number}");
        }
        // But not for connections that are served, or a proxy's.
        let limiter = ConnectionLimiter::new(3, 64);
        let proxied = limiter.admit(None).await.unwrap();
        let proxied_too = limiter.admit(None).await.unwrap();
        let crowd = Crowd::of(&limiter, &[("a", 1, Answering, 0)]).await;
        assert_eq!(crowd.admit(&limiter, 2).await, total);
        drop((proxied, proxied_too));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slot_is_free_when_it_is_given_back() {
        let limiter = ConnectionLimiter::new(2, 2);
        let (first, second) = (limiter.admit(network(1)).await.unwrap(), limiter.admit(None).await.unwrap());
        assert!(first.state.start_answer() && second.state.start_answer());
        assert_eq!(limiter.admit(network(1)).await.err(), Some(ConnectionLimit::Total));
        let beyond = limiter.admit_always(network(1));
        assert!(beyond.state.start_answer());
        assert_eq!(limiter.admit(network(1)).await.err(), Some(ConnectionLimit::Address));
        drop((second, beyond));
        limiter.freed().await;
        let third = limiter.admit(network(1)).await.unwrap();
        assert!(third.reached.is_none() && limiter.lock().count(network(1)) == 2);
        drop((first, third));
        let table = limiter.lock();
        assert!(table.open.is_empty() && table.networks.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_is_logged_once_until_it_is_quiet() {
        let mut last = None;
        let mut times = Vec::new();
        for seconds in [0, 10, 50, 59, 59, 60, 1] {
            advance(Duration::from_secs(seconds)).await;
            times.push(should_log(&mut last, Instant::now()));
        }
        assert_eq!(times, [true, false, false, false, false, true, false]);
        advance(Duration::from_secs(3600)).await;
        assert!(should_log(&mut last, Instant::now()));
    }
}
