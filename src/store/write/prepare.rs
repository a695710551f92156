//! Reading a committed state to prepare an import, without the writer's lock.

use std::collections::BTreeSet;

use redb::ReadableTable;

use crate::model::{Curated, Dataset, Id, License, RecordFields, ReferenceKind, References};
use crate::store::StoreError;
use crate::store::format::rows::{find_linked, load_record_ids};
use crate::store::read::snapshot::Snapshot;
use crate::store::write::batch::Curation;

impl Curation for Snapshot {
    fn references(&self) -> Result<&References, StoreError> {
        Ok(&**Snapshot::references(self)?)
    }

    fn find_record<F: RecordFields>(&self, id: Id) -> Result<Option<Curated<F>>, StoreError> {
        Ok(Snapshot::find_record::<F>(self, id)?.map(|(record, _)| record))
    }

    fn record_ids(&self, dataset: Dataset) -> Result<BTreeSet<Id>, StoreError> {
        load_record_ids(&self.records, dataset)
    }

    fn largest_id(&self, dataset: Dataset) -> Result<Option<Id>, StoreError> {
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

    fn record_count(&self, dataset: Dataset) -> Result<usize, StoreError> {
        Ok(usize::try_from(self.dataset_state(dataset).records).unwrap_or(usize::MAX))
    }

    fn linked_records(&self, kind: ReferenceKind, id: Id) -> Result<Vec<(Dataset, Id)>, StoreError> {
        find_linked(&self.links, kind, id)
    }

    fn for_each_record<F: RecordFields>(&self, each: &mut dyn FnMut(Curated<F>)) -> Result<(), StoreError> {
        Snapshot::for_each_record::<F, StoreError>(self, |record, _, _| {
            each(record);
            Ok(())
        })
    }

    fn licenses(&self) -> Vec<License> {
        self.list_licenses().into_iter().map(|license| (**license).clone()).collect()
    }
}

/// The state before the database exists.
#[derive(Debug, Default)]
pub struct NoDatabase {
    references: References,
}

impl Curation for NoDatabase {
    fn references(&self) -> Result<&References, StoreError> {
        Ok(&self.references)
    }

    fn find_record<F: RecordFields>(&self, _id: Id) -> Result<Option<Curated<F>>, StoreError> {
        Ok(None)
    }

    fn record_ids(&self, _dataset: Dataset) -> Result<BTreeSet<Id>, StoreError> {
        Ok(BTreeSet::new())
    }

    fn largest_id(&self, _dataset: Dataset) -> Result<Option<Id>, StoreError> {
        Ok(None)
    }

    fn record_count(&self, _dataset: Dataset) -> Result<usize, StoreError> {
        Ok(0)
    }

    fn linked_records(&self, _kind: ReferenceKind, _id: Id) -> Result<Vec<(Dataset, Id)>, StoreError> {
        Ok(Vec::new())
    }

    fn for_each_record<F: RecordFields>(&self, _each: &mut dyn FnMut(Curated<F>)) -> Result<(), StoreError> {
        Ok(())
    }

    fn licenses(&self) -> Vec<License> {
        Vec::new()
    }
}
