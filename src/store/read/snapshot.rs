//! One committed state of the database, with its tables open. All responses are built from it.
//!
//! The stored history: all commits, the last change of each record, and its entries in feeds.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use memchr::memmem::Finder;
use parking_lot::Mutex;
use redb::{ReadOnlyTable, ReadTransaction, ReadableTable};

use super::feed_index::{FeedIndex, LicenseEntries};
use super::records::{LogTable, Records, StoredRecord};
use crate::model::{
    Curated, Dataset, FeedId, Id, KeyHash, KeyRecord, License, LicenseId, PerDataset, RecordFields,
    References, Timestamp, Witness,
};
use crate::store::error::opaque_debug;
use crate::store::format::feed::{FeedEntry, FeedSum};
use crate::store::format::meta::read_secret;
use crate::store::format::rows::{
    CommitPoint, RecordRow, StoredCommit, damaged_row, expect_count, find_record, for_each_record,
    last_commit, load_keys, load_references, load_rows, read_id, unseal_commit,
};
use crate::store::format::tables::{
    COMMITS, FEED_ENTRIES, FEED_RECORDS, FEEDS, KEYS, LICENSES, LINKS, LOG, META, ORGANIZATIONS,
    RECORDS, TAGS, TOMBSTONE, keys_from,
};
use crate::store::{Result, StoreError, panics};

/// One committed state. It is cheap to share. redb keeps the pages of this state until it is dropped.
pub struct Snapshot {
    /// The last commit.
    last: StoredCommit,
    secret: [u8; 32],
    licenses: HashMap<LicenseId, Arc<License>>,
    /// The witnesses of licenses that could be read when the state was opened.
    witnesses: HashMap<(LicenseId, Dataset), Witness>,
    keys: HashMap<KeyHash, Arc<KeyRecord>>,
    pub(crate) feeds: HashMap<FeedId, FeedSum>,
    references: OnceLock<Arc<References>>,
    /// Loaded on first use.
    loaded_records: PerDataset<OnceLock<Arc<Records>>>,
    /// The feeds in use, of this state or an earlier one. They refer to `loaded_records`.
    feed_indexes: Mutex<HashMap<FeedId, Arc<FeedIndex>>>,
    /// Held while records or a feed are read into memory, so that concurrent requests read them once.
    loading: Mutex<()>,
    pub(super) commits: ReadOnlyTable<u64, &'static [u8]>,
    pub(crate) records: ReadOnlyTable<(u8, u64), u64>,
    organizations: ReadOnlyTable<u64, &'static [u8]>,
    tags: ReadOnlyTable<u64, &'static [u8]>,
    pub(super) log: LogTable,
    pub(super) feed_entries: ReadOnlyTable<(u64, u64), (u64, u64)>,
    pub(crate) feed_records: ReadOnlyTable<(u64, u64), (u64, u64)>,
    pub(crate) links: ReadOnlyTable<(u8, u64, u8, u64), ()>,
}

impl Snapshot {
    pub(crate) fn read_commit(transaction: &ReadTransaction) -> Result<CommitPoint> {
        Ok(last_commit(&transaction.open_table(COMMITS)?)?.point())
    }

    /// Opens the state that a transaction sees.
    pub(crate) fn open(transaction: &ReadTransaction) -> Result<Snapshot> {
        let commits = transaction.open_table(COMMITS)?;
        let last = last_commit(&commits)?;
        let counts = last.counts;
        let licenses: Vec<License> = load_rows("licenses", &transaction.open_table(LICENSES)?)?;
        let licenses: HashMap<_, _> = licenses
            .into_iter()
            .map(|license| (license.id, Arc::new(license)))
            .collect();
        expect_count("licenses", licenses.len(), counts.licenses)?;
        let keys = load_keys(&transaction.open_table(KEYS)?)?;
        let keys: HashMap<_, _> = keys
            .into_iter()
            .map(|(hash, key)| (hash, Arc::new(key)))
            .collect();
        expect_count("keys", keys.len(), counts.keys)?;
        let sums: Vec<FeedSum> = load_rows("feeds", &transaction.open_table(FEEDS)?)?;
        if let Some(ahead) = sums.iter().find(|sum| sum.newest_seq > last.last_seq) {
            return Err(ahead.damaged(format!("it is ahead of the last commit, {}", last.last_seq)));
        }
        let feeds: HashMap<_, _> = sums.into_iter().map(|sum| (sum.feed, sum)).collect();
        expect_count("feeds", feeds.len(), counts.feeds)?;
        let secret = read_secret(&transaction.open_table(META)?)?;
        Ok(Snapshot {
            last,
            secret,
            licenses,
            witnesses: HashMap::new(),
            keys,
            feeds,
            references: OnceLock::new(),
            loaded_records: PerDataset::default(),
            feed_indexes: Mutex::default(),
            loading: Mutex::new(()),
            commits,
            records: transaction.open_table(RECORDS)?,
            organizations: transaction.open_table(ORGANIZATIONS)?,
            tags: transaction.open_table(TAGS)?,
            log: transaction.open_table(LOG)?,
            feed_entries: transaction.open_table(FEED_ENTRIES)?,
            feed_records: transaction.open_table(FEED_RECORDS)?,
            links: transaction.open_table(LINKS)?,
        })
    }

    /// Opens a newer state. If its history contains the earlier state, records in memory are only updated, and feeds
    /// are when they are used.
    pub(crate) fn open_after(
        earlier: &Snapshot,
        transaction: &ReadTransaction,
    ) -> Result<Snapshot> {
        let newer = Snapshot::open(transaction)?;
        // After a rollback, the same seqs have other rows.
        let before = earlier.commit();
        if !newer.holds(before.seq, &before.lineage)? {
            return Ok(newer.with_witnesses());
        }
        let mut feed_indexes = earlier.feed_indexes.lock().clone();
        // A license that changes gets new feeds.
        feed_indexes.retain(|feed, _| newer.feeds.contains_key(feed));
        for dataset in Dataset::ALL {
            match earlier.loaded_records[dataset].get() {
                Some(records) if !records.is_sparse() => {
                    let count = newer.last.records[dataset];
                    let records = records.advance(before.seq, &newer.records, &newer.log, count)?;
                    let _ = newer.loaded_records[dataset].set(records);
                }
                _ => feed_indexes.retain(|_, index| index.sum.dataset != dataset),
            }
        }
        *newer.feed_indexes.lock() = feed_indexes;
        if let Some(references) = earlier.references.get()
            && newer.last.references_seq == earlier.last.references_seq
        {
            let _ = newer.references.set(Arc::clone(references));
        }
        Ok(newer.with_witnesses())
    }

    /// Reads the witnesses of all licenses in advance. Requests that need an unreadable witness report the error.
    pub(crate) fn with_witnesses(mut self) -> Snapshot {
        let mut commits: HashMap<u64, Option<CommitPoint>> = HashMap::new();
        let mut witnesses = HashMap::new();
        for license in self.licenses.values() {
            for dataset in Dataset::ALL {
                if license.feed(dataset).is_none() {
                    continue;
                }
                let Ok(seq) = self.witness_seq(license, dataset) else {
                    continue;
                };
                let commit = commits
                    .entry(seq)
                    .or_insert_with(|| panics::guard(|| self.commit_of(seq)).ok());
                if let Some(CommitPoint { lineage, .. }) = *commit {
                    witnesses.insert((license.id, dataset), Witness { seq, lineage });
                }
            }
        }
        self.witnesses = witnesses;
        self
    }

    /// The last commit of this state.
    pub fn commit(&self) -> CommitPoint {
        self.last.point()
    }

    /// The row of the last commit, with the totals of this state.
    pub fn totals(&self) -> &StoredCommit {
        &self.last
    }

    /// The secret that seals tokens and cursors.
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// Finds a license by its number.
    pub fn find_license(&self, id: LicenseId) -> Option<&Arc<License>> {
        self.licenses.get(&id)
    }

    /// Finds a license by its name.
    pub fn find_license_named(&self, name: &str) -> Option<&Arc<License>> {
        self.licenses.values().find(|license| license.name == name)
    }

    /// All licenses, by name.
    pub fn list_licenses(&self) -> Vec<&Arc<License>> {
        let mut licenses: Vec<_> = self.licenses.values().collect();
        licenses.sort_by(|one, other| one.name.cmp(&other.name));
        licenses
    }

    /// The number of records of a dataset that a license shows; `None` if it does not contain the dataset.
    pub fn visible_records(&self, license: &License, dataset: Dataset) -> Option<u64> {
        Some(self.feed_sum(license.feed(dataset)?).ok()?.live)
    }

    /// Finds a key by its hash.
    pub fn find_key(&self, hash: &KeyHash) -> Option<&Arc<KeyRecord>> {
        self.keys.get(hash)
    }

    /// All keys, oldest first.
    pub fn list_keys(&self) -> Vec<&Arc<KeyRecord>> {
        let mut keys: Vec<_> = self.keys.values().collect();
        keys.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        keys
    }

    /// Whether the organizations and tags are in memory.
    pub(crate) fn has_references(&self) -> bool {
        self.references.get().is_some()
    }

    /// All organizations and tags. Loaded on first use.
    pub fn references(&self) -> Result<&Arc<References>> {
        if let Some(references) = self.references.get() {
            return Ok(references);
        }
        let loaded = Arc::new(load_references(&self.organizations, &self.tags)?);
        expect_count(
            "organizations",
            loaded.organizations.len(),
            self.last.counts.organizations,
        )?;
        expect_count("tags", loaded.tags.len(), self.last.counts.tags)?;
        Ok(self.references.get_or_init(|| loaded))
    }

    /// Whether the records and the feed of a license are in memory.
    pub(crate) fn is_loaded(&self, license: &License, dataset: Dataset) -> bool {
        license
            .feed(dataset)
            .is_some_and(|feed| matches!(self.loaded_feed(feed), Ok(Some(_))))
    }

    /// Reads the records of all datasets that licenses show into memory, and all organizations and tags.
    pub fn load(&self) -> Result<()> {
        for dataset in Dataset::ALL {
            let mut feeds = self.licenses.values().map(|license| license.feed(dataset));
            if feeds.any(|feed| feed.is_some()) {
                panics::guard(|| self.loaded(dataset))?;
            }
        }
        panics::guard(|| self.references().map(drop))
    }

    #[cfg(test)]
    pub(crate) fn loaded_feeds(&self) -> usize {
        self.feed_indexes.lock().len()
    }

    /// The records of a dataset. Read into memory on first use.
    pub(crate) fn loaded(&self, dataset: Dataset) -> Result<&Records> {
        let loaded = &self.loaded_records[dataset];
        if let Some(records) = loaded.get() {
            return Ok(records);
        }
        let _loading = self.loading.lock();
        if let Some(records) = loaded.get() {
            return Ok(records);
        }
        let records = Records::load(dataset, &self.records, &self.log)?;
        Ok(loaded.get_or_init(|| Arc::new(records)))
    }

    fn feed_sum(&self, feed: FeedId) -> Result<FeedSum> {
        self.feeds.get(&feed).copied().ok_or_else(|| {
            let detail = format!("feed {} of a license does not exist", feed.0);
            StoreError::damaged("feeds", detail)
        })
    }

    /// The index of a feed, if it is in memory and has this state.
    fn loaded_feed(&self, feed: FeedId) -> Result<Option<Arc<FeedIndex>>> {
        let sum = self.feed_sum(feed)?;
        Ok(self
            .feed_indexes
            .lock()
            .get(&feed)
            .filter(|index| index.sum == sum)
            .cloned())
    }

    /// The index of a shared feed or a baseline, read or updated if necessary.
    fn feed_index(&self, feed: FeedId, is_baseline: bool) -> Result<Arc<FeedIndex>> {
        if let Some(index) = self.loaded_feed(feed)? {
            return Ok(index);
        }
        let sum = self.feed_sum(feed)?;
        let records = match is_baseline {
            true => None,
            false => Some(self.loaded(sum.dataset)?),
        };
        let _loading = self.loading.lock();
        let earlier = self.feed_indexes.lock().get(&feed).cloned();
        let index = Arc::new(match earlier {
            Some(index) if index.sum == sum => return Ok(index),
            Some(earlier) => earlier.advance(sum, &self.feed_entries, records)?,
            None => FeedIndex::build(sum, &self.feed_entries, records)?,
        });
        self.feed_indexes.lock().insert(feed, Arc::clone(&index));
        Ok(index)
    }

    /// Finds a record and its `updated_at` without checking a license.
    pub fn find_record<F: RecordFields>(&self, id: Id) -> Result<Option<(Curated<F>, Timestamp)>> {
        Ok(find_record(&self.records, &self.log, id)?
            .map(|row: RecordRow<F>| (row.record, row.updated_at)))
    }

    /// Calls `each` with all records of a dataset, in the order of ids.
    pub fn for_each_record<F: RecordFields, E: From<StoreError>>(
        &self,
        mut each: impl FnMut(Curated<F>, Timestamp, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        for_each_record(&self.records, &self.log, |row: RecordRow<F>| {
            each(row.record, row.updated_at, row.seq)
        })
    }

    /// Calls `each` with the records of a dataset whose JSON `is_read`, and with their ids, in the order of their last
    /// changes. This is much faster than reading records: their links, and the fields after them, are left out, and their
    /// hashes are not compared. So it is for rows that are neither stored again nor served.
    pub fn for_each_unlinked<F: RecordFields>(
        &self,
        is_read: impl Fn(&[u8]) -> bool,
        mut each: impl FnMut(Id, F),
    ) -> Result<()> {
        let links = Finder::new(",\"organizations\":");
        let mut head = Vec::new();
        for row in self.log.range(keys_from(F::DATASET.code(), 0))? {
            let (key, row) = row?;
            let (_, seq) = key.value();
            let (id, _, text) = row.value();
            if !is_read(text) {
                continue;
            }
            let end = links.find(text).unwrap_or(text.len().saturating_sub(1));
            head.clear();
            head.extend_from_slice(&text[..end]);
            head.push(b'}');
            let fields =
                serde_json::from_slice(&head).map_err(|error| damaged_row(F::STEM, seq, error))?;
            each(read_id("log", id)?, fields);
        }
        Ok(())
    }

    /// The witness of a license in a dataset: the newest entry or the scope change, whichever is later.
    /// Its seq is that of the entry or change, not the last one of its commit.
    pub(crate) fn witness(&self, license: &License, dataset: Dataset) -> Result<Witness> {
        if let Some(witness) = self.known_witness(license, dataset) {
            return Ok(witness);
        }
        let seq = self.witness_seq(license, dataset)?;
        let lineage = self.commit_of(seq)?.lineage;
        Ok(Witness { seq, lineage })
    }

    /// The witness, if it could be read when the state was opened.
    pub(crate) fn known_witness(&self, license: &License, dataset: Dataset) -> Option<Witness> {
        self.witnesses.get(&(license.id, dataset)).copied()
    }

    fn witness_seq(&self, license: &License, dataset: Dataset) -> Result<u64> {
        let newest_seq = license
            .feed(dataset)
            .map_or(Ok(0), |feed| self.feed_sum(feed).map(|sum| sum.newest_seq))?;
        Ok(newest_seq.max(license.scope_seq))
    }

    pub(crate) fn feed_of(license: &License, dataset: Dataset) -> Result<FeedId> {
        license.feed(dataset).ok_or_else(|| {
            let name = &license.name;
            let detail = format!("license `{name}` shows {dataset}, but has no feed of it");
            StoreError::damaged("licenses", detail)
        })
    }

    /// A license's entries in a dataset. Includes the baseline only if entries after `seq` may be in it.
    pub(crate) fn entries(
        &self,
        license: &License,
        dataset: Dataset,
        seq: u64,
    ) -> Result<LicenseEntries> {
        let shared = self.feed_index(Snapshot::feed_of(license, dataset)?, false)?;
        let subscription = license.subscriptions[dataset];
        let joined_at = subscription.map_or(0, |subscription| subscription.joined_at);
        let baseline = subscription
            .filter(|_| seq < joined_at)
            .map(|subscription| self.feed_index(subscription.baseline, true))
            .transpose()?;
        Ok(LicenseEntries {
            shared,
            joined_at,
            baseline,
        })
    }

    /// The feed that shows a license the records of a dataset.
    pub(crate) fn shared_feed(
        &self,
        license: &License,
        dataset: Dataset,
    ) -> Result<Arc<FeedIndex>> {
        self.feed_index(Snapshot::feed_of(license, dataset)?, false)
    }

    /// Finds a record, if the license shows it.
    pub(crate) fn find_shown(
        &self,
        license: &License,
        dataset: Dataset,
        id: Id,
    ) -> Result<Option<&StoredRecord>> {
        let index = self.shared_feed(license, dataset)?;
        let records = self.loaded(dataset)?;
        let found = index
            .shown()
            .binary_search_by_key(&id, |slot| records.id(*slot));
        found
            .ok()
            .map(|position| records.get(index.shown()[position]))
            .transpose()
    }

    /// The commit that contains a seq.
    pub(crate) fn commit_of(&self, seq: u64) -> Result<CommitPoint> {
        Ok(self.stored_commit_of(seq)?.point())
    }

    pub(crate) fn holds(&self, seq: u64, lineage: &[u8; 16]) -> Result<bool> {
        if seq == 0 {
            return Ok(*lineage == CommitPoint::default().lineage);
        }
        Ok(seq <= self.last.last_seq && self.commit_of(seq)?.lineage == *lineage)
    }

    /// The last seq before an instant. Later changes have larger seqs.
    pub(crate) fn seq_before(&self, time: Timestamp) -> Result<u64> {
        // A binary search over seqs, because commit times never decrease.
        let mut low = 0;
        let mut high = self.last.last_seq;
        while low < high {
            let middle = low + (high - low) / 2;
            let commit = self.commit_of(middle + 1)?;
            if commit.time < time {
                low = commit.seq;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

opaque_debug!(Snapshot);

/// The beginning of the description of a restore.
pub(crate) const RESTORED: &str = "restored from a backup";

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
                if log_seq == TOMBSTONE && self.records.get((dataset.code(), id))?.is_none() {
                    gone.insert(read_id("feed_entries", id)?);
                }
            }
        }
        Ok(gone)
    }

    /// The commit that contains a seq.
    pub fn stored_commit_of(&self, seq: u64) -> Result<StoredCommit> {
        if let Some((last, bytes)) = self.commits.range(seq..)?.next().transpose()? {
            let row = unseal_commit(last.value(), bytes.value())?;
            if row.first_seq <= seq {
                return Ok(row);
            }
        }
        let detail = format!("no commit contains seq {seq}");
        Err(StoreError::damaged("commits", detail))
    }
}
