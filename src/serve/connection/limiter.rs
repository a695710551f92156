//! The connection limiter: limits connections in all and per network, and chooses which one is closed for a new one.
//!
//! No caller can shut out others with idle connections, incomplete requests or slow reading, since those are closed first.
//! A connection whose request is being answered, or whose answer is read at a good rate, is never closed. One whose request
//! waits for news of a change feed goes last: it is answered at once, and leaves its slot.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::api::observe::{ConnectionLimit, GivenUp};
use crate::serve::connection::state::{Burden, ConnectionState};

/// The time that a connection may be idle, unfinished or slow before it can be closed for any other: a new caller has time to
/// send its request.
const GRACE: Duration = Duration::from_secs(1);

/// The same if the connection's last request had a usable key.
const GRACE_WITH_KEY: Duration = Duration::from_secs(5);

/// A met limit is logged again only after this time without one.
const CALM: Duration = Duration::from_secs(60);

/// The limiter, with a slot per connection.
#[derive(Debug)]
pub struct ConnectionLimiter {
    slots: usize,
    per_network: usize,
    table: Mutex<Table>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    held: HashMap<u64, Held>,
    /// The connections per network.
    networks: HashMap<IpAddr, usize>,
    last_at_total: Option<Instant>,
    last_at_network: Option<Instant>,
}

#[derive(Debug)]
struct Held {
    network: Option<IpAddr>,
    state: ConnectionState,
    closed: Arc<Notify>,
}

/// A connection's slot. Dropping it frees it.
#[derive(Debug)]
pub struct Slot {
    number: u64,
    /// What the connection is doing.
    pub state: ConnectionState,
    /// The limit that made another connection close for this one.
    pub met: Option<ConnectionLimit>,
    limiter: Arc<ConnectionLimiter>,
}

/// A connection that was given up.
struct Victim {
    number: u64,
    reason: GivenUp,
    closed: Arc<Notify>,
}

/// The decision about a new connection.
enum Decision {
    /// A slot is free.
    Slot(Slot),
    /// Another connection was told to close for it.
    After(Arc<Notify>, ConnectionLimit),
    /// None can be closed for it now.
    Refused(ConnectionLimit),
}

impl ConnectionLimiter {
    /// Creates a limiter of `slots` in all and `per_network` of them for one network.
    pub fn new(slots: usize, per_network: usize) -> Arc<ConnectionLimiter> {
        Arc::new(ConnectionLimiter { slots, per_network, table: Mutex::default(), freed: Notify::new() })
    }

    /// Returns a slot for a new connection of a network; `None` is not limited, as for trusted proxies. It waits only for the
    /// end of the connection that is closed for it, whose task just has to run.
    ///
    /// # Errors
    /// The limit that is met, when there is no slot now.
    pub async fn admit(self: &Arc<Self>, network: Option<IpAddr>) -> Result<Slot, ConnectionLimit> {
        let mut met = None;
        loop {
            match self.decide(network) {
                Decision::Slot(mut slot) => {
                    slot.met = slot.met.or(met);
                    return Ok(slot);
                }
                Decision::After(closed, limit) => {
                    met = Some(limit);
                    closed.notified().await;
                }
                Decision::Refused(limit) => return Err(limit),
            }
        }
    }

    /// Returns a slot beyond the limits, for connections in the listener's queue when the server stops.
    pub fn admit_beyond(self: &Arc<Self>, network: Option<IpAddr>) -> Slot {
        self.enter(&mut self.lock(), network)
    }

    /// Resolves when a slot was freed since the last call.
    pub async fn freed(&self) {
        self.freed.notified().await;
    }

    fn decide(self: &Arc<Self>, network: Option<IpAddr>) -> Decision {
        let now = Instant::now();
        let mut table = self.lock();
        let own = table.count(network);
        let (limit, victim) = if network.is_some() && own >= self.per_network {
            table.warn_at_network(now, network, own);
            (ConnectionLimit::Address, table.find_own(network, now))
        } else if table.held.len() >= self.slots {
            table.warn_at_total(now, self.slots);
            (ConnectionLimit::Total, table.find_any(now).or_else(|| table.find_of_greedier(own, now)))
        } else {
            return Decision::Slot(self.enter(&mut table, network));
        };
        match victim {
            // It leaves by itself, with its answer.
            Some(Victim { number, reason: GivenUp::Waiting, .. }) => {
                table.leave(number);
                let mut slot = self.enter(&mut table, network);
                slot.met = Some(limit);
                Decision::Slot(slot)
            }
            Some(Victim { closed, .. }) => Decision::After(closed, limit),
            None => Decision::Refused(limit),
        }
    }

    fn enter(self: &Arc<Self>, table: &mut Table, network: Option<IpAddr>) -> Slot {
        let number = table.next;
        table.next += 1;
        let state = ConnectionState::default();
        table.held.insert(number, Held { network, state: state.clone(), closed: Arc::default() });
        if let Some(network) = network {
            *table.networks.entry(network).or_default() += 1;
        }
        Slot { number, state, met: None, limiter: Arc::clone(self) }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The order in which connections are closed: without a key first, then those that are not sending, then the slowest, then
/// those that wait for news, then the longest.
fn worth(burden: &Burden) -> impl Ord + use<> {
    let rank = match burden.reason {
        GivenUp::Idle | GivenUp::Unfinished => 0,
        GivenUp::Slow => 1,
        GivenUp::Waiting => 2,
    };
    (burden.has_key, rank, burden.rate, Reverse(burden.lasts))
}

/// Whether it is too early to judge a caller as slow. Without a key all answers are small, so there is nothing to wait for.
fn is_young(burden: &Burden) -> bool {
    burden.reason == GivenUp::Slow && burden.has_key && burden.lasts < GRACE
}

impl Table {
    fn count(&self, network: Option<IpAddr>) -> usize {
        network.and_then(|network| self.networks.get(&network)).copied().unwrap_or_default()
    }

    /// Closes one of a network's own connections.
    fn find_own(&self, network: Option<IpAddr>, now: Instant) -> Option<Victim> {
        let own = |held: &Held, burden: &Burden| (held.network == network && !is_young(burden)).then(|| worth(burden));
        self.give_up(now, own)
    }

    /// Closes one that has been idle, unfinished or slow for its grace time.
    fn find_any(&self, now: Instant) -> Option<Victim> {
        self.give_up(now, |_, burden| {
            let grace = if burden.has_key { GRACE_WITH_KEY } else { GRACE };
            (burden.lasts >= grace).then(|| worth(burden))
        })
    }

    /// Closes one of the network with most connections, if it has more than the new one's network would have. A crowd that
    /// keeps reconnecting thus shuts out only itself.
    fn find_of_greedier(&self, own: usize, now: Instant) -> Option<Victim> {
        self.give_up(now, |held, burden| {
            let count = self.count(held.network);
            (count > own + 1 && !is_young(burden)).then(|| (Reverse(count), worth(burden)))
        })
    }

    /// Tells the connection of least worth to close.
    fn give_up<W: Ord>(&self, now: Instant, worth: impl Fn(&Held, &Burden) -> Option<W>) -> Option<Victim> {
        loop {
            let judged = self.held.iter().filter_map(|(number, held)| {
                let burden = held.state.burden(now)?;
                Some((worth(held, &burden)?, burden, *number, held))
            });
            let (_, burden, number, held) = judged.min_by(|(one, ..), (other, ..)| one.cmp(other))?;
            // It may have become active meanwhile.
            if held.state.give_up(now, burden.lasts)
                && let Some((reason, _)) = held.state.given_up()
            {
                return Some(Victim { number, reason, closed: Arc::clone(&held.closed) });
            }
        }
    }

    /// Takes a connection out.
    fn leave(&mut self, number: u64) -> Option<Held> {
        let held = self.held.remove(&number)?;
        if let Some(network) = held.network
            && let Some(count) = self.networks.get_mut(&network)
        {
            *count -= 1;
            if *count == 0 {
                self.networks.remove(&network);
            }
        }
        Some(held)
    }

    fn warn_at_total(&mut self, now: Instant, slots: usize) {
        if begins(&mut self.last_at_total, now) {
            tracing::warn!(
                slots,
                networks = self.networks.len(),
                "all connection slots are taken: idle, unfinished and slow connections are given up for new ones; if the \
                 callers are honest, raise --max-connections"
            );
        }
    }

    fn warn_at_network(&mut self, now: Instant, network: Option<IpAddr>, connections: usize) {
        if begins(&mut self.last_at_network, now) {
            tracing::warn!(
                address = network.map(tracing::field::display),
                connections,
                "an address has as many connections as it may: its idle, unfinished and slow ones are given up for its \
                 new ones; if its callers are honest, raise --max-connections-per-address"
            );
        }
    }
}

/// Whether this is the first time after a calm period.
fn begins(last: &mut Option<Instant>, now: Instant) -> bool {
    last.replace(now).is_none_or(|last| now.saturating_duration_since(last) >= CALM)
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(held) = self.limiter.lock().leave(self.number) else { return };
        held.closed.notify_one();
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

    /// What a connection does in a test.
    #[derive(Clone, Copy, Debug)]
    enum Does {
        /// Nothing came yet.
        New,
        /// It had an answer: with a key, or without.
        Idle(bool),
        Answering,
        /// It takes its answer, of which nothing is left behind.
        Fast(bool),
        /// It takes so many bytes a second.
        Slow(bool, usize),
        /// Its request waits for news.
        News,
    }
    use Does::{Answering, Fast, Idle, New, News, Slow};

    /// A connection's name, what it does, and for how many seconds it has done so.
    type Member = (&'static str, Does, u64);

    /// Who is given up for a new one, or the limit because of which nobody is.
    type Outcome = Result<&'static str, ConnectionLimit>;

    /// Held slots, by name.
    struct Crowd(Vec<(&'static str, Slot)>);

    impl Crowd {
        /// Connections by name, network, deed, and since how many seconds.
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
                        assert!(slot.state.took(rate));
                        slot.state.blocked();
                    }
                }
                advance(Duration::from_millis(if second == 0 { 1 } else { 1000 })).await;
            }
            Crowd(slots)
        }

        /// Lets one more in; who was given up for it, if it was.
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
                assert!(slot.met.is_some(), "no slot was free");
                let released = self.0.iter().position(|(_, slot)| slot.state.given_up().is_some()).expect("one is");
                let (name, old) = self.0.remove(released);
                timeout(Duration::ZERO, old.state.released()).await.expect("it is told to answer");
                drop(old);
                assert_eq!(limiter.lock().held.len(), self.0.len() + 1, "it had left its slot");
                return Ok(name);
            }
            let closed = self.0.iter().position(|(_, slot)| slot.state.given_up().is_some()).expect("one is given up");
            let (name, slot) = self.0.remove(closed);
            timeout(Duration::ZERO, slot.state.closed()).await.expect("it is told to close");
            drop(slot);
            let admitted = timeout(Duration::from_millis(1), admitting).await.expect("at once").unwrap();
            assert!(admitted.expect("its slot is free").met.is_some());
            assert!(self.0.iter().all(|(_, slot)| slot.state.given_up().is_none()), "one is enough");
            Ok(name)
        }
    }

    fn start(does: Does, state: &ConnectionState) {
        let answered = match does {
            New => return,
            Answering | News => None,
            Idle(has_key) | Fast(has_key) | Slow(has_key, _) => Some(has_key),
        };
        assert!(state.begin());
        if let Some(has_key) = answered {
            state.end(has_key);
        }
        match does {
            Idle(_) => state.sent(),
            Slow(..) => state.blocked(),
            News => state.hold(),
            _ => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_worth_least_is_given_up() {
        const K: bool = true;
        let total = Err(ConnectionLimit::Total);
        // Each has a network of its own, and so has the new one.
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
            // Who waits for news goes last.
            (&[("a", News, 90), ("b", Idle(K), 5), ("c", Slow(K, 10), 9)], Ok("b")),
            (&[("a", News, 6), ("b", News, 9), ("c", Answering, 99)], Ok("b")),
            (&[("a", News, 4), ("b", Fast(K), 9), ("c", Answering, 99)], total),
            // Who has just come, or has a key, has its time.
            (&[("a", New, 0), ("b", New, 0), ("c", Idle(false), 0)], total),
            (&[("a", Slow(false, 0), 0), ("b", Answering, 99), ("c", New, 0)], total),
            (&[("a", Idle(K), 4), ("b", Slow(K, 0), 4), ("c", Answering, 99)], total),
            // Who is served keeps its slot.
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
        // The network 1 may have two; others idle for long.
        let cases: [([Member; 2], Outcome); 10] = [
            ([("a", News, 0), ("b", News, 2)], Ok("b")),
            ([("a", News, 9), ("b", Slow(K, 10), 2)], Ok("b")),
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
    async fn who_has_most_makes_room_for_who_has_less() {
        let total = Err(ConnectionLimit::Total);
        // Four slots, all taken just now, by the networks given; the new one's network; whose is given up.
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
        // But not what is served, nor what a proxy has.
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
        assert!(first.state.begin() && second.state.begin());
        assert_eq!(limiter.admit(network(1)).await.err(), Some(ConnectionLimit::Total));
        let beyond = limiter.admit_beyond(network(1));
        assert!(beyond.state.begin());
        assert_eq!(limiter.admit(network(1)).await.err(), Some(ConnectionLimit::Address));
        drop((second, beyond));
        limiter.freed().await;
        let third = limiter.admit(network(1)).await.unwrap();
        assert!(third.met.is_none() && limiter.lock().count(network(1)) == 2);
        drop((first, third));
        let table = limiter.lock();
        assert!(table.held.is_empty() && table.networks.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_is_told_once_until_there_is_calm() {
        let mut last = None;
        let mut times = Vec::new();
        for seconds in [0, 10, 50, 59, 59, 60, 1] {
            advance(Duration::from_secs(seconds)).await;
            times.push(begins(&mut last, Instant::now()));
        }
        assert_eq!(times, [true, false, false, false, false, true, false]);
        advance(Duration::from_secs(3600)).await;
        assert!(begins(&mut last, Instant::now()));
    }
}
