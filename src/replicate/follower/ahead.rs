//! Sync tokens ahead of a replica. Either their commits are not published yet, or the origin lost them. Only the
//! origin's heartbeat distinguishes the two.

use std::collections::BTreeMap;
use std::time::Duration;

/// The maximum number of seqs to remember. Tokens cannot be forged, so there are few.
const MAX_SEQS: usize = 1000;
/// After this many changes of the heartbeat, it is certainly newer than the token. The first new heartbeat may have
/// been in progress when the token came. The publisher writes the second one only after the first.
const CHANGES: u64 = 2;

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
    /// Whether the origin lost the commit of this seq. A seq is remembered until that is known.
    pub fn is_lost(&mut self, seq: u64, now: Duration) -> bool {
        if self.seqs.len() >= MAX_SEQS && !self.seqs.contains_key(&seq) {
            self.seqs.clear();
        }
        self.seqs.entry(seq).or_insert(AheadSeq { at: now, base: None, is_lost: false }).is_lost
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
    fn a_seq_is_lost_after_two_later_heartbeats_below_it() {
        /// The seq in a heartbeat, whether it is newer, and whether seq 10 counts as lost after it.
        type HeartbeatStep = (u64, bool, bool);
        let cases: [&[HeartbeatStep]; 6] = [
            &[(9, true, false), (9, true, false), (9, true, true)],
            // The first read may return a heartbeat that was written before the token came.
            &[(9, false, false), (9, true, false), (9, false, false), (9, true, true), (9, false, true)],
            &[(9, true, false), (9, true, false), (10, true, false), (10, true, false)],
            &[(12, true, false), (12, true, false), (12, true, false)],
            &[(9, false, false), (9, false, false), (9, false, false), (9, false, false)],
            &[(8, true, false), (9, true, false), (9, true, true), (11, true, false)],
        ];
        for steps in cases {
            let mut ahead = AheadTokens::default();
            let ms = Duration::from_millis;
            assert!(!ahead.is_lost(10, ms(5)));
            // Its read began before the token came.
            ahead.note_heartbeat(ms(4), 9, true);
            for ((head, is_later, is_lost), at) in steps.iter().zip(6..) {
                ahead.note_heartbeat(ms(at), *head, *is_later);
                assert_eq!(ahead.is_lost(10, ms(at)), *is_lost, "{steps:?} at {at}");
            }
        }
        // A read that began with the token may have returned an older heartbeat.
        let mut ahead = AheadTokens::default();
        assert!(!ahead.is_lost(10, Duration::from_millis(5)));
        for (began, expected) in [(5, false), (5, false), (5, false), (6, false), (7, false), (8, true)] {
            ahead.note_heartbeat(Duration::from_millis(began), 9, true);
            assert_eq!(ahead.is_lost(10, Duration::from_millis(began)), expected, "{began}");
        }
        let mut ahead = AheadTokens::default();
        assert!((0..5000).all(|seq| !ahead.is_lost(seq, Duration::ZERO)));
        assert!(ahead.seqs.len() <= MAX_SEQS);
    }

    #[test]
    fn as_many_seqs_as_are_remembered_are_found_lost() {
        let (mut ahead, ms) = (AheadTokens::default(), Duration::from_millis);
        assert!((1..).take(MAX_SEQS).all(|seq| !ahead.is_lost(seq, ms(5))));
        for (began, expected) in [(6, false), (7, false), (8, true)] {
            ahead.note_heartbeat(ms(began), 0, true);
            assert!((1..).take(MAX_SEQS).all(|seq| ahead.is_lost(seq, ms(began)) == expected), "{began}");
        }
    }
}
