//! Reading a committed state to prepare an import, without the writer's lock.

use std::collections::BTreeSet;

use redb::ReadableTable;

use crate::model::{Curated, Dataset, Id, License, RecordFields, ReferenceKind, References};
use crate::store::format::names::{NamesTables, records_named, words_of};
use crate::store::format::rows::{find_linked, load_record_ids};
use crate::store::read::snapshot::Snapshot;
use crate::store::write::batch::Curation;
use crate::store::{NameEntry, StoreError, WordCount};

impl Snapshot {
    /// Whether this version of the rules can use the index of names.
    pub fn has_names(&self, version: u32) -> Result<bool, StoreError> {
        Ok(self.names_of(version)?.is_some())
    }

    fn names_of(&self, version: u32) -> Result<Option<&NamesTables>, StoreError> {
        let Some(names) = &self.names else { return Ok(None) };
        Ok(if names.state.fits(version, &self.records_state()?) { Some(names) } else { None })
    }
}

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

    fn records_named(&self, version: u32, names: &[u64], most: usize) -> Result<Option<Vec<NameEntry>>, StoreError> {
        let Some(tables) = self.names_of(version)? else { return Ok(None) };
        records_named(&tables.names, names, most).map(Some)
    }

    fn words(&self, version: u32, vocabulary: u8) -> Result<Option<Vec<WordCount>>, StoreError> {
        let Some(tables) = self.names_of(version)? else { return Ok(None) };
        words_of(&tables.words, vocabulary).map(Some)
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
