//! A license's view of a snapshot.
//!
//! Queries can read records only through a [`View`]. So code that ignores the license does not compile.

use std::cell::LazyCell;
use std::sync::Arc;

use crate::model::{
    Dataset, FeedId, Filter, Id, License, ReferenceKind, References, Timestamp, Witness,
};
use crate::store::FeedEntry;
use crate::store::read::feed_index::{FeedIndex, LicenseEntries};
use crate::store::read::records::{Records, StoredRecord};
use crate::store::{CommitPoint, Result, Snapshot};

/// The license does not contain the dataset.
#[derive(Debug)]
pub struct NotLicensed;

/// The records of one dataset in one snapshot that a license shows.
pub struct View<'s> {
    snapshot: &'s Snapshot,
    license: &'s License,
    dataset: Dataset,
}

impl<'s> View<'s> {
    /// Opens the view. Fails if the license does not contain the dataset.
    pub fn open(
        snapshot: &'s Snapshot,
        license: &'s License,
        dataset: Dataset,
    ) -> Result<View<'s>, NotLicensed> {
        if license.scope.datasets.contains(&dataset) {
            Ok(View {
                snapshot,
                license,
                dataset,
            })
        } else {
            Err(NotLicensed)
        }
    }

    /// The license.
    pub fn license(&self) -> &License {
        self.license
    }

    /// The dataset.
    pub fn dataset(&self) -> Dataset {
        self.dataset
    }

    /// The feed that all licenses with the same records share.
    pub fn feed(&self) -> Result<FeedId> {
        Snapshot::feed_of(self.license, self.dataset)
    }

    /// Whether the records are in memory, so that finding one reads no table.
    pub fn is_loaded(&self) -> bool {
        self.snapshot.is_loaded(self.license, self.dataset)
    }

    /// The witness of the license in the dataset.
    pub fn witness(&self) -> Result<Witness> {
        self.snapshot.witness(self.license, self.dataset)
    }

    /// The witness, if it is in memory. `None` if the file is damaged.
    pub fn known_witness(&self) -> Option<Witness> {
        self.snapshot.known_witness(self.license, self.dataset)
    }

    /// Whether the history contains a witness.
    pub fn holds(&self, witness: &Witness) -> Result<bool> {
        Ok(self.witness()? == *witness || self.snapshot.holds(witness.seq, &witness.lineage)?)
    }

    /// Finds a visible record.
    pub fn find(&self, id: Id) -> Result<Option<&'s StoredRecord>> {
        self.snapshot.find_shown(self.license, self.dataset, id)
    }

    /// Up to `limit` visible records with ids larger than `after` that match a filter, in the order of ids.
    pub fn list(&self, after: u64, filter: &Filter, limit: usize) -> Result<Vec<&'s StoredRecord>> {
        let index = self.index()?;
        let records = self.records()?;
        let first = index
            .shown()
            .partition_point(|slot| records.id(*slot).get() <= after);
        let since = filter
            .updated_since
            .map(|time| self.seq_before(time))
            .transpose()?;
        let since = since
            .map(|since| self.entries(since).map(|entries| (since, entries)))
            .transpose()?;
        // Found only for a record that has not changed since: it may have entered the license.
        let entered = LazyCell::new(|| {
            since
                .as_ref()
                .map(|(since, entries)| entries.entered_after(*since))
        });
        let found = records
            .find(&index.shown()[first..], filter)?
            .map(|slot| records.get(slot));
        found
            .filter(|record| {
                let (Some((since, _)), Ok(record)) = (&since, record) else {
                    return true;
                };
                record.seq > *since
                    || entered
                        .as_ref()
                        .is_some_and(|entered| entered.contains(&record.id))
            })
            .take(limit)
            .collect()
    }

    /// Up to `limit` entries of the feed after `seq`, oldest first.
    pub fn feed_after(&self, seq: u64, limit: usize) -> Result<Vec<FeedRow<'s>>> {
        // A poll without news reads nothing.
        if seq >= self.witness()?.seq {
            return Ok(Vec::new());
        }
        let records = self.records()?;
        let entries = self.entries(seq)?;
        let rows = entries
            .after(seq)
            .take(limit)
            .map(|FeedEntry { seq, id, log_seq }| {
                let record = log_seq
                    .map(|log_seq| records.get(records.slot_at(*id, log_seq.get())?))
                    .transpose()?;
                Ok(FeedRow {
                    seq: *seq,
                    id: *id,
                    record,
                })
            });
        rows.collect()
    }

    fn entries(&self, seq: u64) -> Result<LicenseEntries> {
        self.snapshot.entries(self.license, self.dataset, seq)
    }

    fn index(&self) -> Result<Arc<FeedIndex>> {
        self.snapshot.shared_feed(self.license, self.dataset)
    }

    fn records(&self) -> Result<&'s Records> {
        self.snapshot.loaded(self.dataset)
    }

    /// The number of visible records for each text in a field with a list of texts.
    pub fn count_texts(&self, field: &str) -> Result<Vec<(&'s str, u64)>> {
        self.records()?.count_texts(self.index()?.shown(), field)
    }

    /// The number of visible records that link to each organization or tag.
    pub fn count_links(&self, kind: ReferenceKind) -> Result<Vec<(Id, u64)>> {
        self.records()?.count_links(self.index()?.shown(), kind)
    }

    /// All organizations and tags.
    pub fn references(&self) -> Result<&Arc<References>> {
        self.snapshot.references()
    }

    /// The last seq before an instant. Later changes have larger seqs.
    pub fn seq_before(&self, time: Timestamp) -> Result<u64> {
        self.snapshot.seq_before(time)
    }

    /// The commit that contains a seq.
    pub fn commit_of(&self, seq: u64) -> Result<CommitPoint> {
        self.snapshot.commit_of(seq)
    }
}

/// An entry of the feed.
#[derive(Clone, Copy)]
pub struct FeedRow<'s> {
    /// The position in the feed.
    pub seq: u64,
    /// The record's id.
    pub id: Id,
    /// The record; `None` for a tombstone.
    pub record: Option<&'s StoredRecord>,
}
