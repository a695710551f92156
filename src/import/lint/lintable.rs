//! The values that lint checks in each kind of row.

use super::duplicates::{MatchKey, RowNames, comparable};
use super::issn::normalized;
use super::rule::RowRule;
use super::spellings::Vocabulary;
use super::texts::is_placeholder;
use super::{dates, numbers};
use crate::model::message::{Message, message};
use crate::model::reference::ReferenceFields;
use crate::model::{ConferenceFields, Fields, JournalFields, OrganizationFields, TagFields};

/// A kind of row that lint checks.
pub(in crate::import) trait Lintable: Fields {
    const RULES: &[RowRule<Self>];

    /// The names for comparison with other rows.
    fn names(&self) -> RowNames<'_>;

    /// The keys that should be unique among rows of this kind.
    fn match_keys(&self) -> Vec<MatchKey<'_>>;

    /// Returns the words of a vocabulary. Licenses and filters compare them exactly.
    fn words_of(&self, vocabulary: &Vocabulary) -> Vec<&str> {
        let field = Self::table().fields.iter().position(|field| field.name == vocabulary.field);
        field.map_or(&[][..], |field| self.values()[field].texts()).iter().map(String::as_str).collect()
    }
}

/// Returns the match key of a name, unless the name is a placeholder.
fn name_key<'a>(rule: &'static str, name: &str, more: &str, message: fn(&str) -> Message) -> Option<MatchKey<'a>> {
    let key = comparable(name);
    (!key.is_empty() && !is_placeholder("name", name)).then(|| MatchKey {
        rule,
        field: "name",
        key: format!("{key} {more}"),
        needs_similar_names: false,
        value: None,
        message,
    })
}

impl Lintable for ConferenceFields {
    const RULES: &[RowRule<Self>] = dates::RULES;

    fn names(&self) -> RowNames<'_> {
        RowNames { name: self.name().into(), abbv: self.abbv.as_deref() }
    }

    fn match_keys(&self) -> Vec<MatchKey<'_>> {
        let year = self.year.map_or("without a year".to_owned(), |year| year.to_string());
        // Editions without a year have equal keys only if they start on the same day.
        let start = if self.year.is_none() { self.start_date.map(|date| date.to_string()) } else { None };
        let name = name_key(
            "same_name_and_year",
            self.name(),
            &format!("{year} {}", start.unwrap_or_default()),
            |other| {
                message!(
                    "is also the name of {other}, of the same year; remove one of them, or give them different names or years"
                )
            },
        );
        let mut match_keys: Vec<MatchKey<'_>> = name.into_iter().collect();
        if let Some(start) = self.start_date {
            let city = self.city.as_deref().map(comparable).unwrap_or_default();
            match_keys.push(MatchKey {
                rule: "same_meeting",
                field: "name",
                key: format!("{start} {city}"),
                needs_similar_names: true,
                value: None,
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
    const RULES: &[RowRule<Self>] = numbers::RULES;

    fn names(&self) -> RowNames<'_> {
        RowNames { name: self.name().into(), abbv: None }
    }

    fn match_keys(&self) -> Vec<MatchKey<'_>> {
        let issns = [("issn_print", &self.issn_print), ("issn_online", &self.issn_online)];
        let issns = issns.into_iter().filter_map(|(field, issn)| {
            Some(MatchKey {
                rule: "issn_twice",
                field,
                key: normalized(issn.as_deref()?)?,
                needs_similar_names: false,
                value: issn.as_deref(),
                message: |other| {
                    message!("is also an ISSN of {other}; give each journal and edition its own, or remove one of the journals")
                },
            })
        });
        let name = name_key("same_name", self.name(), "", |other| {
            message!("is also the name of {other}; remove one of them, or rename one")
        });
        issns.chain(name).collect()
    }
}

/// Labels are unique when compared exactly. Their keys ignore case, diacritics, blanks and punctuation.
fn label_keys(fields: &impl ReferenceFields) -> Vec<MatchKey<'_>> {
    let name = name_key("same_name", &fields.label(), "", |other| {
        message!(
            "differs only in case, diacritics, blanks or punctuation from the name of {other}; link one of them, and \
             remove the other"
        )
    });
    name.into_iter().collect()
}

impl Lintable for OrganizationFields {
    const RULES: &[RowRule<Self>] = &[];

    fn names(&self) -> RowNames<'_> {
        RowNames { name: self.label().into(), abbv: None }
    }

    fn match_keys(&self) -> Vec<MatchKey<'_>> {
        label_keys(self)
    }
}

impl Lintable for TagFields {
    const RULES: &[RowRule<Self>] = &[];

    fn names(&self) -> RowNames<'_> {
        RowNames { name: self.label().into(), abbv: None }
    }

    fn match_keys(&self) -> Vec<MatchKey<'_>> {
        label_keys(self)
    }
}
