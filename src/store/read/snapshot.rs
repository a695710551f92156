//! One committed state of the database, with its tables open. All responses are built from it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable};

use crate::model::{
    Curated, Dataset, FeedId, Head, Id, KeyHash, KeyRecord, License, LicenseId, PerDataset, RecordFields, References,
    Timestamp,
};
use crate::store::StoreError;
use crate::store::format::codec::{
    RecordRow, StoredCommit, TableCounts, expect_count, unseal, unseal_commit, unseal_under,
};
use crate::store::format::feed::{FeedEntry, FeedHead};
use crate::store::format::rows::{find_record, for_each_record, load_references};
use crate::store::format::secret;
use crate::store::format::tables;
use crate::store::panics;
use crate::store::read::cache::new_cache;
use crate::store::read::columns::Columns;
use crate::store::read::entries::LicenseEntries;
use crate::store::read::feed_cache::{self, CachedFeed, FeedCache};
use crate::store::read::feed_index::FeedIndex;
use crate::store::read::record_cache::{self, LogRef, LogTable, RecordCache, RecordJson};

/// A commit in the history: its last seq (0 before the first commit), its time and its random lineage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "described above")]
pub struct CommitPoint {
    pub seq: u64,
    pub time: Timestamp,
    pub lineage: [u8; 16],
}

impl CommitPoint {
    /// The position before the first commit.
    pub const EMPTY: CommitPoint = CommitPoint { seq: 0, time: Timestamp::EPOCH, lineage: [0; 16] };

    /// The seq and lineage, which together identify the commit.
    pub fn head(&self) -> Head {
        Head { seq: self.seq, lineage: self.lineage }
    }
}

/// The number of records of a dataset, and the time of its last change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "described above")]
pub struct DatasetTotals {
    pub records: u64,
    pub last_change_at: Option<Timestamp>,
}

/// A license, and its witness in each dataset.
struct LicenseWithWitnesses {
    license: Arc<License>,
    /// `None` if the database cannot be read.
    witnesses: PerDataset<Option<CommitPoint>>,
}

/// One committed state. It is cheap to share. redb keeps the pages of this state until it is dropped.
pub struct Snapshot {
    commit: CommitPoint,
    datasets: PerDataset<DatasetTotals>,
    /// The last seq of the last commit that changed organizations or tags.
    references_seq: u64,
    secret: [u8; 32],
    licenses: HashMap<LicenseId, LicenseWithWitnesses>,
    keys: HashMap<KeyHash, Arc<KeyRecord>>,
    pub(in crate::store) feeds: HashMap<FeedId, FeedHead>,
    counts: TableCounts,
    references: OnceLock<Arc<References>>,
    feed_cache: Arc<FeedCache>,
    /// Held while a feed is read into memory, so that concurrent requests read it once.
    building: Mutex<()>,
    record_cache: Arc<RecordCache>,
    pub(super) commits: ReadOnlyTable<u64, &'static [u8]>,
    pub(in crate::store) records: ReadOnlyTable<(u8, u64), u64>,
    organizations: ReadOnlyTable<u64, &'static [u8]>,
    tags: ReadOnlyTable<u64, &'static [u8]>,
    pub(super) log: LogTable,
    pub(super) feed_entries: ReadOnlyTable<(u64, u64), (u64, u64)>,
    pub(in crate::store) feed_records: ReadOnlyTable<(u64, u64), (u64, u64)>,
    pub(in crate::store) links: ReadOnlyTable<(u8, u64, u8, u64), ()>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("commit", &self.commit).finish_non_exhaustive()
    }
}

impl Snapshot {
    pub(in crate::store) fn read_commit(transaction: &ReadTransaction) -> Result<CommitPoint, StoreError> {
        Ok(last_commit(&transaction.open_table(tables::COMMITS)?)?.map_or(CommitPoint::EMPTY, |(point, _)| point))
    }

    pub(in crate::store) fn open(transaction: &ReadTransaction) -> Result<Snapshot, StoreError> {
        Snapshot::open_with(transaction, None)
    }

    /// Opens the state that a transaction sees. Takes over the caches of an earlier snapshot.
    fn open_with(transaction: &ReadTransaction, earlier: Option<&Snapshot>) -> Result<Snapshot, StoreError> {
        let commits = transaction.open_table(tables::COMMITS)?;
        let (commit, datasets, references_seq, counts) = match last_commit(&commits)? {
            None => (CommitPoint::EMPTY, PerDataset::default(), 0, TableCounts::default()),
            Some((point, row)) => (point, dataset_states(&row), row.references_seq, row.counts),
        };
        let mut licenses = HashMap::new();
        for entry in transaction.open_table(tables::LICENSES)?.iter()? {
            let license: License = unseal("licenses", entry?.1.value())?;
            licenses.insert(
                license.id,
                LicenseWithWitnesses { license: Arc::new(license), witnesses: PerDataset::default() },
            );
        }
        expect_count("licenses", licenses.len(), counts.licenses)?;
        let mut keys = HashMap::new();
        for entry in transaction.open_table(tables::KEYS)?.iter()? {
            let (hash, row) = entry?;
            let hash = hash.value();
            keys.insert(KeyHash(hash), Arc::new(unseal_under("keys", &hash, row.value())?));
        }
        expect_count("keys", keys.len(), counts.keys)?;
        let mut feeds = HashMap::new();
        for entry in transaction.open_table(tables::FEEDS)?.iter()? {
            let head: FeedHead = unseal("feeds", entry?.1.value())?;
            if head.newest_seq > commit.seq {
                return Err(head.damaged(format!("it is ahead of the last commit, {}", commit.seq)));
            }
            feeds.insert(head.feed, head);
        }
        expect_count("feeds", feeds.len(), counts.feeds)?;
        let secret = secret::read(&transaction.open_table(tables::META)?)?;
        let (record_cache, feed_cache) = match earlier {
            Some(earlier) => (Arc::clone(&earlier.record_cache), Arc::clone(&earlier.feed_cache)),
            None => (
                Arc::new(new_cache(record_cache::DEFAULT_MAX_BYTES)),
                Arc::new(new_cache(feed_cache::DEFAULT_MAX_BYTES)),
            ),
        };
        Ok(Snapshot {
            commit,
            datasets,
            references_seq,
            secret,
            licenses,
            keys,
            feeds,
            counts,
            references: OnceLock::new(),
            feed_cache,
            building: Mutex::new(()),
            record_cache,
            commits,
            records: transaction.open_table(tables::RECORDS)?,
            organizations: transaction.open_table(tables::ORGANIZATIONS)?,
            tags: transaction.open_table(tables::TAGS)?,
            log: transaction.open_table(tables::LOG)?,
            feed_entries: transaction.open_table(tables::FEED_ENTRIES)?,
            feed_records: transaction.open_table(tables::FEED_RECORDS)?,
            links: transaction.open_table(tables::LINKS)?,
        })
    }

    /// Opens a newer state. Keeps the caches if its history contains the earlier state. Cached feeds are updated on
    /// use.
    pub(in crate::store) fn open_after(
        earlier: &Snapshot,
        transaction: &ReadTransaction,
    ) -> Result<Snapshot, StoreError> {
        let newer = Snapshot::open_with(transaction, Some(earlier))?;
        if !newer.holds(earlier.commit.seq, &earlier.commit.lineage)? {
            // After a rollback, the same seqs have other rows.
            let record_cache = Arc::new(new_cache(earlier.record_cache.capacity()));
            let feed_cache = Arc::new(new_cache(earlier.feed_cache.capacity()));
            return Ok(Snapshot { record_cache, feed_cache, ..newer }.with_witnesses());
        }
        // A license that changes gets new feeds. Its former ones would stay until others need their room.
        newer.feed_cache.retain(|feed, _| newer.feeds.contains_key(feed));
        if let Some(references) = earlier.references.get()
            && newer.references_seq == earlier.references_seq
        {
            let _ = newer.references.set(Arc::clone(references));
        }
        Ok(newer.with_witnesses())
    }

    /// Reads the witnesses of all licenses in advance. Requests that need an unreadable witness report the error.
    pub(in crate::store) fn with_witnesses(mut self) -> Snapshot {
        let mut commits: HashMap<u64, Option<CommitPoint>> = HashMap::new();
        let mut licenses = std::mem::take(&mut self.licenses);
        for LicenseWithWitnesses { license, witnesses } in licenses.values_mut() {
            for dataset in Dataset::ALL.into_iter().filter(|dataset| license.feed(*dataset).is_some()) {
                let Ok(seq) = self.witness_seq(license, dataset) else { continue };
                let find = || panics::guard(|| self.commit_of(seq)).ok();
                let commit = *commits.entry(seq).or_insert_with(find);
                witnesses[dataset] = commit.map(|commit| CommitPoint { seq, ..commit });
            }
        }
        Snapshot { licenses, ..self }
    }

    /// The last commit of this state.
    pub fn commit(&self) -> CommitPoint {
        self.commit
    }

    /// The state of a dataset, for `/v1/status`.
    pub fn dataset_state(&self, dataset: Dataset) -> DatasetTotals {
        self.datasets[dataset]
    }

    /// The secret that seals tokens and cursors.
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// Finds a license by its number.
    pub fn find_license(&self, id: LicenseId) -> Option<&Arc<License>> {
        self.licenses.get(&id).map(|licensed| &licensed.license)
    }

    /// Finds a license by its name.
    pub fn find_license_named(&self, name: &str) -> Option<&Arc<License>> {
        self.licenses.values().map(|licensed| &licensed.license).find(|license| license.name == name)
    }

    /// All licenses, by name.
    pub fn list_licenses(&self) -> Vec<&Arc<License>> {
        let mut licenses: Vec<_> = self.licenses.values().map(|licensed| &licensed.license).collect();
        licenses.sort_by(|one, other| one.name.cmp(&other.name));
        licenses
    }

    /// The number of records of a dataset that a license shows; `None` if it does not contain the dataset.
    pub fn visible_records(&self, license: &License, dataset: Dataset) -> Option<u64> {
        Some(self.feed_head(license.feed(dataset)?).ok()?.live)
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

    /// All organizations and tags. Loaded on first use.
    pub fn references(&self) -> Result<&Arc<References>, StoreError> {
        if let Some(references) = self.references.get() {
            return Ok(references);
        }
        let loaded = Arc::new(load_references(&self.organizations, &self.tags)?);
        expect_count("organizations", loaded.organizations.len(), self.counts.organizations)?;
        expect_count("tags", loaded.tags.len(), self.counts.tags)?;
        Ok(self.references.get_or_init(|| loaded))
    }

    /// Whether the entries of a license's feed are in memory.
    pub(crate) fn has_index(&self, license: &License, dataset: Dataset) -> bool {
        let cached = license.feed(dataset).map(|feed| self.cached_feed(feed));
        matches!(cached, Some(Ok(Some(_))))
    }

    pub(crate) fn has_columns(&self, license: &License, dataset: Dataset) -> bool {
        let cached = license.feed(dataset).map(|feed| self.cached_feed(feed));
        matches!(cached, Some(Ok(Some(cached))) if cached.current_columns().is_some())
    }

    fn feed_head(&self, feed: FeedId) -> Result<FeedHead, StoreError> {
        let detail = || format!("feed {} of a license does not exist", feed.0);
        self.feeds.get(&feed).copied().ok_or_else(|| StoreError::damaged("feeds", detail()))
    }

    /// The cache entry of a feed, if it has exactly this state.
    fn cached_feed(&self, feed: FeedId) -> Result<Option<CachedFeed>, StoreError> {
        let head = self.feed_head(feed)?;
        Ok(self.feed_cache.get(&feed).filter(|cached| *cached.index.head() == head))
    }

    /// The index of a feed, read or updated if necessary.
    fn feed_index(&self, feed: FeedId) -> Result<Arc<FeedIndex>, StoreError> {
        if let Some(cached) = self.cached_feed(feed)? {
            return Ok(cached.index);
        }
        let _building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        self.load_feed(feed).map(|cached| cached.index)
    }

    /// The columns of a feed, built or updated if necessary.
    fn feed_columns(&self, feed: FeedId) -> Result<Arc<Columns>, StoreError> {
        if let Some(columns) = self.cached_feed(feed)?.and_then(|cached| cached.current_columns()) {
            return Ok(columns);
        }
        let _building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = self.load_feed(feed)?;
        if let Some(columns) = cached.current_columns() {
            return Ok(columns);
        }
        let columns = Arc::new(match &cached.columns {
            Some(earlier) => earlier.advance(&self.log, &cached.index)?,
            None => Columns::build(&self.log, &cached.index)?,
        });
        self.cache_feed(feed, CachedFeed { index: cached.index, columns: Some(Arc::clone(&columns)) });
        Ok(columns)
    }

    /// The cache entry of a feed, updated to this state.
    fn load_feed(&self, feed: FeedId) -> Result<CachedFeed, StoreError> {
        let head = self.feed_head(feed)?;
        let earlier = match self.feed_cache.get(&feed) {
            Some(cached) if *cached.index.head() == head => return Ok(cached),
            // A newer state of the feed cannot be used.
            other => other.filter(|cached| cached.index.head().newest_seq < head.newest_seq),
        };
        let cached = match earlier {
            None => CachedFeed { index: Arc::new(FeedIndex::build(head, &self.feed_entries)?), columns: None },
            Some(CachedFeed { index, columns }) => {
                CachedFeed { index: Arc::new(index.advance(head, &self.feed_entries)?), columns }
            }
        };
        self.cache_feed(feed, cached.clone());
        Ok(cached)
    }

    /// Caches a feed, unless a newer state of it is cached.
    fn cache_feed(&self, feed: FeedId, cached: CachedFeed) {
        let newest_seq = cached.index.head().newest_seq;
        if self.feed_cache.get(&feed).is_none_or(|other| other.index.head().newest_seq <= newest_seq) {
            self.feed_cache.insert(feed, cached);
        }
    }

    /// Finds a record and its `updated_at` without checking a license.
    pub fn find_record<F: RecordFields>(&self, id: Id) -> Result<Option<(Curated<F>, Timestamp)>, StoreError> {
        Ok(find_record(&self.records, &self.log, id)?.map(|row: RecordRow<F>| (row.record, row.updated_at)))
    }

    /// Calls `each` with all records of a dataset, in the order of ids.
    pub fn for_each_record<F: RecordFields, E: From<StoreError>>(
        &self,
        mut each: impl FnMut(Curated<F>, Timestamp, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        for_each_record(&self.records, &self.log, |row: RecordRow<F>| each(row.record, row.updated_at, row.seq))
    }

    /// The witness of a license in a dataset: the newest entry or the scope change, whichever is later.
    /// `seq` is the seq of that entry or change, not the last one of its commit.
    pub(crate) fn witness(&self, license: &License, dataset: Dataset) -> Result<CommitPoint, StoreError> {
        if let Some(witness) = self.known_witness(license, dataset) {
            return Ok(witness);
        }
        let seq = self.witness_seq(license, dataset)?;
        Ok(CommitPoint { seq, ..self.commit_of(seq)? })
    }

    /// The witness, if it could be read when the state was opened.
    pub(crate) fn known_witness(&self, license: &License, dataset: Dataset) -> Option<CommitPoint> {
        self.licenses.get(&license.id).and_then(|licensed| licensed.witnesses[dataset])
    }

    fn witness_seq(&self, license: &License, dataset: Dataset) -> Result<u64, StoreError> {
        let newest_seq =
            license.feed(dataset).map_or(Ok(0), |feed| self.feed_head(feed).map(|head| head.newest_seq))?;
        Ok(newest_seq.max(license.scope_seq))
    }

    pub(crate) fn feed_of(license: &License, dataset: Dataset) -> Result<FeedId, StoreError> {
        let detail = || format!("license `{}` shows {dataset}, but has no feed of it", license.name);
        license.feed(dataset).ok_or_else(|| StoreError::damaged("licenses", detail()))
    }

    /// A license's entries in a dataset. Includes the baseline only if entries after `seq` may be in it.
    pub(crate) fn entries(&self, license: &License, dataset: Dataset, seq: u64) -> Result<LicenseEntries, StoreError> {
        let shared = self.feed_index(Snapshot::feed_of(license, dataset)?)?;
        let (joined_at, baseline) = license.subscriptions[dataset]
            .map_or((0, None), |subscription| (subscription.joined_at, Some(subscription.baseline)));
        let baseline = baseline.filter(|_| seq < joined_at).map(|baseline| self.feed_index(baseline)).transpose()?;
        Ok(LicenseEntries { shared, joined_at, baseline })
    }

    /// The entry of a record, if the license shows the record.
    pub(crate) fn find_live(
        &self,
        license: &License,
        dataset: Dataset,
        id: Id,
    ) -> Result<Option<FeedEntry>, StoreError> {
        let feed = Snapshot::feed_of(license, dataset)?;
        if let Some(cached) = self.cached_feed(feed)? {
            return Ok(cached.index.find(id).filter(|entry| entry.is_live()).copied());
        }
        if let Some(found) = self.feed_records.get((feed.0, id.get()))? {
            let (seq, log_seq) = found.value();
            let entry = FeedEntry::of_row("feed_records", seq, id.get(), log_seq)?;
            if entry.is_live() {
                return Ok(Some(entry));
            }
        }
        // The table may have lost a row. The index is compared with the feed's head, so it decides.
        Ok(self.feed_index(feed)?.find(id).filter(|entry| entry.is_live()).copied())
    }

    pub(crate) fn columns_of(&self, license: &License, dataset: Dataset) -> Result<Arc<Columns>, StoreError> {
        self.feed_columns(Snapshot::feed_of(license, dataset)?)
    }

    /// The JSON of rows of `log`.
    pub(crate) fn record_json(&self, dataset: Dataset, refs: &[LogRef]) -> Result<Vec<RecordJson>, StoreError> {
        if let Some(beyond) = refs.iter().find(|log_ref| log_ref.seq > self.commit.seq) {
            let detail = format!("{dataset} {} has seq {}, beyond the last commit", beyond.id, beyond.seq);
            return Err(StoreError::damaged("feed_records", detail));
        }
        record_cache::read(&self.record_cache, &self.log, dataset, refs)
    }

    /// The cached JSON of records.
    pub fn record_cache(&self) -> &Arc<RecordCache> {
        &self.record_cache
    }

    /// The cached feeds.
    pub fn feed_cache(&self) -> &Arc<FeedCache> {
        &self.feed_cache
    }

    /// Fills the caches in advance, newest records first, while there is room and `should_continue` returns true.
    pub fn warm(&self, should_continue: &dyn Fn() -> bool) -> Result<(), StoreError> {
        let mut feeds: Vec<FeedId> = self.licenses.values().flat_map(|licensed| licensed.license.feeds()).collect();
        feeds.sort_unstable();
        feeds.dedup();
        for feed in feeds {
            // Leave a quarter free for requests.
            if !should_continue() || self.feed_cache.weight() > self.feed_cache.capacity() / 4 * 3 {
                break;
            }
            match self.feed_columns(feed) {
                // Requests that need the damaged feed report it.
                Ok(_) | Err(StoreError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        for dataset in Dataset::ALL {
            record_cache::warm(&self.record_cache, &self.log, dataset, self.commit.seq, should_continue)?;
        }
        Ok(())
    }

    /// The commit that contains a seq.
    pub(crate) fn commit_of(&self, seq: u64) -> Result<CommitPoint, StoreError> {
        let entry = self.commits.range(seq..)?.next();
        let none = || StoreError::damaged("commits", format!("no commit contains seq {seq}"));
        let (last, bytes) = entry.ok_or_else(none)??;
        let row = unseal_commit(last.value(), bytes.value())?;
        if row.first_seq > seq {
            let detail = format!("no commit contains seq {seq}, the next one begins at {}", row.first_seq);
            return Err(StoreError::damaged("commits", detail));
        }
        Ok(CommitPoint { seq: row.last_seq, time: row.time, lineage: row.lineage })
    }

    pub(crate) fn holds(&self, seq: u64, lineage: &[u8; 16]) -> Result<bool, StoreError> {
        if seq == 0 {
            return Ok(*lineage == CommitPoint::EMPTY.lineage);
        }
        Ok(seq <= self.commit.seq && self.commit_of(seq)?.lineage == *lineage)
    }

    /// The last seq before an instant. Later changes have larger seqs.
    pub(crate) fn seq_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        // A binary search over seqs, because commit times never decrease.
        let (mut low, mut high) = (0, self.commit.seq);
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

pub(in crate::store) fn last_commit(
    commits: &impl ReadableTable<u64, &'static [u8]>,
) -> Result<Option<(CommitPoint, StoredCommit)>, StoreError> {
    match commits.last()? {
        None => Ok(None),
        Some((seq, bytes)) => {
            let row = unseal_commit(seq.value(), bytes.value())?;
            Ok(Some((CommitPoint { seq: seq.value(), time: row.time, lineage: row.lineage }, row)))
        }
    }
}

/// The last commit, or the point before all commits.
pub(in crate::store) fn last_point(
    commits: &impl ReadableTable<u64, &'static [u8]>,
) -> Result<CommitPoint, StoreError> {
    Ok(last_commit(commits)?.map_or(CommitPoint::EMPTY, |(point, _)| point))
}

fn dataset_states(row: &StoredCommit) -> PerDataset<DatasetTotals> {
    PerDataset::of(|dataset| DatasetTotals { records: row.records[dataset], last_change_at: row.changed_at[dataset] })
}
