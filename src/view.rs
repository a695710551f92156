//! A license's view of a snapshot: the only door to records.
//!
//! Queries take a [`View`] and never see a table, so an answer that forgets the license does not compile.

use std::sync::Arc;

use crate::model::{Curated, Dataset, Id, License, RecordFields, References, Timestamp};
use crate::store::codec::Hash;
use crate::store::columns::Columns;
use crate::store::snapshot::{Body, FeedRow};
use crate::store::{CommitPoint, Snapshot, StoreError};

/// The dataset is not in the license.
#[derive(Debug)]
pub struct NotLicensed;

/// The newest thing that an answer rests on: the license's newest entry in the dataset, or the change that made its
/// present scope if that is later. What the license does not see never moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Its seq.
    pub seq: u64,
    /// The lineage of the commit that took that seq.
    pub lineage: [u8; 16],
}

/// One dataset of one snapshot, as one license shows it.
#[derive(Debug)]
pub struct View<'s> {
    snapshot: &'s Snapshot,
    license: &'s License,
    dataset: Dataset,
}

impl<'s> View<'s> {
    /// Opens the view.
    ///
    /// # Errors
    /// [`NotLicensed`] when the license does not name the dataset.
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

    /// What an answer made now rests on.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn witness(&self) -> Result<Witness, StoreError> {
        let newest = self.snapshot.newest_feed_seq(self.license.id, self.dataset)?;
        let seq = newest.max(self.license.scope_seq);
        let commit = self.commit_of(seq)?;
        Ok(Witness { seq, lineage: commit.lineage })
    }

    /// Whether an earlier answer's witness is part of this history.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn holds(&self, witness: &Witness) -> Result<bool, StoreError> {
        self.snapshot.holds(witness.seq, &witness.lineage)
    }

    /// The row of a visible record.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn find(&self, id: Id) -> Result<Option<LiveRow>, StoreError> {
        Ok(self.snapshot.license_record(self.license.id, self.dataset, id)?.and_then(LiveRow::of))
    }

    /// The rows of visible records with larger ids, in their order.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list_after(
        &self,
        id: u64,
    ) -> Result<impl Iterator<Item = Result<LiveRow, StoreError>> + use<'_, 's>, StoreError> {
        let rows = self.snapshot.license_records_after(self.license.id, self.dataset, id)?;
        Ok(rows.filter_map(|row| row.map(LiveRow::of).transpose()))
    }

    /// The entries of the feed with larger seqs, oldest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn feed_after(
        &self,
        seq: u64,
    ) -> Result<impl Iterator<Item = Result<FeedRow, StoreError>> + use<'_, 's>, StoreError> {
        self.snapshot.feed_after(self.license.id, self.dataset, seq)
    }

    /// Compares an entry of a gone record with its twin in the index by id: a tombstone has no body whose hash would tell
    /// of rotten bytes.
    ///
    /// # Errors
    /// When the database cannot be read, or the two differ.
    pub fn check_gone(&self, entry: &FeedRow) -> Result<(), StoreError> {
        if self.snapshot.license_record(self.license.id, self.dataset, entry.id)? != Some(*entry) {
            return Err(StoreError::Damaged {
                table: "license_feed",
                detail: format!("the entry of {} {} at seq {} is in no index", self.dataset, entry.id, entry.seq),
            });
        }
        Ok(())
    }

    /// A visible record's JSON and its hash.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn body(&self, row: &LiveRow) -> Result<Body, StoreError> {
        self.snapshot.body(self.dataset, row.id, row.log_seq)
    }

    /// Appends a visible record's JSON and returns its hash.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn push_body(&self, row: &LiveRow, out: &mut Vec<u8>) -> Result<Hash, StoreError> {
        self.snapshot.push_body(self.dataset, row.id, row.log_seq, out)
    }

    /// A visible record's fields and `updated_at`, for the CSV export.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn record<F: RecordFields>(&self, row: &LiveRow) -> Result<(Curated<F>, Timestamp), StoreError> {
        self.snapshot.find_record(row.id)?.ok_or_else(|| StoreError::Damaged {
            table: "records",
            detail: format!("no record {} in {}", row.id, self.dataset),
        })
    }

    /// What filters and reference lists run over. It holds records of other licenses too: rows must be chosen through
    /// [`View::list_after`] first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn columns(&self) -> Result<&Arc<Columns>, StoreError> {
        self.snapshot.columns(self.dataset)
    }

    /// The organizations and tags that records link to.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn references(&self) -> Result<&Arc<References>, StoreError> {
        self.snapshot.references()
    }

    /// The last seq before an instant: what changed or entered since has a larger one.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn seq_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        self.snapshot.seq_before(time)
    }

    /// The commit that took a seq of this history.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn commit_of(&self, seq: u64) -> Result<CommitPoint, StoreError> {
        self.snapshot
            .commit_of(seq)?
            .ok_or_else(|| StoreError::Damaged { table: "commits", detail: format!("no commit holds seq {seq}") })
    }
}

/// A visible record's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveRow {
    /// The record.
    pub id: Id,
    /// The seq at which it last changed or entered the license.
    pub seq: u64,
    log_seq: u64,
}

impl LiveRow {
    /// The row, unless the record is gone.
    pub fn of(row: FeedRow) -> Option<LiveRow> {
        row.log_seq.map(|log_seq| LiveRow { id: row.id, seq: row.seq, log_seq })
    }
}
