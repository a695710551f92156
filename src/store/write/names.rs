//! Maintains the index of names and words: in the commit of an import, or by building it.

use std::ops::Bound;
use std::path::Path;
use std::time::Duration;

use redb::ReadableTable;

use crate::store::format::codec::seal;
use crate::store::format::names::{NamesState, RecordsState};
use crate::store::format::tables;
use crate::store::write::batch::NameChanges;
use crate::store::write::edit::Edit;
use crate::store::write_tx::WriteTx;
use crate::store::{NameEntry, Snapshot, StoreError, Writer};

/// The maximum number of rows per transaction of a build. Other writers can take the lock in between.
const ROWS_AT_ONCE: usize = 100_000;

impl Edit<'_> {
    /// The state of the records as this edit leaves them so far.
    pub(super) fn records_state(&self) -> Result<RecordsState, StoreError> {
        RecordsState::read(&*self.tx.open(tables::LOG)?, self.totals)
    }

    /// Whether the index has this state, or can be started because there are no records.
    pub(super) fn can_maintain_names(&self, version: u32, state: &RecordsState) -> Result<bool, StoreError> {
        let stored = NamesState::read(&*self.tx.open(tables::NAMES_STATE)?)?;
        if stored.is_some_and(|stored| stored.fits(version, state)) {
            return Ok(true);
        }
        if state.is_empty() {
            drop_names(&self.tx)?;
        }
        Ok(state.is_empty())
    }

    /// Writes the changes of the index that belong to this edit's changes of records.
    pub(super) fn write_names(&self, changes: NameChanges) -> Result<(), StoreError> {
        let state = NamesState { version: changes.version, of: self.records_state()?, is_whole: true };
        write(&self.tx, changes, state)
    }
}

/// Builds the index from `names`, which must come from `snapshot`, in several transactions. Stops if records change in
/// between. Returns whether the index is complete.
pub fn build_names(path: &Path, wait: Duration, snapshot: &Snapshot, names: NameChanges) -> Result<bool, StoreError> {
    let NameChanges { version, mut added, words, .. } = names;
    added.sort_unstable();
    let of = snapshot.records_state()?;
    let mut parts: Vec<NameChanges> = added
        .chunks(ROWS_AT_ONCE)
        .map(|part| NameChanges { version, added: part.to_vec(), ..NameChanges::default() })
        .collect();
    parts.push(NameChanges { version, words, ..NameChanges::default() });
    let last = parts.len() - 1;
    for (at, part) in parts.into_iter().enumerate() {
        let writer = Writer::open(path, wait)?;
        let is_same = writer.snapshot()?.records_state()? == of;
        let tx = WriteTx::new(writer.begin_raw()?);
        let building = NamesState { version, of, is_whole: false };
        let is_current = at == 0 || NamesState::read(&*tx.open(tables::NAMES_STATE)?)? == Some(building);
        if !is_same || !is_current {
            tx.abort()?;
            return Ok(false);
        }
        if at == 0 {
            drop_names(&tx)?;
        }
        write(&tx, part, NamesState { is_whole: at == last, ..building })?;
        writer.check_not_replaced()?;
        tx.commit()?;
    }
    Ok(true)
}

fn drop_names(tx: &WriteTx) -> Result<(), StoreError> {
    tx.drop_table(tables::NAMES)?;
    tx.drop_table(tables::WORDS)?;
    tx.drop_table(tables::NAMES_STATE)
}

fn write(tx: &WriteTx, changes: NameChanges, state: NamesState) -> Result<(), StoreError> {
    let NameChanges { mut removed, mut added, words, .. } = changes;
    let key = |(name, dataset, id): NameEntry| (name, dataset.code(), id.get());
    let mut table = tx.open(tables::NAMES)?;
    removed.sort_unstable();
    for row in removed {
        table.remove(key(row))?;
    }
    added.sort_unstable();
    added.dedup();
    // Append the rows if they come after all others: several times faster than inserting them.
    let last = table.last()?.map(|(last, _)| last.value());
    let appends = added.first().is_none_or(|first| last.is_none_or(|last| key(*first) > last));
    table.insert_all(appends.then_some(Bound::Unbounded), added.into_iter().map(|row| (key(row), ())))?;
    drop(table);

    let mut table = tx.open(tables::WORDS)?;
    for ((vocabulary, word), change) in words {
        let key = (vocabulary, word.as_str());
        let (records, record) = table.get(key)?.map_or((0, 0), |row| row.value());
        let records = records.saturating_add_signed(change.records);
        let is_lost = change.lost_by.iter().any(|id| id.get() == record);
        let record = match change.gained_by {
            Some(gained) if is_lost || record == 0 => gained.get(),
            _ if is_lost => 0,
            _ => record,
        };
        if records == 0 {
            table.remove(key)?;
        } else {
            table.insert(key, (records, record))?;
        }
    }
    drop(table);
    tx.open(tables::NAMES_STATE)?.insert(tables::NAMES_STATE_KEY, seal(&state)?.as_slice())
}
