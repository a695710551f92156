//! The values that lint checks in each kind of row.

use std::borrow::Cow;
use std::hash::Hash;

use super::identity::{Identity, MatchKey, key_of};
use super::likeness::comparable;
use super::row_rules::{CONFERENCE_RULES, JOURNAL_RULES};
use super::rule::RowRule;
use super::texts::{ISSN_COLUMNS, is_placeholder, normalized};
use crate::model::message::{Message, message};
use crate::model::reference::ReferenceFields;
use crate::model::{ConferenceFields, Fields, JournalFields};

/// A kind of row that lint checks.
pub trait Lintable: Fields {
    const RULES: &[RowRule<Self>] = &[];

    /// The keys that should be unique among rows of this kind.
    fn match_keys(&self) -> Vec<MatchKey<'_, Self>>;

    /// Returns a part of the stored JSON of all rows with an equal key of this rule.
    fn mark(&self, _rule: &str) -> String {
        String::new()
    }
}

/// Returns the match key of a name, unless the name is a placeholder.
fn name_key<'a, F: Fields>(
    rule: &'static str,
    name: Cow<'a, str>,
    more: impl Hash,
    message: fn(&str) -> Message,
) -> Option<MatchKey<'a, F>> {
    let form = comparable(&name);
    (!form.is_empty() && !is_placeholder("name", &name)).then(|| MatchKey {
        rule,
        field: "name",
        value: name,
        key: key_of((F::STEM, rule, form, more)),
        identity: None,
        message,
    })
}

impl Lintable for ConferenceFields {
    const RULES: &[RowRule<Self>] = CONFERENCE_RULES;

    fn mark(&self, rule: &str) -> String {
        match (rule, self.start_date, self.year) {
            ("same_meeting", Some(start), _) => format!("\"start_date\":\"{start}\""),
            (_, _, Some(year)) => format!("\"year\":{year},"),
            _ => "\"year\":null,".to_owned(),
        }
    }

    fn match_keys(&self) -> Vec<MatchKey<'_, Self>> {
        // Editions without a year have equal keys only if they start on the same day.
        let start = self.start_date.filter(|_| self.year.is_none());
        let name = name_key(
            "same_name_and_year",
            self.name().into(),
            (self.year, start),
            |other| {
                message!(
                    "is also the name of {other}, of the same year; remove one of them, or give them different names or years"
                )
            },
        );
        let meeting = self.start_date.map(|start| MatchKey {
            rule: "same_meeting",
            field: "name",
            value: self.name().into(),
            key: key_of((start, self.city.as_deref().map(comparable).unwrap_or_default())),
            identity: Some(|row: &Self| Identity::of_name(row.name(), row.abbv.as_deref())),
            message: |other| {
                message!(
                    "begins on the same day in the same city as {other}, with nearly the same name or abbreviation; \
                     remove one of them, or correct them"
                )
            },
        });
        name.into_iter().chain(meeting).collect()
    }
}

impl Lintable for JournalFields {
    const RULES: &[RowRule<Self>] = JOURNAL_RULES;

    fn match_keys(&self) -> Vec<MatchKey<'_, Self>> {
        let issns = [&self.issn_print, &self.issn_online];
        let valid = ISSN_COLUMNS.into_iter().zip(issns).filter_map(|(field, issn)| {
            let issn = issn.as_deref()?;
            let key = normalized(issn).filter(|_| !is_placeholder(field, issn))?;
            Some(MatchKey {
                rule: "issn_twice",
                field,
                value: issn.into(),
                key: key_of(key),
                identity: None,
                message: |other| {
                    message!("is also an ISSN of {other}; give each journal its own, or remove one of the journals")
                },
            })
        });
        let mut match_keys: Vec<MatchKey<'_, Self>> = valid.collect();
        // A journal may have one ISSN for both editions.
        match_keys.dedup_by_key(|issn| issn.key);
        let name = name_key("same_name", self.name().into(), (), |other| {
            message!(
                "is also the name of {other}; write the ISSNs of both, or keep one id if they are one journal"
            )
        });
        match_keys.extend(name.map(|name| MatchKey {
            identity: Some(Identity::of_issns),
            ..name
        }));
        match_keys
    }
}

/// Labels are unique when compared exactly. Their keys ignore case, diacritics, blanks and punctuation.
impl<F: ReferenceFields> Lintable for F {
    fn match_keys(&self) -> Vec<MatchKey<'_, Self>> {
        name_key("same_name", self.label().into(), (), |other| {
            message!(
                "differs only in case, diacritics, blanks or punctuation from the name of {other}; link one of them, and \
                 remove the other"
            )
        }).into_iter().collect()
    }
}
