//! The progress and age of a replica. The server reads them for every request.
//!
//! # Differences from an origin
//!
//! A replica may be behind its origin. Three things differ for this reason (`api/service.rs`), and nothing else:
//!
//! - **Age.** If the end of the log was last seen too long ago, `/v1` is 503, keys included. The
//!   clock also runs while the machine sleeps. The end counts as seen once the server has loaded the
//!   entries. So the replica responds again only with the newest keys. A change delay holds back records, and no keys.
//! - **Tokens ahead.** A token ahead of the last commit may be valid. The thread polls the bucket at once, for all
//!   waiting requests. A token that is still ahead gets 503. The heartbeat names the origin's last seq. If two later
//!   heartbeats in a row do not reach the token's seq, the origin has lost it: 410.
//! - **New keys.** They arrive by the bucket.
//!
//! An unknown key may be new, also at an origin. A request whose key has the right form waits for the next poll before
//! it gets 401. At an origin that is the next poll of the file, within 100 ms. At a replica it is a poll of the bucket.
//! If that fails, the request gets 503, because the key may be valid. Anybody can invent keys. So requests cause at
//! most one poll of the bucket a second, and few requests may wait. Addresses over the limit for unusable keys share
//! four other permits. So a valid key from there works, and other addresses lose no permit.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

use crate::model::{Head, since_boot};

/// The usual time between two reads of the heartbeat.
const HEARTBEAT_CHECK_EVERY: Duration = Duration::from_secs(15);
/// The minimum number of heartbeat reads within the allowed age, so that a lost entry is noticed in time.
const HEARTBEAT_CHECKS_PER_LIMIT: u32 = 4;

/// The maximum number of seqs to remember. Tokens cannot be forged, so there are few.
const MAX_SEQS: usize = 1000;
/// A commit is lost if the heartbeat has changed so many times since its token came, and names an earlier one. The
/// first of these heartbeats may have been begun before the token came. The publisher begins the second one after it.
const CHANGES: u64 = 2;

/// The work of a replica since its start.
#[allow(missing_docs, reason = "the names explain the other fields")]
#[derive(Clone, Debug, Default)]
pub struct ReplicaProgress {
    pub slot: u64,
    /// The last commit of the replica.
    pub head: Head,
    /// The entries that it applied one by one.
    pub applied: u64,
    /// The whole states that it loaded.
    pub loads: u64,
    /// The number of times when its rows differed from the origin's.
    pub digest_failures: u64,
    /// The number of times when an object could not be used.
    pub unusable_objects: u64,
    pub error: Option<String>,
}

/// When a replica last saw signs of its origin, since the machine's start.
#[derive(Debug)]
struct Seen {
    /// The end of the log; `None` for never.
    end: Option<Duration>,
    /// The end of the log that the server shows.
    loaded_end: Option<Duration>,
    /// A new heartbeat or entry.
    heartbeat: Duration,
}

/// The shared status of a replica.
#[derive(Debug)]
pub struct ReplicaStatus {
    /// The maximum time since the end of the log was seen.
    staleness: Duration,
    heartbeat_check_every: Duration,
    started: Duration,
    seen: Mutex<Seen>,
    progress: Mutex<ReplicaProgress>,
    pub(super) ahead: Mutex<AheadTokens>,
}

impl ReplicaStatus {
    /// Returns the status of a replica that has seen nothing yet. It is unfit after `staleness`.
    pub fn new(staleness: Duration) -> ReplicaStatus {
        ReplicaStatus::checking_every(
            HEARTBEAT_CHECK_EVERY.min(staleness / HEARTBEAT_CHECKS_PER_LIMIT),
            staleness,
        )
    }

    /// Returns the same, with this time between two reads of the heartbeat.
    pub fn checking_every(heartbeat_check_every: Duration, staleness: Duration) -> ReplicaStatus {
        let started = since_boot();
        ReplicaStatus {
            staleness,
            heartbeat_check_every,
            started,
            seen: Mutex::new(Seen {
                end: None,
                loaded_end: None,
                heartbeat: started,
            }),
            progress: Mutex::default(),
            ahead: Mutex::default(),
        }
    }

    /// Returns why the replica must not respond at present.
    pub fn unfit(&self) -> Option<String> {
        match self.stale_for() {
            Some(age) if age <= self.staleness => None,
            Some(age) => Some(format!(
                "this replica last saw the end of its origin's log {} seconds ago",
                age.as_secs()
            )),
            None => {
                Some("this replica has not confirmed the end of its origin's log yet".to_owned())
            }
        }
    }

    /// Records that the server has loaded all entries up to the end of the log that was last seen.
    pub fn note_end_loaded(&self) {
        let mut seen = self.seen.lock();
        seen.loaded_end = seen.end;
    }

    /// Returns the time since the shown state was known to be the newest; `None` if it never was.
    pub fn stale_for(&self) -> Option<Duration> {
        let loaded_end = self.seen.lock().loaded_end;
        loaded_end.map(|at| since_boot().saturating_sub(at))
    }

    /// Returns the time since the last new heartbeat, or since the start.
    pub fn silent_for(&self) -> Duration {
        since_boot().saturating_sub(self.seen.lock().heartbeat)
    }

    /// Returns the time since the start.
    pub fn running_for(&self) -> Duration {
        since_boot().saturating_sub(self.started)
    }

    /// Returns the work done so far.
    pub fn progress(&self) -> ReplicaProgress {
        self.progress.lock().clone()
    }

    /// Records that the log ended here when it was read at `asked`, a time since the machine's start.
    pub(super) fn note_end_seen(&self, asked: Duration) {
        self.seen.lock().end = Some(asked);
    }

    /// Records that the end of the log is in doubt. `known` is the last time when it was certain.
    pub(super) fn retract_end(&self, known: Option<Duration>) {
        let mut seen = self.seen.lock();
        seen.end = seen.end.min(known);
    }

    /// Records that the shown state may be of another history, so the replica must not respond before the end of the log
    /// is confirmed again.
    pub(super) fn withdraw(&self) {
        let mut seen = self.seen.lock();
        seen.end = None;
        seen.loaded_end = None;
    }

    /// Returns the time between two reads of the heartbeat.
    pub(super) fn heartbeat_check_every(&self) -> Duration {
        self.heartbeat_check_every
    }

    pub(super) fn note_heartbeat(&self) {
        self.seen.lock().heartbeat = since_boot();
    }

    /// Remembers a seq that is ahead of the replica. Returns whether the origin lost its commit, as far as heartbeats show.
    pub fn ask_if_lost(&self, seq: u64) -> bool {
        self.ahead.lock().ask_if_lost(seq, since_boot())
    }

    pub(super) fn update<T>(&self, change: impl FnOnce(&mut ReplicaProgress) -> T) -> T {
        change(&mut self.progress.lock())
    }
}

/// Sync tokens ahead of a replica. Either their commits are not published yet, or the origin lost them. Only the
/// origin's heartbeat distinguishes the two.
#[derive(Debug, Default)]
pub(super) struct AheadTokens {
    seqs: BTreeMap<u64, AheadSeq>,
    changes: u64,
}

#[derive(Debug)]
struct AheadSeq {
    /// The time of the first token with this seq.
    at: Duration,
    /// The value of [`AheadTokens::changes`] at the first heartbeat read after that.
    base: Option<u64>,
    is_lost: bool,
}

impl AheadTokens {
    /// Remembers a seq that is ahead of the replica. Returns whether the origin lost its commit, as far as is known.
    pub fn ask_if_lost(&mut self, seq: u64, now: Duration) -> bool {
        if self.seqs.len() >= MAX_SEQS && !self.seqs.contains_key(&seq) {
            self.seqs.clear();
        }
        self.seqs
            .entry(seq)
            .or_insert(AheadSeq {
                at: now,
                base: None,
                is_lost: false,
            })
            .is_lost
    }

    /// Records a heartbeat. `began` is the start of its read, `head` the origin's last seq in it; `is_later` says
    /// whether it is newer than the previous one.
    pub fn note_heartbeat(&mut self, began: Duration, head: u64, is_later: bool) {
        self.changes += u64::from(is_later);
        self.seqs.retain(|seq, _| *seq > head);
        for asked in self.seqs.values_mut().filter(|asked| asked.at < began) {
            match asked.base {
                None => asked.base = Some(self.changes),
                Some(base) => asked.is_lost |= self.changes >= base + CHANGES,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heartbeat_is_read_four_times_within_the_limit() {
        for (staleness_s, expected_s) in [(60, 15), (3600, 15), (20, 5), (64, 15)] {
            let status = ReplicaStatus::new(Duration::from_secs(staleness_s));
            let expected = Duration::from_secs(expected_s);
            assert_eq!(status.heartbeat_check_every(), expected, "{staleness_s}");
        }
    }

    #[test]
    fn retracting_the_end_of_the_log_never_makes_it_later() {
        let ms = Duration::from_millis;
        let status = ReplicaStatus::new(Duration::from_secs(60));
        for (seen, known, expected) in [
            (500, Some(300), Some(300)),
            (300, Some(500), Some(300)),
            (500, None, None),
        ] {
            status.note_end_seen(ms(seen));
            status.retract_end(known.map(ms));
            let end = status.seen.lock().end;
            assert_eq!(end, expected.map(ms), "{seen} {known:?}");
        }
    }

    #[test]
    fn a_replica_runs_since_its_own_start() {
        let before = since_boot();
        let status = ReplicaStatus::new(Duration::from_secs(60));
        let longest = since_boot() - before;
        assert!(
            status.running_for() <= longest + (since_boot() - before),
            "not since the machine's start"
        );
    }

    #[test]
    fn a_limit_below_a_second_is_kept() {
        let ms = Duration::from_millis;
        let status = ReplicaStatus::new(ms(10));
        status.note_end_seen(since_boot() - ms(20));
        status.note_end_loaded();
        let unfit = status.unfit();
        assert!(unfit.is_some_and(|why| why.contains("last saw the end of its origin's log")));
    }

    #[test]
    fn a_stale_replica_is_unfit() {
        let minute = Duration::from_secs(60);
        let status = ReplicaStatus::new(minute);
        let is_unseen = || {
            status
                .unfit()
                .is_some_and(|why| why.contains("has not confirmed the end of its origin's log"))
        };
        assert!(is_unseen());
        status.note_end_seen(since_boot());
        assert!(is_unseen(), "nothing is served yet");
        status.note_end_loaded();
        assert_eq!(status.unfit(), None);
        let see_and_show = |at| {
            status.note_end_seen(at);
            status.note_end_loaded();
        };
        let ago = |time| since_boot().saturating_sub(time);
        see_and_show(ago(minute / 2));
        assert_eq!(status.unfit(), None);
        // A machine that has just started has no such past.
        if since_boot() > 4 * minute {
            see_and_show(ago(2 * minute));
            assert!(
                status
                    .unfit()
                    .is_some_and(|why| why.contains("last saw the end of its origin's log 12"))
            );
        }
        see_and_show(since_boot());
        assert_eq!(status.unfit(), None);
    }

    #[test]
    fn a_seq_is_lost_after_two_later_heartbeats_below_it() {
        /// The seq in a heartbeat, whether it is newer, and whether seq 10 counts as lost after it.
        type HeartbeatStep = (u64, bool, bool);
        let cases: [&[HeartbeatStep]; 6] = [
            &[(9, true, false), (9, true, false), (9, true, true)],
            // The first read may return a heartbeat that was written before the token came.
            &[
                (9, false, false),
                (9, true, false),
                (9, false, false),
                (9, true, true),
                (9, false, true),
            ],
            &[
                (9, true, false),
                (9, true, false),
                (10, true, false),
                (10, true, false),
            ],
            &[(12, true, false), (12, true, false), (12, true, false)],
            &[
                (9, false, false),
                (9, false, false),
                (9, false, false),
                (9, false, false),
            ],
            &[
                (8, true, false),
                (9, true, false),
                (9, true, true),
                (11, true, false),
            ],
        ];
        for steps in cases {
            let mut ahead = AheadTokens::default();
            let ms = Duration::from_millis;
            assert!(!ahead.ask_if_lost(10, ms(5)));
            // Its read began before the token came.
            ahead.note_heartbeat(ms(4), 9, true);
            for ((head, is_later, is_lost), at) in steps.iter().zip(6..) {
                ahead.note_heartbeat(ms(at), *head, *is_later);
                assert_eq!(ahead.ask_if_lost(10, ms(at)), *is_lost, "{steps:?} at {at}");
            }
        }
        // A read that began with the token may have returned an older heartbeat.
        let mut ahead = AheadTokens::default();
        assert!(!ahead.ask_if_lost(10, Duration::from_millis(5)));
        for (began, expected) in [
            (5, false),
            (5, false),
            (5, false),
            (6, false),
            (7, false),
            (8, true),
        ] {
            ahead.note_heartbeat(Duration::from_millis(began), 9, true);
            let ask_if_lost = ahead.ask_if_lost(10, Duration::from_millis(began));
            assert_eq!(ask_if_lost, expected, "{began}");
        }
        let mut ahead = AheadTokens::default();
        assert!((0..5000).all(|seq| !ahead.ask_if_lost(seq, Duration::ZERO)));
        assert!(ahead.seqs.len() <= MAX_SEQS);
    }

    #[test]
    fn as_many_seqs_as_are_remembered_are_found_lost() {
        let (mut ahead, ms) = (AheadTokens::default(), Duration::from_millis);
        assert!(
            (1..)
                .take(MAX_SEQS)
                .all(|seq| !ahead.ask_if_lost(seq, ms(5)))
        );
        for (began, expected) in [(6, false), (7, false), (8, true)] {
            ahead.note_heartbeat(ms(began), 0, true);
            assert!(
                (1..)
                    .take(MAX_SEQS)
                    .all(|seq| ahead.ask_if_lost(seq, ms(began)) == expected),
                "{began}"
            );
        }
    }
}
