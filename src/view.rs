//! A license's view of a snapshot.
//!
//! Queries can read records only through a [`View`]. So code that ignores the license does not compile.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::model::{
    Curated, Dataset, FeedId, Filter, Id, License, RecordFields, ReferenceKind, References, Timestamp, Witness,
};
use crate::store::format::feed::FeedEntry;
use crate::store::read::columns::Columns;
use crate::store::read::record_cache::{self, LogRef, RecordJson};
use crate::store::{CommitPoint, Snapshot, StoreError};

/// The license does not contain the dataset.
#[derive(Debug)]
pub struct NotLicensed;

/// The records of one dataset in one snapshot that a license shows.
#[derive(Debug)]
pub struct View<'s> {
    snapshot: &'s Snapshot,
    license: &'s License,
    dataset: Dataset,
}

impl<'s> View<'s> {
    /// Opens the view. Fails if the license does not contain the dataset.
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

    /// The feed that all licenses with the same records share.
    pub fn feed(&self) -> Result<FeedId, StoreError> {
        Snapshot::feed_of(self.license, self.dataset)
    }

    /// Whether the columns for filters and reference lists are in memory. If not, the first request builds them.
    pub fn has_columns(&self) -> bool {
        self.snapshot.has_columns(self.license, self.dataset)
    }

    /// Whether memory answers the request for a record, with few bytes or none.
    pub fn has_record(&self, id: Id) -> bool {
        const FEW_BYTES: usize = 64 << 10;
        if !self.snapshot.has_index(self.license, self.dataset) {
            return false;
        }
        match self.find(id) {
            Ok(Some(row)) => record_cache::find(self.snapshot.record_cache(), self.dataset, row.log_ref())
                .is_some_and(|json| json.bytes().len() <= FEW_BYTES),
            Ok(None) => true,
            Err(_) => false,
        }
    }

    /// The witness of the license in the dataset.
    pub fn witness(&self) -> Result<Witness, StoreError> {
        let CommitPoint { seq, time: _, lineage } = self.snapshot.witness(self.license, self.dataset)?;
        Ok(Witness { seq, lineage })
    }

    /// The witness, if it is in memory. `None` if the file is damaged.
    pub fn known_witness(&self) -> Option<Witness> {
        let CommitPoint { seq, time: _, lineage } = self.snapshot.known_witness(self.license, self.dataset)?;
        Some(Witness { seq, lineage })
    }

    /// Seq and time of the witness.
    pub fn newest(&self) -> Result<(u64, Timestamp), StoreError> {
        let CommitPoint { seq, time, lineage: _ } = self.snapshot.witness(self.license, self.dataset)?;
        Ok((seq, time))
    }

    /// Whether the history contains a witness.
    pub fn holds(&self, witness: &Witness) -> Result<bool, StoreError> {
        Ok(self.witness()? == *witness || self.snapshot.holds(witness.seq, &witness.lineage)?)
    }

    /// Finds a visible record.
    pub fn find(&self, id: Id) -> Result<Option<LiveRow>, StoreError> {
        let found = self.snapshot.find_live(self.license, self.dataset, id)?;
        Ok(found.as_ref().and_then(LiveRow::of))
    }

    /// The visible records with larger ids, in the order of ids.
    pub fn list_after(&self, id: u64) -> Result<impl Iterator<Item = LiveRow> + use<>, StoreError> {
        let entries = self.snapshot.entries(self.license, self.dataset, u64::MAX)?;
        Ok(entries.live_after(id).filter_map(|entry| LiveRow::of(&entry)))
    }

    /// Returns a test: whether a visible record changed, or entered the license, after `seq`.
    pub fn is_after(&self, seq: u64) -> Result<impl Fn(&LiveRow) -> bool + use<>, StoreError> {
        let entries = self.snapshot.entries(self.license, self.dataset, seq)?;
        Ok(move |row: &LiveRow| entries.is_after(row.id, row.log_seq.get(), seq))
    }

    /// The entries of the feed after `seq`, oldest first.
    pub fn feed_after(&self, seq: u64) -> Result<impl Iterator<Item = FeedEntry> + use<>, StoreError> {
        // A poll without news reads nothing.
        let entries = if seq >= self.witness()?.seq {
            None
        } else {
            Some(self.snapshot.entries(self.license, self.dataset, seq)?)
        };
        Ok(entries.into_iter().flat_map(move |entries| entries.after(seq)))
    }

    /// The JSON of visible records, in the order of `rows`.
    pub fn record_json(&self, rows: impl IntoIterator<Item = LiveRow>) -> Result<Vec<RecordJson>, StoreError> {
        let refs: Vec<LogRef> = rows.into_iter().map(|row| row.log_ref()).collect();
        self.snapshot.record_json(self.dataset, &refs)
    }

    /// The fields and `updated_at` of a visible record, for the CSV export.
    pub fn record<F: RecordFields>(&self, row: &LiveRow) -> Result<(Curated<F>, Timestamp), StoreError> {
        self.snapshot
            .find_record(row.id)?
            .ok_or_else(|| StoreError::damaged("records", format!("no record {} in {}", row.id, self.dataset)))
    }

    /// Up to `limit` visible records with larger ids that match `filter` and `test`, in the order of ids. Ignores the
    /// filter's `updated_since`.
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

    /// The number of visible records for each text in a field with a list of texts.
    pub fn count_texts(&self, field: &str) -> Result<Vec<(String, u64)>, StoreError> {
        Ok(self.columns()?.count_texts(field).into_iter().map(|(text, count)| (text.to_owned(), count)).collect())
    }

    /// The number of visible records that link to each organization or tag.
    pub fn count_links(&self, kind: ReferenceKind) -> Result<Vec<(Id, u64)>, StoreError> {
        Ok(self.columns()?.count_links(kind))
    }

    /// All organizations and tags.
    pub fn references(&self) -> Result<&Arc<References>, StoreError> {
        self.snapshot.references()
    }

    /// The last seq before an instant. Later changes have larger seqs.
    pub fn seq_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        self.snapshot.seq_before(time)
    }

    /// The commit that contains a seq.
    pub fn commit_of(&self, seq: u64) -> Result<CommitPoint, StoreError> {
        self.snapshot.commit_of(seq)
    }
}

/// The position of a visible record.
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

    /// Converts an entry; `None` for a tombstone.
    pub fn of(entry: &FeedEntry) -> Option<LiveRow> {
        entry.log_seq.map(|log_seq| LiveRow { id: entry.id, log_seq })
    }

    fn log_ref(&self) -> LogRef {
        LogRef { seq: self.log_seq.get(), id: self.id }
    }
}
