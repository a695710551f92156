//! The publisher's record of its signs of life.

use std::time::{Duration, Instant};

use crate::model::Timestamp;
use crate::model::time::now;

/// The signs of life that were given.
#[derive(Debug, Default)]
pub(super) struct Life {
    /// When another publisher was last looked for.
    pub looked_at: Option<Instant>,
    /// When the last one was due.
    pub shown_at: Option<Instant>,
    /// The slot that it names.
    pub slot: Option<u64>,
    /// The time in it, or in one that an earlier publisher wrote.
    at: Timestamp,
    /// How many there were.
    pub count: u32,
}

/// A state that must go out because the bucket lost objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedState {
    /// Next to the log, whose last entry is there.
    Beside,
    /// As the next entry: the last one is gone too, or its slot has a manifest that names what is gone.
    Entry,
}

impl Life {
    /// Has the next sign of life be later than one that is known.
    pub fn follow(&mut self, at: Timestamp) {
        self.at = self.at.max(at);
    }

    /// Has the next sign of life be due at once.
    pub fn make_due(&mut self) {
        self.shown_at = None;
    }

    /// The time of the next sign of life: an old one that somebody puts back is known by its time, whatever the clock did.
    pub fn next_at(&self) -> Timestamp {
        now().max(self.at.plus_s(1))
    }

    /// Takes in that one was written which names a slot.
    pub fn wrote(&mut self, slot: u64, at: Timestamp) {
        (self.slot, self.at, self.count) = (Some(slot), at, self.count.wrapping_add(1));
    }
}

/// Whether it is time for what was last done at an instant, and is to be done every so often.
pub(super) fn is_due(at: Option<Instant>, every: Duration) -> bool {
    at.is_none_or(|at| at.elapsed() >= every)
}
