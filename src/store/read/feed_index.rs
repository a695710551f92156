//! A feed in memory: its entries by seq and by id. Lists, feed pages, exports and columns read it.
//!
//! It is read whole, compared with the feed's head, and then updated with each change. So a row that a damaged table
//! lost is noticed. It contains only entries of the feed's licenses. So the time of a request does not depend on other
//! records.

use std::collections::HashMap;

use redb::ReadableTable;

use crate::model::Id;
use crate::store::StoreError;
use crate::store::format::feed::{FeedEntry, FeedHead};

/// Converts a position in `entries` to its stored form. `u32::MAX` is reserved.
fn position(head: &FeedHead, position: usize) -> Result<u32, StoreError> {
    let held = u32::try_from(position).ok().filter(|held| *held < u32::MAX);
    held.ok_or_else(|| head.damaged("it has more entries than can be read".to_owned()))
}

/// The entries of a feed in one state.
#[derive(Debug)]
pub struct FeedIndex {
    head: FeedHead,
    /// By seq.
    entries: Vec<FeedEntry>,
    /// Positions in `entries`, in the order of ids.
    by_id: Vec<u32>,
}

impl FeedIndex {
    /// Reads a feed.
    pub(in crate::store) fn build(
        head: FeedHead,
        table: &impl ReadableTable<(u64, u64), (u64, u64)>,
    ) -> Result<FeedIndex, StoreError> {
        let entries = head.read_all(table)?;
        let count = position(&head, entries.len())?;
        FeedIndex::of(head, entries, (0..count).collect())
    }

    /// Sorts `by_id`, which contains all positions. This is fast if they are nearly sorted.
    fn of(head: FeedHead, entries: Vec<FeedEntry>, mut by_id: Vec<u32>) -> Result<FeedIndex, StoreError> {
        by_id.sort_by_key(|at| entries[*at as usize].id);
        let index = FeedIndex { head, entries, by_id };
        if index.by_id.windows(2).any(|pair| index.at(pair[0]).id == index.at(pair[1]).id) {
            return Err(head.damaged("a record has two entries".to_owned()));
        }
        Ok(index)
    }

    /// Updates the index to a later state.
    pub(in crate::store) fn advance(
        &self,
        head: FeedHead,
        table: &impl ReadableTable<(u64, u64), (u64, u64)>,
    ) -> Result<FeedIndex, StoreError> {
        let mut newer: HashMap<Id, FeedEntry> = HashMap::new();
        let mut added = Vec::new();
        head.read_after(self.head.newest_seq, table, |entry| {
            newer.insert(entry.id, entry);
            added.push(entry);
            true
        })?;
        let mut found = self.head;
        let mut entries = Vec::with_capacity(self.entries.len() + added.len());
        // The new position of each entry; `u32::MAX` for replaced ones.
        let mut moved = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            if newer.contains_key(&entry.id) {
                found.replace(entry)?;
                moved.push(u32::MAX);
            } else {
                moved.push(position(&head, entries.len())?);
                entries.push(*entry);
            }
        }
        added.iter().for_each(|entry| found.add(entry));
        if found != head {
            return Err(head.damaged("its new entries do not add up".to_owned()));
        }
        let unchanged = self.by_id.iter().map(|at| moved[*at as usize]).filter(|at| *at != u32::MAX);
        let new = position(&head, entries.len())?..position(&head, entries.len() + added.len())?;
        let by_id = unchanged.chain(new).collect();
        entries.extend(added);
        FeedIndex::of(head, entries, by_id)
    }

    /// The head of the feed in this state.
    pub(in crate::store) fn head(&self) -> &FeedHead {
        &self.head
    }

    fn at(&self, position: u32) -> &FeedEntry {
        &self.entries[position as usize]
    }

    /// The entry of a record.
    pub fn find(&self, id: Id) -> Option<&FeedEntry> {
        let found = self.by_id.binary_search_by_key(&id, |at| self.at(*at).id);
        found.ok().map(|position| self.at(self.by_id[position]))
    }

    /// The position in [`FeedIndex::entries`] of the first entry after a seq.
    pub fn position_after(&self, seq: u64) -> usize {
        self.entries.partition_point(|entry| entry.seq <= seq)
    }

    /// All entries, oldest change first.
    pub fn entries(&self) -> &[FeedEntry] {
        &self.entries
    }

    /// The position, in the order of ids, of the first entry with a larger id.
    pub fn position_after_id(&self, id: u64) -> usize {
        self.by_id.partition_point(|at| self.at(*at).id.get() <= id)
    }

    /// The entry at a position in the order of ids.
    pub fn by_id(&self, position: usize) -> Option<&FeedEntry> {
        self.by_id.get(position).map(|at| self.at(*at))
    }

    pub(in crate::store) fn bytes(&self) -> usize {
        size_of::<FeedIndex>() + size_of_val(self.entries.as_slice()) + size_of_val(self.by_id.as_slice())
    }
}
