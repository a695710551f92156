//! Journals: their fields and rules (docs/import.md).

use serde::Deserialize;
use strum::{Display, EnumString, VariantNames};

use super::curated::{Curated, RecordFields, require, row};
use super::field::fields;
use super::reference::Links;
use super::value::{ValueKind, scalar::Scalar};
use super::{Dataset, Number, OrganizationFields, TagFields};

/// A journal that follows all rules.
pub type Journal = Curated<JournalFields>;

fields! {
    /// The fields of a journal, apart from its id.
    pub struct JournalFields {
        /// Journal name
        pub name: Option<String> => searched("name"),
        /// Abbreviated name
        pub abbv: Option<String> => searched("abbreviation"),
        /// ISSN of the printed edition
        pub issn_print: Option<String>,
        /// ISSN of the online edition
        pub issn_online: Option<String>,
        /// Publisher
        pub publisher: Option<String> => indexed(),
        /// Website of the journal
        pub url: Option<String>,
        /// Impact metric
        pub impact_factor: Option<Number>,
        /// Year of the `impact_factor`
        pub impact_factor_year: Option<u64>,
        /// CiteScore
        pub citescore: Option<Number>,
        /// SCImago Journal Rank
        pub sjr: Option<Number>,
        /// h-index
        pub h_index: Option<u64>,
        /// Publishing terms
        pub publishing: Publishing,
        /// How long the steps to publication take
        pub timelines: Timelines,
        /// Linked organizations in the order of their ids; in CSV their names, joined by `; `
        pub organizations: Links<OrganizationFields>,
        /// Tags in the order of their ids; in CSV `Type: Name`, joined by `; `
        pub tags: Links<TagFields>,
    }
}

fields! {
    /// Publishing terms.
    pub struct Publishing {
        /// How readers get at articles: `subscription`, `hybrid` or `open`
        pub access: Option<Access>,
        /// License under which articles are published, such as `CC BY 4.0`
        pub content_license: Option<String>,
        /// Article processing charge in US dollars
        pub apc_usd: Option<Number>,
        /// Months before an article may be shared freely
        pub embargo_months: Option<u64>,
    }
}

fields! {
    /// How long the steps to publication take.
    pub struct Timelines {
        /// Submission to first decision
        pub submit_to_first_decision: Weeks,
        /// Online submission to acceptance
        pub online_submit_to_accept: Weeks,
        /// Acceptance to publication online
        pub accept_to_online: Weeks,
        /// Acceptance to publication in print
        pub accept_to_print: Weeks,
    }
}

fields! {
    /// A range of weeks.
    pub struct Weeks {
        /// …, shortest, in weeks
        pub min_weeks: Option<Number>,
        /// …, longest, in weeks
        pub max_weeks: Option<Number>,
    }
}

/// The access of readers to a journal's articles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Display, EnumString, VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Access {
    /// Readers pay.
    Subscription,
    /// Readers pay, except for articles that authors paid for.
    Hybrid,
    /// Free for readers.
    Open,
}

impl Scalar for Access {
    const KIND: ValueKind = ValueKind::Choice(Access::VARIANTS);
    const EXPECTED: &'static str = "write one of `subscription`, `hybrid`, `open`";

    fn rank(&self) -> u64 {
        *self as u64 + 1
    }
}

row!(JournalFields, "journals", |journal, faults| require(
    "name",
    &journal.name,
    faults
));

impl RecordFields for JournalFields {
    const DATASET: Dataset = Dataset::Journals;
}
