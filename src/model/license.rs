//! Licenses: the datasets and conferences that a caller sees (docs/licenses.md).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::value::FieldValue;
use super::{Dataset, PerDataset, Timestamp};

/// The rate limit of a license without one of its own, in requests per minute.
pub const DEFAULT_RATE_LIMIT: u32 = 600;

/// The random number of a license in row keys and tokens. A later license of the same name has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LicenseId(pub u64);

/// The number of a feed: a seq of the commit that created it. No entry has this seq.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FeedId(pub u64);

/// The feeds of a license in a dataset. It remains when the dataset is removed from the license, because it holds the
/// tombstones of that moment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subscription {
    /// The feed that all licenses with the same records share; `None` if the dataset is not licensed.
    pub feed: Option<FeedId>,
    /// The last seq before the license joined that feed. Up to there the baseline counts instead of the feed.
    pub joined_at: u64,
    /// The license's baseline: every record that it had ever seen before it joined.
    pub baseline: FeedId,
}

/// The records that a license shows. `None` instead of a set means all. A set never matches a null country or year.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// The licensed datasets.
    pub datasets: BTreeSet<Dataset>,
    /// The therapy areas; a conference needs at least one of them.
    pub therapy_areas: Option<BTreeSet<String>>,
    /// The countries.
    pub countries: Option<BTreeSet<String>>,
    /// The edition years.
    pub years: Option<BTreeSet<u16>>,
}

impl Scope {
    /// Returns the empty scope: that of a license before its creation and after its removal.
    pub fn nothing() -> Scope {
        Scope {
            datasets: BTreeSet::new(),
            therapy_areas: None,
            countries: None,
            years: None,
        }
    }

    /// Whether another scope shows the same records of a dataset, whatever records there are.
    pub fn shows_same(&self, other: &Scope, dataset: Dataset) -> bool {
        match (
            self.datasets.contains(&dataset),
            other.datasets.contains(&dataset),
        ) {
            (true, true) => match dataset {
                Dataset::Conferences => Rule::ALL
                    .iter()
                    .all(|rule| self.set(*rule) == other.set(*rule)),
                // Journals have no restricted fields.
                Dataset::Journals => true,
            },
            (one, two) => one == two,
        }
    }

    /// Whether any set is given.
    pub fn is_restricted(&self) -> bool {
        Rule::ALL.iter().any(|rule| self.set(*rule).is_some())
    }

    /// Returns the set of a rule; `None` if it restricts nothing.
    pub fn set(&self, rule: Rule) -> Option<RuleSet<'_>> {
        match rule {
            Rule::TherapyAreas => self.therapy_areas.as_ref().map(RuleSet::Texts),
            Rule::Countries => self.countries.as_ref().map(RuleSet::Texts),
            Rule::Years => self.years.as_ref().map(RuleSet::Years),
        }
    }
}

/// A set of a scope, with its values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RuleSet<'a> {
    /// Names.
    Texts(&'a BTreeSet<String>),
    /// Years.
    Years(&'a BTreeSet<u16>),
}

impl RuleSet<'_> {
    /// Whether a field's value, or one of its items, is in the set. Null never is.
    pub fn matches(self, value: &dyn FieldValue) -> bool {
        match self {
            RuleSet::Texts(set) => value.texts().iter().any(|text| set.contains(text)),
            RuleSet::Years(set) => {
                u16::try_from(value.rank()).is_ok_and(|year| set.contains(&year))
            }
        }
    }

    /// Returns the values as texts, ordered.
    pub fn values(self) -> Vec<String> {
        match self {
            RuleSet::Texts(set) => set.iter().cloned().collect(),
            RuleSet::Years(set) => set.iter().map(u16::to_string).collect(),
        }
    }
}

/// The sets that a scope can have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Rule {
    /// [`Scope::therapy_areas`].
    #[strum(to_string = "therapy areas")]
    TherapyAreas,
    /// [`Scope::countries`].
    Countries,
    /// [`Scope::years`].
    Years,
}

impl Rule {
    /// All rules, in the order in which scopes are shown.
    pub const ALL: [Rule; 3] = [Rule::TherapyAreas, Rule::Countries, Rule::Years];
}

/// A license.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct License {
    /// Its permanent number.
    pub id: LicenseId,
    /// The name that the operator gave. It is unique.
    pub name: String,
    /// The records that it shows.
    pub scope: Scope,
    /// The rate limit: requests per minute and key.
    pub rate_limit: u32,
    /// The last seq of the commit that set the present scope. Older sync tokens get 410.
    pub scope_seq: u64,
    /// Its subscriptions; `None` for a dataset that it never had.
    pub subscriptions: PerDataset<Option<Subscription>>,
    /// The time of the commit that created it.
    pub created_at: Timestamp,
}

impl License {
    /// Returns the feeds that the license shares with others.
    pub fn feeds(&self) -> impl Iterator<Item = FeedId> {
        self.subscriptions
            .values()
            .flatten()
            .filter_map(|subscription| subscription.feed)
    }

    /// Returns the shared feed of a dataset; `None` if the dataset is not licensed.
    pub fn feed(&self, dataset: Dataset) -> Option<FeedId> {
        self.subscriptions[dataset].and_then(|subscription| subscription.feed)
    }
}

/// The witness of a license in a dataset: its newest entry, or the change of its scope if that is later. Hidden changes
/// never move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// The seq of the entry or change.
    pub seq: u64,
    /// The lineage of its commit.
    pub lineage: [u8; 16],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConferenceFields, Fields, JournalFields, RecordFields};

    fn texts(texts: &[&str]) -> Option<BTreeSet<String>> {
        (!texts.is_empty()).then(|| texts.iter().map(|text| (*text).to_owned()).collect())
    }

    fn scope(areas: &[&str], countries: &[&str], years: &[u16]) -> Scope {
        Scope {
            datasets: Dataset::ALL.into(),
            therapy_areas: texts(areas),
            countries: texts(countries),
            years: (!years.is_empty()).then(|| years.iter().copied().collect()),
        }
    }

    #[test]
    fn every_set_of_a_scope_must_match() {
        let conference = ConferenceFields {
            therapy_areas: vec!["Cardiology".to_owned(), "Oncology".to_owned()],
            country: Some("Spain".to_owned()),
            year: Some(2026),
            ..ConferenceFields::default()
        };
        let cases = cases![
            scope(&[], &[], &[]), "";
            // The second item of a field, and the second value of a set.
            scope(&["Oncology"], &[], &[]), "";
            scope(&["Dermatology", "Oncology"], &["France", "Spain"], &[2025, 2026]), "";
            // Each set alone, and with others that match.
            scope(&["Dermatology"], &[], &[]), "therapy areas";
            scope(&[], &["France"], &[]), "countries";
            scope(&[], &[], &[2025]), "years";
            scope(&["Oncology"], &["France"], &[2026]), "countries";
            scope(&["Oncology"], &["Spain"], &[2027]), "years";
            scope(&["Dermatology"], &["Spain"], &[2026]), "therapy areas";
            scope(&["Dermatology"], &["France"], &[2025]), "therapy areas, countries, years";
            // Words are compared as a whole, with their case.
            scope(&["oncology"], &[], &[]), "therapy areas";
            scope(&["Onco"], &["Spai"], &[]), "therapy areas, countries";
            scope(&[], &["Spain "], &[]), "countries";
        ];
        for (scope, expected) in cases {
            let blocking: Vec<String> = conference
                .blocking_rules(&scope)
                .iter()
                .map(|(rule, _)| rule.to_string())
                .collect();
            assert_eq!(blocking.join(", "), expected, "{scope:?}");
            assert_eq!(conference.is_in(&scope), expected.is_empty(), "{scope:?}");
            assert!(JournalFields::default().is_in(&scope));
            // Null is in no set.
            let is_in = ConferenceFields::default().is_in(&scope);
            assert_eq!(is_in, !scope.is_restricted(), "{scope:?}");
        }
        assert_eq!(
            ConferenceFields::table()
                .fields
                .iter()
                .filter(|field| field.uses.rule.is_some())
                .count(),
            3
        );
    }

    #[test]
    fn scopes_show_the_same_if_all_their_sets_are_equal() {
        let one = scope(&["A"], &["B"], &[2026]);
        let only = |dataset| Scope {
            datasets: [dataset].into(),
            ..one.clone()
        };
        // Another scope, and whether it shows the same conferences and the same journals.
        let cases = [
            (one.clone(), true, true),
            (scope(&["X"], &["B"], &[2026]), false, true),
            (scope(&["A"], &["X"], &[2026]), false, true),
            (scope(&["A"], &["B"], &[2025]), false, true),
            (scope(&[], &["B"], &[2026]), false, true),
            (scope(&["A", "X"], &["B"], &[2026]), false, true),
            (only(Dataset::Conferences), true, false),
            (only(Dataset::Journals), false, true),
            (Scope::nothing(), false, false),
        ];
        for (other, conferences, journals) in cases {
            for (one, other) in [(&one, &other), (&other, &one)] {
                let shows = Dataset::ALL.map(|dataset| one.shows_same(other, dataset));
                assert_eq!(shows, [conferences, journals], "{one:?} {other:?}");
            }
        }
        // Neither shows any conference, whatever their sets are.
        let [one, other] = [&["A"], &["B"]].map(|areas| Scope {
            datasets: [Dataset::Journals].into(),
            ..scope(areas, &[], &[])
        });
        assert!(one.shows_same(&other, Dataset::Conferences));
        assert!(one.shows_same(&other, Dataset::Journals));
        let years = scope(&[], &[], &[2026, 2025]);
        let expected = Some(vec!["2025".to_owned(), "2026".to_owned()]);
        assert_eq!(years.set(Rule::Years).map(RuleSet::values), expected);
        for scope in [scope(&["A"], &[], &[]), scope(&[], &["B"], &[]), years] {
            assert!(scope.is_restricted() && !Scope::nothing().is_restricted());
        }
    }
}
