//! How near two texts are, with a bound on the time that all comparisons of a run take.

/// The steps that a run may spend on comparing texts: about a second.
const MAX_STEPS: u64 = 100_000_000;

/// The longest text, in bytes, whose letters are compared.
pub(super) const MAX_BYTES: usize = 200;

/// A text whose letters were counted once, since it is compared with many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Letters {
    pub text: String,
    /// The number of letters.
    pub length: usize,
    /// How often each letter occurs; several letters share a count.
    counts: [u8; 32],
}

/// The steps that are left.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
    /// How many comparisons were left out because no steps were left.
    pub left_out: u64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { left: MAX_STEPS, left_out: 0 }
    }
}

impl Budget {
    /// Takes steps; false where there are not enough.
    pub fn take(&mut self, steps: usize) -> bool {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                true
            }
            None => {
                self.left_out += 1;
                false
            }
        }
    }
}

impl Letters {
    pub fn of(text: String) -> Letters {
        let mut counts = [0_u8; 32];
        let mut length = 0;
        for letter in text.chars() {
            let count = &mut counts[usize::try_from(u32::from(letter) % 32).unwrap_or(0)];
            *count = count.saturating_add(1);
            length += 1;
        }
        Letters { text, length, counts }
    }

    /// The edits from one text to the other, if they are at most `max` and no digit differs. A swap of two neighbours is one edit.
    pub fn distance(&self, other: &Letters, max: usize, budget: &mut Budget) -> Option<usize> {
        const STEPS_TO_LOOK: usize = 4;
        if !budget.take(STEPS_TO_LOOK)
            || self.length.abs_diff(other.length) > max
            || self.text.len().max(other.text.len()) > MAX_BYTES
            // An edit changes at most two counts by one.
            || self.difference(other) > 2 * max
            || !self.digits().eq(other.digits())
            || !budget.take((self.length + 2) * (other.length + 2))
        {
            return None;
        }
        Some(strsim::damerau_levenshtein(&self.text, &other.text)).filter(|distance| *distance <= max)
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.text.bytes().filter(u8::is_ascii_digit)
    }

    fn difference(&self, other: &Letters) -> usize {
        self.counts.iter().zip(&other.counts).map(|(one, other)| usize::from(one.abs_diff(*other))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_texts_are_found() {
        let cases = [
            ("cardiology", "cardiology", 1, Some(0)),
            ("cardiology", "cadriology", 1, Some(1)),
            ("cardiology", "cardiolgy", 1, Some(1)),
            ("cardiology", "cardiologyy", 1, Some(1)),
            ("cardiology", "kardiologie", 2, None),
            ("forum1", "forum2", 2, None),
            ("", "", 0, Some(0)),
            ("", "ab", 1, None),
        ];
        for (one, other, max, expected) in cases {
            let (one, other) = (Letters::of(one.to_owned()), Letters::of(other.to_owned()));
            assert_eq!(one.distance(&other, max, &mut Budget::default()), expected, "{one:?} {other:?}");
            assert_eq!(other.distance(&one, max, &mut Budget::default()), expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn no_steps_are_taken_beyond_the_budget() {
        let one = Letters::of("abcdefgh".to_owned());
        let mut budget = Budget { left: 110, left_out: 0 };
        assert_eq!(one.distance(&one, 1, &mut budget), Some(0));
        assert_eq!((one.distance(&one, 1, &mut budget), budget.left_out), (None, 1));
    }
}
