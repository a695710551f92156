//! Licenses: which datasets, and which conferences, a caller sees (docs/licenses.md).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::value::FieldValue;
use super::{Dataset, PerDataset, Timestamp};

/// Requests per minute of a license that names no limit of its own.
pub const DEFAULT_RATE_LIMIT: u32 = 600;

/// A license's number in row keys and tokens: random, so that a license made later under the same name is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LicenseId(pub u64);

/// The number of a feed: a seq of the commit that made it, which no entry stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FeedId(pub u64);

/// How a license reads a dataset's changes. It stays when the dataset is dropped from the license: the tombstones of that
/// moment are history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subscription {
    /// The feed that it shares with all licenses that show the same records; `None` where the dataset is not licensed.
    pub feed: Option<FeedId>,
    /// The last seq before the license came to that feed. What the feed holds up to there is not this license's: its
    /// baseline tells how it stood then.
    pub joined_at: u64,
    /// The license's private feed: every record that it ever saw up to then, as it stood.
    pub baseline: FeedId,
}

/// What a license shows. An absent set means all; a given set never matches a null country or year.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// The datasets that can be read at all.
    pub datasets: BTreeSet<Dataset>,
    /// Conferences with at least one of these areas.
    pub therapy_areas: Option<BTreeSet<String>>,
    /// Conferences in one of these countries.
    pub countries: Option<BTreeSet<String>>,
    /// Conferences of one of these edition years.
    pub years: Option<BTreeSet<u16>>,
}

impl Scope {
    /// The scope before a license exists and after it is gone.
    pub fn nothing() -> Scope {
        Scope { datasets: BTreeSet::new(), therapy_areas: None, countries: None, years: None }
    }

    /// Whether the other scope shows the same records of a dataset, whatever they are.
    pub fn shows_same(&self, other: &Scope, dataset: Dataset) -> bool {
        match (self.datasets.contains(&dataset), other.datasets.contains(&dataset)) {
            (true, true) => match dataset {
                Dataset::Conferences => Rule::ALL.iter().all(|rule| self.set(*rule) == other.set(*rule)),
                // No field of journals has a rule.
                Dataset::Journals => true,
            },
            (one, two) => one == two,
        }
    }

    /// Whether it has a set.
    pub fn is_restricted(&self) -> bool {
        Rule::ALL.iter().any(|rule| self.set(*rule).is_some())
    }

    /// The set of a rule; `None` where it restricts nothing.
    pub fn set(&self, rule: Rule) -> Option<RuleSet<'_>> {
        match rule {
            Rule::TherapyAreas => self.therapy_areas.as_ref().map(RuleSet::Texts),
            Rule::Countries => self.countries.as_ref().map(RuleSet::Texts),
            Rule::Years => self.years.as_ref().map(RuleSet::Years),
        }
    }
}

/// One of a scope's sets, with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleSet<'a> {
    /// A set of texts.
    Texts(&'a BTreeSet<String>),
    /// A set of years.
    Years(&'a BTreeSet<u16>),
}

impl RuleSet<'_> {
    /// Whether a field's value, or one of its items, is in the set. Null never is.
    pub fn matches(self, value: &dyn FieldValue) -> bool {
        match self {
            RuleSet::Texts(set) => value.texts().iter().any(|text| set.contains(text)),
            RuleSet::Years(set) => u16::try_from(value.rank()).is_ok_and(|year| set.contains(&year)),
        }
    }

    /// The values as texts, in their order.
    pub fn values(self) -> Vec<String> {
        match self {
            RuleSet::Texts(set) => set.iter().cloned().collect(),
            RuleSet::Years(set) => set.iter().map(u16::to_string).collect(),
        }
    }
}

/// One of a scope's sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Rule {
    /// The set of therapy areas.
    #[strum(to_string = "therapy areas")]
    TherapyAreas,
    /// The set of countries.
    Countries,
    /// The set of years.
    Years,
}

impl Rule {
    /// Every rule, in the order in which scopes are shown.
    pub const ALL: [Rule; 3] = [Rule::TherapyAreas, Rule::Countries, Rule::Years];
}

/// A license.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct License {
    /// Its number, for good.
    pub id: LicenseId,
    /// The name that the operator gave; at most one license has it at a time.
    pub name: String,
    /// What it shows.
    pub scope: Scope,
    /// Requests per minute and key.
    pub rate_limit: u32,
    /// The last seq of the commit that made its present scope: older sync tokens get 410.
    pub scope_seq: u64,
    /// Its subscriptions; `None` where it never had the dataset.
    pub subscriptions: PerDataset<Option<Subscription>>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl License {
    /// The feeds that it shares with others.
    pub fn feeds(&self) -> impl Iterator<Item = FeedId> {
        self.subscriptions.values().flatten().filter_map(|subscription| subscription.feed)
    }

    /// The feed of a dataset that it shares with others; `None` where the dataset is not licensed.
    pub fn feed(&self, dataset: Dataset) -> Option<FeedId> {
        self.subscriptions[dataset].and_then(|subscription| subscription.feed)
    }
}

/// The newest thing that an answer rests on: the license's newest entry in the dataset, or the change that made its
/// present scope if that is later. What the license does not see never moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Its seq.
    pub seq: u64,
    /// The lineage of the commit that took that seq.
    pub lineage: [u8; 16],
}
