//! A feed in memory: its entries by seq, and the records that it shows by id. Lists, feed pages and exports read it.
//!
//! It is read whole, compared with the feed's sum, and then updated with each change. So a row that a damaged table
//! lost is noticed. It contains only entries of the feed's licenses. So the time of a request does not depend on other
//! records.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use redb::ReadableTable;

use super::records::{Records, Slot};
use crate::model::Id;
use crate::store::Result;
use crate::store::format::feed::{FeedEntry, FeedSum};

/// The entries of a feed in one state.
pub struct FeedIndex {
    /// The sum of the feed in this state.
    pub sum: FeedSum,
    /// By seq.
    entries: Vec<FeedEntry>,
    /// The slots of the visible records, by id; empty for a baseline, whose records may have changed since.
    shown: Vec<Slot>,
    /// The seqs of the entries. Built on first use, by the first page that reads a baseline.
    seqs: OnceLock<HashMap<Id, u64>>,
}

impl FeedIndex {
    /// Reads a feed. `records`: the records that a shared feed shows; `None` for a baseline.
    pub fn build(
        sum: FeedSum,
        table: &impl ReadableTable<(u64, u64), (u64, u64)>,
        records: Option<&Records>,
    ) -> Result<FeedIndex> {
        let entries = sum.read_all(table)?;
        FeedIndex::of(sum, entries, Vec::new(), 0, records)
    }

    /// Adds the visible records of the entries from `first` on to `shown`.
    fn of(
        sum: FeedSum,
        entries: Vec<FeedEntry>,
        mut shown: Vec<Slot>,
        first: usize,
        records: Option<&Records>,
    ) -> Result<FeedIndex> {
        if let Some(records) = records {
            for entry in &entries[first..] {
                if let Some(log_seq) = entry.log_seq {
                    shown.push(records.slot_at(entry.id, log_seq.get())?);
                }
            }
            // This is fast if they are nearly sorted.
            shown.sort_by_key(|slot| records.id(*slot));
            if shown.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err(sum.damaged("a record has two entries"));
            }
        }
        Ok(FeedIndex {
            sum,
            entries,
            shown,
            seqs: OnceLock::new(),
        })
    }

    /// Updates the index to a later state.
    pub fn advance(
        &self,
        sum: FeedSum,
        table: &impl ReadableTable<(u64, u64), (u64, u64)>,
        records: Option<&Records>,
    ) -> Result<FeedIndex> {
        let mut newer: HashMap<Id, FeedEntry> = HashMap::new();
        let mut added = Vec::new();
        sum.read_after(self.sum.newest_seq, table, |entry| {
            newer.insert(entry.id, entry);
            added.push(entry);
            true
        })?;
        let mut found = self.sum;
        let mut entries = Vec::with_capacity(self.entries.len() + added.len());
        for entry in &self.entries {
            if newer.contains_key(&entry.id) {
                found.replace(entry)?;
            } else {
                entries.push(*entry);
            }
        }
        added.iter().for_each(|entry| found.add(entry));
        if found != sum {
            return Err(sum.damaged("its new entries do not add up"));
        }
        let is_unchanged =
            |slot: &Slot| records.is_some_and(|records| !newer.contains_key(&records.id(*slot)));
        let shown = self.shown.iter().copied().filter(is_unchanged).collect();
        let first = entries.len();
        entries.extend(added);
        FeedIndex::of(sum, entries, shown, first, records)
    }

    /// The entries after a seq, oldest change first.
    pub fn entries_after(&self, seq: u64) -> &[FeedEntry] {
        &self.entries[self.entries.partition_point(|entry| entry.seq <= seq)..]
    }

    /// The seq of a record's entry.
    fn seq_of(&self, id: Id) -> Option<u64> {
        let seqs = self.seqs.get_or_init(|| {
            self.entries
                .iter()
                .map(|entry| (entry.id, entry.seq))
                .collect()
        });
        seqs.get(&id).copied()
    }

    /// The visible records, by id.
    pub fn shown(&self) -> &[Slot] {
        &self.shown
    }
}

/// The entries of one license in one dataset.
pub struct LicenseEntries {
    pub shared: Arc<FeedIndex>,
    /// The last seq before the license joined the shared feed.
    pub joined_at: u64,
    /// `None` if the caller needs no earlier entries.
    pub baseline: Option<Arc<FeedIndex>>,
}

impl LicenseEntries {
    /// The entries after a seq, oldest first. Entries from before the joining need the baseline.
    pub fn after(&self, seq: u64) -> impl Iterator<Item = &FeedEntry> {
        let later = self.shared.entries_after(seq.max(self.joined_at));
        let before = self
            .baseline
            .iter()
            .flat_map(move |baseline| baseline.entries_after(seq));
        // A later entry of the shared feed replaces one of the baseline.
        before
            .filter(|entry| {
                self.shared
                    .seq_of(entry.id)
                    .is_none_or(|seq| seq <= self.joined_at)
            })
            .chain(later)
    }

    /// The records that entered the license after a seq, when it joined its feed.
    pub fn entered_after(&self, seq: u64) -> HashSet<Id> {
        let entries = self
            .baseline
            .iter()
            .flat_map(|baseline| baseline.entries_after(seq));
        entries
            .filter(|entry| entry.is_live())
            .map(|entry| entry.id)
            .collect()
    }
}
