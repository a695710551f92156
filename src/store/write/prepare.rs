//! Reading the state that an import changes.

use std::collections::BTreeSet;

use redb::ReadableTable;

use crate::model::{Curated, Dataset, Id, RecordFields, ReferenceKind};
use crate::store::StoreError;
use crate::store::format::rows::{find_linked, load_record_ids};
use crate::store::read::snapshot::Snapshot;

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
