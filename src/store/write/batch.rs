//! The batch that an import commits, and its effects.

use std::collections::BTreeMap;

use crate::model::{Conference, Dataset, Id, Journal, Organization, PerDataset, Tag};

/// The rows that one commit writes, by id; `None` removes a row. Rows equal to the stored ones change nothing.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "the four kinds of rows")]
pub struct Batch {
    pub organizations: BTreeMap<Id, Option<Organization>>,
    pub tags: BTreeMap<Id, Option<Tag>>,
    pub conferences: BTreeMap<Id, Option<Conference>>,
    pub journals: BTreeMap<Id, Option<Journal>>,
}

/// The numbers of rows of one kind that a batch added, changed, removed or left as they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs, reason = "named as in the import's summary")]
pub struct RowCounts {
    pub added: u64,
    pub changed: u64,
    pub removed: u64,
    pub unchanged: u64,
}

/// The numbers of records that enter, leave or change in one license and one dataset, by a commit.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs, reason = "described above")]
pub struct LicenseEffect {
    pub license: String,
    pub dataset: Dataset,
    pub entering: u64,
    pub changed: u64,
    pub leaving: u64,
}

/// The effects of a batch on rows and licenses.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "described above")]
pub struct BatchOutcome {
    /// A record counts as changed if an organization or tag that it links to changes.
    pub datasets: PerDataset<RowCounts>,
    pub organizations: RowCounts,
    pub tags: RowCounts,
    pub licenses: Vec<LicenseEffect>,
}
