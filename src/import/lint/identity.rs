//! The values by which rows are told apart, and the edit distance of texts.

use std::borrow::Cow;
use std::cell::OnceCell;

use unicode_normalization::char::is_combining_mark;

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
#[derive(Debug, Default)]
pub(in crate::import) struct Identity {
    name: Box<str>,
    abbv: Option<Box<str>>,
    /// The valid ISSNs.
    issns: Vec<String>,
    /// The comparable forms of the names. Few rows share a match key, so few identities are compared.
    forms: OnceCell<Forms>,
}

/// The comparable forms of a name and its abbreviation.
#[derive(Debug, PartialEq, Eq)]
struct Forms {
    name: String,
    /// The words of the name, separated by blanks.
    words: String,
    abbv: Option<String>,
}

/// Identities are equal if their comparable forms are.
impl PartialEq for Identity {
    fn eq(&self, other: &Identity) -> bool {
        self.issns == other.issns && self.forms() == other.forms()
    }
}

impl Identity {
    pub fn of_issns(issns: Vec<String>) -> Identity {
        Identity {
            issns,
            ..Identity::default()
        }
    }

    pub fn new(name: &str, abbv: Option<&str>) -> Identity {
        Identity {
            name: name.into(),
            abbv: abbv.map(Into::into),
            ..Identity::default()
        }
    }

    fn forms(&self) -> &Forms {
        let is_long = |word: &String| word.len() > 2;
        self.forms.get_or_init(|| {
            let words = self.name.split([' ', '-']).map(comparable);
            let words: Vec<String> = words.filter(is_long).collect();
            Forms {
                name: comparable(&self.name),
                words: words.join(" "),
                abbv: self.abbv.as_deref().map(comparable).filter(is_long),
            }
        })
    }

    /// Returns true if the names are similar, the abbreviations are equal, or one name contains the other abbreviation.
    pub fn has_similar_name(&self, other: &Identity) -> bool {
        let (one, other) = (self.forms(), other.forms());
        let names = |of: &Forms, abbv: &Option<String>| {
            abbv.as_ref()
                .is_some_and(|abbv| of.words.split(' ').any(|word| word == abbv))
        };
        one.abbv.is_some() && one.abbv == other.abbv
            || names(one, &other.abbv)
            || names(other, &one.abbv)
            || are_similar(&one.name, &other.name)
    }

    /// Returns true unless both have valid ISSNs, and none in common.
    pub fn may_be_one_journal(&self, other: &Identity) -> bool {
        let (ours, others) = (&self.issns, &other.issns);
        ours.is_empty() || others.is_empty() || ours.iter().any(|issn| others.contains(issn))
    }
}

/// Returns a name without case, diacritics, blanks and punctuation. A plus counts: `HIV+` is not `HIV`.
pub(super) fn comparable(name: &str) -> String {
    fold(name)
        .replace('&', "and")
        .chars()
        .filter(|letter| letter.is_alphanumeric() || is_combining_mark(*letter) || *letter == '+')
        .collect()
}

/// Returns true if two comparable names differ in a few letters at most.
fn are_similar(one: &str, other: &str) -> bool {
    one == other
        || distance(
            one,
            other,
            one.chars().count().max(other.chars().count()) / 10,
        )
        .is_some()
}

/// The maximum length, in bytes, of texts that are compared.
pub(super) const MAX_BYTES: usize = 200;

/// Returns the edit distance of two texts, if it is at most `max` and the digits are equal. A swap of two neighbours
/// counts as one edit.
pub(super) fn distance(one: &str, other: &str, max: usize) -> Option<usize> {
    // The difference of the lengths is a cheap lower bound.
    let is_far = one.chars().count().abs_diff(other.chars().count()) > max
        || one.len().max(other.len()) > MAX_BYTES;
    if is_far
        || !one
            .bytes()
            .filter(u8::is_ascii_digit)
            .eq(other.bytes().filter(u8::is_ascii_digit))
    {
        return None;
    }
    Some(strsim::damerau_levenshtein(one, other)).filter(|distance| *distance <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abbreviation_matches_its_name() {
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
            assert_eq!(
                of(one).has_similar_name(&of(other)),
                expected,
                "{one:?} {other:?}"
            );
            assert_eq!(
                of(other).has_similar_name(&of(one)),
                expected,
                "{other:?} {one:?}"
            );
        }
    }

    #[test]
    fn names_that_differ_by_a_slip_are_alike() {
        let cases = [
            (
                "European Society of Cardiology Congress",
                "Europaen Society of Cardiology Congress",
                true,
            ),
            (
                "European Society of Cardiology Congress",
                "EUROPEAN SOCIETY OF CARDIOLOGY - CONGRESS",
                true,
            ),
            ("Heart & Lung Congress", "Heart and Lung Congress", true),
            (
                "ASCO Annual Meeting 2026",
                "ASCO Annual Meeting 2025",
                false,
            ),
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
            let [first, second] = [one, other].map(comparable);
            assert_eq!(
                are_similar(&first, &second),
                expected,
                "{one:?} and {other:?}"
            );
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
            assert_eq!(distance(one, other, max), expected, "{one:?} {other:?}");
            assert_eq!(distance(other, one, max), expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn texts_are_compared_up_to_their_longest_length() {
        for (bytes, expected) in [
            (MAX_BYTES - 1, Some(1)),
            (MAX_BYTES, Some(1)),
            (MAX_BYTES + 1, None),
        ] {
            let long = "x".repeat(bytes);
            let shorter = "x".repeat(bytes - 1);
            assert_eq!(distance(&long, &shorter, 1), expected, "{bytes}");
            assert_eq!(distance(&shorter, &long, 1), expected, "{bytes}");
        }
    }
}
