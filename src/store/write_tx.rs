//! The write transaction: all rows of a database in use are written with it. It can record each write: always in the
//! digest of all rows, and up to a limit as encoded changes.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::ops::{Bound, Deref};

use redb::{
    AccessGuard, CursorMut, Key, Table, TableDefinition, TableHandle, Value, WriteTransaction,
};

use super::Result;
use super::format::changes::ChangeEncoder;
use super::format::tables::{code_of, is_local};
use crate::model::RowDigest;

pub struct WriteTx {
    transaction: WriteTransaction,
    recorder: Option<RefCell<Recorder>>,
}

impl WriteTx {
    pub fn new(transaction: WriteTransaction) -> WriteTx {
        WriteTx {
            transaction,
            recorder: None,
        }
    }

    /// Starts to record writes. They update the digest of all rows, which is `digest` now. With `max_bytes`, they are
    /// also encoded as changes, up to this size in bytes.
    pub fn start_recording(&mut self, digest: RowDigest, max_bytes: Option<usize>) {
        self.recorder = Some(RefCell::new(Recorder {
            digest,
            changes: max_bytes.map(|_| ChangeEncoder::default()),
            max_bytes: max_bytes.unwrap_or(0),
        }));
    }

    /// Ends the record. Returns the digest and the changes; `None` if there were too many, or they were not recorded.
    pub fn stop_recording(&mut self) -> (RowDigest, Option<Vec<u8>>) {
        let recorder = self.recorder.take().map(RefCell::into_inner);
        recorder.map_or_else(Default::default, |recorder| {
            (recorder.digest, recorder.changes.map(ChangeEncoder::finish))
        })
    }

    /// Opens a table for reading and writing. Creates it if it does not exist.
    pub fn open<K: Key + 'static, V: Value + 'static>(
        &self,
        definition: TableDefinition<'static, K, V>,
    ) -> Result<TableWriter<'_, K, V>> {
        Ok(TableWriter {
            table: self.transaction.open_table(definition)?,
            recorder: code_of(definition.name()).zip(self.recorder.as_ref()),
        })
    }

    /// Removes a local table with all its rows, if it exists.
    pub fn drop_table<K: Key + 'static, V: Value + 'static>(
        &self,
        definition: TableDefinition<'static, K, V>,
    ) -> Result<()> {
        debug_assert_eq!(
            code_of(definition.name()),
            None,
            "what replicas have too is removed row by row"
        );
        self.transaction.delete_table(definition)?;
        Ok(())
    }

    pub fn commit(self) -> Result<()> {
        Ok(self.transaction.commit()?)
    }

    pub fn abort(self) -> Result<()> {
        Ok(self.transaction.abort()?)
    }
}

/// An open table. Writes go through these methods, so that they are recorded.
pub struct TableWriter<'p, K: Key + 'static, V: Value + 'static> {
    table: Table<'p, K, V>,
    /// The table's code and the recorder.
    recorder: Option<(u8, &'p RefCell<Recorder>)>,
}

impl<'p, K: Key + 'static, V: Value + 'static> Deref for TableWriter<'p, K, V> {
    type Target = Table<'p, K, V>;

    fn deref(&self) -> &Self::Target {
        &self.table
    }
}

impl<K: Key + 'static, V: Value + 'static> TableWriter<'_, K, V> {
    pub fn insert<'k, 'v>(
        &mut self,
        key: impl Borrow<K::SelfType<'k>>,
        value: impl Borrow<V::SelfType<'v>>,
    ) -> Result<()> {
        let key = key.borrow();
        let value = value.borrow();
        let old = self.table.insert(key, value)?;
        if let Some((code, recorder)) = self.recorder {
            let old = old.as_ref().map(AccessGuard::value);
            let old = old.as_ref().map(|old| V::as_bytes(old));
            let old = old.as_ref().map(AsRef::as_ref);
            recorder.borrow_mut().put(
                code,
                K::as_bytes(key).as_ref(),
                V::as_bytes(value).as_ref(),
                old,
            );
        }
        Ok(())
    }

    /// Removes a row, and returns its value.
    pub fn remove<'k>(
        &mut self,
        key: impl Borrow<K::SelfType<'k>>,
    ) -> Result<Option<AccessGuard<'_, V>>> {
        let key = key.borrow();
        let old = self.table.remove(key)?;
        if let (Some((code, recorder)), Some(old)) = (self.recorder, &old) {
            recorder.borrow_mut().remove(
                code,
                K::as_bytes(key).as_ref(),
                V::as_bytes(&old.value()).as_ref(),
            );
        }
        Ok(old)
    }

    /// Removes all rows between two keys, both included. Not for `meta`, which has local rows.
    pub fn remove_range<'k>(&mut self, first: K::SelfType<'k>, last: K::SelfType<'k>) -> Result<()>
    where
        for<'a> K::SelfType<'a>: Borrow<K::SelfType<'a>>,
    {
        let recorder = self.recorder;
        if let Some((code, recorder)) = recorder {
            let first = K::as_bytes(&first);
            let last = K::as_bytes(&last);
            recorder
                .borrow_mut()
                .record(|changes| changes.remove_range(code, first.as_ref(), last.as_ref()));
        }
        self.table.retain_in(first..=last, |key, value| {
            if let Some((code, recorder)) = recorder {
                let key = K::as_bytes(&key);
                let value = V::as_bytes(&value);
                recorder
                    .borrow_mut()
                    .digest
                    .subtract(code, key.as_ref(), value.as_ref());
            }
            false
        })?;
        Ok(())
    }

    /// Begins a run of rows after the last row up to `bound`.
    pub fn run_after(&mut self, bound: Bound<K::SelfType<'_>>) -> Result<RunWriter<'_, K, V>>
    where
        for<'a> K::SelfType<'a>: Borrow<K::SelfType<'a>>,
    {
        Ok(RunWriter {
            cursor: self.table.upper_bound_mut(bound)?,
            recorder: self.recorder,
        })
    }

    /// Inserts rows in the order of their keys: as a run after `append_after`, or one by one if it is `None`.
    pub fn insert_all<'r>(
        &mut self,
        append_after: Option<Bound<K::SelfType<'_>>>,
        rows: impl IntoIterator<Item = (K::SelfType<'r>, V::SelfType<'r>)>,
    ) -> Result<()>
    where
        for<'a> K::SelfType<'a>: Borrow<K::SelfType<'a>>,
    {
        let mut rows = rows.into_iter();
        let Some(bound) = append_after else {
            return rows.try_for_each(|(key, value)| self.insert(key, value));
        };
        let mut run = self.run_after(bound)?;
        rows.try_for_each(|(key, value)| run.push(key, value))?;
        run.close()
    }
}

/// Appends rows in ascending order. This is several times faster than single inserts.
pub struct RunWriter<'a, K: Key + 'static, V: Value + 'static> {
    cursor: CursorMut<'a, K, V>,
    recorder: Option<(u8, &'a RefCell<Recorder>)>,
}

impl<K: Key + 'static, V: Value + 'static> RunWriter<'_, K, V> {
    /// Inserts the next row. Fails with [`redb::Error::UnorderedKey`] if its key is out of order.
    pub fn push<'k, 'v>(
        &mut self,
        key: impl Borrow<K::SelfType<'k>>,
        value: impl Borrow<V::SelfType<'v>>,
    ) -> Result<()> {
        let key = key.borrow();
        let value = value.borrow();
        self.cursor.insert_before(key, value)?;
        if let Some((code, recorder)) = self.recorder {
            recorder.borrow_mut().run_row(
                code,
                K::as_bytes(key).as_ref(),
                V::as_bytes(value).as_ref(),
            );
        }
        Ok(())
    }

    pub fn close(self) -> Result<()> {
        if let Some((_, recorder)) = self.recorder {
            recorder.borrow_mut().record(ChangeEncoder::end_run);
        }
        Ok(self.cursor.close()?)
    }
}

/// Records writes to the tables that replicas have too.
struct Recorder {
    digest: RowDigest,
    /// `None` if there were too many, or they are not recorded.
    changes: Option<ChangeEncoder>,
    max_bytes: usize,
}

impl Recorder {
    /// Records that a row was inserted, or replaced `old`.
    fn put(&mut self, table: u8, key: &[u8], value: &[u8], old: Option<&[u8]>) {
        if is_local(table, key) {
            return;
        }
        if let Some(old) = old {
            self.digest.subtract(table, key, old);
        }
        self.digest.add(table, key, value);
        self.record(|changes| changes.put(table, key, value));
    }

    fn remove(&mut self, table: u8, key: &[u8], old: &[u8]) {
        if is_local(table, key) {
            return;
        }
        self.digest.subtract(table, key, old);
        self.record(|changes| changes.remove(table, key));
    }

    fn run_row(&mut self, table: u8, key: &[u8], value: &[u8]) {
        self.digest.add(table, key, value);
        self.record(|changes| changes.run_row(table, key, value));
    }

    fn record(&mut self, note: impl FnOnce(&mut ChangeEncoder)) {
        if let Some(changes) = &mut self.changes {
            note(changes);
            if changes.len() > self.max_bytes {
                self.changes = None;
            }
        }
    }
}
