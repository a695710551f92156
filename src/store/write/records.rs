//! Applying a batch: rows, log rows, and entries in feeds.
//!
//! Writing shared feeds, and the baselines of licenses.
//!
//! A changed record costs one entry per shared feed, however many licenses share it. Records that a feed's licenses
//! never saw are not written to it, so they stay hidden. A baseline is written once, when its license joins a feed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::ops::Bound;

use redb::{ReadableTable, ReadableTableMetadata, TableDefinition};

use super::edit::{Batch, BatchOutcome, Edit, LicenseEffect};
use crate::model::{
    ConferenceFields, Curated, Dataset, FeedId, Id, JournalFields, PerDataset, RecordFields,
    ReferenceFields, ReferenceKind, Referenced, References, Subscription, Timestamp, json,
};
use crate::store::format::feed::{FeedEntry, FeedSum};
use crate::store::format::rows::{
    RecordRow, RowCounts, find_linked, find_record, hash, load_record_ids, seal, unseal,
};
use crate::store::format::tables::{
    FEED_ENTRIES, FEED_RECORDS, FEEDS, LINKS, LOG, ORGANIZATIONS, RECORDS, TAGS, keys_from,
};
use crate::store::write_tx::WriteTx;
use crate::store::{Result, StoreError};

/// A record that a commit adds, changes or removes. Each change takes one seq.
struct RecordChange<'b, F> {
    id: Id,
    seq: u64,
    // Boxed, because a first import has a million changes without a previous record.
    before: Option<Box<RecordRow<F>>>,
    /// The new content; `None` if the record is removed, or if only an organization or tag that it links to changes.
    written: Option<&'b Curated<F>>,
    is_removed: bool,
    updated_at: Timestamp,
}

impl<F> RecordChange<'_, F> {
    fn before(&self) -> Option<&Curated<F>> {
        self.before.as_ref().map(|row| &row.record)
    }

    fn after(&self) -> Option<&Curated<F>> {
        if self.is_removed {
            None
        } else {
            self.written.or_else(|| self.before())
        }
    }
}

/// The number of records that are rendered at once, in memory.
const RENDERED_AT_ONCE: usize = 10_000;

impl Edit<'_> {
    /// Applies a batch. Rows equal to the stored ones change nothing. A changed organization or tag changes all records
    /// that link to it. The changed records get seqs in the order of (dataset, id). After an error, the edit must be
    /// dropped.
    pub fn apply(&mut self, batch: &Batch) -> Result<BatchOutcome> {
        let mut outcome = BatchOutcome::default();
        let mut touched = PerDataset::<BTreeSet<Id>>::default();
        let mut changed = Vec::new();
        outcome.rows.organizations = self.apply_references(
            ORGANIZATIONS,
            |all| &mut all.organizations,
            &batch.organizations,
            &mut changed,
        )?;
        outcome.rows.tags =
            self.apply_references(TAGS, |all| &mut all.tags, &batch.tags, &mut changed)?;
        for (kind, id) in changed {
            for (dataset, record) in find_linked(&*self.tx.open(LINKS)?, kind, id)? {
                touched[dataset].insert(record);
            }
        }
        let last_seq = self.commit.last_seq;
        self.apply_records(&batch.conferences, &touched.conferences, &mut outcome)?;
        self.apply_records(&batch.journals, &touched.journals, &mut outcome)?;
        let references_changed = [outcome.rows.organizations, outcome.rows.tags]
            .iter()
            .any(|counts| counts.differing() > 0);
        self.references_changed |= references_changed;
        if self.commit.last_seq == last_seq && references_changed {
            // No record shows the change, but every commit needs a seq.
            self.take_seq();
        }
        self.commit.imported = Some(outcome.rows);
        Ok(outcome)
    }

    fn apply_references<F: ReferenceFields>(
        &mut self,
        table: TableDefinition<'static, u64, &'static [u8]>,
        stored: fn(&mut References) -> &mut BTreeMap<Id, Referenced<F>>,
        rows: &BTreeMap<Id, Option<Curated<F>>>,
        changed: &mut Vec<(ReferenceKind, Id)>,
    ) -> Result<RowCounts> {
        let mut counts = RowCounts::default();
        let mut table = self.tx.open(table)?;
        let stored = stored(&mut self.references);
        for (id, row) in rows {
            match (stored.get(id), row) {
                (None, None) => {}
                (Some(before), Some(row)) if before.row == *row => counts.unchanged += 1,
                (before, Some(row)) => {
                    match before {
                        Some(_) => {
                            counts.changed += 1;
                            changed.push((F::KIND, *id));
                        }
                        None => counts.added += 1,
                    }
                    table.insert(id.get(), seal(row)?.as_slice())?;
                    stored.insert(*id, Referenced::new(row.clone()));
                }
                (Some(_), None) => {
                    counts.removed += 1;
                    table.remove(id.get())?;
                    stored.remove(id);
                }
            }
        }
        Ok(counts)
    }

    fn apply_records<F: RecordFields>(
        &mut self,
        rows: &BTreeMap<Id, Option<Curated<F>>>,
        touched: &BTreeSet<Id>,
        outcome: &mut BatchOutcome,
    ) -> Result<()> {
        let dataset = F::DATASET;
        let counts = &mut outcome.rows.datasets[dataset];
        let mut changes = self.find_changes(rows, touched, counts)?;
        for change in &mut changes {
            change.seq = self.take_seq();
        }
        let records = &mut self.commit.records[dataset];
        *records = *records + counts.added - counts.removed;
        outcome.licenses.extend(self.write(&changes)?);
        Ok(())
    }

    /// Compares rows with the stored ones, and counts them. The changes have no seqs yet. `touched` are the records that
    /// link to a changed organization or tag.
    fn find_changes<'b, F: RecordFields>(
        &self,
        rows: &'b BTreeMap<Id, Option<Curated<F>>>,
        touched: &BTreeSet<Id>,
        counts: &mut RowCounts,
    ) -> Result<Vec<RecordChange<'b, F>>> {
        let dataset = F::DATASET;
        let mut changes = Vec::new();
        let records = self.tx.open(RECORDS)?;
        let log = self.tx.open(LOG)?;
        let is_first_load = self.commit.records[dataset] == 0;
        let ids: BTreeSet<&Id> = rows.keys().chain(touched).collect();
        for id in ids {
            let row = rows.get(id);
            let written = row.and_then(Option::as_ref);
            if let Some(row) = written
                && !touched.contains(id)
                && let Some(seq) = records.get((dataset.code(), id.get()))?
                && let Some(stored) = log.get((dataset.code(), seq.value()))?
                && json::is_rendered(stored.value().2, row, &self.references)
            {
                counts.unchanged += 1;
                continue;
            }
            let before: Option<RecordRow<F>> = if is_first_load {
                None
            } else {
                find_record(&*records, &*log, *id)?
            };
            let is_removed = row.is_some_and(Option::is_none);
            match &before {
                None if written.is_some() => counts.added += 1,
                None => continue,
                Some(_) if is_removed => counts.removed += 1,
                Some(_) => counts.changed += 1,
            }
            changes.push(RecordChange {
                id: *id,
                seq: 0,
                before: before.map(Box::new),
                written,
                is_removed,
                updated_at: self.commit.time,
            });
        }
        Ok(changes)
    }

    /// Writes changes of records to all tables. Returns their effects on licenses.
    fn write<F: RecordFields>(
        &mut self,
        changes: &[RecordChange<'_, F>],
    ) -> Result<Vec<LicenseEffect>> {
        self.write_records(changes)?;
        self.write_log(changes)?;
        self.write_links(changes)?;
        if !changes.is_empty() {
            self.commit.changed_at[F::DATASET] = Some(self.commit.time);
        }
        self.write_feeds(changes)
    }

    fn write_records<F: RecordFields>(&mut self, changes: &[RecordChange<'_, F>]) -> Result<()> {
        let code = F::DATASET.code();
        let mut records = self.tx.open(RECORDS)?;
        let is_fresh = |change: &&RecordChange<'_, F>| change.before.is_none();
        for change in changes.iter().filter(|change| !is_fresh(change)) {
            let key = (code, change.id.get());
            match change.after() {
                None => drop(records.remove(key)?),
                Some(_) => records.insert(key, change.seq)?,
            }
        }
        let is_first_load = records.range(keys_from(code, 0))?.next().is_none();
        let end = is_first_load.then_some(Bound::Included((code, u64::MAX)));
        let fresh = changes
            .iter()
            .filter(is_fresh)
            .map(|change| ((code, change.id.get()), change.seq));
        records.insert_all(end, fresh)
    }

    /// Moves the log rows of changed records to their new seqs, which are larger than all others.
    fn write_log<F: RecordFields>(&mut self, changes: &[RecordChange<'_, F>]) -> Result<()> {
        let code = F::DATASET.code();
        let mut log = self.tx.open(LOG)?;
        for before in changes.iter().filter_map(|change| change.before.as_ref()) {
            log.remove((code, before.seq))?;
        }
        let mut run = log.run_after(Bound::Included((code, u64::MAX)))?;
        for change in changes {
            if let Some(record) = change.after() {
                let json = json::render_record(record, change.updated_at, &self.references);
                run.push(
                    (code, change.seq),
                    (change.id.get(), hash(&json), json.as_slice()),
                )?;
            }
        }
        run.close()
    }

    fn write_links<F: RecordFields>(&mut self, changes: &[RecordChange<'_, F>]) -> Result<()> {
        fn links<F: RecordFields>(record: Option<&Curated<F>>) -> BTreeSet<(u8, Id)> {
            let Some(record) = record else {
                return BTreeSet::new();
            };
            ReferenceKind::ALL
                .into_iter()
                .flat_map(|kind: ReferenceKind| {
                    record
                        .fields()
                        .links(kind)
                        .iter()
                        .map(move |id| (kind.code(), *id))
                })
                .collect()
        }
        let code = F::DATASET.code();
        let mut added = BTreeSet::new();
        let mut table = self.tx.open(LINKS)?;
        for change in changes {
            let before = links(change.before());
            let after = links(change.after());
            for (kind, id) in before.difference(&after) {
                table.remove((*kind, id.get(), code, change.id.get()))?;
            }
            for (kind, id) in after.difference(&before) {
                added.insert((*kind, id.get(), code, change.id.get()));
            }
        }
        let end = table.is_empty()?.then_some(Bound::Unbounded);
        table.insert_all(end, added.into_iter().map(|key| (key, ())))
    }

    /// Writes the changes to all feeds of the dataset, once per shared feed.
    fn write_feeds<F: RecordFields>(
        &mut self,
        changes: &[RecordChange<'_, F>],
    ) -> Result<Vec<LicenseEffect>> {
        let dataset = F::DATASET;
        let mut written: BTreeMap<FeedId, LicenseEffect> = BTreeMap::new();
        let mut effects = Vec::new();
        for license in &self.licenses {
            let Some(feed) = license.feed(dataset) else {
                continue;
            };
            let effect = match written.entry(feed) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let entries = changes.iter().map(|change| {
                        let record = change.after();
                        let visible = record.filter(|record| record.fields().is_in(&license.scope));
                        FeedEntry {
                            seq: change.seq,
                            id: change.id,
                            log_seq: visible.and_then(|_| NonZeroU64::new(change.seq)),
                        }
                    });
                    new.insert(write_feed(&self.tx, feed, dataset, entries)?)
                }
            };
            effects.push(LicenseEffect {
                license: license.name.clone(),
                ..effect.clone()
            });
        }
        Ok(effects)
    }

    /// The records of a dataset that this edit has added or changed, also by what they link to, in the order of the
    /// changes.
    pub fn written_records<F: RecordFields>(&self) -> Result<Vec<Curated<F>>> {
        let log = self.tx.open(LOG)?;
        let rows = log.range(keys_from(F::DATASET.code(), self.commit.first_seq))?;
        rows.map(|entry| {
            let (key, value) = entry?;
            Ok(RecordRow::open(key.value().1, value.value())?.record)
        })
        .collect()
    }

    /// Renders the JSON of all records again, for a program with other fields. A record whose JSON changes gets a new
    /// seq, but keeps its `updated_at`. Takes at least one seq. After an error, the
    /// edit must be dropped.
    pub fn rerender_all(&mut self) -> Result<()> {
        self.render_dataset::<ConferenceFields>()?;
        self.render_dataset::<JournalFields>()?;
        if self.is_empty() {
            self.take_seq();
        }
        self.references_changed = true;
        Ok(())
    }

    fn render_dataset<F: RecordFields>(&mut self) -> Result<()> {
        let code = F::DATASET.code();
        let ids: Vec<Id> = load_record_ids(&*self.tx.open(RECORDS)?, F::DATASET)?
            .into_iter()
            .collect();
        for ids in ids.chunks(RENDERED_AT_ONCE) {
            let mut changes: Vec<RecordChange<'_, F>> = Vec::new();
            for id in ids {
                let row = find_record::<F>(&*self.tx.open(RECORDS)?, &*self.tx.open(LOG)?, *id)?;
                let Some(row) = row else { continue };
                let json = json::render_record(&row.record, row.updated_at, &self.references);
                let is_same = self
                    .tx
                    .open(LOG)?
                    .get((code, row.seq))?
                    .is_some_and(|old| old.value().2 == json);
                if !is_same {
                    let updated_at = row.updated_at;
                    let before = Some(Box::new(row));
                    changes.push(RecordChange {
                        id: *id,
                        seq: self.take_seq(),
                        before,
                        written: None,
                        is_removed: false,
                        updated_at,
                    });
                }
            }
            self.write(&changes)?;
        }
        Ok(())
    }

    /// The time of this edit's commit.
    pub fn time(&self) -> Timestamp {
        self.commit.time
    }
}

fn load_sum(tx: &WriteTx, feed: FeedId, dataset: Dataset) -> Result<FeedSum> {
    if let Some(bytes) = tx.open(FEEDS)?.get(feed.0)? {
        let sum: FeedSum = unseal("feeds", bytes.value())?;
        if (sum.feed, sum.dataset) == (feed, dataset) {
            return Ok(sum);
        }
    }
    let feed = feed.0;
    let detail = format!("feed {feed} of {dataset} has no sum, or that of another feed");
    Err(StoreError::damaged("feeds", detail))
}

/// Writes the sum of a feed, and entries in the order of their seqs, which are larger than all others in the feed.
fn append_entries(
    tx: &WriteTx,
    sum: &FeedSum,
    mut entries: Vec<FeedEntry>,
    is_new: bool,
) -> Result<()> {
    let feed = sum.feed;
    let end = Bound::Included((feed.0, u64::MAX));
    tx.open(FEEDS)?.insert(feed.0, seal(sum)?.as_slice())?;
    tx.open(FEED_ENTRIES)?.insert_all(
        Some(end),
        entries.iter().map(|entry| entry.row_by_seq(feed)),
    )?;
    entries.sort_unstable_by_key(|entry| entry.id);
    let end = is_new.then_some(end);
    tx.open(FEED_RECORDS)?
        .insert_all(end, entries.iter().map(|entry| entry.row_by_id(feed)))
}

/// Writes the new entries of changed records to a shared feed. They must be ordered by seq, and their seqs larger than
/// all others. The entry of a hidden record must be a tombstone. It is written only if the record was live in the feed.
/// Returns the effect on each license of the feed, without a name.
fn write_feed(
    tx: &WriteTx,
    feed: FeedId,
    dataset: Dataset,
    entries: impl Iterator<Item = FeedEntry>,
) -> Result<LicenseEffect> {
    let mut sum = load_sum(tx, feed, dataset)?;
    let by_id = tx.open(FEED_RECORDS)?;
    let mut by_seq = tx.open(FEED_ENTRIES)?;
    let is_new = sum.entries == 0;

    let mut effect = LicenseEffect::none(String::new(), dataset);
    let mut written: Vec<FeedEntry> = Vec::new();
    for entry in entries {
        let id = entry.id.get();
        let found = by_id.get((feed.0, id))?.map(|found| found.value());
        let old = found
            .map(|(seq, log_seq)| FeedEntry::of_row("feed_records", seq, id, log_seq))
            .transpose()?;
        match (old.is_some_and(|old| old.is_live()), entry.is_live()) {
            (true, true) => effect.changed += 1,
            (false, true) => effect.entering += 1,
            (true, false) => effect.leaving += 1,
            (false, false) => continue,
        }
        if let Some(old) = old {
            let removed = by_seq
                .remove((feed.0, old.seq))?
                .map(|removed| removed.value());
            if removed != Some((old.id.get(), old.stored_log_seq())) {
                return Err(sum.damaged(format!("its indexes differ at seq {}", old.seq)));
            }
            sum.replace(&old)?;
        }
        sum.add(&entry);
        written.push(entry);
    }
    drop((by_id, by_seq));
    if !written.is_empty() {
        append_entries(tx, &sum, written, is_new)?;
    }
    Ok(effect)
}

pub(super) fn create_feed(
    tx: &WriteTx,
    feed: FeedId,
    dataset: Dataset,
    mut entries: Vec<FeedEntry>,
) -> Result<()> {
    let mut sum = FeedSum::empty(feed, dataset);
    entries.iter().for_each(|entry| sum.add(entry));
    entries.sort_unstable_by_key(|entry| entry.seq);
    append_entries(tx, &sum, entries, true)
}

/// Removes a feed that no license uses.
pub(super) fn erase_feed(tx: &WriteTx, feed: FeedId) -> Result<()> {
    let first = (feed.0, 0);
    let last = (feed.0, u64::MAX);
    tx.open(FEED_ENTRIES)?.remove_range(first, last)?;
    tx.open(FEED_RECORDS)?.remove_range(first, last)?;
    tx.open(FEEDS)?.remove(feed.0)?;
    Ok(())
}

/// A license's entries by record: those of its baseline, replaced by those of its shared feed since the joining.
pub(super) fn load_entries(
    tx: &WriteTx,
    dataset: Dataset,
    subscription: Option<Subscription>,
) -> Result<BTreeMap<Id, FeedEntry>> {
    let Some(Subscription {
        feed,
        joined_at,
        baseline,
    }) = subscription
    else {
        return Ok(BTreeMap::new());
    };
    let by_seq = tx.open(FEED_ENTRIES)?;
    let mut entries = load_sum(tx, baseline, dataset)?.read_all(&*by_seq)?;
    if let Some(feed) = feed {
        let shared = load_sum(tx, feed, dataset)?.read_all(&*by_seq)?;
        entries.extend(shared.into_iter().filter(|entry| entry.seq > joined_at));
    }
    Ok(entries.into_iter().map(|entry| (entry.id, entry)).collect())
}
