//! The values by which rows are told apart.

use std::borrow::Cow;
use std::cell::OnceCell;

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
    /// The fields with ISSNs, and their texts.
    issns: Vec<(&'static str, Box<str>)>,
    /// The comparable forms. Few rows share a match key, so few identities are compared.
    forms: OnceCell<Box<Forms>>,
}

/// The comparable forms of an identity.
#[derive(Debug, PartialEq, Eq)]
struct Forms {
    name: String,
    /// The words of the name, separated by blanks.
    words: String,
    abbv: Option<String>,
    /// The valid ISSNs.
    issns: Vec<String>,
}

/// Identities are equal if their comparable forms are.
impl PartialEq for Identity {
    fn eq(&self, other: &Identity) -> bool {
        self.forms() == other.forms()
    }
}

impl Identity {
    pub fn of_issns<'a>(issns: impl Iterator<Item = (&'static str, &'a str)>) -> Identity {
        Identity {
            issns: issns.map(|(field, issn)| (field, issn.into())).collect(),
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
        self.forms.get_or_init(|| {
            let is_long = |word: &String| word.len() > 2;
            let words = self.name.split([' ', '-']).map(comparable);
            let words: Vec<String> = words.filter(is_long).collect();
            let issns = self.issns.iter();
            Box::new(Forms {
                name: comparable(&self.name),
                words: words.join(" "),
                abbv: self.abbv.as_deref().map(comparable).filter(is_long),
                issns: issns
                    .filter_map(|(field, issn)| valid_issn(field, issn))
                    .collect(),
            })
        })
    }

    /// Returns true if the names are similar, the abbreviations are equal, or one name contains the other abbreviation.
    pub fn has_similar_name(&self, other: &Identity) -> bool {
        let one = self.forms();
        let other = other.forms();
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
        let ours = &self.forms().issns;
        let others = &other.forms().issns;
        ours.is_empty() || others.is_empty() || ours.iter().any(|issn| others.contains(issn))
    }
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
}
