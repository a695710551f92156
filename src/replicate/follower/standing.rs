//! How far a replica is, and how long ago it knew that nothing is newer. Its server reads it with every request.

use std::fmt::{self, Display};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::ahead::AheadTokens;
use crate::model::time::since_boot;

/// How old what a replica knows may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest time since the end of the log was seen.
    pub staleness: Duration,
    /// The longest time without a sign of life from the publisher; `None` allows any.
    pub silence: Option<Duration>,
    /// The longest time between two reads of the publisher's sign of life.
    pub listen_every: Duration,
}

/// The usual time between two reads of the sign of life.
const LISTEN_EVERY: Duration = Duration::from_secs(15);
/// The sign of life is read this many times at least within the allowed staleness and silence, so that a lost entry is noticed
/// in time.
const LISTENS_PER_LIMIT: u32 = 4;

impl Limits {
    /// Limits with the usual time between two reads of the sign of life.
    pub fn new(staleness: Duration, silence: Option<Duration>) -> Limits {
        let shortest = silence.map_or(staleness, |silence| silence.min(staleness));
        Limits { staleness, silence, listen_every: LISTEN_EVERY.min(shortest / LISTENS_PER_LIMIT) }
    }
}

/// Why a replica may not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It has not seen the end of the log since it started.
    Unseen,
    /// It has not seen the end of the log for this long.
    Stale(Duration),
    /// The publisher has given no sign of life for this long.
    Silent(Duration),
}

impl Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Unseen => f.write_str("this replica has not reached the end of its origin's log since it started"),
            Unfit::Stale(age) => {
                write!(f, "this replica last saw the end of its origin's log {} seconds ago", age.as_secs())
            }
            Unfit::Silent(age) => {
                write!(f, "the origin's publisher has given no sign of life for {} seconds", age.as_secs())
            }
        }
    }
}

/// What a replica has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The last slot that it applied.
    pub slot: u64,
    /// The last seq after it.
    pub seq: u64,
    /// The entries that it applied one by one.
    pub applied: u64,
    /// The whole states that it loaded.
    pub loads: u64,
    /// How often its rows were not its origin's.
    pub digest_failures: u64,
    /// How often an object of the bucket could not be used.
    pub unusable_objects: u64,
    /// Why it cannot go on at present.
    pub trouble: Option<String>,
}

/// How far a replica is.
#[derive(Debug)]
pub struct Standing {
    limits: Limits,
    started: Duration,
    /// When the end of the log was last seen, in milliseconds since the machine's start; 0 is never.
    end_ms: AtomicU64,
    /// The same, of what is served.
    seen_ms: AtomicU64,
    /// When the publisher last gave a sign of life, likewise.
    heard_ms: AtomicU64,
    progress: Mutex<Progress>,
    ahead: Mutex<AheadTokens>,
}

impl Standing {
    /// A replica that has seen nothing yet.
    pub fn new(limits: Limits) -> Standing {
        let started = since_boot();
        let (end_ms, seen_ms, heard_ms) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(millis(started)));
        Standing { limits, started, end_ms, seen_ms, heard_ms, progress: Mutex::default(), ahead: Mutex::default() }
    }

    /// Why no answer may be given at present.
    pub fn unfit(&self) -> Option<Unfit> {
        let Some(stale) = self.stale_for() else { return Some(Unfit::Unseen) };
        if stale > self.limits.staleness {
            return Some(Unfit::Stale(stale));
        }
        let silent = self.silent_for();
        self.limits.silence.filter(|limit| silent > *limit).map(|_| Unfit::Silent(silent))
    }

    /// What is served holds all that there was when the end of the log was last seen, so that counts from now on.
    pub fn show_end(&self) {
        self.seen_ms.store(self.end_ms.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The time since what is served was known to be all that there is; `None` if it never was.
    pub fn stale_for(&self) -> Option<Duration> {
        let seen_ms = self.seen_ms.load(Ordering::Relaxed);
        (seen_ms > 0).then(|| since_boot().saturating_sub(Duration::from_millis(seen_ms)))
    }

    /// The time since the publisher gave a sign of life, or since the start.
    pub fn silent_for(&self) -> Duration {
        since_boot().saturating_sub(Duration::from_millis(self.heard_ms.load(Ordering::Relaxed)))
    }

    /// The time since it started.
    pub fn runs_for(&self) -> Duration {
        since_boot().saturating_sub(self.started)
    }

    /// What was done so far.
    pub fn progress(&self) -> Progress {
        self.locked().clone()
    }

    /// The end of the log was seen by a question that was asked at this time since the machine's start.
    pub(super) fn see_end(&self, asked: Duration) {
        self.end_ms.store(millis(asked).max(1), Ordering::Relaxed);
    }

    /// The end of the log was not what it seemed: it was known last at this time since the machine's start, if ever.
    pub(super) fn doubt_end(&self, known: Option<Duration>) {
        self.end_ms.fetch_min(known.map_or(0, millis), Ordering::Relaxed);
    }

    /// The longest time between two reads of the sign of life.
    pub(super) fn listen_every(&self) -> Duration {
        self.limits.listen_every
    }

    pub(super) fn hear(&self) {
        self.heard_ms.store(millis(since_boot()), Ordering::Relaxed);
    }

    /// Whether a seq ahead of the replica is of a history that the origin no longer has, as far as its signs of life tell.
    pub fn is_lost(&self, seq: u64) -> bool {
        self.ahead().is_lost(seq, since_boot())
    }

    pub(super) fn ahead(&self) -> MutexGuard<'_, AheadTokens> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.locked());
    }

    fn locked(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_old_is_told() {
        let minute = Duration::from_secs(60);
        let standing = Standing::new(Limits::new(minute, Some(2 * minute)));
        assert_eq!(standing.unfit(), Some(Unfit::Unseen));
        standing.see_end(since_boot());
        assert_eq!(standing.unfit(), Some(Unfit::Unseen), "nothing is served yet");
        standing.show_end();
        assert_eq!(standing.unfit(), None);
        let see_and_show = |at| {
            standing.see_end(at);
            standing.show_end();
        };
        let ago = |time| since_boot().saturating_sub(time);
        see_and_show(ago(minute / 2));
        assert_eq!(standing.unfit(), None);
        // A machine that has just started has no such past.
        if since_boot() > 4 * minute {
            see_and_show(ago(2 * minute));
            assert!(matches!(standing.unfit(), Some(Unfit::Stale(age)) if age >= 2 * minute));
            see_and_show(since_boot());
            standing.heard_ms.store(millis(ago(3 * minute)), Ordering::Relaxed);
            assert!(matches!(standing.unfit(), Some(Unfit::Silent(age)) if age >= 3 * minute));
        }
        standing.hear();
        see_and_show(since_boot());
        assert_eq!(standing.unfit(), None);
    }
}
