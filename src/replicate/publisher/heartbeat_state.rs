//! The times and counts of a publisher's heartbeats.

use std::time::{Duration, Instant};

use crate::model::Timestamp;
use crate::model::time::now;

#[derive(Debug, Default)]
pub(super) struct HeartbeatState {
    /// When another publisher was last looked for.
    pub checked_at: Option<Instant>,
    /// When the last heartbeat was due.
    pub written_at: Option<Instant>,
    pub slot: Option<u64>,
    /// The time in the last heartbeat of this or an earlier publisher.
    at: Timestamp,
    pub count: u32,
}

/// A state that must be written because the bucket lost objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedState {
    /// Next to the log, if the last entry still exists.
    NextToLog,
    /// As the next entry, if the last entry is missing, or its slot has a manifest that names missing objects.
    Entry,
}

impl HeartbeatState {
    pub fn follow(&mut self, at: Timestamp) {
        self.at = self.at.max(at);
    }

    pub fn make_due(&mut self) {
        self.written_at = None;
    }

    /// Returns the time of the next heartbeat. It always grows, so an old heartbeat that is put back is recognized.
    pub fn next_at(&self) -> Timestamp {
        now().max(self.at.plus_s(1))
    }

    pub fn wrote(&mut self, slot: u64, at: Timestamp) {
        (self.slot, self.at, self.count) = (Some(slot), at, self.count.wrapping_add(1));
    }
}

/// Whether `every` has passed since `at`.
pub(super) fn is_due(at: Option<Instant>, every: Duration) -> bool {
    at.is_none_or(|at| at.elapsed() >= every)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_heartbeats_always_grows() {
        let ahead = now().plus_s(86_400);
        let mut heartbeat = HeartbeatState::default();
        assert!(heartbeat.next_at() >= now().plus_s(-5) && heartbeat.next_at() < ahead);
        // Of the heartbeat and the last entry, the later one counts, in either order.
        for (first, second) in [(ahead, Timestamp::EPOCH), (Timestamp::EPOCH, ahead)] {
            let mut heartbeat = HeartbeatState::default();
            heartbeat.follow(first);
            heartbeat.follow(second);
            assert_eq!(heartbeat.next_at(), ahead.plus_s(1));
        }
        heartbeat.follow(ahead);
        for written in 1..4 {
            let at = heartbeat.next_at();
            assert_eq!(at, ahead.plus_s(i64::from(written)));
            heartbeat.wrote(7, at);
            assert_eq!((heartbeat.slot, heartbeat.count), (Some(7), written));
        }
    }

    #[test]
    fn a_heartbeat_is_due_after_its_period() {
        let hour = Duration::from_secs(3600);
        let ago = |time| Instant::now().checked_sub(time);
        assert!(is_due(None, Duration::MAX));
        assert!(!is_due(Some(Instant::now()), hour) && is_due(Some(Instant::now()), Duration::ZERO));
        // A machine that has just started has no such past.
        if let (Some(long), Some(short)) = (ago(Duration::from_secs(30)), ago(Duration::from_secs(20))) {
            let period = Duration::from_secs(25);
            assert!(is_due(Some(long), period) && !is_due(Some(short), period));
        }
    }
}
