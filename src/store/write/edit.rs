//! A command's transaction, from taking the writer's lock to the commit. And the batch of rows that an import commits.

use std::collections::{BTreeMap, BTreeSet};

use redb::{ReadableTable, ReadableTableMetadata};

use crate::model::{
    Conference, Curated, Dataset, Id, Journal, License, Organization, RecordFields, ReferenceKind,
    References, Tag, Timestamp, now,
};
use crate::store::Result;
use crate::store::error::opaque_debug;
use crate::store::file::notes::current_user;
use crate::store::file::open::Writer;
use crate::store::file::publication::CommitPublication;
use crate::store::format::rows::{
    CommitPoint, ImportCounts, StoredCommit, TableCounts, find_linked, last_commit,
    load_record_ids, load_references, load_rows, seal,
};
use crate::store::format::tables::{
    COMMITS, FEEDS, KEYS, LICENSES, ORGANIZATIONS, TAGS, keys_from,
};
use crate::store::read::snapshot::Snapshot;
use crate::store::write_tx::WriteTx;

/// A transaction. All its changes become visible together, by [`Edit::commit`], or not at all.
pub struct Edit<'w> {
    writer: &'w Writer,
    pub(crate) tx: WriteTx,
    /// Records the changes if the database is published.
    publication: Option<CommitPublication>,
    /// All organizations and tags, with the changes of this edit.
    pub references: References,
    pub(crate) licenses: Vec<License>,
    pub(super) began_at: Timestamp,
    base: CommitPoint,
    /// The row of the new commit. Its time is the clock's, or the last commit's if that is later. So times never
    /// decrease.
    pub(crate) commit: StoredCommit,
    pub(crate) references_changed: bool,
}

impl Writer {
    /// Begins the transaction. Dropping it without a commit changes nothing.
    pub fn begin(&self) -> Result<Edit<'_>> {
        self.begin_at(now())
    }

    /// Begins the transaction as if the clock showed `began_at`.
    pub fn begin_at(&self, began_at: Timestamp) -> Result<Edit<'_>> {
        let mut tx = WriteTx::new(self.begin_raw()?);
        let last = last_commit(&*tx.open(COMMITS)?)?;
        let base = last.point();
        let references = load_references(&*tx.open(ORGANIZATIONS)?, &*tx.open(TAGS)?)?;
        let mut licenses: Vec<License> = load_rows("licenses", &*tx.open(LICENSES)?)?;
        licenses.sort_by(|one, other| one.name.cmp(&other.name));
        let publication = CommitPublication::begin(self, &mut tx, base.head())?;
        Ok(Edit {
            writer: self,
            tx,
            publication,
            references,
            licenses,
            began_at,
            base,
            commit: StoredCommit {
                time: began_at.max(last.time),
                first_seq: last.last_seq + 1,
                who: current_user(),
                what: String::new(),
                imported: None,
                note: None,
                ..last
            },
            references_changed: false,
        })
    }
}

impl Edit<'_> {
    /// The commit that the edit started from.
    pub fn base_commit(&self) -> CommitPoint {
        self.base
    }

    /// Whether there are no changes so far.
    pub fn is_empty(&self) -> bool {
        self.commit.last_seq < self.commit.first_seq
    }

    /// Whether the commit creates the file of the database.
    pub fn creates_file(&self) -> bool {
        self.writer.is_unnamed()
    }

    /// The seconds by which the clock is behind the last commit, else 0. The new commit then gets the time of the last
    /// one.
    pub fn clock_behind_s(&self) -> i64 {
        self.commit.time.unix_s() - self.began_at.unix_s()
    }

    /// Sets the description for the history. Very long texts are cut.
    pub fn describe(&mut self, what: impl Into<String>) {
        const MAX_CHARS: usize = 1_000;
        self.commit.what = what.into().chars().take(MAX_CHARS).collect();
    }

    /// Sets the user's note for the history.
    pub fn set_note(&mut self, note: Option<String>) {
        self.commit.note = note;
    }

    pub(crate) fn take_seq(&mut self) -> u64 {
        self.commit.last_seq += 1;
        self.commit.last_seq
    }

    /// Finds a license by its name.
    pub fn find_license(&self, name: &str) -> Option<&License> {
        self.licenses.iter().find(|license| license.name == name)
    }

    /// Makes the changes durable and visible, if there are any. Fails if another file replaced this one.
    pub fn commit(mut self) -> Result<()> {
        if self.is_empty() {
            self.tx.abort()?;
            return self.writer.persist();
        }
        let row = &mut self.commit;
        getrandom::fill(&mut row.lineage)?;
        if self.references_changed {
            row.references_seq = row.last_seq;
        }
        row.counts = TableCounts {
            organizations: self.tx.open(ORGANIZATIONS)?.len()?,
            tags: self.tx.open(TAGS)?.len()?,
            licenses: self.tx.open(LICENSES)?.len()?,
            keys: self.tx.open(KEYS)?.len()?,
            feeds: self.tx.open(FEEDS)?.len()?,
        };
        self.tx
            .open(COMMITS)?
            .insert(row.last_seq, seal(row)?.as_slice())?;
        if let Some(publication) = self.publication {
            publication.finish(&mut self.tx, row)?;
        }
        self.writer.check_not_replaced()?;
        self.tx.commit()?;
        self.writer.check_not_replaced()?;
        self.writer.persist()
    }

    /// The state of the last commit, which the edit started from.
    pub fn base(&self) -> Result<Snapshot> {
        self.writer.snapshot()
    }
}

/// The rows that one commit writes, by id; `None` removes a row. Rows equal to the stored ones change nothing.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "the four kinds of rows")]
pub struct Batch {
    pub organizations: BTreeMap<Id, Option<Organization>>,
    pub tags: BTreeMap<Id, Option<Tag>>,
    pub conferences: BTreeMap<Id, Option<Conference>>,
    pub journals: BTreeMap<Id, Option<Journal>>,
}

/// The numbers of records that enter, leave or change in one license and one dataset, by a commit.
#[derive(Clone, serde::Serialize)]
pub struct LicenseEffect {
    /// The name of the license.
    pub license: String,
    /// The dataset.
    pub dataset: Dataset,
    /// Records that it shows from now on.
    pub entering: u64,
    /// Records that it shows as before, with another content.
    pub changed: u64,
    /// Records that it no longer shows.
    pub leaving: u64,
}

impl LicenseEffect {
    pub(super) fn none(license: String, dataset: Dataset) -> LicenseEffect {
        LicenseEffect {
            license,
            dataset,
            entering: 0,
            changed: 0,
            leaving: 0,
        }
    }
}

/// The effects of a batch on rows and licenses.
#[derive(Default)]
pub struct BatchOutcome {
    /// The numbers of rows.
    pub rows: ImportCounts,
    /// The effect on each license in each changed dataset.
    pub licenses: Vec<LicenseEffect>,
}

impl Snapshot {
    /// Finds the content of a record.
    pub fn find_stored<F: RecordFields>(&self, id: Id) -> Result<Option<Curated<F>>> {
        Ok(self.find_record::<F>(id)?.map(|(record, _)| record))
    }

    /// The ids of all records of a dataset.
    pub fn record_ids(&self, dataset: Dataset) -> Result<BTreeSet<Id>> {
        load_record_ids(&self.records, dataset)
    }

    /// The largest id of a record, including removed records that a license has shown.
    pub fn largest_id(&self, dataset: Dataset) -> Result<Option<Id>> {
        let mut records = self.records.range(keys_from(dataset.code(), 0))?;
        let last = records.next_back().transpose()?;
        let mut largest = last.map_or(0, |(key, _)| key.value().1);
        // Tombstones contain the ids of removed records. These ids must not be used again.
        for sum in self.feeds.values().filter(|sum| sum.dataset == dataset) {
            let mut entries = self.feed_records.range(keys_from(sum.feed.0, 0))?;
            let last = entries.next_back().transpose()?;
            largest = largest.max(last.map_or(0, |(key, _)| key.value().1));
        }
        Ok(Id::try_from(largest).ok())
    }

    /// The records that link to an organization or tag.
    pub fn linked_records(&self, kind: ReferenceKind, id: Id) -> Result<Vec<(Dataset, Id)>> {
        find_linked(&self.links, kind, id)
    }
}

opaque_debug!(Edit<'_>);
