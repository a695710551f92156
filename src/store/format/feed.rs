//! Feeds. A feed has one entry per record, at the seq of the newest change that its licenses see. Its sum seals the
//! counts and the digest of its entries, so lost or changed entries are noticed.

use std::fmt::Display;
use std::num::NonZeroU64;
use std::ops::Bound;

use redb::ReadableTable;
use serde::{Deserialize, Serialize};

use super::rows::read_id;
use super::tables::TOMBSTONE;
use crate::model::{Dataset, FeedId, Id};
use crate::store::{Result, StoreError};

/// Key and value of a row of `feed_entries` or `feed_records`.
pub type FeedTableRow = ((u64, u64), (u64, u64));

/// An entry of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedEntry {
    /// The position in the feed.
    pub seq: u64,
    /// The record.
    pub id: Id,
    /// The seq of the record's `log` row; `None` for a tombstone.
    pub log_seq: Option<NonZeroU64>,
}

impl FeedEntry {
    pub(crate) fn of_row(
        table: &'static str,
        seq: u64,
        id: u64,
        log_seq: u64,
    ) -> Result<FeedEntry> {
        Ok(FeedEntry {
            seq,
            id: read_id(table, id)?,
            log_seq: NonZeroU64::new(log_seq),
        })
    }

    /// Whether the record is visible.
    pub fn is_live(&self) -> bool {
        self.log_seq.is_some()
    }

    /// The log seq as stored in rows.
    pub(crate) fn stored_log_seq(&self) -> u64 {
        self.log_seq.map_or(TOMBSTONE, NonZeroU64::get)
    }

    /// The row of `feed_entries`.
    pub(crate) fn row_by_seq(&self, feed: FeedId) -> FeedTableRow {
        ((feed.0, self.seq), (self.id.get(), self.stored_log_seq()))
    }

    /// The row of `feed_records`.
    pub(crate) fn row_by_id(&self, feed: FeedId) -> FeedTableRow {
        ((feed.0, self.id.get()), (self.seq, self.stored_log_seq()))
    }

    fn digest(&self) -> u64 {
        mix(self.seq ^ mix(self.id.get() ^ mix(self.stored_log_seq())))
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A row of `feeds`: the counts and the digest of a feed's entries. Entries that do not match it are damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedSum {
    /// Must equal the key of the row.
    pub feed: FeedId,
    pub dataset: Dataset,
    pub entries: u64,
    pub live: u64,
    /// The seq of the newest entry; 0 without one.
    pub newest_seq: u64,
    /// The sum of the entries' digests, modulo 2^64.
    pub digest: u64,
}

impl FeedSum {
    pub fn empty(feed: FeedId, dataset: Dataset) -> FeedSum {
        FeedSum {
            feed,
            dataset,
            entries: 0,
            live: 0,
            newest_seq: 0,
            digest: 0,
        }
    }

    pub fn add(&mut self, entry: &FeedEntry) {
        self.entries += 1;
        self.live += u64::from(entry.is_live());
        self.newest_seq = self.newest_seq.max(entry.seq);
        self.digest = self.digest.wrapping_add(entry.digest());
    }

    /// Removes an entry. The caller then adds the newer entry of the same record.
    pub fn replace(&mut self, old: &FeedEntry) -> Result<()> {
        let reduced = self
            .entries
            .checked_sub(1)
            .zip(self.live.checked_sub(u64::from(old.is_live())));
        let (entries, live) =
            reduced.ok_or_else(|| self.damaged("it has more entries than its sum counts"))?;
        self.entries = entries;
        self.live = live;
        self.digest = self.digest.wrapping_sub(old.digest());
        Ok(())
    }

    /// Reads all entries in the order of their seqs. Fails unless they match the sum.
    pub fn read_all(
        &self,
        table: &impl ReadableTable<(u64, u64), (u64, u64)>,
    ) -> Result<Vec<FeedEntry>> {
        let mut found = FeedSum::empty(self.feed, self.dataset);
        let mut entries = Vec::new();
        self.read_after(0, table, |entry| {
            found.add(&entry);
            entries.push(entry);
            found.entries <= self.entries
        })?;
        if found == *self {
            Ok(entries)
        } else {
            Err(self.damaged("its entries do not add up"))
        }
    }

    /// Calls `each` with the entries after a seq, in the order of their seqs, until it returns false.
    pub fn read_after(
        &self,
        seq: u64,
        table: &impl ReadableTable<(u64, u64), (u64, u64)>,
        mut each: impl FnMut(FeedEntry) -> bool,
    ) -> Result<()> {
        let number = self.feed.0;
        let mut last = seq;
        let after = (
            Bound::Excluded((number, seq)),
            Bound::Included((number, u64::MAX)),
        );
        for row in table.range(after)? {
            let (key, value) = row?;
            let (feed, seq) = key.value();
            let (id, log_seq) = value.value();
            // Keys on a damaged page can have any order.
            if feed != number || seq <= last || seq > self.newest_seq {
                return Err(self.damaged(format!(
                    "an entry of feed {feed} at seq {seq} comes after seq {last}"
                )));
            }
            last = seq;
            if !each(FeedEntry::of_row("feed_entries", seq, id, log_seq)?) {
                break;
            }
        }
        Ok(())
    }

    pub fn damaged(&self, detail: impl Display) -> StoreError {
        StoreError::damaged(
            "feed_entries",
            format!("feed {} of {}: {detail}", self.feed.0, self.dataset),
        )
    }
}

#[cfg(test)]
mod feed_tests {
    use super::*;

    fn entry(seq: u64, id: u64, log_seq: u64) -> FeedEntry {
        FeedEntry::of_row("feed_entries", seq, id, log_seq).unwrap()
    }

    fn sum(entries: &[FeedEntry]) -> FeedSum {
        let mut sum = FeedSum::empty(FeedId(3), Dataset::Journals);
        entries.iter().for_each(|entry| sum.add(entry));
        sum
    }

    #[test]
    fn feeds_with_different_entries_have_different_heads() {
        let sound = [entry(4, 1, 4), entry(5, 2, 0), entry(6, 3, 6)];
        let others: [&[FeedEntry]; 8] = [
            &[],
            &sound[..2],
            &sound[1..],
            &[entry(4, 1, 4), entry(5, 2, 0), entry(6, 4, 6)],
            &[entry(4, 1, 4), entry(5, 2, 5), entry(6, 3, 6)],
            &[entry(4, 1, 4), entry(5, 2, 0), entry(6, 3, 0)],
            &[entry(4, 2, 4), entry(5, 1, 0), entry(6, 3, 6)],
            &[entry(4, 1, 6), entry(5, 2, 0), entry(6, 3, 4)],
        ];
        for other in others {
            assert_ne!(sum(other), sum(&sound), "{other:?}");
        }
    }

    #[test]
    fn a_replaced_entry_leaves_no_trace() {
        let mut moved = sum(&[entry(4, 1, 4), entry(5, 2, 5)]);
        moved.replace(&entry(4, 1, 4)).unwrap();
        moved.add(&entry(6, 1, 0));
        assert_eq!(moved, sum(&[entry(5, 2, 5), entry(6, 1, 0)]));
        assert!(sum(&[]).replace(&entry(4, 1, 4)).is_err());
    }
}
