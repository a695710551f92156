//! A license's view of a snapshot: the only door to records.
//!
//! Queries take a [`View`] and never see a table, so an answer that forgets the license does not compile.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::model::{
    Curated, Dataset, FeedId, Filter, Id, License, RecordFields, ReferenceKind, References, Timestamp, Witness,
};
use crate::store::format::feed::FeedEntry;
use crate::store::read::columns::Columns;
use crate::store::read::record_cache::{LogRef, RecordJson};
use crate::store::{CommitPoint, Snapshot, StoreError};

/// The dataset is not in the license.
#[derive(Debug)]
pub struct NotLicensed;

/// One dataset of one snapshot, as one license shows it.
#[derive(Debug)]
pub struct View<'s> {
    snapshot: &'s Snapshot,
    license: &'s License,
    dataset: Dataset,
}

impl<'s> View<'s> {
    /// Opens the view.
    pub fn open(snapshot: &'s Snapshot, license: &'s License, dataset: Dataset) -> Result<View<'s>, NotLicensed> {
        if license.scope.datasets.contains(&dataset) {
            Ok(View { snapshot, license, dataset })
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

    /// The feed that all licenses read which see the same records.
    pub fn feed(&self) -> Result<FeedId, StoreError> {
        Snapshot::feed_of(self.license, self.dataset)
    }

    /// Whether what filters and reference lists run over is in memory; else the first who needs it builds it.
    pub fn has_columns(&self) -> bool {
        self.snapshot.has_columns(self.license, self.dataset)
    }

    /// What an answer made now rests on.
    pub fn witness(&self) -> Result<Witness, StoreError> {
        let CommitPoint { seq, time: _, lineage } = self.snapshot.witness(self.license, self.dataset)?;
        Ok(Witness { seq, lineage })
    }

    /// The witness without reading anything; `None` where it cannot be read, since the file is damaged.
    pub fn known_witness(&self) -> Option<Witness> {
        let CommitPoint { seq, time: _, lineage } = self.snapshot.known_witness(self.license, self.dataset)?;
        Some(Witness { seq, lineage })
    }

    /// Seq and time of the newest thing that an answer rests on, without reading anything; `None` where they cannot be read.
    pub fn known_newest(&self) -> Option<(u64, Timestamp)> {
        let CommitPoint { seq, time, lineage: _ } = self.snapshot.known_witness(self.license, self.dataset)?;
        Some((seq, time))
    }

    /// Whether an earlier answer's witness is part of this history.
    pub fn holds(&self, witness: &Witness) -> Result<bool, StoreError> {
        Ok(self.witness()? == *witness || self.snapshot.holds(witness.seq, &witness.lineage)?)
    }

    /// A visible record.
    pub fn find(&self, id: Id) -> Result<Option<LiveRow>, StoreError> {
        let found = self.snapshot.find_live(self.license, self.dataset, id)?;
        Ok(found.as_ref().and_then(LiveRow::of))
    }

    /// The visible records with larger ids, in their order.
    pub fn list_after(&self, id: u64) -> Result<impl Iterator<Item = LiveRow> + use<>, StoreError> {
        let entries = self.snapshot.entries(self.license, self.dataset, u64::MAX)?;
        Ok(entries.live_after(id).filter_map(|entry| LiveRow::of(&entry)))
    }

    /// A function that tells of visible records whether they changed, or entered the license, after a seq.
    pub fn is_after(&self, seq: u64) -> Result<impl Fn(&LiveRow) -> bool + use<>, StoreError> {
        let entries = self.snapshot.entries(self.license, self.dataset, seq)?;
        Ok(move |row: &LiveRow| entries.is_after(row.id, row.log_seq.get(), seq))
    }

    /// The entries of the feed with larger seqs, oldest first.
    pub fn feed_after(&self, seq: u64) -> Result<impl Iterator<Item = FeedEntry> + use<>, StoreError> {
        // Nothing is after the newest entry: a poll with nothing new reads nothing.
        let entries = if seq >= self.witness()?.seq {
            None
        } else {
            Some(self.snapshot.entries(self.license, self.dataset, seq)?)
        };
        Ok(entries.into_iter().flat_map(move |entries| entries.after(seq)))
    }

    /// The finished JSON of visible records, in the order of the rows.
    pub fn record_json(&self, rows: impl IntoIterator<Item = LiveRow>) -> Result<Vec<RecordJson>, StoreError> {
        let refs: Vec<LogRef> = rows.into_iter().map(|row| row.log_ref()).collect();
        self.snapshot.record_json(self.dataset, &refs)
    }

    /// A visible record's fields and `updated_at`, for the CSV export.
    pub fn record<F: RecordFields>(&self, row: &LiveRow) -> Result<(Curated<F>, Timestamp), StoreError> {
        self.snapshot
            .find_record(row.id)?
            .ok_or_else(|| StoreError::damaged("records", format!("no record {} in {}", row.id, self.dataset)))
    }

    /// Up to `limit` visible records that match a filter (but for its `updated_since`) and another test, with larger ids, in their order.
    pub fn list_matching(
        &self,
        after: u64,
        filter: &Filter,
        mut test: impl FnMut(&LiveRow) -> bool,
        limit: usize,
    ) -> Result<Vec<LiveRow>, StoreError> {
        let columns = self.columns()?;
        let rows = columns.find(after, filter).filter_map(|(id, log_seq)| LiveRow::new(id, log_seq));
        Ok(rows.filter(|row| test(row)).take(limit).collect())
    }

    fn columns(&self) -> Result<Arc<Columns>, StoreError> {
        self.snapshot.columns_of(self.license, self.dataset)
    }

    /// How many visible records have each item of a list of texts that is filtered.
    pub fn count_texts(&self, field: &str) -> Result<Vec<(String, u64)>, StoreError> {
        Ok(self.columns()?.count_texts(field).into_iter().map(|(text, count)| (text.to_owned(), count)).collect())
    }

    /// How many visible records are linked to each organization or tag.
    pub fn count_links(&self, kind: ReferenceKind) -> Result<Vec<(Id, u64)>, StoreError> {
        Ok(self.columns()?.count_links(kind))
    }

    /// The organizations and tags that records link to.
    pub fn references(&self) -> Result<&Arc<References>, StoreError> {
        self.snapshot.references()
    }

    /// The last seq before an instant: what changed or entered since has a larger one.
    pub fn seq_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        self.snapshot.seq_before(time)
    }

    /// The commit that took a seq of this history.
    pub fn commit_of(&self, seq: u64) -> Result<CommitPoint, StoreError> {
        self.snapshot.commit_of(seq)
    }
}

/// A visible record's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveRow {
    /// The record.
    pub id: Id,
    log_seq: NonZeroU64,
}

impl LiveRow {
    fn new(id: Id, log_seq: u64) -> Option<LiveRow> {
        Some(LiveRow { id, log_seq: NonZeroU64::new(log_seq)? })
    }

    /// The row, unless it is a tombstone.
    pub fn of(entry: &FeedEntry) -> Option<LiveRow> {
        entry.log_seq.map(|log_seq| LiveRow { id: entry.id, log_seq })
    }

    fn log_ref(&self) -> LogRef {
        LogRef { seq: self.log_seq.get(), id: self.id }
    }
}
