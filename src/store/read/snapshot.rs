//! One committed state of the database, with its tables open: what every answer is made from.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable};

use crate::model::{
    Curated, Dataset, FeedId, Head, Id, KeyHash, KeyRecord, License, LicenseId, PerDataset, RecordFields, References,
    Timestamp,
};
use crate::store::StoreError;
use crate::store::format::codec::{CommitRow, RecordRow, TableCounts, expect_count, unseal, unseal_commit};
use crate::store::format::feed::{FeedEntry, FeedHead};
use crate::store::format::names::{ContentState, NamesTables, RecordsState};
use crate::store::format::rows::{find_record, for_each_record, load_references};
use crate::store::format::tables;
use crate::store::panics;
use crate::store::read::cache::new_cache;
use crate::store::read::columns::Columns;
use crate::store::read::entries::LicenseEntries;
use crate::store::read::feed_cache::{self, CachedFeed, FeedCache};
use crate::store::read::feed_index::FeedIndex;
use crate::store::read::record_cache::{self, LogRef, LogTable, RecordCache, RecordJson};

/// Where a commit stands in the history of its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitPoint {
    /// Its last seq; 0 before the first commit.
    pub seq: u64,
    /// When its writing began.
    pub time: Timestamp,
    /// The random value that tells it from a commit of another history.
    pub lineage: [u8; 16],
}

impl CommitPoint {
    /// The state of a database without commits.
    pub const EMPTY: CommitPoint = CommitPoint { seq: 0, time: Timestamp::EPOCH, lineage: [0; 16] };

    /// What tells the commit from all others.
    pub fn head(&self) -> Head {
        Head { seq: self.seq, lineage: self.lineage }
    }
}

/// What `/v1/status` says of a dataset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatasetState {
    /// How many records it holds.
    pub records: u64,
    /// When its content last changed.
    pub last_change_at: Option<Timestamp>,
}

/// A license with its witnesses, which every answer asks for.
struct LicenseWithWitnesses {
    license: Arc<License>,
    /// The newest entry of its feed or its scope change, per dataset; `None` where that cannot be read.
    witnesses: PerDataset<Option<CommitPoint>>,
}

/// One committed state. Cheap to share, valid as long as it lives; it pins the pages of its state in the file, so it
/// must not outlive an answer's making.
pub struct Snapshot {
    commit: CommitPoint,
    datasets: PerDataset<DatasetState>,
    /// When organizations and tags were changed last.
    references_seq: u64,
    secret: [u8; 32],
    licenses: HashMap<LicenseId, LicenseWithWitnesses>,
    keys: HashMap<KeyHash, Arc<KeyRecord>>,
    /// What is sealed of each feed.
    pub(in crate::store) feeds: HashMap<FeedId, FeedHead>,
    /// How many rows other tables hold.
    counts: TableCounts,
    references: OnceLock<Arc<References>>,
    feed_cache: Arc<FeedCache>,
    /// Held while a feed is read into memory, so that many who wait for it read it once.
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
    /// The index of names, if there is one.
    pub(in crate::store) names: Option<NamesTables>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("commit", &self.commit).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// The last commit that a transaction sees.
    pub(in crate::store) fn peek(transaction: &ReadTransaction) -> Result<CommitPoint, StoreError> {
        Ok(last_commit(&transaction.open_table(tables::COMMITS)?)?.map_or(CommitPoint::EMPTY, |(point, _)| point))
    }

    /// Opens the state that a transaction sees.
    pub(in crate::store) fn open(transaction: &ReadTransaction) -> Result<Snapshot, StoreError> {
        Snapshot::open_with(transaction, None)
    }

    /// Opens the state that a transaction sees, with what an earlier one has in memory.
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
            keys.insert(KeyHash(hash.value()), Arc::new(unseal("keys", row.value())?));
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
        let meta = transaction.open_table(tables::META)?;
        let secret = meta.get(tables::META_SECRET)?.and_then(|secret| secret.value().try_into().ok());
        let secret = secret.ok_or_else(|| StoreError::damaged("meta", "the token secret is missing"))?;
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
            names: NamesTables::open(transaction)?,
        })
    }

    /// Opens a newer state. What is in memory stays, if the new state's history holds the earlier one; it is advanced when
    /// it is asked for.
    pub(in crate::store) fn open_after(
        earlier: &Snapshot,
        transaction: &ReadTransaction,
    ) -> Result<Snapshot, StoreError> {
        let newer = Snapshot::open_with(transaction, Some(earlier))?;
        if !newer.holds(earlier.commit.seq, &earlier.commit.lineage)? {
            // After a rollback the same seqs come again, with other rows.
            let record_cache = Arc::new(new_cache(earlier.record_cache.capacity()));
            let feed_cache = Arc::new(new_cache(earlier.feed_cache.capacity()));
            return Ok(Snapshot { record_cache, feed_cache, ..newer }.with_witnesses());
        }
        if let Some(references) = earlier.references.get()
            && newer.references_seq == earlier.references_seq
        {
            let _ = newer.references.set(Arc::clone(references));
        }
        Ok(newer.with_witnesses())
    }

    /// Finds what answers rest on, so that nobody has to wait for it. What cannot be read is told to those who ask for it.
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

    /// What `/v1/status` says of a dataset.
    pub fn dataset_state(&self, dataset: Dataset) -> DatasetState {
        self.datasets[dataset]
    }

    /// The secret that tokens and cursors are sealed with.
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// A license by its number.
    pub fn find_license(&self, id: LicenseId) -> Option<&Arc<License>> {
        self.licenses.get(&id).map(|licensed| &licensed.license)
    }

    /// A license by its name.
    pub fn find_license_named(&self, name: &str) -> Option<&Arc<License>> {
        self.licenses.values().map(|licensed| &licensed.license).find(|license| license.name == name)
    }

    /// All licenses, by name.
    pub fn list_licenses(&self) -> Vec<&Arc<License>> {
        let mut licenses: Vec<_> = self.licenses.values().map(|licensed| &licensed.license).collect();
        licenses.sort_by(|one, other| one.name.cmp(&other.name));
        licenses
    }

    /// How many records of a dataset a license sees; `None` where it is not licensed.
    pub fn visible_records(&self, license: &License, dataset: Dataset) -> Option<u64> {
        Some(self.head(license.feed(dataset)?).ok()?.live)
    }

    /// A key by its hash.
    pub fn find_key(&self, hash: &KeyHash) -> Option<&Arc<KeyRecord>> {
        self.keys.get(hash)
    }

    /// All keys, oldest first.
    pub fn list_keys(&self) -> Vec<&Arc<KeyRecord>> {
        let mut keys: Vec<_> = self.keys.values().collect();
        keys.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        keys
    }

    /// All organizations and tags, loaded at the first call.
    pub fn references(&self) -> Result<&Arc<References>, StoreError> {
        if let Some(references) = self.references.get() {
            return Ok(references);
        }
        let loaded = Arc::new(load_references(&self.organizations, &self.tags)?);
        expect_count("organizations", loaded.organizations.len(), self.counts.organizations)?;
        expect_count("tags", loaded.tags.len(), self.counts.tags)?;
        Ok(self.references.get_or_init(|| loaded))
    }

    /// Whether the columns of a license's feed are in memory.
    pub(crate) fn has_columns(&self, license: &License, dataset: Dataset) -> bool {
        let cached = license.feed(dataset).map(|feed| self.cached(feed));
        matches!(cached, Some(Ok(Some(cached))) if cached.current_columns().is_some())
    }

    /// What is sealed of a feed.
    fn head(&self, feed: FeedId) -> Result<FeedHead, StoreError> {
        let detail = || format!("there is no feed {}, which a license reads", feed.0);
        self.feeds.get(&feed).copied().ok_or_else(|| StoreError::damaged("feeds", detail()))
    }

    /// What is in memory of a feed in this very state.
    fn cached(&self, feed: FeedId) -> Result<Option<CachedFeed>, StoreError> {
        let head = self.head(feed)?;
        Ok(self.feed_cache.get(&feed).filter(|cached| *cached.index.head() == head))
    }

    /// A feed's entries, read or advanced where they are not in memory.
    fn index(&self, feed: FeedId) -> Result<Arc<FeedIndex>, StoreError> {
        if let Some(cached) = self.cached(feed)? {
            return Ok(cached.index);
        }
        let _building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        self.load(feed).map(|cached| cached.index)
    }

    /// The columns of a feed, built or advanced where they are not in memory.
    fn columns(&self, feed: FeedId) -> Result<Arc<Columns>, StoreError> {
        if let Some(columns) = self.cached(feed)?.and_then(|cached| cached.current_columns()) {
            return Ok(columns);
        }
        let _building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = self.load(feed)?;
        if let Some(columns) = cached.current_columns() {
            return Ok(columns);
        }
        let columns = Arc::new(match &cached.columns {
            Some(earlier) => earlier.advance(&self.log, &cached.index)?,
            None => Columns::build(&self.log, &cached.index)?,
        });
        self.cache(feed, CachedFeed { index: cached.index, columns: Some(Arc::clone(&columns)) });
        Ok(columns)
    }

    /// What is in memory of a feed, advanced to this state.
    fn load(&self, feed: FeedId) -> Result<CachedFeed, StoreError> {
        let head = self.head(feed)?;
        let earlier = match self.feed_cache.get(&feed) {
            Some(cached) if *cached.index.head() == head => return Ok(cached),
            // A newer state of the feed is of no use to this one.
            other => other.filter(|cached| cached.index.head().newest_seq < head.newest_seq),
        };
        let cached = match earlier {
            None => CachedFeed { index: Arc::new(FeedIndex::build(head, &self.feed_entries)?), columns: None },
            Some(CachedFeed { index, columns }) => {
                CachedFeed { index: Arc::new(index.advance(head, &self.feed_entries)?), columns }
            }
        };
        self.cache(feed, cached.clone());
        Ok(cached)
    }

    /// Caches what was read of a feed, unless that of a newer state is cached.
    fn cache(&self, feed: FeedId, cached: CachedFeed) {
        let newest_seq = cached.index.head().newest_seq;
        if self.feed_cache.get(&feed).is_none_or(|other| other.index.head().newest_seq <= newest_seq) {
            self.feed_cache.insert(feed, cached);
        }
    }

    /// A curated record with its `updated_at`, whatever any license shows: for commands and columns, not for answers.
    pub fn find_record<F: RecordFields>(&self, id: Id) -> Result<Option<(Curated<F>, Timestamp)>, StoreError> {
        Ok(find_record(&self.records, &self.log, id)?.map(|row: RecordRow<F>| (row.record, row.updated_at)))
    }

    /// Calls `each` with every curated record of a dataset, in the order of their ids.
    pub fn for_each_record<F: RecordFields, E: From<StoreError>>(
        &self,
        mut each: impl FnMut(Curated<F>, Timestamp, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        for_each_record(&self.records, &self.log, |row: RecordRow<F>| each(row.record, row.updated_at, row.seq))
    }

    /// The commit of the newest entry in a license's feed, or of its scope change if that is later; with the seq of that
    /// entry or change.
    pub(crate) fn witness(&self, license: &License, dataset: Dataset) -> Result<CommitPoint, StoreError> {
        if let Some(witness) = self.known_witness(license, dataset) {
            return Ok(witness);
        }
        let seq = self.witness_seq(license, dataset)?;
        Ok(CommitPoint { seq, ..self.commit_of(seq)? })
    }

    /// The witness without reading anything: `None` where it could not be read when the state was opened.
    pub(crate) fn known_witness(&self, license: &License, dataset: Dataset) -> Option<CommitPoint> {
        self.licenses.get(&license.id).and_then(|licensed| licensed.witnesses[dataset])
    }

    fn witness_seq(&self, license: &License, dataset: Dataset) -> Result<u64, StoreError> {
        let newest_seq = license.feed(dataset).map_or(Ok(0), |feed| self.head(feed).map(|head| head.newest_seq))?;
        Ok(newest_seq.max(license.scope_seq))
    }

    /// The feed that a license shares with others in a dataset.
    pub(crate) fn feed_of(license: &License, dataset: Dataset) -> Result<FeedId, StoreError> {
        let detail = || format!("license `{}` reads no feed of {dataset}, which it shows", license.name);
        license.feed(dataset).ok_or_else(|| StoreError::damaged("licenses", detail()))
    }

    /// A license's entries in a dataset; those of before it joined its feed only where ones after `seq` are asked for.
    pub(crate) fn entries(&self, license: &License, dataset: Dataset, seq: u64) -> Result<LicenseEntries, StoreError> {
        let shared = self.index(Snapshot::feed_of(license, dataset)?)?;
        let (joined_at, baseline) = license.subscriptions[dataset]
            .map_or((0, None), |subscription| (subscription.joined_at, Some(subscription.baseline)));
        let baseline = baseline.filter(|_| seq < joined_at).map(|baseline| self.index(baseline)).transpose()?;
        Ok(LicenseEntries { shared, joined_at, baseline })
    }

    /// The entry of a record that a license sees.
    pub(crate) fn find_live(
        &self,
        license: &License,
        dataset: Dataset,
        id: Id,
    ) -> Result<Option<FeedEntry>, StoreError> {
        let feed = Snapshot::feed_of(license, dataset)?;
        if let Some(cached) = self.cached(feed)? {
            return Ok(cached.index.find(id).filter(|entry| entry.is_live()).copied());
        }
        if let Some(found) = self.feed_records.get((feed.0, id.get()))? {
            let (seq, log_seq) = found.value();
            let entry = FeedEntry::of_row("feed_records", seq, id.get(), log_seq)?;
            if entry.is_live() {
                return Ok(Some(entry));
            }
        }
        // What a damaged index lost must not pass for a record that is not there.
        Ok(self.index(feed)?.find(id).filter(|entry| entry.is_live()).copied())
    }

    /// The columns of a license's records in a dataset.
    pub(crate) fn columns_of(&self, license: &License, dataset: Dataset) -> Result<Arc<Columns>, StoreError> {
        self.columns(Snapshot::feed_of(license, dataset)?)
    }

    /// The finished JSON of rows of `log`.
    pub(crate) fn record_json(&self, dataset: Dataset, refs: &[LogRef]) -> Result<Vec<RecordJson>, StoreError> {
        if let Some(beyond) = refs.iter().find(|log_ref| log_ref.seq > self.commit.seq) {
            let detail = format!("{dataset} {} stands at seq {}, beyond the last commit", beyond.id, beyond.seq);
            return Err(StoreError::damaged("feed_records", detail));
        }
        record_cache::read(&self.record_cache, &self.log, dataset, refs)
    }

    /// The records of this state.
    pub(in crate::store) fn records_state(&self) -> Result<RecordsState, StoreError> {
        RecordsState::read(&self.log, PerDataset::of(|dataset| self.datasets[dataset].records))
    }

    /// The records, organizations and tags of this state.
    pub fn content(&self) -> Result<ContentState, StoreError> {
        Ok(ContentState { records: self.records_state()?, references_seq: self.references_seq })
    }

    /// The records' JSON that is in memory.
    pub fn record_cache(&self) -> &Arc<RecordCache> {
        &self.record_cache
    }

    /// The feeds that are in memory.
    pub fn feed_cache(&self) -> &Arc<FeedCache> {
        &self.feed_cache
    }

    /// Reads what requests will ask for while there is room, newest first, as long as `go_on` says so.
    pub fn warm(&self, go_on: &dyn Fn() -> bool) -> Result<(), StoreError> {
        let mut feeds: Vec<FeedId> = self.licenses.values().flat_map(|licensed| licensed.license.feeds()).collect();
        feeds.sort_unstable();
        feeds.dedup();
        for feed in feeds {
            // The last quarter is left to those who ask.
            if !go_on() || self.feed_cache.weight() > self.feed_cache.capacity() / 4 * 3 {
                break;
            }
            match self.columns(feed) {
                // Whoever asks hears of it.
                Ok(_) | Err(StoreError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        for dataset in Dataset::ALL {
            record_cache::warm(&self.record_cache, &self.log, dataset, self.commit.seq, go_on)?;
        }
        Ok(())
    }

    /// The commit that took a seq.
    pub(crate) fn commit_of(&self, seq: u64) -> Result<CommitPoint, StoreError> {
        let entry = self.commits.range(seq..)?.next();
        let none = || StoreError::damaged("commits", format!("no commit holds seq {seq}"));
        let (last, bytes) = entry.ok_or_else(none)??;
        let row = unseal_commit(last.value(), bytes.value())?;
        if row.first_seq > seq {
            let detail = format!("no commit holds seq {seq}, the next one begins at {}", row.first_seq);
            return Err(StoreError::damaged("commits", detail));
        }
        Ok(CommitPoint { seq: row.last_seq, time: row.time, lineage: row.lineage })
    }

    /// Whether the commit of a seq is part of this history.
    pub(crate) fn holds(&self, seq: u64, lineage: &[u8; 16]) -> Result<bool, StoreError> {
        if seq == 0 {
            return Ok(*lineage == CommitPoint::EMPTY.lineage);
        }
        Ok(seq <= self.commit.seq && self.commit_of(seq)?.lineage == *lineage)
    }

    /// The last seq of the commits before an instant: what changed at or after it has a larger one.
    pub(crate) fn seq_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        // Times do not descend along the commits, so the first late one is found by halving the seqs.
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

/// The last commit, with its row.
pub(in crate::store) fn last_commit(
    commits: &impl ReadableTable<u64, &'static [u8]>,
) -> Result<Option<(CommitPoint, CommitRow)>, StoreError> {
    match commits.last()? {
        None => Ok(None),
        Some((seq, bytes)) => {
            let row = unseal_commit(seq.value(), bytes.value())?;
            Ok(Some((CommitPoint { seq: seq.value(), time: row.time, lineage: row.lineage }, row)))
        }
    }
}

fn dataset_states(row: &CommitRow) -> PerDataset<DatasetState> {
    PerDataset::of(|dataset| DatasetState { records: row.records[dataset], last_change_at: row.changed_at[dataset] })
}
