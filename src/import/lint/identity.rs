//! The values by which rows are told apart.

use std::borrow::Cow;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

use super::likeness::{are_similar, comparable};
use super::texts::valid_issn;
use crate::model::Message;

/// A value that should differ between rows. Rows with equal match keys are probable duplicates.
#[derive(Clone, Debug)]
pub(in crate::import) struct MatchKey<'a> {
    /// The rule that duplicates break.
    pub rule: &'static str,
    /// The field to report, and its value.
    pub field: &'static str,
    pub value: Cow<'a, str>,
    /// The hash of the kind of row, the rule and the comparable value.
    pub key: u64,
    /// Another condition that duplicates fulfil.
    pub also: Option<fn(&Identity, &Identity) -> bool>,
    /// Returns the problem and its remedy, for a description of the other row.
    pub message: fn(&str) -> Message,
}

/// Returns the hash of a key. Many rows have keys, so their texts are not kept.
pub(super) fn key_of(key: impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::new().hash_one(key)
}

/// The comparable names and numbers that identify a row, apart from its match keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::import) struct Identity {
    name: String,
    /// The long words of the name.
    words: Vec<String>,
    abbv: Option<String>,
    /// The valid ISSNs.
    issns: Vec<String>,
}

impl Identity {
    pub fn of_name(name: &str, abbv: Option<&str>) -> Identity {
        let is_long = |word: &String| word.len() > 2;
        let words = name.split([' ', '-']).map(comparable);
        Identity {
            name: comparable(name),
            words: words.filter(is_long).collect(),
            abbv: abbv.map(comparable).filter(is_long),
            issns: Vec::new(),
        }
    }

    pub fn of_issns<'a>(issns: impl Iterator<Item = (&'static str, &'a str)>) -> Identity {
        let valid = issns.filter_map(|(field, issn)| valid_issn(field, issn));
        Identity {
            issns: valid.collect(),
            ..Identity::default()
        }
    }

    /// Returns true if the names are similar, the abbreviations are equal, or one name contains the other abbreviation.
    pub fn has_similar_name(&self, other: &Identity) -> bool {
        let names = |of: &Identity, abbv: &Option<String>| {
            abbv.as_ref().is_some_and(|abbv| of.words.contains(abbv))
        };
        self.abbv.is_some() && self.abbv == other.abbv
            || names(self, &other.abbv)
            || names(other, &self.abbv)
            || are_similar(&self.name, &other.name)
    }

    /// Returns true unless both have valid ISSNs, and none in common.
    pub fn may_be_one_journal(&self, other: &Identity) -> bool {
        let mut issns = self.issns.iter();
        self.issns.is_empty()
            || other.issns.is_empty()
            || issns.any(|issn| other.issns.contains(issn))
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
            let has_similar_name = of(one).has_similar_name(&of(other));
            assert_eq!(has_similar_name, expected, "{one:?} {other:?}");
            let has_similar_name = of(other).has_similar_name(&of(one));
            assert_eq!(has_similar_name, expected, "{other:?} {one:?}");
        }
    }
}
