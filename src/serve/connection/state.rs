//! A connection's state: set by its stream and its service, read by the connection limiter.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::api::observe::{Cause, GivenUp};

/// A caller that reads at this rate, in bytes per second, is never too slow for its slot. Half a megabit is less than any line
/// of an office or a data center carries.
pub const GOOD_RATE: u32 = 64 << 10;

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Waiting for a complete request.
    Waiting {
        since: Instant,
        /// Whether a head has begun, or is expected because the connection is new.
        begun: bool,
    },
    /// Answering a request.
    Answering,
    /// A request waits for news of a change feed.
    Held { since: Instant },
    /// Sending an answer.
    Sending,
    /// Closed for another connection.
    Closed,
}

/// A caller's reading since it fell behind [`GOOD_RATE`]; zero while it keeps up. It spans answers, so that many small ones
/// are judged like a large one.
#[derive(Clone, Copy, Debug, Default)]
struct Arrears {
    /// The time in which writes were blocked.
    blocked: Duration,
    /// The start of the present blocking.
    blocked_since: Option<Instant>,
    /// The bytes that it read.
    taken: u64,
}

impl Arrears {
    fn blocked(&self, now: Instant) -> Duration {
        self.blocked + self.blocked_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    fn is_behind(&self, now: Instant) -> bool {
        u128::from(self.taken) * 1_000_000 < self.blocked(now).as_micros() * u128::from(GOOD_RATE)
    }

    /// Bytes per second.
    fn rate(&self, now: Instant) -> u64 {
        let micros = self.blocked(now).as_micros().max(1);
        u64::try_from(u128::from(self.taken) * 1_000_000 / micros).unwrap_or(u64::MAX)
    }
}

/// Why a connection may be closed for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burden {
    /// The reason.
    pub reason: GivenUp,
    /// For how long.
    pub lasts: Duration,
    /// The rate at which its caller reads, in bytes per second; 0 if nothing is sent.
    pub rate: u64,
    /// Whether its last request had a usable key.
    pub has_key: bool,
}

/// A connection's state.
#[derive(Clone, Debug)]
pub struct ConnectionState(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    closed: Notify,
    released: Notify,
}

#[derive(Debug)]
struct Inner {
    phase: Phase,
    arrears: Arrears,
    has_key: bool,
    given_up: Option<(GivenUp, Cause)>,
}

impl Default for ConnectionState {
    fn default() -> ConnectionState {
        let phase = Phase::Waiting { since: Instant::now(), begun: true };
        let inner = Inner { phase, arrears: Arrears::default(), has_key: false, given_up: None };
        ConnectionState(Arc::new(Shared { inner: Mutex::new(inner), closed: Notify::new(), released: Notify::new() }))
    }
}

impl ConnectionState {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request's head begins.
    pub fn head_begins(&self) {
        if let Phase::Waiting { begun, .. } = &mut self.lock().phase {
            *begun = true;
        }
    }

    /// A request is complete. Returns false if the connection was closed before; the request is then not answered.
    pub fn begin(&self) -> bool {
        let mut inner = self.lock();
        if matches!(inner.phase, Phase::Closed) {
            return false;
        }
        inner.phase = Phase::Answering;
        true
    }

    /// The request waits for news from now on.
    pub fn hold(&self) {
        let mut inner = self.lock();
        if matches!(inner.phase, Phase::Answering) {
            inner.phase = Phase::Held { since: Instant::now() };
        }
    }

    /// The request waits no more, and is answered.
    pub fn go_on(&self) {
        let mut inner = self.lock();
        if matches!(inner.phase, Phase::Held { .. }) {
            inner.phase = Phase::Answering;
        }
    }

    /// The answer is ready to be sent; `has_key` tells whether the request had a usable key.
    pub fn end(&self, has_key: bool) {
        let mut inner = self.lock();
        inner.has_key = has_key;
        if matches!(inner.phase, Phase::Answering) {
            inner.phase = Phase::Sending;
        }
    }

    /// Bytes are being sent.
    pub fn send(&self) {
        let mut inner = self.lock();
        if matches!(inner.phase, Phase::Waiting { .. }) {
            inner.phase = Phase::Sending;
        }
    }

    /// All bytes are sent.
    pub fn sent(&self) {
        let mut inner = self.lock();
        if matches!(inner.phase, Phase::Sending) {
            inner.phase = Phase::Waiting { since: Instant::now(), begun: false };
        }
    }

    /// A write is blocked by the caller.
    pub fn blocked(&self) {
        self.lock().arrears.blocked_since.get_or_insert_with(Instant::now);
    }

    /// The caller read some bytes. Returns whether it is still behind [`GOOD_RATE`]; while it is not, reading need not be told.
    pub fn took(&self, bytes: usize) -> bool {
        let now = Instant::now();
        let arrears = &mut self.lock().arrears;
        arrears.blocked = arrears.blocked(now);
        arrears.blocked_since = None;
        arrears.taken = arrears.taken.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        let behind = arrears.is_behind(now);
        if !behind {
            *arrears = Arrears::default();
        }
        behind
    }

    /// Whether no request is being answered and no answer is being sent.
    pub fn is_waiting(&self) -> bool {
        matches!(self.lock().phase, Phase::Waiting { .. })
    }

    /// Why the connection may be closed for another; `None` while a request is answered, or its answer read at a good rate.
    pub fn burden(&self, now: Instant) -> Option<Burden> {
        self.lock().burden(now)
    }

    /// Closes the connection for another one, if it has been a burden for at least `lasts`. One whose request waits for news
    /// is told to answer first.
    pub fn give_up(&self, now: Instant, lasts: Duration) -> bool {
        let mut inner = self.lock();
        let Some(burden) = inner.burden(now).filter(|burden| burden.lasts >= lasts) else { return false };
        inner.given_up = Some((burden.reason, Cause::Capacity));
        if burden.reason == GivenUp::Waiting {
            inner.phase = Phase::Answering;
            self.0.released.notify_one();
        } else {
            inner.phase = Phase::Closed;
            self.0.closed.notify_one();
        }
        true
    }

    /// A time limit ended the connection.
    pub fn expire(&self, reason: GivenUp) {
        self.lock().given_up.get_or_insert((reason, Cause::Timeout));
    }

    /// Why the connection was closed, if the server closed it.
    pub fn given_up(&self) -> Option<(GivenUp, Cause)> {
        self.lock().given_up
    }

    /// Resolves when the connection's request is to wait no more, for the sake of another connection.
    pub async fn released(&self) {
        self.0.released.notified().await;
    }

    /// Resolves when the connection is closed for another.
    pub async fn closed(&self) {
        self.0.closed.notified().await;
    }
}

impl Inner {
    fn burden(&self, now: Instant) -> Option<Burden> {
        let has_key = self.has_key;
        match self.phase {
            Phase::Waiting { since, begun } => {
                let reason = if begun { GivenUp::Unfinished } else { GivenUp::Idle };
                Some(Burden { reason, lasts: now.saturating_duration_since(since), rate: 0, has_key })
            }
            Phase::Held { since } => {
                let lasts = now.saturating_duration_since(since);
                // Nobody waits without a usable key.
                Some(Burden { reason: GivenUp::Waiting, lasts, rate: 0, has_key: true })
            }
            Phase::Sending if self.arrears.is_behind(now) => {
                let (lasts, rate) = (self.arrears.blocked(now), self.arrears.rate(now));
                Some(Burden { reason: GivenUp::Slow, lasts, rate, has_key })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    /// How a sending connection stands.
    fn burden(state: &ConnectionState) -> Option<(u64, u64)> {
        state.burden(Instant::now()).map(|burden| (burden.lasts.as_secs(), burden.rate))
    }

    fn sending() -> ConnectionState {
        let state = ConnectionState::default();
        assert!(state.begin());
        state.end(false);
        state
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_told_by_what_for() {
        let state = ConnectionState::default();
        let told = |state: &ConnectionState| state.burden(Instant::now()).map(|burden| (burden.reason, burden.has_key));
        assert_eq!(told(&state), Some((GivenUp::Unfinished, false)), "a new one");
        assert!(state.begin());
        assert_eq!(told(&state), None, "answering");
        state.end(true);
        assert_eq!(told(&state), None, "sending");
        state.sent();
        assert_eq!(told(&state), Some((GivenUp::Idle, true)));
        state.head_begins();
        assert_eq!(told(&state), Some((GivenUp::Unfinished, true)));
        assert!(state.begin());
        state.end(false);
        state.sent();
        assert_eq!(told(&state), Some((GivenUp::Idle, false)), "the last request counts");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_is_slow_while_it_is_behind() {
        let good = usize::try_from(GOOD_RATE).unwrap();
        let state = sending();
        advance(Duration::from_secs(100)).await;
        assert_eq!(burden(&state), None, "nothing keeps it from taking more");
        assert!(!state.took(10_000_000));
        state.blocked();
        advance(Duration::from_secs(10)).await;
        assert_eq!(burden(&state), Some((10, 0)), "what it took before is not counted");
        assert!(state.took(20_000));
        assert_eq!(burden(&state), Some((10, 2000)));
        // Another answer on the same connection, and another stop.
        state.sent();
        assert!(state.begin());
        state.end(false);
        state.blocked();
        advance(Duration::from_secs(10)).await;
        assert_eq!(burden(&state), Some((20, 1000)));
        assert!(!state.took(good * 20));
        assert_eq!(burden(&state), None, "it has caught up");
        state.blocked();
        advance(Duration::from_secs(1)).await;
        assert_eq!(burden(&state), Some((1, 0)), "and begins anew");
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_news_is_answered_before_it_is_closed() {
        let state = ConnectionState::default();
        state.hold();
        assert!(state.is_waiting(), "there is no request");
        assert!(state.begin());
        state.hold();
        advance(Duration::from_secs(7)).await;
        assert!(!state.is_waiting(), "no time limit of asking is on");
        let told = state.burden(Instant::now()).map(|burden| (burden.reason, burden.lasts.as_secs(), burden.has_key));
        assert_eq!(told, Some((GivenUp::Waiting, 7, true)));
        state.go_on();
        assert!(state.burden(Instant::now()).is_none(), "it is answered");
        assert!(!state.give_up(Instant::now(), Duration::ZERO));
        state.hold();
        assert!(state.give_up(Instant::now(), Duration::ZERO));
        state.released().await;
        assert_eq!(state.given_up(), Some((GivenUp::Waiting, Cause::Capacity)));
        state.end(true);
        state.sent();
        assert!(state.is_waiting(), "the answer goes out");
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_given_up_answers_no_more() {
        let state = ConnectionState::default();
        assert!(!state.give_up(Instant::now(), Duration::from_secs(1)), "too early");
        advance(Duration::from_secs(1)).await;
        assert!(state.give_up(Instant::now(), Duration::from_secs(1)));
        state.closed().await;
        assert!(!state.begin() && !state.is_waiting() && state.burden(Instant::now()).is_none());
        state.expire(GivenUp::Idle);
        assert_eq!(state.given_up(), Some((GivenUp::Unfinished, Cause::Capacity)));
        let answering = ConnectionState::default();
        assert!(answering.begin() && !answering.give_up(Instant::now(), Duration::ZERO));
    }
}
