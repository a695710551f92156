//! Writing shared feeds, and the baselines of licenses.
//!
//! A changed record costs one entry per shared feed, however many licenses share it. Records that a feed's licenses
//! never saw are not written to it, so they stay hidden. A baseline is written once, when its license joins a feed.

use std::collections::BTreeMap;
use std::ops::Bound;

use redb::ReadableTable;

use crate::model::{Dataset, FeedId, Id, Subscription};
use crate::store::format::feed::{FeedEntry, FeedSum};
use crate::store::format::rows::{seal, unseal};
use crate::store::format::tables;
use crate::store::write_tx::WriteTx;
use crate::store::{Result, StoreError};

/// The numbers of records that entered a feed, changed in it, and left it.
#[derive(Clone, Copy, Debug, Default)]
pub struct FeedChange {
    pub entering: u64,
    pub changed: u64,
    pub leaving: u64,
}

fn load_sum(tx: &WriteTx, feed: FeedId, dataset: Dataset) -> Result<FeedSum> {
    let feeds = tx.open(tables::FEEDS)?;
    let found = feeds.get(feed.0)?;
    let sum: Option<FeedSum> = found
        .map(|bytes| unseal("feeds", bytes.value()))
        .transpose()?;
    sum.filter(|sum| (sum.feed, sum.dataset) == (feed, dataset))
        .ok_or_else(|| {
            StoreError::damaged(
                "feeds",
                format!(
                    "feed {} of {dataset} has no sum, or that of another feed",
                    feed.0
                ),
            )
        })
}

/// Writes the sum of a feed, and entries in the order of their seqs, which are larger than all others in the feed.
fn append(tx: &WriteTx, sum: &FeedSum, mut entries: Vec<FeedEntry>, is_new: bool) -> Result<()> {
    let feed = sum.feed;
    let end = Bound::Included((feed.0, u64::MAX));
    tx.open(tables::FEEDS)?
        .insert(feed.0, seal(sum)?.as_slice())?;
    tx.open(tables::FEED_ENTRIES)?.insert_all(
        Some(end),
        entries.iter().map(|entry| entry.row_by_seq(feed)),
    )?;
    entries.sort_unstable_by_key(|entry| entry.id);
    let end = is_new.then_some(end);
    tx.open(tables::FEED_RECORDS)?
        .insert_all(end, entries.iter().map(|entry| entry.row_by_id(feed)))
}

/// Writes the new entries of changed records to a shared feed. They must be ordered by seq, and their seqs larger than
/// all others. The entry of a hidden record must be a tombstone. It is written only if the record was live in the feed.
pub fn write(
    tx: &WriteTx,
    feed: FeedId,
    dataset: Dataset,
    entries: impl Iterator<Item = FeedEntry>,
) -> Result<FeedChange> {
    let mut sum = load_sum(tx, feed, dataset)?;
    let by_id = tx.open(tables::FEED_RECORDS)?;
    let mut by_seq = tx.open(tables::FEED_ENTRIES)?;
    let is_new = sum.entries == 0;

    let mut change = FeedChange::default();
    let mut written: Vec<FeedEntry> = Vec::new();
    for entry in entries {
        let id = entry.id.get();
        let found = by_id.get((feed.0, id))?.map(|found| found.value());
        let old = found
            .map(|(seq, log_seq)| FeedEntry::of_row("feed_records", seq, id, log_seq))
            .transpose()?;
        match (old.is_some_and(|old| old.is_live()), entry.is_live()) {
            (true, true) => change.changed += 1,
            (false, true) => change.entering += 1,
            (true, false) => change.leaving += 1,
            (false, false) => continue,
        }
        if let Some(old) = old {
            let removed = by_seq
                .remove((feed.0, old.seq))?
                .map(|removed| removed.value());
            if removed != Some((old.id.get(), old.stored_log_seq())) {
                return Err(sum.damaged(format!("its indexes differ at seq {}", old.seq)));
            }
            sum.replace(&old)?;
        }
        sum.add(&entry);
        written.push(entry);
    }
    drop((by_id, by_seq));
    if !written.is_empty() {
        append(tx, &sum, written, is_new)?;
    }
    Ok(change)
}

pub fn create(
    tx: &WriteTx,
    feed: FeedId,
    dataset: Dataset,
    mut entries: Vec<FeedEntry>,
) -> Result<()> {
    let mut sum = FeedSum::empty(feed, dataset);
    entries.iter().for_each(|entry| sum.add(entry));
    entries.sort_unstable_by_key(|entry| entry.seq);
    append(tx, &sum, entries, true)
}

/// Removes a feed that no license uses.
pub fn erase(tx: &WriteTx, feed: FeedId) -> Result<()> {
    let first = (feed.0, 0);
    let last = (feed.0, u64::MAX);
    tx.open(tables::FEED_ENTRIES)?.remove_range(first, last)?;
    tx.open(tables::FEED_RECORDS)?.remove_range(first, last)?;
    tx.open(tables::FEEDS)?.remove(feed.0)?;
    Ok(())
}

/// A license's entries by record: those of its baseline, replaced by those of its shared feed since the joining.
pub fn load_entries(
    tx: &WriteTx,
    dataset: Dataset,
    subscription: Option<Subscription>,
) -> Result<BTreeMap<Id, FeedEntry>> {
    let Some(Subscription {
        feed,
        joined_at,
        baseline,
    }) = subscription
    else {
        return Ok(BTreeMap::new());
    };
    let by_seq = tx.open(tables::FEED_ENTRIES)?;
    let mut entries = load_sum(tx, baseline, dataset)?.read_all(&*by_seq)?;
    if let Some(feed) = feed {
        let shared = load_sum(tx, feed, dataset)?.read_all(&*by_seq)?;
        entries.extend(shared.into_iter().filter(|entry| entry.seq > joined_at));
    }
    Ok(entries.into_iter().map(|entry| (entry.id, entry)).collect())
}
