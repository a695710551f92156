//! A license's entries, for reading: what the feed that it follows says since the license came to it, and before that how
//! the license stood then (`feeds`).

use std::ops::Bound;

use redb::{ReadOnlyTable, ReadableTable};

use super::StoreError;
use super::load::read_id;
use super::tables::GONE;
use crate::model::{Dataset, FeedId, Follows, Id, License};

/// The feeds that licenses share.
pub(super) type FeedTable = ReadOnlyTable<(u64, u8, u64), (u64, bool)>;
/// The rows of licenses' own.
pub(super) type OwnTable = ReadOnlyTable<(u64, u8, u64), (u64, u64)>;

/// A license's row of one record: its newest entry in the license's feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedRow {
    /// The seq of the entry.
    pub seq: u64,
    /// The record.
    pub id: Id,
    /// The seq of the record's `log` row, or `None` where the record is gone from the license.
    pub log_seq: Option<u64>,
}

/// The tables that entries are read from.
pub(super) struct EntryTables {
    pub feed: FeedTable,
    pub feed_records: FeedTable,
    pub license_feed: OwnTable,
    pub license_records: OwnTable,
}

/// The entries of one license in one dataset.
pub(crate) struct Entries<'s> {
    tables: &'s EntryTables,
    license: u64,
    code: u8,
    follows: Follows,
}

impl EntryTables {
    /// A license's entries in a dataset; of one that is not licensed it has none.
    pub(super) fn of(&self, license: &License, dataset: Dataset) -> Entries<'_> {
        let none = Follows { feed: FeedId(0), since: 0 };
        let follows = license.follows[dataset.index()].unwrap_or(none);
        Entries { tables: self, license: license.id.0, code: dataset.code(), follows }
    }
}

impl<'s> Entries<'s> {
    /// The seq of the feed's newest row; 0 where it has none. What came before the license is not the license's.
    pub(super) fn newest_seq(&self) -> Result<u64, StoreError> {
        let feed = self.follows.feed.0;
        let newest = self.tables.feed.range((feed, self.code, 0)..=(feed, self.code, u64::MAX))?.next_back();
        Ok(newest.transpose()?.map_or(0, |(key, _)| key.value().2))
    }

    /// The feed's row of a record, if it is later than the license's coming.
    fn since(&self, id: u64) -> Result<Option<(u64, bool)>, StoreError> {
        let found = self.tables.feed_records.get((self.follows.feed.0, self.code, id))?;
        Ok(found.map(|found| found.value()).filter(|(seq, _)| *seq > self.follows.since))
    }

    /// The newest entry of a record.
    pub(crate) fn find(&self, id: Id) -> Result<Option<FeedRow>, StoreError> {
        if let Some((seq, live)) = self.since(id.get())? {
            return Ok(Some(shared_row(seq, id.get(), live)?));
        }
        let own = self.tables.license_records.get((self.license, self.code, id.get()))?;
        own.map(|own| own_row(own.value().0, id.get(), own.value().1)).transpose()
    }

    /// The entries after a seq, oldest first.
    pub(crate) fn after(
        self,
        seq: u64,
    ) -> Result<impl Iterator<Item = Result<FeedRow, StoreError>> + use<'s>, StoreError> {
        let Entries { tables, license, code, follows: Follows { feed, since } } = self;
        let (from, to) = (Bound::Excluded((license, code, seq)), Bound::Included((license, code, u64::MAX)));
        // Own rows stand before `since`: a token is later, but not a walk by `updated_since`.
        let own = if seq < since { Some(tables.license_feed.range((from, to))?) } else { None };
        let own = own.into_iter().flatten().filter_map(move |entry| {
            let row = (|| {
                let (key, value) = entry?;
                let (id, log_seq) = value.value();
                // What the feed said later stands there.
                Ok(match self.since(id)? {
                    Some(_) => None,
                    None => Some(own_row(key.value().2, id, log_seq)?),
                })
            })();
            row.transpose()
        });
        let from = Bound::Excluded((feed.0, code, seq.max(since)));
        let shared = tables.feed.range((from, Bound::Included((feed.0, code, u64::MAX))))?.map(|entry| {
            let (key, value) = entry?;
            let (id, live) = value.value();
            shared_row(key.value().2, id, live)
        });
        Ok(own.chain(shared))
    }

    /// The visible records with larger ids and the seqs of their `log` rows, in the order of the ids.
    pub(crate) fn visible_after(
        self,
        id: u64,
    ) -> Result<impl Iterator<Item = Result<(Id, u64), StoreError>> + use<'s>, StoreError> {
        let (feed, code) = (self.follows.feed.0, self.code);
        let range = (Bound::Excluded((feed, code, id)), Bound::Included((feed, code, u64::MAX)));
        Ok(self.tables.feed_records.range(range)?.filter_map(|entry| {
            let row = (|| {
                let (key, value) = entry?;
                let (seq, live) = value.value();
                Ok(if live { Some((read_id("feed_records", key.value().2)?, seq)) } else { None })
            })();
            row.transpose()
        }))
    }

    /// Whether a visible record changed, or entered the license, after a seq.
    pub(crate) fn is_after(&self, id: Id, log_seq: u64, seq: u64) -> Result<bool, StoreError> {
        // An entry is never before the change that it tells of, and one of the license's own never after its coming.
        if log_seq > seq {
            return Ok(true);
        }
        if seq >= self.follows.since {
            return Ok(false);
        }
        Ok(self.find(id)?.is_some_and(|entry| entry.seq > seq))
    }
}

fn shared_row(seq: u64, id: u64, live: bool) -> Result<FeedRow, StoreError> {
    Ok(FeedRow { seq, id: read_id("feed", id)?, log_seq: live.then_some(seq) })
}

fn own_row(seq: u64, id: u64, log_seq: u64) -> Result<FeedRow, StoreError> {
    Ok(FeedRow { seq, id: read_id("license_feed", id)?, log_seq: (log_seq != GONE).then_some(log_seq) })
}
