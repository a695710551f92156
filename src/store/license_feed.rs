//! Each license's own index of the feed: one row per record it ever saw, at its newest entry.
//!
//! A record that a license does not see, and did not see before, writes nothing here: that is what keeps hidden
//! records hidden.

use std::ops::Bound;

use redb::{ReadableTable, Table, WriteTransaction};

use super::StoreError;
use super::tables::{self, GONE};
use crate::model::{Dataset, Id, LicenseId};

/// With at least one changed record in so many rows of the license, its rows are read in one run.
const SCAN_RATIO: usize = 16;

/// What a commit says to a license about one record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The record.
    pub id: Id,
    /// The seq that the entry will stand at if it is written; larger than all in use.
    pub seq: u64,
    /// The record's log row where the license now sees it.
    pub log_seq: Option<u64>,
}

/// How many records entered a license's view, changed in it and left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FeedChange {
    pub entering: u64,
    pub changed: u64,
    pub leaving: u64,
}

/// Writes the entries that the license may learn of. They come in the order of their seqs.
///
/// By the license's row of the record: visible now, then live at the new seq; live before and visible no longer, then
/// gone at the new seq; gone or absent and still not visible, then nothing.
pub(super) fn write(
    transaction: &WriteTransaction,
    license: LicenseId,
    dataset: Dataset,
    entries: impl ExactSizeIterator<Item = Entry>,
) -> Result<FeedChange, StoreError> {
    let (license, code) = (license.0, dataset.code());
    let mut rows = transaction.open_table(tables::LICENSE_RECORDS)?;
    let mut feed = transaction.open_table(tables::LICENSE_FEED)?;
    let mut known = KnownRows::load(&rows, license, code, entries.len())?;

    let mut change = FeedChange::default();
    let mut written: Vec<Entry> = Vec::new();
    for entry in entries {
        let known_row = known.find(&rows, license, code, entry.id)?;
        match (known_row, entry.log_seq) {
            (Some((_, log_seq)), Some(_)) if log_seq != GONE => change.changed += 1,
            (_, Some(_)) => change.entering += 1,
            (Some((_, log_seq)), None) if log_seq != GONE => change.leaving += 1,
            (_, None) => continue,
        }
        if let Some((old_seq, _)) = known_row {
            feed.remove((license, code, old_seq))?;
        }
        written.push(entry);
    }

    let mut cursor = feed.upper_bound_mut(Bound::Included((license, code, u64::MAX)))?;
    for entry in &written {
        cursor.insert_before((license, code, entry.seq), (entry.id.get(), entry.log_seq.unwrap_or(GONE)))?;
    }
    cursor.close()?;

    written.sort_unstable_by_key(|entry| entry.id);
    let value = |entry: &Entry| (entry.seq, entry.log_seq.unwrap_or(GONE));
    if known.is_empty() {
        let mut cursor = rows.upper_bound_mut(Bound::Included((license, code, u64::MAX)))?;
        for entry in &written {
            cursor.insert_before((license, code, entry.id.get()), value(entry))?;
        }
        cursor.close()?;
    } else {
        for entry in &written {
            rows.insert((license, code, entry.id.get()), value(entry))?;
        }
    }
    Ok(change)
}

/// A license's rows as they were: read in one run when most will be asked for, else looked up one by one.
enum KnownRows {
    Scanned(Vec<(u64, (u64, u64))>),
    LookedUp,
}

type Rows<'t> = Table<'t, (u64, u8, u64), (u64, u64)>;

impl KnownRows {
    fn load(rows: &Rows<'_>, license: u64, code: u8, asked: usize) -> Result<KnownRows, StoreError> {
        let most = asked.saturating_mul(SCAN_RATIO);
        let mut scanned = Vec::new();
        for entry in rows.range((license, code, 0)..=(license, code, u64::MAX))? {
            if scanned.len() >= most {
                return Ok(KnownRows::LookedUp);
            }
            let (key, value) = entry?;
            scanned.push((key.value().2, value.value()));
        }
        Ok(KnownRows::Scanned(scanned))
    }

    fn find(&mut self, rows: &Rows<'_>, license: u64, code: u8, id: Id) -> Result<Option<(u64, u64)>, StoreError> {
        match self {
            KnownRows::Scanned(scanned) => {
                let at = scanned.binary_search_by_key(&id.get(), |(id, _)| *id);
                Ok(at.ok().map(|at| scanned[at].1))
            }
            KnownRows::LookedUp => Ok(rows.get((license, code, id.get()))?.map(|found| found.value())),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, KnownRows::Scanned(scanned) if scanned.is_empty())
    }
}

/// Removes every row of a license.
pub(super) fn erase(transaction: &WriteTransaction, license: LicenseId) -> Result<(), StoreError> {
    let all = (license.0, 0, 0)..=(license.0, u8::MAX, u64::MAX);
    transaction.open_table(tables::LICENSE_FEED)?.retain_in(all.clone(), |_, _| false)?;
    transaction.open_table(tables::LICENSE_RECORDS)?.retain_in(all, |_, _| false)?;
    Ok(())
}
