//! The times and counts of a publisher's heartbeats.

use std::time::Instant;

use crate::model::{Timestamp, now};

/// The times and counts of a publisher's heartbeats.
#[derive(Debug, Default)]
pub struct HeartbeatTimes {
    /// When another publisher was last looked for.
    pub checked_at: Option<Instant>,
    /// When the last heartbeat was due.
    pub written_at: Option<Instant>,
    pub slot: Option<u64>,
    /// The time in the last heartbeat of this or an earlier publisher.
    pub at: Timestamp,
    pub count: u32,
}

impl HeartbeatTimes {
    /// Takes the time of a heartbeat, its own or another publisher's, so that the next one is later.
    pub fn observe(&mut self, at: Timestamp) {
        self.at = self.at.max(at);
    }

    /// Returns the time of the next heartbeat. It always grows, so an old heartbeat that is put back is recognized.
    pub fn next_at(&self) -> Timestamp {
        now().max(self.at.plus_s(1))
    }

    pub fn make_due(&mut self) {
        self.written_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_heartbeats_always_grows() {
        let ahead = now().plus_s(86_400);
        let mut heartbeat = HeartbeatTimes::default();
        assert!(heartbeat.next_at() >= now().plus_s(-5) && heartbeat.next_at() < ahead);
        // Of the heartbeat and the last entry, the later one counts, in either order.
        for at in [Timestamp::EPOCH, ahead, Timestamp::EPOCH] {
            heartbeat.observe(at);
        }
        assert_eq!(heartbeat.next_at(), ahead.plus_s(1));
    }
}
