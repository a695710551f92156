//! The values by which rows are told apart.

use std::borrow::Cow;

use super::edit_distance::CountedText;
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
    let folded = if name.is_ascii() { Cow::Borrowed(name) } else { Cow::Owned(fold(name)) };
    let mut letters = String::with_capacity(folded.len());
    for letter in folded.chars() {
        match letter {
            '&' => letters.push_str("and"),
            letter if letter.is_alphanumeric() => letters.push(letter.to_ascii_lowercase()),
            _ => {}
        }
    }
    letters
}

/// Returns true if two comparable names differ in a few letters at most.
fn are_similar(one: &CountedText, other: &CountedText) -> bool {
    one.text == other.text || one.distance(other, one.length.max(other.length) / 10).is_some()
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
}
