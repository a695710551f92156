//! Feeds: what licenses that show the same records share, and what each keeps of its own.
//!
//! A feed holds one row per record, at its newest entry, for all licenses of the same rule: a changed record costs one
//! row however many they are. A record that they do not see, and did not see before, writes nothing here: that is what
//! keeps hidden records hidden. When a license comes to a feed, its own rows are written once: how it stands then.

use std::collections::BTreeMap;
use std::ops::Bound;

use redb::{ReadableTable, Table, WriteTransaction};

use super::StoreError;
use super::load::read_id;
use super::tables::{self, GONE};
use crate::model::{Dataset, FeedId, Follows, Id, LicenseId};

/// With at least one changed record in so many rows of the feed, its rows are read in one run.
const SCAN_RATIO: usize = 16;

/// What a commit says to a feed about one record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The record.
    pub id: Id,
    /// The seq that the entry will stand at if it is written; larger than all in use. Where the record is visible, its
    /// `log` row stands there too.
    pub seq: u64,
    /// Whether the licenses of the feed now see the record.
    pub visible: bool,
}

/// How many records entered a view, changed in it and left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FeedChange {
    pub entering: u64,
    pub changed: u64,
    pub leaving: u64,
}

/// Writes the entries that licenses of the feed may learn of. They come in the order of their seqs.
///
/// By the feed's row of the record: visible now, then live at the new seq; live before and visible no longer, then gone
/// at the new seq; gone or absent and still not visible, then nothing.
pub(super) fn write(
    transaction: &WriteTransaction,
    feed: FeedId,
    dataset: Dataset,
    entries: impl ExactSizeIterator<Item = Entry>,
) -> Result<FeedChange, StoreError> {
    let (number, code) = (feed.0, dataset.code());
    let mut rows = transaction.open_table(tables::FEED_RECORDS)?;
    let mut feed = transaction.open_table(tables::FEED)?;
    let mut known = KnownRows::load(&rows, number, code, entries.len())?;

    let mut change = FeedChange::default();
    let mut written: Vec<Entry> = Vec::new();
    for entry in entries {
        let known_row = known.find(&rows, number, code, entry.id)?;
        match (known_row, entry.visible) {
            (Some((_, true)), true) => change.changed += 1,
            (_, true) => change.entering += 1,
            (Some((_, true)), false) => change.leaving += 1,
            (_, false) => continue,
        }
        if let Some((old_seq, _)) = known_row {
            feed.remove((number, code, old_seq))?;
        }
        written.push(entry);
    }

    let mut cursor = feed.upper_bound_mut(Bound::Included((number, code, u64::MAX)))?;
    for entry in &written {
        cursor.insert_before((number, code, entry.seq), (entry.id.get(), entry.visible))?;
    }
    cursor.close()?;

    written.sort_unstable_by_key(|entry| entry.id);
    if known.is_empty() {
        let mut cursor = rows.upper_bound_mut(Bound::Included((number, code, u64::MAX)))?;
        for entry in &written {
            cursor.insert_before((number, code, entry.id.get()), (entry.seq, entry.visible))?;
        }
        cursor.close()?;
    } else {
        for entry in &written {
            rows.insert((number, code, entry.id.get()), (entry.seq, entry.visible))?;
        }
    }
    Ok(change)
}

/// A feed's rows as they were: read in one run when most will be asked for, else looked up one by one.
enum KnownRows {
    Scanned(Vec<(u64, (u64, bool))>),
    LookedUp,
}

type Rows<'t> = Table<'t, (u64, u8, u64), (u64, bool)>;

impl KnownRows {
    fn load(rows: &Rows<'_>, feed: u64, code: u8, asked: usize) -> Result<KnownRows, StoreError> {
        let most = asked.saturating_mul(SCAN_RATIO);
        let mut scanned = Vec::new();
        for entry in rows.range((feed, code, 0)..=(feed, code, u64::MAX))? {
            if scanned.len() >= most {
                return Ok(KnownRows::LookedUp);
            }
            let (key, value) = entry?;
            scanned.push((key.value().2, value.value()));
        }
        Ok(KnownRows::Scanned(scanned))
    }

    fn find(&mut self, rows: &Rows<'_>, feed: u64, code: u8, id: Id) -> Result<Option<(u64, bool)>, StoreError> {
        match self {
            KnownRows::Scanned(scanned) => {
                let at = scanned.binary_search_by_key(&id.get(), |(id, _)| *id);
                Ok(at.ok().map(|at| scanned[at].1))
            }
            KnownRows::LookedUp => Ok(rows.get((feed, code, id.get()))?.map(|found| found.value())),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, KnownRows::Scanned(scanned) if scanned.is_empty())
    }
}

/// Makes a feed of the records that are visible now, each at its log seq.
pub(super) fn create(
    transaction: &WriteTransaction,
    feed: FeedId,
    dataset: Dataset,
    visible: &BTreeMap<Id, u64>,
) -> Result<(), StoreError> {
    let (number, code) = (feed.0, dataset.code());
    let mut by_seq: Vec<(u64, Id)> = visible.iter().map(|(id, seq)| (*seq, *id)).collect();
    by_seq.sort_unstable();
    let mut table = transaction.open_table(tables::FEED)?;
    let mut cursor = table.upper_bound_mut(Bound::Included((number, code, u64::MAX)))?;
    for (seq, id) in by_seq {
        cursor.insert_before((number, code, seq), (id.get(), true))?;
    }
    cursor.close()?;
    let mut table = transaction.open_table(tables::FEED_RECORDS)?;
    let mut cursor = table.upper_bound_mut(Bound::Included((number, code, u64::MAX)))?;
    for (id, seq) in visible {
        cursor.insert_before((number, code, id.get()), (*seq, true))?;
    }
    cursor.close()?;
    Ok(())
}

/// Removes a feed that no license follows any longer.
pub(super) fn erase(transaction: &WriteTransaction, feed: FeedId, dataset: Dataset) -> Result<(), StoreError> {
    let all = (feed.0, dataset.code(), 0)..=(feed.0, dataset.code(), u64::MAX);
    transaction.open_table(tables::FEED)?.retain_in(all.clone(), |_, _| false)?;
    transaction.open_table(tables::FEED_RECORDS)?.retain_in(all, |_, _| false)?;
    Ok(())
}

/// A license's newest entry of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// The seq of the entry.
    pub seq: u64,
    /// The seq of the record's `log` row, or [`GONE`].
    pub log_seq: u64,
}

/// How a license stands now: its own rows, and over them what the feed that it follows said since.
pub(super) fn standing(
    transaction: &WriteTransaction,
    license: LicenseId,
    dataset: Dataset,
    follows: Option<Follows>,
) -> Result<BTreeMap<Id, Standing>, StoreError> {
    let code = dataset.code();
    let mut standing = BTreeMap::new();
    let rows = transaction.open_table(tables::LICENSE_RECORDS)?;
    for entry in rows.range((license.0, code, 0)..=(license.0, code, u64::MAX))? {
        let (key, value) = entry?;
        let (seq, log_seq) = value.value();
        standing.insert(read_id("license_records", key.value().2)?, Standing { seq, log_seq });
    }
    let Some(Follows { feed, since }) = follows else { return Ok(standing) };
    let rows = transaction.open_table(tables::FEED)?;
    for entry in rows.range((Bound::Excluded((feed.0, code, since)), Bound::Included((feed.0, code, u64::MAX))))? {
        let (key, value) = entry?;
        let (seq, (id, live)) = (key.value().2, value.value());
        let log_seq = if live { seq } else { GONE };
        standing.insert(read_id("feed", id)?, Standing { seq, log_seq });
    }
    Ok(standing)
}

/// Writes down how a license stands, in place of its own rows.
pub(super) fn put_standing(
    transaction: &WriteTransaction,
    license: LicenseId,
    dataset: Dataset,
    standing: &BTreeMap<Id, Standing>,
) -> Result<(), StoreError> {
    let (number, code) = (license.0, dataset.code());
    erase_own(transaction, license, (code, code))?;
    let mut by_seq: Vec<(Standing, Id)> = standing.iter().map(|(id, stands)| (*stands, *id)).collect();
    by_seq.sort_unstable_by_key(|(stands, _)| stands.seq);
    let mut table = transaction.open_table(tables::LICENSE_FEED)?;
    let mut cursor = table.upper_bound_mut(Bound::Included((number, code, u64::MAX)))?;
    for (stands, id) in by_seq {
        cursor.insert_before((number, code, stands.seq), (id.get(), stands.log_seq))?;
    }
    cursor.close()?;
    let mut table = transaction.open_table(tables::LICENSE_RECORDS)?;
    let mut cursor = table.upper_bound_mut(Bound::Included((number, code, u64::MAX)))?;
    for (id, stands) in standing {
        cursor.insert_before((number, code, id.get()), (stands.seq, stands.log_seq))?;
    }
    cursor.close()?;
    Ok(())
}

/// Removes every row of a license's own.
pub(super) fn erase_license(transaction: &WriteTransaction, license: LicenseId) -> Result<(), StoreError> {
    erase_own(transaction, license, (0, u8::MAX))
}

fn erase_own(transaction: &WriteTransaction, license: LicenseId, datasets: (u8, u8)) -> Result<(), StoreError> {
    let all = (license.0, datasets.0, 0)..=(license.0, datasets.1, u64::MAX);
    transaction.open_table(tables::LICENSE_FEED)?.retain_in(all.clone(), |_, _| false)?;
    transaction.open_table(tables::LICENSE_RECORDS)?.retain_in(all, |_, _| false)?;
    Ok(())
}
