//! The batch that an import commits, its effects, and reading the state that it changes.

use std::collections::{BTreeMap, BTreeSet};

use redb::ReadableTable;

use crate::model::{
    Conference, Curated, Dataset, Id, Journal, Organization, PerDataset, RecordFields, ReferenceKind, Tag,
};
use crate::store::StoreError;
use crate::store::format::rows::{find_linked, load_record_ids};
use crate::store::read::snapshot::Snapshot;

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

impl Snapshot {
    /// Finds the content of a record.
    pub fn find_stored<F: RecordFields>(&self, id: Id) -> Result<Option<Curated<F>>, StoreError> {
        Ok(self.find_record::<F>(id)?.map(|(record, _)| record))
    }

    /// The ids of all records of a dataset.
    pub fn record_ids(&self, dataset: Dataset) -> Result<BTreeSet<Id>, StoreError> {
        load_record_ids(&self.records, dataset)
    }

    /// The largest id of a record, including removed records that a license has shown.
    pub fn largest_id(&self, dataset: Dataset) -> Result<Option<Id>, StoreError> {
        let code = dataset.code();
        let last = self.records.range((code, 0)..=(code, u64::MAX))?.next_back().transpose()?;
        let mut largest = last.map_or(0, |(key, _)| key.value().1);
        // Tombstones contain the ids of removed records. These ids must not be used again.
        for feed in self.feeds.values().filter(|feed| feed.dataset == dataset).map(|feed| feed.feed.0) {
            let last = self.feed_records.range((feed, 0)..=(feed, u64::MAX))?.next_back().transpose()?;
            largest = largest.max(last.map_or(0, |(key, _)| key.value().1));
        }
        Ok(Id::try_from(largest).ok())
    }

    /// The records that link to an organization or tag.
    pub fn linked_records(&self, kind: ReferenceKind, id: Id) -> Result<Vec<(Dataset, Id)>, StoreError> {
        find_linked(&self.links, kind, id)
    }
}
