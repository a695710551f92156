//! The values by which rows are told apart, and the edit distance of texts.

use std::borrow::Cow;

use crate::model::Message;
use crate::model::fold::fold;

/// A value that should differ between rows. Rows with equal match keys are probable duplicates.
#[derive(Clone, Debug)]
pub(in crate::import) struct MatchKey<'a> {
    /// The rule that duplicates break.
    pub rule: &'static str,
    /// The field to report, and its value.
    pub field: &'static str,
    pub value: Cow<'a, str>,
    /// The value, normalized for comparison.
    pub key: String,
    /// Another condition that duplicates fulfil.
    pub also: Option<fn(&Identity, &Identity) -> bool>,
    /// Returns the problem and its remedy, for a description of the other row.
    pub message: fn(&str) -> Message,
}

/// The names and numbers that identify a row, apart from its match keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::import) struct Identity {
    name: CountedText,
    /// The comparable words of the name, separated by blanks.
    words: String,
    abbv: Option<String>,
    /// The valid ISSNs.
    issns: Vec<String>,
}

impl Identity {
    pub fn new(name: &str, abbv: Option<&str>) -> Identity {
        let abbv = abbv.map(comparable).filter(|abbv| abbv.len() > 2);
        let words: Vec<String> = name.split([' ', '-']).map(comparable).filter(|word| word.len() > 2).collect();
        Identity { name: CountedText::of(comparable(name)), words: words.join(" "), abbv, issns: Vec::new() }
    }

    pub fn of_issns(issns: Vec<String>) -> Identity {
        Identity { issns, ..Identity::default() }
    }

    /// Returns true if the names are similar, the abbreviations are equal, or one name contains the other abbreviation.
    pub fn has_similar_name(&self, other: &Identity) -> bool {
        let names = |of: &Identity, abbv: &Option<String>| {
            abbv.as_ref().is_some_and(|abbv| of.words.split(' ').any(|word| word == abbv))
        };
        self.abbv.is_some() && self.abbv == other.abbv
            || names(self, &other.abbv)
            || names(other, &self.abbv)
            || are_similar(&self.name, &other.name)
    }

    /// Returns true unless both have valid ISSNs, and none in common.
    pub fn may_be_one_journal(&self, other: &Identity) -> bool {
        let (ours, others) = (&self.issns, &other.issns);
        ours.is_empty() || others.is_empty() || ours.iter().any(|issn| others.contains(issn))
    }
}

/// Returns a name without case, diacritics, blanks and punctuation.
pub(super) fn comparable(name: &str) -> String {
    fold(name).replace('&', "and").chars().filter(|letter| letter.is_alphanumeric()).collect()
}

/// Returns true if two comparable names differ in a few letters at most.
fn are_similar(one: &CountedText, other: &CountedText) -> bool {
    one.text == other.text || one.distance(other, one.length.max(other.length) / 10).is_some()
}

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
    fn an_abbreviation_stands_for_a_name() {
        let of = |(name, abbv): (&str, &str)| Identity::new(name, Some(abbv));
        let long = ("European Society for Medical Oncology Congress", "ESMO");
        let cases = [
            (long, ("ESMO Congress 2026", ""), true),
            (long, ("Madrid Congress", "ESMO"), true),
            (long, ("European Breast Cancer Conference", "EBCC"), false),
            (long, ("ESMOS Congress", ""), false),
            (("A and B", "A"), ("C for A", ""), false),
            (("Annual Meeting", "ASH"), ("Hematology Days", "ash"), true),
            (("Annual Meeting", "AS"), ("Hematology Days", "AS"), false),
            (("Annual Meeting", "ASH"), ("The ASH Days", ""), true),
            (("Annual Meeting", "ASH"), ("ASH-Days", "X"), true),
            (("Annual Meeting", ""), ("Hematology Days", ""), false),
        ];
        for (one, other, expected) in cases {
            assert_eq!(of(one).has_similar_name(&of(other)), expected, "{one:?} {other:?}");
            assert_eq!(of(other).has_similar_name(&of(one)), expected, "{other:?} {one:?}");
        }
    }

    #[test]
    fn names_that_differ_by_a_slip_are_alike() {
        let cases = [
            ("European Society of Cardiology Congress", "Europaen Society of Cardiology Congress", true),
            ("European Society of Cardiology Congress", "EUROPEAN SOCIETY OF CARDIOLOGY - CONGRESS", true),
            ("Heart & Lung Congress", "Heart and Lung Congress", true),
            ("ASCO Annual Meeting 2026", "ASCO Annual Meeting 2025", false),
            ("ESMO Breast Cancer", "ESMO Lung Cancer", false),
            ("Asia Pacific Forum 1", "Asia Pacific Forum 2", false),
            ("", "A", false),
            // One letter in ten may differ, counted by the longer name.
            ("abcdefghijklmnopqrst", "abcdefghijklmnopqrxx", true),
            ("abcdefghijklmnopqrst", "abcdefghijklmnopqxxx", false),
            ("abcdefghijklmnopqrst", "abcdefghijklmnopqrx", true),
            ("abcdefghijklmnopqrs", "abcdefghijklmnopqxx", false),
            ("abcdefghij", "abcdefghix", true),
            ("abcdefghi", "abcdefghx", false),
            ("Patients' Day", "Patients’ Day", true),
        ];
        for (one, other, expected) in cases {
            let [first, second] = [one, other].map(|name| CountedText::of(comparable(name)));
            assert_eq!(are_similar(&first, &second), expected, "{one:?} and {other:?}");
        }
    }

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
