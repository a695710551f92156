//! One committed state of the database, with its tables open: what every answer is made from.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use redb::{ReadOnlyTable, ReadTransaction, ReadableTable};

use super::StoreError;
use super::bodies::{Bodies, Log, Texts, Wanted};
use super::codec::{CommitRow, RecordRow, unseal};
use super::columns::{Columns, Shown};
use super::entries::{Entries, EntryTables};
use super::load::{load_references, load_rows, read_id};
use super::tables;
use crate::model::{
    Curated, Dataset, Id, KeyHash, KeyRecord, License, LicenseId, Organization, RecordFields, References, Tag,
    Timestamp,
};

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
}

/// What `/v1/status` says of a dataset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatasetState {
    /// How many records it holds.
    pub records: u64,
    /// When its content last changed.
    pub last_change_at: Option<Timestamp>,
}

/// What the bits of all licenses' visible rows may take in memory; beyond it they are made for each request.
const SHOWN_BYTES_MOST: usize = 64 << 20;

/// A license, with what answers ask of it time and again.
struct Licensed {
    license: Arc<License>,
    /// The newest entry of its feed or its scope change, per dataset.
    witnesses: [OnceLock<CommitPoint>; 2],
    shown: [OnceLock<Arc<Shown>>; 2],
}

type Table<K, V> = ReadOnlyTable<K, V>;

/// One committed state. Cheap to share, valid as long as it lives; it pins the pages of its state in the file, so it
/// must not outlive an answer's making.
pub struct Snapshot {
    commit: CommitPoint,
    datasets: [DatasetState; 2],
    /// When organizations and tags were changed last.
    references_seq: u64,
    secret: [u8; 32],
    licenses: HashMap<LicenseId, Licensed>,
    keys: HashMap<KeyHash, Arc<KeyRecord>>,
    references: OnceLock<Arc<References>>,
    columns: [OnceLock<Arc<Columns>>; 2],
    /// Held while columns are built, so that many who wait for them build them once.
    building: Mutex<()>,
    shown_bytes: AtomicUsize,
    bodies: Arc<Bodies>,
    commits: Table<u64, &'static [u8]>,
    removals: Table<(u8, u64), u64>,
    records: Table<(u8, u64), &'static [u8]>,
    organizations: Table<u64, &'static [u8]>,
    tags: Table<u64, &'static [u8]>,
    log: Log,
    entries: EntryTables,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("commit", &self.commit).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// The last commit that a transaction sees.
    pub(super) fn peek(transaction: &ReadTransaction) -> Result<CommitPoint, StoreError> {
        Ok(last_commit(&transaction.open_table(tables::COMMITS)?)?.map_or(CommitPoint::EMPTY, |(point, _)| point))
    }

    /// Opens the state that a transaction sees.
    pub(super) fn open(transaction: &ReadTransaction) -> Result<Snapshot, StoreError> {
        Snapshot::open_with(transaction, Arc::default())
    }

    fn open_with(transaction: &ReadTransaction, bodies: Arc<Bodies>) -> Result<Snapshot, StoreError> {
        let commits = transaction.open_table(tables::COMMITS)?;
        let (commit, datasets, references_seq) = match last_commit(&commits)? {
            None => (CommitPoint::EMPTY, [DatasetState::default(); 2], 0),
            Some((point, row)) => (point, dataset_states(&row), row.references_seq),
        };
        let mut licenses = HashMap::new();
        for entry in transaction.open_table(tables::LICENSES)?.iter()? {
            let license: License = unseal("licenses", entry?.1.value())?;
            let (witnesses, shown) = Default::default();
            licenses.insert(license.id, Licensed { license: Arc::new(license), witnesses, shown });
        }
        let mut keys = HashMap::new();
        for entry in transaction.open_table(tables::KEYS)?.iter()? {
            let (hash, row) = entry?;
            keys.insert(KeyHash(hash.value()), Arc::new(unseal("keys", row.value())?));
        }
        let secret = match transaction.open_table(tables::META)?.get(tables::META_SECRET)? {
            Some(secret) => secret.value().try_into().map_err(|_| damaged_secret())?,
            None => return Err(damaged_secret()),
        };
        Ok(Snapshot {
            commit,
            datasets,
            references_seq,
            secret,
            licenses,
            keys,
            references: OnceLock::new(),
            columns: [OnceLock::new(), OnceLock::new()],
            building: Mutex::new(()),
            shown_bytes: AtomicUsize::new(0),
            bodies,
            commits,
            removals: transaction.open_table(tables::REMOVALS)?,
            records: transaction.open_table(tables::RECORDS)?,
            organizations: transaction.open_table(tables::ORGANIZATIONS)?,
            tags: transaction.open_table(tables::TAGS)?,
            log: transaction.open_table(tables::LOG)?,
            entries: EntryTables {
                feed: transaction.open_table(tables::FEED)?,
                feed_records: transaction.open_table(tables::FEED_RECORDS)?,
                license_feed: transaction.open_table(tables::LICENSE_FEED)?,
                license_records: transaction.open_table(tables::LICENSE_RECORDS)?,
            },
        })
    }

    /// Opens a newer state. What is in memory is brought forward, if the new state's history holds the earlier one.
    pub(super) fn open_after(earlier: &Snapshot, transaction: &ReadTransaction) -> Result<Snapshot, StoreError> {
        let newer = Snapshot::open_with(transaction, Arc::clone(&earlier.bodies))?;
        let since = earlier.commit.seq;
        if !newer.holds(since, &earlier.commit.lineage)? {
            // After a rollback the same seqs come again, with other rows.
            let bodies = Arc::<Bodies>::default();
            bodies.limit_to(earlier.bodies.most_bytes());
            return Ok(Snapshot { bodies, ..newer });
        }
        if let Some(references) = earlier.references.get()
            && newer.references_seq == earlier.references_seq
        {
            let _ = newer.references.set(Arc::clone(references));
        }
        for dataset in Dataset::ALL {
            let place = dataset.index();
            if let Some(columns) = earlier.columns[place].get() {
                let mut changed = newer.removed_after(dataset, since)?;
                changed.extend(newer.changed_after(dataset, since)?);
                let (forward, retired) = columns.brought_forward(&newer, dataset, changed)?;
                newer.bodies.retire(dataset, retired.into_iter());
                let _ = newer.columns[place].set(Arc::new(forward));
            }
        }
        Ok(newer)
    }

    /// The last commit of this state.
    pub fn commit(&self) -> CommitPoint {
        self.commit
    }

    /// What `/v1/status` says of a dataset.
    pub fn dataset_state(&self, dataset: Dataset) -> DatasetState {
        self.datasets[dataset.index()]
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
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn references(&self) -> Result<&Arc<References>, StoreError> {
        if let Some(references) = self.references.get() {
            return Ok(references);
        }
        let loaded = Arc::new(load_references(&self.organizations, &self.tags)?);
        Ok(self.references.get_or_init(|| loaded))
    }

    /// Whether what filters run over is there, so that no request has to wait for it.
    pub(crate) fn has_columns(&self, dataset: Dataset) -> bool {
        self.columns[dataset.index()].get().is_some()
    }

    /// Whether a license's witness is in memory.
    pub(crate) fn has_witness(&self, license: &License, dataset: Dataset) -> bool {
        let kept = self.licenses.get(&license.id).map(|licensed| &licensed.witnesses[dataset.index()]);
        kept.and_then(OnceLock::get).is_some()
    }

    /// What filters run over, built at the first call.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn columns(&self, dataset: Dataset) -> Result<&Arc<Columns>, StoreError> {
        let place = &self.columns[dataset.index()];
        if let Some(columns) = place.get() {
            return Ok(columns);
        }
        let _building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(columns) = place.get() {
            return Ok(columns);
        }
        let built = Arc::new(Columns::build(self, dataset)?);
        Ok(place.get_or_init(|| built))
    }

    /// The rows of the columns that a license shows.
    pub(crate) fn shown(&self, license: &License, dataset: Dataset) -> Result<Arc<Shown>, StoreError> {
        let place = dataset.index();
        let kept = self.licenses.get(&license.id).map(|licensed| &licensed.shown[place]);
        if let Some(shown) = kept.and_then(OnceLock::get) {
            return Ok(Arc::clone(shown));
        }
        let shown = Arc::new(self.columns(dataset)?.shown(&license.scope, dataset));
        match kept {
            Some(kept) if self.shown_bytes.fetch_add(shown.bytes(), Ordering::Relaxed) < SHOWN_BYTES_MOST => {
                Ok(Arc::clone(kept.get_or_init(|| shown)))
            }
            _ => Ok(shown),
        }
    }

    /// A curated record with its `updated_at`, whatever any license shows: for commands and columns, not for answers.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn find_record<F: RecordFields>(&self, id: Id) -> Result<Option<(Curated<F>, Timestamp)>, StoreError> {
        Ok(self.find_row(id)?.map(|row: RecordRow<F>| (row.record, row.updated_at)))
    }

    /// A record's row.
    pub(super) fn find_row<F: RecordFields>(&self, id: Id) -> Result<Option<RecordRow<F>>, StoreError> {
        let found = self.records.get((F::DATASET.code(), id.get()))?;
        found.map(|bytes| unseal("records", bytes.value())).transpose()
    }

    /// Calls `each` with every curated record of a dataset, in the order of their ids.
    ///
    /// # Errors
    /// When the database cannot be read, and what `each` returns.
    pub fn for_each_record<F: RecordFields, E: From<StoreError>>(
        &self,
        mut each: impl FnMut(Curated<F>, Timestamp, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let code = F::DATASET.code();
        for entry in self.records.range((code, 0)..=(code, u64::MAX)).map_err(StoreError::from)? {
            let (_, bytes) = entry.map_err(StoreError::from)?;
            let row: RecordRow<F> = unseal("records", bytes.value())?;
            each(row.record, row.updated_at, row.seq)?;
        }
        Ok(())
    }

    /// The commit of the newest entry in a license's feed, or of its scope change if that is later; with the seq of that
    /// entry or change.
    pub(crate) fn witness(&self, license: &License, dataset: Dataset) -> Result<CommitPoint, StoreError> {
        let kept = self.licenses.get(&license.id).map(|licensed| &licensed.witnesses[dataset.index()]);
        if let Some(witness) = kept.and_then(OnceLock::get) {
            return Ok(*witness);
        }
        let seq = self.entries(license, dataset).newest_seq()?.max(license.scope_seq);
        let commit = self.commit_of(seq)?;
        let commit = commit
            .ok_or_else(|| StoreError::Damaged { table: "commits", detail: format!("no commit holds seq {seq}") })?;
        let witness = CommitPoint { seq, ..commit };
        Ok(kept.map_or(witness, |kept| *kept.get_or_init(|| witness)))
    }

    /// A license's entries in a dataset.
    pub(crate) fn entries(&self, license: &License, dataset: Dataset) -> Entries<'_> {
        self.entries.of(license, dataset)
    }

    /// The finished JSON of rows of the log.
    pub(crate) fn texts(&self, dataset: Dataset, wanted: &[Wanted]) -> Result<Texts, StoreError> {
        self.bodies.texts(&self.log, dataset, wanted)
    }

    /// The finished JSON that is in memory.
    pub fn bodies(&self) -> &Arc<Bodies> {
        &self.bodies
    }

    /// Reads what requests will ask for while there is room, newest first, as long as `go_on` says so.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn warm(&self, go_on: &dyn Fn() -> bool) -> Result<(), StoreError> {
        for dataset in Dataset::ALL {
            self.columns(dataset)?;
        }
        for dataset in Dataset::ALL {
            self.bodies.warm(&self.log, dataset, self.commit.seq, go_on)?;
        }
        Ok(())
    }

    /// The ids of records whose `log` row stands after a seq.
    pub(super) fn changed_after(&self, dataset: Dataset, after: u64) -> Result<Vec<Id>, StoreError> {
        let code = dataset.code();
        let range = (Bound::Excluded((code, after)), Bound::Included((code, u64::MAX)));
        let rows = self.log.range(range)?;
        rows.map(|entry| read_id("log", entry?.1.value().0)).collect()
    }

    /// The ids of records that commits after a seq removed.
    pub(super) fn removed_after(&self, dataset: Dataset, after: u64) -> Result<Vec<Id>, StoreError> {
        let code = dataset.code();
        let range = (Bound::Excluded((code, after)), Bound::Included((code, u64::MAX)));
        self.removals.range(range)?.map(|entry| read_id("removals", entry?.1.value())).collect()
    }

    /// The commit that took a seq; `None` beyond the last one.
    pub(crate) fn commit_of(&self, seq: u64) -> Result<Option<CommitPoint>, StoreError> {
        match self.commits.range(seq..)?.next() {
            None => Ok(None),
            Some(entry) => {
                let (last, bytes) = entry?;
                let row: CommitRow = unseal("commits", bytes.value())?;
                Ok(Some(CommitPoint { seq: last.value(), time: row.time, lineage: row.lineage }))
            }
        }
    }

    /// Whether the commit of a seq is part of this history.
    pub(crate) fn holds(&self, seq: u64, lineage: &[u8; 16]) -> Result<bool, StoreError> {
        if seq == 0 {
            return Ok(*lineage == CommitPoint::EMPTY.lineage);
        }
        Ok(self.commit_of(seq)?.is_some_and(|commit| commit.lineage == *lineage))
    }

    /// The last seq of the commits before an instant: what changed at or after it has a larger one.
    pub(crate) fn seq_before(&self, time: Timestamp) -> Result<u64, StoreError> {
        // Times do not descend along the commits, so the first late one is found by halving the seqs.
        let (mut low, mut high) = (0, self.commit.seq);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.commit_of(middle + 1)? {
                Some(commit) if commit.time < time => low = commit.seq,
                _ => high = middle,
            }
        }
        Ok(low)
    }
}

fn damaged_secret() -> StoreError {
    StoreError::Damaged { table: "meta", detail: "the token secret is missing".to_owned() }
}

/// The last commit, with its row.
pub(super) fn last_commit(
    commits: &impl ReadableTable<u64, &'static [u8]>,
) -> Result<Option<(CommitPoint, CommitRow)>, StoreError> {
    match commits.last()? {
        None => Ok(None),
        Some((seq, bytes)) => {
            let row: CommitRow = unseal("commits", bytes.value())?;
            Ok(Some((CommitPoint { seq: seq.value(), time: row.time, lineage: row.lineage }, row)))
        }
    }
}

fn dataset_states(row: &CommitRow) -> [DatasetState; 2] {
    Dataset::ALL.map(|dataset| DatasetState {
        records: row.records[dataset.index()],
        last_change_at: row.changed_at[dataset.index()],
    })
}

/// The rows that `export` writes besides the records.
impl Snapshot {
    /// All organizations, by id.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list_organizations(&self) -> Result<Vec<Organization>, StoreError> {
        load_rows("organizations", &self.organizations)
    }

    /// All tags, by id.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list_tags(&self) -> Result<Vec<Tag>, StoreError> {
        load_rows("tags", &self.tags)
    }
}
