//! The stored history: all commits, the last change of each record, and its entries in feeds.

use std::collections::BTreeSet;

use redb::ReadableTable;

use crate::model::{Dataset, Id, RecordFields};
use crate::store::format::feed::FeedEntry;
use crate::store::format::rows::{StoredCommit, read_id, unseal_commit};
use crate::store::format::tables;
use crate::store::read::snapshot::Snapshot;
use crate::store::{Result, StoreError};

/// The beginning of the description of a restore.
pub(in crate::store) const RESTORED: &str = "restored from a backup";

impl StoredCommit {
    /// Whether a restore created this commit.
    pub fn is_restore(&self) -> bool {
        self.what.starts_with(RESTORED)
    }
}

impl Snapshot {
    /// The commits after a seq, newest first, at most `limit`.
    pub fn list_commits(&self, after: u64, limit: usize) -> Result<Vec<StoredCommit>> {
        let rows = self
            .commits
            .range(after.saturating_add(1)..)?
            .rev()
            .take(limit);
        rows.map(|entry| {
            let (seq, bytes) = entry?;
            unseal_commit(seq.value(), bytes.value())
        })
        .collect()
    }

    /// The seq of the last change of a record, if it exists.
    pub fn changed_at_seq<F: RecordFields>(&self, id: Id) -> Result<Option<u64>> {
        let seq = self.records.get((F::DATASET.code(), id.get()))?;
        Ok(seq.map(|seq| seq.value()))
    }

    /// The entries of a record in all feeds of its dataset, oldest first. Also for removed records.
    pub fn feed_entries_of(&self, dataset: Dataset, id: Id) -> Result<Vec<FeedEntry>> {
        let mut traces = Vec::new();
        for sum in self.feeds.values().filter(|sum| sum.dataset == dataset) {
            if let Some(found) = self.feed_records.get((sum.feed.0, id.get()))? {
                let (seq, log_seq) = found.value();
                traces.push(FeedEntry::of_row("feed_records", seq, id.get(), log_seq)?);
            }
        }
        traces.sort_unstable_by_key(|entry| entry.seq);
        Ok(traces)
    }

    /// The records whose last change is between two seqs, both included, in the order of the changes.
    pub fn changed_between(&self, dataset: Dataset, first: u64, last: u64) -> Result<Vec<Id>> {
        let rows = self
            .log
            .range((dataset.code(), first)..=(dataset.code(), last))?;
        rows.map(|row| read_id("log", row?.1.value().0)).collect()
    }

    /// The records that left a license between two seqs, both included, and do not exist now. They may have been
    /// removed later: a removal that no license sees writes no tombstone.
    pub fn removed_between(&self, dataset: Dataset, first: u64, last: u64) -> Result<BTreeSet<Id>> {
        let mut gone = BTreeSet::new();
        for sum in self.feeds.values().filter(|sum| sum.dataset == dataset) {
            for row in self
                .feed_entries
                .range((sum.feed.0, first)..=(sum.feed.0, last))?
            {
                let (id, log_seq) = row?.1.value();
                if log_seq == tables::TOMBSTONE && self.records.get((dataset.code(), id))?.is_none()
                {
                    gone.insert(read_id("feed_entries", id)?);
                }
            }
        }
        Ok(gone)
    }

    /// The commit that contains a seq.
    pub fn stored_commit_of(&self, seq: u64) -> Result<StoredCommit> {
        let next = self.commits.range(seq..)?.next().transpose()?;
        let row = next
            .map(|(last, bytes)| unseal_commit(last.value(), bytes.value()))
            .transpose()?;
        let none = || StoreError::damaged("commits", format!("no commit contains seq {seq}"));
        row.filter(|row| row.first_seq <= seq).ok_or_else(none)
    }
}
