//! The edit distance of texts.

/// The maximum length, in bytes, of texts that are compared.
pub(super) const MAX_BYTES: usize = 200;

/// A text with its letter counts. They are computed once, since a text is compared with many others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CountedText {
    pub text: String,
    /// The number of characters.
    pub length: usize,
    /// The number of occurrences of each letter. Several letters share a counter.
    counts: [u8; 32],
}

impl CountedText {
    pub fn of(text: String) -> CountedText {
        let mut counts = [0_u8; 32];
        let mut length = 0;
        for letter in text.chars() {
            let count = &mut counts[usize::try_from(u32::from(letter) % 32).unwrap_or(0)];
            *count = count.saturating_add(1);
            length += 1;
        }
        CountedText { text, length, counts }
    }

    /// Returns the edit distance, if it is at most `max` and the digits are equal. A swap of two neighbours counts as
    /// one edit.
    pub fn distance(&self, other: &CountedText, max: usize) -> Option<usize> {
        if self.length.abs_diff(other.length) > max
            || self.text.len().max(other.text.len()) > MAX_BYTES
            // An edit changes at most two counters by one.
            || self.difference(other) > 2 * max
            || !self.digits().eq(other.digits())
        {
            return None;
        }
        Some(strsim::damerau_levenshtein(&self.text, &other.text)).filter(|distance| *distance <= max)
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.text.bytes().filter(u8::is_ascii_digit)
    }

    fn difference(&self, other: &CountedText) -> usize {
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
            ("cardiology", "kardiology", 1, Some(1)),
            ("cardiology", "kardiologi", 2, Some(2)),
            ("cardiology", "kardiologi", 1, None),
            ("cardiology", "kardiologie", 2, None),
            // The same letters in another order.
            ("cardiology", "golocardiy", 2, None),
            ("ab", "ba", 1, Some(1)),
            ("a", "", 1, Some(1)),
            ("a", "", 0, None),
            ("forum1", "forum2", 2, None),
            ("", "", 0, Some(0)),
            ("", "ab", 1, None),
        ];
        for (one, other, max, expected) in cases {
            let (one, other) = (CountedText::of(one.to_owned()), CountedText::of(other.to_owned()));
            assert_eq!(one.distance(&other, max), expected, "{one:?} {other:?}");
            assert_eq!(other.distance(&one, max), expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn texts_are_compared_up_to_their_longest_length() {
        for (bytes, expected) in [(MAX_BYTES - 1, Some(1)), (MAX_BYTES, Some(1)), (MAX_BYTES + 1, None)] {
            let long = CountedText::of("x".repeat(bytes));
            let shorter = CountedText::of("x".repeat(bytes - 1));
            assert_eq!(long.distance(&shorter, 1), expected, "{bytes}");
            assert_eq!(shorter.distance(&long, 1), expected, "{bytes}");
        }
    }
}
