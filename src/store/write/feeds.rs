//! Writing feeds: what licenses that show the same records share, and each license's baseline.
//!
//! A shared feed holds one entry per record for all its licenses: a changed record costs one entry however many they are.
//! A record that they do not see, and did not see before, writes nothing here: that is what keeps hidden records hidden.
//! When a license joins a feed, its baseline is written once: how it stands then.

use std::collections::BTreeMap;
use std::ops::Bound;

use redb::{ReadableTable, Table, WriteTransaction};

use crate::model::{Dataset, FeedId, Id, Subscription};
use crate::store::StoreError;
use crate::store::format::codec::{seal, unseal};
use crate::store::format::feed::{FeedEntry, FeedHead};
use crate::store::format::tables;

/// With at least one changed record in so many entries of the feed, its index by id is read in one run.
const SCAN_RATIO: usize = 16;

/// How many records entered a view, changed in it and left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct FeedChange {
    pub entering: u64,
    pub changed: u64,
    pub leaving: u64,
}

/// The head of a feed.
fn load_head(transaction: &WriteTransaction, feed: FeedId, dataset: Dataset) -> Result<FeedHead, StoreError> {
    let feeds = transaction.open_table(tables::FEEDS)?;
    let found = feeds.get(feed.0)?;
    let head: Option<FeedHead> = found.map(|bytes| unseal("feeds", bytes.value())).transpose()?;
    head.filter(|head| (head.feed, head.dataset) == (feed, dataset)).ok_or_else(|| StoreError::Damaged {
        table: "feeds",
        detail: format!("feed {} of {dataset} has no head of its own", feed.0),
    })
}

fn put_head(transaction: &WriteTransaction, head: &FeedHead) -> Result<(), StoreError> {
    transaction.open_table(tables::FEEDS)?.insert(head.feed.0, seal(head)?.as_slice())?;
    Ok(())
}

/// Writes the entries that licenses of a shared feed may learn of. They come in the order of their seqs, which are larger
/// than all in use; those of visible records are live.
///
/// By the feed's entry of the record: visible now, then live at the new seq; live before and visible no longer, then a
/// tombstone at the new seq; a tombstone or nothing, and still not visible, then nothing.
pub(in crate::store) fn write(
    transaction: &WriteTransaction,
    feed: FeedId,
    dataset: Dataset,
    entries: impl ExactSizeIterator<Item = FeedEntry>,
) -> Result<FeedChange, StoreError> {
    let mut head = load_head(transaction, feed, dataset)?;
    let mut by_id = transaction.open_table(tables::FEED_RECORDS)?;
    let mut by_seq = transaction.open_table(tables::FEED_ENTRIES)?;
    let known = KnownEntries::load(&by_id, feed, entries.len())?;

    let mut change = FeedChange::default();
    let mut written: Vec<FeedEntry> = Vec::new();
    for entry in entries {
        let old = known.find(&by_id, feed, entry.id)?;
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
    put_head(transaction, &head)?;
    append_by_seq(&mut by_seq, feed, &written)?;
    written.sort_unstable_by_key(|entry| entry.id);
    if known.is_empty() {
        append_by_id(&mut by_id, feed, &written)?;
    } else {
        for entry in &written {
            by_id.insert((feed.0, entry.id.get()), (entry.seq, entry.stored_log_seq()))?;
        }
    }
    Ok(change)
}

type Rows<'t> = Table<'t, (u64, u64), (u64, u64)>;

/// Appends entries in the order of their seqs: in one sorted run, which a cursor takes several times faster.
fn append_by_seq(by_seq: &mut Rows<'_>, feed: FeedId, entries: &[FeedEntry]) -> Result<(), StoreError> {
    let mut cursor = by_seq.upper_bound_mut(Bound::Included((feed.0, u64::MAX)))?;
    for entry in entries {
        cursor.insert_before((feed.0, entry.seq), (entry.id.get(), entry.stored_log_seq()))?;
    }
    Ok(cursor.close()?)
}

/// Appends entries in the order of their ids to a feed without any.
fn append_by_id(by_id: &mut Rows<'_>, feed: FeedId, entries: &[FeedEntry]) -> Result<(), StoreError> {
    let mut cursor = by_id.upper_bound_mut(Bound::Included((feed.0, u64::MAX)))?;
    for entry in entries {
        cursor.insert_before((feed.0, entry.id.get()), (entry.seq, entry.stored_log_seq()))?;
    }
    Ok(cursor.close()?)
}

/// A feed's entries as they were, by id: read in one run when most will be asked for, else looked up one by one.
enum KnownEntries {
    Scanned(Vec<FeedEntry>),
    LookedUp,
}

impl KnownEntries {
    fn load(by_id: &Rows<'_>, feed: FeedId, asked: usize) -> Result<KnownEntries, StoreError> {
        let most = asked.saturating_mul(SCAN_RATIO);
        let mut scanned = Vec::new();
        for row in by_id.range((feed.0, 0)..=(feed.0, u64::MAX))? {
            if scanned.len() >= most {
                return Ok(KnownEntries::LookedUp);
            }
            let (key, value) = row?;
            scanned.push(FeedEntry::of_row("feed_records", value.value().0, key.value().1, value.value().1)?);
        }
        Ok(KnownEntries::Scanned(scanned))
    }

    fn find(&self, by_id: &Rows<'_>, feed: FeedId, id: Id) -> Result<Option<FeedEntry>, StoreError> {
        match self {
            KnownEntries::Scanned(scanned) => {
                let at = scanned.binary_search_by_key(&id, |entry| entry.id);
                Ok(at.ok().map(|at| scanned[at]))
            }
            KnownEntries::LookedUp => {
                let found = by_id.get((feed.0, id.get()))?.map(|found| found.value());
                found.map(|(seq, log_seq)| FeedEntry::of_row("feed_records", seq, id.get(), log_seq)).transpose()
            }
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, KnownEntries::Scanned(scanned) if scanned.is_empty())
    }
}

/// Makes a feed of entries.
pub(in crate::store) fn create(
    transaction: &WriteTransaction,
    feed: FeedId,
    dataset: Dataset,
    mut entries: Vec<FeedEntry>,
) -> Result<(), StoreError> {
    let mut head = FeedHead::empty(feed, dataset);
    entries.iter().for_each(|entry| head.add(entry));
    put_head(transaction, &head)?;
    entries.sort_unstable_by_key(|entry| entry.seq);
    append_by_seq(&mut transaction.open_table(tables::FEED_ENTRIES)?, feed, &entries)?;
    entries.sort_unstable_by_key(|entry| entry.id);
    append_by_id(&mut transaction.open_table(tables::FEED_RECORDS)?, feed, &entries)
}

/// Removes a feed that no license reads any longer.
pub(in crate::store) fn erase(transaction: &WriteTransaction, feed: FeedId) -> Result<(), StoreError> {
    let all = (feed.0, 0)..=(feed.0, u64::MAX);
    transaction.open_table(tables::FEED_ENTRIES)?.retain_in(all.clone(), |_, _| false)?;
    transaction.open_table(tables::FEED_RECORDS)?.retain_in(all, |_, _| false)?;
    transaction.open_table(tables::FEEDS)?.remove(feed.0)?;
    Ok(())
}

/// How a license stands now, by record: its baseline, and over it what its shared feed said since it joined.
pub(in crate::store) fn standing(
    transaction: &WriteTransaction,
    dataset: Dataset,
    subscription: Option<Subscription>,
) -> Result<BTreeMap<Id, FeedEntry>, StoreError> {
    let mut standing = BTreeMap::new();
    let Some(Subscription { feed, joined_at, baseline }) = subscription else { return Ok(standing) };
    let by_seq = transaction.open_table(tables::FEED_ENTRIES)?;
    let entries = load_head(transaction, baseline, dataset)?.read_all(&by_seq)?;
    standing.extend(entries.into_iter().map(|entry| (entry.id, entry)));
    if let Some(feed) = feed {
        let entries = load_head(transaction, feed, dataset)?.read_all(&by_seq)?;
        let since = entries.into_iter().filter(|entry| entry.seq > joined_at);
        standing.extend(since.map(|entry| (entry.id, entry)));
    }
    Ok(standing)
}
