//! The values that lint checks in each kind of row.

use std::borrow::Cow;
use std::hash::Hash;

use jiff::civil::Date;
use serde::Deserialize;

use super::identity::{Identity, MatchKey, key_of};
use super::likeness::comparable;
use super::row_rules::{CONFERENCE_RULES, JOURNAL_RULES};
use super::rule::RowRule;
use super::texts::{is_placeholder, normalized};
use crate::model::message::{Message, message};
use crate::model::reference::ReferenceFields;
use crate::model::{ConferenceFields, Fields, JournalFields};

/// A kind of row that lint checks.
pub(in crate::import) trait Lintable: Fields {
    const RULES: &[RowRule<Self>] = &[];

    /// Returns the values that are compared with those of other rows.
    fn compared(&self) -> Compared<'_>;

    /// The keys that should be unique among rows of this kind.
    fn match_keys<'a>(row: &'a Compared<'_>) -> Vec<MatchKey<'a>>;
}

/// The values of a row that lint compares with those of other rows. Each kind has some of them.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(in crate::import) struct Compared<'a> {
    pub name: Cow<'a, str>,
    pub abbv: Option<Cow<'a, str>>,
    pub year: Option<i32>,
    pub start_date: Option<Date>,
    pub city: Option<Cow<'a, str>>,
    pub country: Option<Cow<'a, str>>,
    pub therapy_areas: Vec<Cow<'a, str>>,
    pub issn_print: Option<Cow<'a, str>>,
    pub issn_online: Option<Cow<'a, str>>,
}

impl Compared<'_> {
    /// Returns the fields with an ISSN, and their texts.
    pub fn issns(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let fields = [
            ("issn_print", &self.issn_print),
            ("issn_online", &self.issn_online),
        ];
        fields
            .into_iter()
            .filter_map(|(field, issn)| Some((field, issn.as_deref()?)))
    }
}

/// Returns a text of a row to compare.
fn text(value: &Option<String>) -> Option<Cow<'_, str>> {
    value.as_deref().map(Cow::from)
}

/// Returns the match key of a name, unless the name is a placeholder.
fn name_key<'a, F: Fields>(
    rule: &'static str,
    row: &'a Compared<'_>,
    more: impl Hash,
    message: fn(&str) -> Message,
) -> Option<MatchKey<'a>> {
    let name = comparable(&row.name);
    (!name.is_empty() && !is_placeholder("name", &row.name)).then(|| MatchKey {
        rule,
        field: "name",
        value: &row.name,
        key: key_of((F::STEM, rule, name, more)),
        mark: String::new(),
        also: None,
        message,
    })
}

impl Lintable for ConferenceFields {
    const RULES: &[RowRule<Self>] = CONFERENCE_RULES;

    fn compared(&self) -> Compared<'_> {
        Compared {
            name: self.name().into(),
            abbv: text(&self.abbv),
            year: self.year.map(i32::from),
            start_date: self.start_date,
            city: text(&self.city),
            country: text(&self.country),
            therapy_areas: self.therapy_areas.iter().map(Cow::from).collect(),
            ..Compared::default()
        }
    }

    fn match_keys<'a>(row: &'a Compared<'_>) -> Vec<MatchKey<'a>> {
        // Editions without a year have equal keys only if they start on the same day.
        let start = row.start_date.filter(|_| row.year.is_none());
        let name = name_key::<Self>("same_name_and_year", row, (row.year, start), |other| {
            message!(
                "is also the name of {other}, of the same year; remove one of them, or give them different names or years"
            )
        });
        let year = row.year.map_or("null".to_owned(), |year| year.to_string());
        let name = name.map(|name| MatchKey {
            mark: format!("\"year\":{year},"),
            ..name
        });
        let mut match_keys: Vec<MatchKey<'_>> = name.into_iter().collect();
        if let Some(start) = row.start_date {
            let city = row.city.as_deref().map(comparable).unwrap_or_default();
            match_keys.push(MatchKey {
                rule: "same_meeting",
                field: "name",
                value: &row.name,
                key: key_of((start, city)),
                mark: format!("\"start_date\":\"{start}\""),
                also: Some(Identity::has_similar_name),
                message: |other| {
                    message!(
                        "begins on the same day in the same city as {other}, with nearly the same name or abbreviation; \
                         remove one of them, or correct them"
                    )
                },
            });
        }
        match_keys
    }
}

impl Lintable for JournalFields {
    const RULES: &[RowRule<Self>] = JOURNAL_RULES;

    fn compared(&self) -> Compared<'_> {
        Compared {
            name: self.name().into(),
            issn_print: text(&self.issn_print),
            issn_online: text(&self.issn_online),
            ..Compared::default()
        }
    }

    fn match_keys<'a>(row: &'a Compared<'_>) -> Vec<MatchKey<'a>> {
        let mut match_keys: Vec<MatchKey<'_>> = Vec::with_capacity(3);
        for (field, issn) in row
            .issns()
            .filter(|(field, issn)| !is_placeholder(field, issn))
        {
            // A journal may have one ISSN for both editions.
            let key = normalized(issn).map(key_of);
            let Some(key) = key.filter(|key| match_keys.iter().all(|other| other.key != *key))
            else {
                continue;
            };
            match_keys.push(MatchKey {
                rule: "issn_twice",
                field,
                value: issn,
                key,
                mark: String::new(),
                also: None,
                message: |other| {
                    message!("is also an ISSN of {other}; give each journal its own, or remove one of the journals")
                },
            });
        }
        let name = name_key::<Self>("same_name", row, (), |other| {
            message!(
                "is also the name of {other}; write the ISSNs of both, or keep one id if they are one journal"
            )
        });
        match_keys.extend(name.map(|name| MatchKey {
            also: Some(Identity::may_be_one_journal),
            ..name
        }));
        match_keys
    }
}

/// Labels are unique when compared exactly. Their keys ignore case, diacritics, blanks and punctuation.
impl<F: ReferenceFields> Lintable for F {
    fn compared(&self) -> Compared<'_> {
        Compared {
            name: self.label().into(),
            ..Compared::default()
        }
    }

    fn match_keys<'a>(row: &'a Compared<'_>) -> Vec<MatchKey<'a>> {
        let name = name_key::<Self>("same_name", row, (), |other| {
            message!(
                "differs only in case, diacritics, blanks or punctuation from the name of {other}; link one of them, and \
                 remove the other"
            )
        });
        name.into_iter().collect()
    }
}
