//! Journals: their fields and rules (README, "Import").

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::curated::{Curated, Fault, Fields, RecordFields, require_text};
use super::field::{Field, fields};
use super::json::Layout;
use super::{Dataset, Id, Number, Scope};

/// A journal whose rules hold.
pub type Journal = Curated<JournalFields>;

/// The fields of a journal, apart from its id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named and described by the contract")]
pub struct JournalFields {
    pub name: Option<String>,
    pub abbv: Option<String>,
    pub issn_print: Option<String>,
    pub issn_online: Option<String>,
    pub publisher: Option<String>,
    pub url: Option<String>,
    pub impact_factor: Option<Number>,
    pub impact_factor_year: Option<u64>,
    pub citescore: Option<Number>,
    pub sjr: Option<Number>,
    pub h_index: Option<u64>,
    pub publishing: Publishing,
    pub timelines: Timelines,
    pub organizations: Vec<Id>,
    pub tags: Vec<Id>,
}

/// Publishing terms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named by the contract")]
pub struct Publishing {
    pub access: Option<Access>,
    pub content_license: Option<String>,
    pub apc_usd: Option<Number>,
    pub embargo_months: Option<u64>,
}

/// How long the steps to publication take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named by the contract")]
pub struct Timelines {
    pub submit_to_first_decision: Weeks,
    pub online_submit_to_accept: Weeks,
    pub accept_to_online: Weeks,
    pub accept_to_print: Weeks,
}

/// A range of weeks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named by the contract")]
pub struct Weeks {
    pub min_weeks: Option<Number>,
    pub max_weeks: Option<Number>,
}

/// How readers get at a journal's articles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Readers pay.
    Subscription,
    /// Readers pay, but for articles that authors paid for.
    Hybrid,
    /// Free for readers.
    Open,
}

impl Access {
    /// Every value.
    pub const ALL: [Access; 3] = [Access::Subscription, Access::Hybrid, Access::Open];

    /// The value in JSON and CSV.
    pub const fn as_str(self) -> &'static str {
        match self {
            Access::Subscription => "subscription",
            Access::Hybrid => "hybrid",
            Access::Open => "open",
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not a kind of access.
#[derive(Debug, thiserror::Error)]
#[error("write one of `subscription`, `hybrid`, `open`")]
pub struct NotAnAccess;

impl FromStr for Access {
    type Err = NotAnAccess;

    fn from_str(text: &str) -> Result<Self, NotAnAccess> {
        Access::ALL.into_iter().find(|access| access.as_str() == text).ok_or(NotAnAccess)
    }
}

static TABLE: &[Field<JournalFields>] = fields!(JournalFields:
    Text name;
    Text abbv;
    Text issn_print;
    Text issn_online;
    Text publisher;
    Text url;
    Number impact_factor;
    Whole impact_factor_year;
    Number citescore;
    Number sjr;
    Whole h_index;
    Access publishing.access;
    Text publishing.content_license;
    Number publishing.apc_usd;
    Whole publishing.embargo_months;
    Number timelines.submit_to_first_decision.min_weeks;
    Number timelines.submit_to_first_decision.max_weeks;
    Number timelines.online_submit_to_accept.min_weeks;
    Number timelines.online_submit_to_accept.max_weeks;
    Number timelines.accept_to_online.min_weeks;
    Number timelines.accept_to_online.max_weeks;
    Number timelines.accept_to_print.min_weeks;
    Number timelines.accept_to_print.max_weeks;
    Organizations organizations;
    Tags tags;
);

impl Fields for JournalFields {
    const STEM: &'static str = "journals";

    fn table() -> &'static [Field<Self>] {
        TABLE
    }

    fn layout() -> &'static Layout {
        static LAYOUT: OnceLock<Layout> = OnceLock::new();
        LAYOUT.get_or_init(|| Layout::of_record(TABLE))
    }

    fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        require_text(self, &TABLE[0], &mut faults);
        faults
    }
}

impl RecordFields for JournalFields {
    const DATASET: Dataset = Dataset::Journals;

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    fn abbv(&self) -> Option<&str> {
        self.abbv.as_deref()
    }

    fn organizations(&self) -> &[Id] {
        &self.organizations
    }

    fn tags(&self) -> &[Id] {
        &self.tags
    }

    fn is_in(&self, _scope: &Scope) -> bool {
        // Journals have no row rule: a license shows the whole dataset or nothing of it.
        true
    }
}
