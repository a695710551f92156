//! Writing shared feeds, and the baselines of licenses.
//!
//! A changed record costs one entry per shared feed, however many licenses share it. Records that a feed's licenses
//! never saw are not written to it, so they stay hidden. A baseline is written once, when its license joins a feed.

use std::collections::BTreeMap;
use std::ops::Bound;

use redb::ReadableTable;

use crate::model::{Dataset, FeedId, Id, Subscription};
use crate::store::StoreError;
use crate::store::format::feed::{FeedEntry, FeedHead};
use crate::store::format::rows::{seal, unseal};
use crate::store::format::tables;
use crate::store::write_tx::WriteTx;

/// The feed's index by id is scanned if at least one in this many entries is needed.
const SCAN_RATIO: usize = 16;

/// The numbers of records that entered a feed, changed in it, and left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct FeedChange {
    pub entering: u64,
    pub changed: u64,
    pub leaving: u64,
}

fn load_head(tx: &WriteTx, feed: FeedId, dataset: Dataset) -> Result<FeedHead, StoreError> {
    let feeds = tx.open(tables::FEEDS)?;
    let found = feeds.get(feed.0)?;
    let head: Option<FeedHead> = found.map(|bytes| unseal("feeds", bytes.value())).transpose()?;
    head.filter(|head| (head.feed, head.dataset) == (feed, dataset)).ok_or_else(|| {
        StoreError::damaged("feeds", format!("feed {} of {dataset} has no head, or that of another feed", feed.0))
    })
}

fn put_head(tx: &WriteTx, head: &FeedHead) -> Result<(), StoreError> {
    tx.open(tables::FEEDS)?.insert(head.feed.0, seal(head)?.as_slice())?;
    Ok(())
}

/// Writes the new entries of changed records to a shared feed. They must be ordered by seq, and their seqs larger than
/// all others. The entry of a hidden record must be a tombstone. It is written only if the record was live in the feed.
pub(in crate::store) fn write(
    tx: &WriteTx,
    feed: FeedId,
    dataset: Dataset,
    entries: impl ExactSizeIterator<Item = FeedEntry>,
) -> Result<FeedChange, StoreError> {
    let mut head = load_head(tx, feed, dataset)?;
    let mut by_id = tx.open(tables::FEED_RECORDS)?;
    let mut by_seq = tx.open(tables::FEED_ENTRIES)?;
    // With many changes, one scan is faster than the lookups.
    let is_scanned = entries.len().saturating_mul(SCAN_RATIO) >= usize::try_from(head.entries).unwrap_or(usize::MAX);
    let scanned = if is_scanned { load_by_id(&*by_id, feed)? } else { BTreeMap::new() };
    let find = |id: Id| match is_scanned {
        true => Ok(scanned.get(&id).copied()),
        false => {
            let found = by_id.get((feed.0, id.get()))?.map(|found| found.value());
            found.map(|(seq, log_seq)| FeedEntry::of_row("feed_records", seq, id.get(), log_seq)).transpose()
        }
    };
    let is_new = head.entries == 0;

    let mut change = FeedChange::default();
    let mut written: Vec<FeedEntry> = Vec::new();
    for entry in entries {
        let old: Option<FeedEntry> = find(entry.id)?;
        match (old.is_some_and(|old| old.is_live()), entry.is_live()) {
            (true, true) => change.changed += 1,
            (false, true) => change.entering += 1,
            (true, false) => change.leaving += 1,
            (false, false) => continue,
        }
        if let Some(old) = old {
            let removed = by_seq.remove((feed.0, old.seq))?.map(|removed| removed.value());
            if removed != Some((old.id.get(), old.stored_log_seq())) {
                return Err(head.damaged(format!("its indexes differ at seq {}", old.seq)));
            }
            head.replace(&old)?;
        }
        head.add(&entry);
        written.push(entry);
    }
    if written.is_empty() {
        return Ok(change);
    }
    put_head(tx, &head)?;
    by_seq.insert_all(Some(end_of(feed)), written.iter().map(|entry| entry.row_by_seq(feed)))?;
    written.sort_unstable_by_key(|entry| entry.id);
    let end = is_new.then_some(end_of(feed));
    by_id.insert_all(end, written.iter().map(|entry| entry.row_by_id(feed)))?;
    Ok(change)
}

/// The end of a feed's rows.
fn end_of(feed: FeedId) -> Bound<(u64, u64)> {
    Bound::Included((feed.0, u64::MAX))
}

/// A feed's entries by record.
fn load_by_id(
    by_id: &impl ReadableTable<(u64, u64), (u64, u64)>,
    feed: FeedId,
) -> Result<BTreeMap<Id, FeedEntry>, StoreError> {
    let rows = by_id.range((feed.0, 0)..=(feed.0, u64::MAX))?.map(|row| {
        let (key, value) = row?;
        let entry = FeedEntry::of_row("feed_records", value.value().0, key.value().1, value.value().1)?;
        Ok((entry.id, entry))
    });
    rows.collect()
}

pub(in crate::store) fn create(
    tx: &WriteTx,
    feed: FeedId,
    dataset: Dataset,
    mut entries: Vec<FeedEntry>,
) -> Result<(), StoreError> {
    let mut head = FeedHead::empty(feed, dataset);
    entries.iter().for_each(|entry| head.add(entry));
    put_head(tx, &head)?;
    entries.sort_unstable_by_key(|entry| entry.seq);
    let mut by_seq = tx.open(tables::FEED_ENTRIES)?;
    by_seq.insert_all(Some(end_of(feed)), entries.iter().map(|entry| entry.row_by_seq(feed)))?;
    entries.sort_unstable_by_key(|entry| entry.id);
    let mut by_id = tx.open(tables::FEED_RECORDS)?;
    by_id.insert_all(Some(end_of(feed)), entries.iter().map(|entry| entry.row_by_id(feed)))
}

/// Removes a feed that no license uses.
pub(in crate::store) fn erase(tx: &WriteTx, feed: FeedId) -> Result<(), StoreError> {
    let (first, last) = ((feed.0, 0), (feed.0, u64::MAX));
    tx.open(tables::FEED_ENTRIES)?.remove_range(first, last)?;
    tx.open(tables::FEED_RECORDS)?.remove_range(first, last)?;
    tx.open(tables::FEEDS)?.remove(feed.0)?;
    Ok(())
}

/// A license's entries by record: those of its baseline, replaced by those of its shared feed since the joining.
pub(in crate::store) fn load_entries(
    tx: &WriteTx,
    dataset: Dataset,
    subscription: Option<Subscription>,
) -> Result<BTreeMap<Id, FeedEntry>, StoreError> {
    let Some(Subscription { feed, joined_at, baseline }) = subscription else { return Ok(BTreeMap::new()) };
    let by_seq = tx.open(tables::FEED_ENTRIES)?;
    let mut entries = load_head(tx, baseline, dataset)?.read_all(&*by_seq)?;
    if let Some(feed) = feed {
        let shared = load_head(tx, feed, dataset)?.read_all(&*by_seq)?;
        entries.extend(shared.into_iter().filter(|entry| entry.seq > joined_at));
    }
    Ok(entries.into_iter().map(|entry| (entry.id, entry)).collect())
}
