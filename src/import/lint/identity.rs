//! The values by which rows are told apart.

use std::borrow::Cow;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

use super::likeness::{are_similar, comparable};
use super::texts::valid_issns;
use crate::model::{Fields, Message};

/// A value that should differ between rows. Rows with equal match keys are probable duplicates.
pub struct MatchKey<'a, F> {
    /// The rule that duplicates break.
    pub rule: &'static str,
    /// The field to report, and its value.
    pub field: &'static str,
    pub value: Cow<'a, str>,
    /// The hash of the kind of row, the rule and the comparable value.
    pub key: u64,
    /// Returns the identity of a row, if duplicates have similar ones too.
    pub identity: Option<fn(&F) -> Identity>,
    /// Returns the problem and its remedy, for a description of the other row.
    pub message: fn(&str) -> Message,
}

/// Returns the hash of a key. Many rows have keys, so their texts are not kept.
pub fn key_of(key: impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::new().hash_one(key)
}

/// The comparable names and numbers that identify a row, apart from its match keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Identity {
    name: String,
    /// The abbreviation, and the words of the name, if they are long.
    words: Vec<String>,
    abbv: Option<String>,
    /// The valid ISSNs.
    issns: Vec<String>,
}

impl Identity {
    pub fn of_name(name: &str, abbv: Option<&str>) -> Identity {
        let is_long = |word: &String| word.len() > 2;
        let abbv = abbv.map(comparable).filter(is_long);
        let words = name.split([' ', '-']).map(comparable).filter(is_long);
        Identity {
            name: comparable(name),
            words: words.chain(abbv.clone()).collect(),
            abbv,
            issns: Vec::new(),
        }
    }

    pub fn of_issns<F: Fields>(journal: &F) -> Identity {
        let valid = valid_issns(journal).into_iter().flatten();
        Identity {
            issns: valid.collect(),
            ..Identity::default()
        }
    }

    /// Returns true if both have a common ISSN. If one has none, returns true if the names are similar, the abbreviations
    /// are equal, or one name contains the other abbreviation.
    pub fn is_similar(&self, other: &Identity) -> bool {
        if !self.issns.is_empty() && !other.issns.is_empty() {
            return self.issns.iter().any(|issn| other.issns.contains(issn));
        }
        [(self, other), (other, self)]
            .into_iter()
            .any(|(one, other)| {
                one.abbv
                    .as_ref()
                    .is_some_and(|abbv| other.words.contains(abbv))
            })
            || are_similar(&self.name, &other.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abbreviation_matches_its_name() {
        let of = |(name, abbv): (&str, &str)| Identity::of_name(name, Some(abbv));
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
                of(one).is_similar(&of(other)),
                expected,
                "{one:?} {other:?}"
            );
            assert_eq!(
                of(other).is_similar(&of(one)),
                expected,
                "{other:?} {one:?}"
            );
        }
    }
}
