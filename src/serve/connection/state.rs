//! The state of a connection. Its streams and its service set it; the connection limiter reads it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::api::observe::{CloseCause, CloseReason, WaitEnd};

/// A caller that reads at this rate is never slow, in bytes per second. Half a megabit is less than any office or data
/// center has.
pub const GOOD_RATE: u32 = 64 << 10;

#[derive(Clone, Copy, Debug)]
enum Phase {
    AwaitingRequest {
        since: Instant,
        /// Whether the head has begun, or the connection is new.
        begun: bool,
    },
    Answering,
    LongPolling {
        since: Instant,
    },
    Sending,
    Closed,
}

/// The reading speed of a caller since it fell behind [`GOOD_RATE`]; all zero while it keeps up. It spans responses, so
/// many small ones count like a large one.
#[derive(Clone, Copy, Debug, Default)]
struct SlowReading {
    blocked: Duration,
    blocked_since: Option<Instant>,
    /// The bytes written in this time.
    bytes: u64,
}

impl SlowReading {
    fn blocked(&self, now: Instant) -> Duration {
        self.blocked + self.blocked_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    fn is_behind(&self, now: Instant) -> bool {
        u128::from(self.bytes) * 1_000_000 < self.blocked(now).as_micros() * u128::from(GOOD_RATE)
    }

    fn rate(&self, now: Instant) -> u64 {
        let micros = self.blocked(now).as_micros().max(1);
        u64::try_from(u128::from(self.bytes) * 1_000_000 / micros).unwrap_or(u64::MAX)
    }
}

/// The reason why a connection may be closed for another one, and the facts for choosing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names explain the other fields")]
pub struct Evictable {
    pub reason: CloseReason,
    /// The time for which the reason has lasted.
    pub duration: Duration,
    /// The rate at which the caller reads, in bytes per second; 0 if nothing is sent.
    pub rate: u64,
    /// Whether the last request had a usable key.
    pub has_key: bool,
}

/// A connection's state.
#[derive(Clone, Debug)]
pub struct ConnectionState(Arc<SharedState>);

#[derive(Debug)]
struct SharedState {
    inner: Mutex<StateFields>,
    closed: Notify,
    woken_early: Notify,
}

#[derive(Debug)]
struct StateFields {
    phase: Phase,
    slow: SlowReading,
    has_key: bool,
    close_reason: Option<(CloseReason, CloseCause)>,
}

impl Default for ConnectionState {
    fn default() -> ConnectionState {
        let phase = Phase::AwaitingRequest { since: Instant::now(), begun: true };
        let inner = StateFields { phase, slow: SlowReading::default(), has_key: false, close_reason: None };
        let (inner, closed, woken_early) = (Mutex::new(inner), Notify::new(), Notify::new());
        ConnectionState(Arc::new(SharedState { inner, closed, woken_early }))
    }
}

impl ConnectionState {
    fn lock(&self) -> MutexGuard<'_, StateFields> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the first byte of a request's head was received.
    pub fn note_head_started(&self) {
        if let Phase::AwaitingRequest { begun, .. } = &mut self.lock().phase {
            *begun = true;
        }
    }

    /// Notes that a request is complete. Returns false if the connection was closed before; the request then gets no
    /// response.
    pub fn start_answer(&self) -> bool {
        let mut inner = self.lock();
        if matches!(inner.phase, Phase::Closed) {
            return false;
        }
        inner.phase = Phase::Answering;
        true
    }

    /// Notes that the request begins to wait for a change.
    pub fn start_long_poll(&self) {
        let mut inner = self.lock();
        if matches!(inner.phase, Phase::Answering) {
            inner.phase = Phase::LongPolling { since: Instant::now() };
        }
    }

    /// Notes that the request no longer waits.
    pub fn finish_long_poll(&self) {
        let mut inner = self.lock();
        if matches!(inner.phase, Phase::LongPolling { .. }) {
            inner.phase = Phase::Answering;
        }
    }

    /// Notes that the response is ready to be sent, and whether the request had a usable key.
    pub fn finish_answer(&self, has_key: bool) {
        let mut inner = self.lock();
        inner.has_key = has_key;
        if matches!(inner.phase, Phase::Answering) {
            inner.phase = Phase::Sending;
        }
    }

    /// Notes that bytes are being sent.
    pub fn start_sending(&self) {
        let mut inner = self.lock();
        if matches!(inner.phase, Phase::AwaitingRequest { .. }) {
            inner.phase = Phase::Sending;
        }
    }

    /// Notes that all bytes are sent.
    pub fn finish_sending(&self) {
        let mut inner = self.lock();
        if matches!(inner.phase, Phase::Sending) {
            inner.phase = Phase::AwaitingRequest { since: Instant::now(), begun: false };
        }
    }

    /// Notes that the caller blocks a write.
    pub fn note_blocked(&self) {
        self.lock().slow.blocked_since.get_or_insert_with(Instant::now);
    }

    /// Notes written bytes. Returns whether the caller is still behind [`GOOD_RATE`]. If not, calls are not needed
    /// until the next blocked write.
    pub fn note_written(&self, bytes: usize) -> bool {
        let now = Instant::now();
        let slow = &mut self.lock().slow;
        slow.blocked = slow.blocked(now);
        slow.blocked_since = None;
        slow.bytes = slow.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        let behind = slow.is_behind(now);
        if !behind {
            *slow = SlowReading::default();
        }
        behind
    }

    /// Whether no request is being answered and no response is being sent.
    pub fn awaits_request(&self) -> bool {
        matches!(self.lock().phase, Phase::AwaitingRequest { .. })
    }

    /// The reason why the connection may be closed for another; `None` while a request is answered, or its response is
    /// read at a good rate.
    pub fn evictable(&self, now: Instant) -> Option<Evictable> {
        self.lock().evictable(now)
    }

    /// Closes the connection for another one if it has been evictable for at least `duration`. A long-polling request
    /// is woken instead, and closed after its response.
    pub fn evict(&self, now: Instant, duration: Duration) -> bool {
        let mut inner = self.lock();
        let Some(evictable) = inner.evictable(now).filter(|evictable| evictable.duration >= duration) else {
            return false;
        };
        inner.close_reason = Some((evictable.reason, CloseCause::Capacity));
        if evictable.reason == CloseReason::Waiting {
            inner.phase = Phase::Answering;
            self.0.woken_early.notify_one();
        } else {
            inner.phase = Phase::Closed;
            self.0.closed.notify_one();
        }
        true
    }

    /// Notes that a time limit ended the connection.
    pub fn expire(&self, reason: CloseReason) {
        self.lock().close_reason.get_or_insert((reason, CloseCause::Timeout));
    }

    /// The reason and cause, if the server closed the connection.
    pub fn close_reason(&self) -> Option<(CloseReason, CloseCause)> {
        self.lock().close_reason
    }

    /// Notes that the caller closed its sending half. A long-polling request is woken: its caller may be gone.
    pub fn note_half_closed(&self) {
        self.0.woken_early.notify_one();
    }

    /// Resolves when a long-polling request must be answered early. Returns the cause.
    pub async fn woken_early(&self) -> WaitEnd {
        self.0.woken_early.notified().await;
        if self.close_reason().is_some() { WaitEnd::Capacity } else { WaitEnd::Left }
    }

    /// Resolves when the connection is closed for another one.
    pub async fn closed(&self) {
        self.0.closed.notified().await;
    }
}

impl StateFields {
    fn evictable(&self, now: Instant) -> Option<Evictable> {
        let has_key = self.has_key;
        match self.phase {
            Phase::AwaitingRequest { since, begun } => {
                let reason = if begun { CloseReason::Unfinished } else { CloseReason::Idle };
                Some(Evictable { reason, duration: now.saturating_duration_since(since), rate: 0, has_key })
            }
            Phase::LongPolling { since } => {
                let duration = now.saturating_duration_since(since);
                // Only requests with a usable key long-poll.
                Some(Evictable { reason: CloseReason::Waiting, duration, rate: 0, has_key: true })
            }
            Phase::Sending if self.slow.is_behind(now) => {
                let (duration, rate) = (self.slow.blocked(now), self.slow.rate(now));
                Some(Evictable { reason: CloseReason::Slow, duration, rate, has_key })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    /// The seconds for which a connection has been evictable, and its rate.
    fn evictable(state: &ConnectionState) -> Option<(u64, u64)> {
        state.evictable(Instant::now()).map(|evictable| (evictable.duration.as_secs(), evictable.rate))
    }

    fn sending() -> ConnectionState {
        let state = ConnectionState::default();
        assert!(state.start_answer());
        state.finish_answer(false);
        state
    }

    #[tokio::test(start_paused = true)]
    async fn the_reason_depends_on_the_phase() {
        let state = ConnectionState::default();
        let reasons = |state: &ConnectionState| {
            state.evictable(Instant::now()).map(|evictable| (evictable.reason, evictable.has_key))
        };
        assert_eq!(reasons(&state), Some((CloseReason::Unfinished, false)), "a new one");
        assert!(state.start_answer());
        assert_eq!(reasons(&state), None, "answering");
        state.finish_answer(true);
        assert_eq!(reasons(&state), None, "sending");
        state.finish_sending();
        assert_eq!(reasons(&state), Some((CloseReason::Idle, true)));
        state.note_head_started();
        assert_eq!(reasons(&state), Some((CloseReason::Unfinished, true)));
        assert!(state.start_answer());
        state.finish_answer(false);
        state.finish_sending();
        assert_eq!(reasons(&state), Some((CloseReason::Idle, false)), "the last request counts");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_is_slow_while_it_is_behind() {
        let good = usize::try_from(GOOD_RATE).unwrap();
        let state = sending();
        advance(Duration::from_secs(100)).await;
        assert_eq!(evictable(&state), None, "no write is blocked");
        assert!(!state.note_written(10_000_000));
        state.note_blocked();
        advance(Duration::from_secs(10)).await;
        assert_eq!(evictable(&state), Some((10, 0)), "bytes before the block do not count");
        assert!(state.note_written(20_000));
        assert_eq!(evictable(&state), Some((10, 2000)));
        // Another response on the same connection, blocked again.
        state.finish_sending();
        assert!(state.start_answer());
        state.finish_answer(false);
        state.note_blocked();
        advance(Duration::from_secs(10)).await;
        assert_eq!(evictable(&state), Some((20, 1000)));
        assert!(!state.note_written(good * 20));
        assert_eq!(evictable(&state), None, "it has caught up");
        state.note_blocked();
        advance(Duration::from_secs(1)).await;
        assert_eq!(evictable(&state), Some((1, 0)), "and begins anew");
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_poll_is_answered_before_its_connection_is_closed() {
        let state = ConnectionState::default();
        state.start_long_poll();
        assert!(state.awaits_request(), "there is no request");
        assert!(state.start_answer());
        state.start_long_poll();
        advance(Duration::from_secs(7)).await;
        assert!(!state.awaits_request(), "no time limit of asking is on");
        let reasons = state
            .evictable(Instant::now())
            .map(|evictable| (evictable.reason, evictable.duration.as_secs(), evictable.has_key));
        assert_eq!(reasons, Some((CloseReason::Waiting, 7, true)));
        state.finish_long_poll();
        assert!(state.evictable(Instant::now()).is_none(), "it is answered");
        assert!(!state.evict(Instant::now(), Duration::ZERO));
        state.start_long_poll();
        assert!(state.evict(Instant::now(), Duration::ZERO));
        assert_eq!(state.woken_early().await, WaitEnd::Capacity);
        assert_eq!(state.close_reason(), Some((CloseReason::Waiting, CloseCause::Capacity)));
        state.finish_answer(true);
        state.finish_sending();
        assert!(state.awaits_request(), "the answer goes out");
    }

    #[tokio::test(start_paused = true)]
    async fn an_evicted_connection_answers_no_more() {
        let state = ConnectionState::default();
        assert!(!state.evict(Instant::now(), Duration::from_secs(1)), "too early");
        advance(Duration::from_secs(1)).await;
        assert!(state.evict(Instant::now(), Duration::from_secs(1)));
        state.closed().await;
        assert!(!state.start_answer() && !state.awaits_request() && state.evictable(Instant::now()).is_none());
        state.expire(CloseReason::Idle);
        assert_eq!(state.close_reason(), Some((CloseReason::Unfinished, CloseCause::Capacity)));
        let answering = ConnectionState::default();
        assert!(answering.start_answer() && !answering.evict(Instant::now(), Duration::ZERO));
    }
}
