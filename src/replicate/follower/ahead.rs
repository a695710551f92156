//! Sync tokens that are ahead of a replica: the origin gave them for commits that are not published yet, or in a history that it
//! no longer has. Only the origin's sign of life can tell the two apart.

use std::collections::BTreeMap;
use std::time::Duration;

/// The most seqs that are remembered. Tokens cannot be forged, so there are few.
const MAX_SEQS: usize = 1000;
/// The changes of the sign of life after which one is certain to be of a later moment than the token. The first change may have
/// been on its way when the token came; the publisher writes the second one only when the first is done.
const CHANGES: u64 = 2;

/// The seqs of tokens that were ahead, and what the sign of life said since.
#[derive(Debug, Default)]
pub(super) struct AheadTokens {
    seqs: BTreeMap<u64, Asked>,
    /// The changes of the sign of life so far.
    changes: u64,
}

#[derive(Debug)]
struct Asked {
    /// When a token of the seq came first.
    at: Duration,
    /// The changes that the first read after that knew.
    base: Option<u64>,
    is_lost: bool,
}

impl AheadTokens {
    /// Whether a seq is of a history that the origin no longer has. It is remembered until that is known.
    pub fn is_lost(&mut self, seq: u64, now: Duration) -> bool {
        if self.seqs.len() >= MAX_SEQS && !self.seqs.contains_key(&seq) {
            self.seqs.clear();
        }
        self.seqs.entry(seq).or_insert(Asked { at: now, base: None, is_lost: false }).is_lost
    }

    /// Takes in a sign of life, read from `began` on, that names the origin's last seq; `is_later` than the one before.
    pub fn hear(&mut self, began: Duration, head: u64, is_later: bool) {
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
    fn a_seq_is_lost_once_two_later_signs_of_life_do_not_reach_it() {
        /// The head that a sign of life names and whether it is later, and whether seq 10 is lost then.
        type Heard = (u64, bool, bool);
        let cases: [&[Heard]; 6] = [
            &[(9, true, false), (9, true, false), (9, true, true)],
            // The first read may find one that was written before the token came.
            &[(9, false, false), (9, true, false), (9, false, false), (9, true, true), (9, false, true)],
            &[(9, true, false), (9, true, false), (10, true, false), (10, true, false)],
            &[(12, true, false), (12, true, false), (12, true, false)],
            &[(9, false, false), (9, false, false), (9, false, false), (9, false, false)],
            &[(8, true, false), (9, true, false), (9, true, true), (11, true, false)],
        ];
        for heard in cases {
            let mut ahead = AheadTokens::default();
            let ms = Duration::from_millis;
            assert!(!ahead.is_lost(10, ms(5)));
            // It was on its way when the token came.
            ahead.hear(ms(4), 9, true);
            for ((head, is_later, is_lost), at) in heard.iter().zip(6..) {
                ahead.hear(ms(at), *head, *is_later);
                assert_eq!(ahead.is_lost(10, ms(at)), *is_lost, "{heard:?} at {at}");
            }
        }
        let mut ahead = AheadTokens::default();
        assert!((0..5000).all(|seq| !ahead.is_lost(seq, Duration::ZERO)));
        assert!(ahead.seqs.len() <= MAX_SEQS);
    }
}
