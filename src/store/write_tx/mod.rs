//! The tx: the only way to write a row of a database that is in use. While it records, it takes each write down.
//!
//! - [`recorder`]: what it takes down.

pub mod recorder;

use std::borrow::Borrow;
use std::cell::RefCell;
use std::ops::{Bound, Deref};

use redb::{AccessGuard, CursorMut, Key, Table, TableDefinition, TableHandle, Value, WriteTransaction};

use crate::store::StoreError;
use crate::store::format::tables::code_of;
use recorder::Recorder;

/// A write transaction.
pub(in crate::store) struct WriteTx {
    transaction: WriteTransaction,
    recorder: Option<RefCell<Recorder>>,
    /// Tells whether another command asks for the lock, of a writer that gives way.
    is_yield_requested: Option<YieldCheck>,
}

/// Tells whether another command asks for the lock.
pub(in crate::store) type YieldCheck = Box<dyn Fn() -> bool>;

/// After so many rows of a run the tx looks whether the writer is to give way.
const ROWS_PER_YIELD_CHECK: usize = 1_000;

/// Fails where another command asks a writer that gives way for the lock.
fn check_yield(is_yield_requested: Option<&YieldCheck>) -> Result<(), StoreError> {
    if is_yield_requested.is_some_and(|is_yield_requested| is_yield_requested()) {
        Err(StoreError::YieldRequested)
    } else {
        Ok(())
    }
}

impl WriteTx {
    /// Writes without recording.
    pub fn new(transaction: WriteTransaction) -> WriteTx {
        WriteTx { transaction, recorder: None, is_yield_requested: None }
    }

    /// Has writes fail with [`StoreError::YieldRequested`] once `is_yield_requested` says that another command asks for the lock.
    pub fn yield_on_request(&mut self, is_yield_requested: YieldCheck) {
        self.is_yield_requested = Some(is_yield_requested);
    }

    /// Fails when a command asks for the lock, and the writer gives way.
    pub fn check_yield(&self) -> Result<(), StoreError> {
        check_yield(self.is_yield_requested.as_ref())
    }

    /// Records from now on, or no longer. Returns what was recorded.
    pub fn set_recorder(&mut self, recorder: Option<Recorder>) -> Option<Recorder> {
        std::mem::replace(&mut self.recorder, recorder.map(RefCell::new)).map(RefCell::into_inner)
    }

    /// Opens a table for reading and writing, or makes it.
    pub fn open<K: Key + 'static, V: Value + 'static>(
        &self,
        definition: TableDefinition<'static, K, V>,
    ) -> Result<TableWriter<'_, K, V>, StoreError> {
        let recorder = self.recorder.as_ref();
        let recorder = recorder.and_then(|recorder| Some((code_of(definition.name())?, recorder)));
        let is_yield_requested = self.is_yield_requested.as_ref();
        Ok(TableWriter { table: self.transaction.open_table(definition)?, recorder, is_yield_requested })
    }

    /// Removes a table with all its rows, if it is there. It must be a local one.
    pub fn drop_table<K: Key + 'static, V: Value + 'static>(
        &self,
        definition: TableDefinition<'static, K, V>,
    ) -> Result<(), StoreError> {
        debug_assert_eq!(code_of(definition.name()), None, "what replicas have too is removed row by row");
        self.transaction.delete_table(definition)?;
        Ok(())
    }

    /// Makes the writes durable and visible.
    pub fn commit(self) -> Result<(), StoreError> {
        Ok(self.transaction.commit()?)
    }

    /// Undoes the writes.
    pub fn abort(self) -> Result<(), StoreError> {
        Ok(self.transaction.abort()?)
    }
}

/// An open table: read as the engine's, written by these functions alone.
pub(in crate::store) struct TableWriter<'p, K: Key + 'static, V: Value + 'static> {
    table: Table<'p, K, V>,
    /// The table's code, and who takes writes down.
    recorder: Option<(u8, &'p RefCell<Recorder>)>,
    is_yield_requested: Option<&'p YieldCheck>,
}

impl<'p, K: Key + 'static, V: Value + 'static> Deref for TableWriter<'p, K, V> {
    type Target = Table<'p, K, V>;

    fn deref(&self) -> &Self::Target {
        &self.table
    }
}

impl<K: Key + 'static, V: Value + 'static> TableWriter<'_, K, V> {
    /// Inserts a row, or replaces that of its key.
    pub fn insert<'k, 'v>(
        &mut self,
        key: impl Borrow<K::SelfType<'k>>,
        value: impl Borrow<V::SelfType<'v>>,
    ) -> Result<(), StoreError> {
        let (key, value) = (key.borrow(), value.borrow());
        let old = self.table.insert(key, value)?;
        if let Some((code, recorder)) = self.recorder {
            let old = old.as_ref().map(AccessGuard::value);
            let old = old.as_ref().map(|old| V::as_bytes(old));
            let old = old.as_ref().map(AsRef::as_ref);
            recorder.borrow_mut().put(code, K::as_bytes(key).as_ref(), V::as_bytes(value).as_ref(), old);
        }
        Ok(())
    }

    /// Removes the row of a key, and returns its value if there was one.
    pub fn remove<'k>(&mut self, key: impl Borrow<K::SelfType<'k>>) -> Result<Option<AccessGuard<'_, V>>, StoreError> {
        let key = key.borrow();
        let old = self.table.remove(key)?;
        if let (Some((code, recorder)), Some(old)) = (self.recorder, &old) {
            recorder.borrow_mut().remove(code, K::as_bytes(key).as_ref(), V::as_bytes(&old.value()).as_ref());
        }
        Ok(old)
    }

    /// Removes all rows between two keys, both included.
    pub fn remove_range<'k>(&mut self, first: K::SelfType<'k>, last: K::SelfType<'k>) -> Result<(), StoreError>
    where
        for<'a> K::SelfType<'a>: Borrow<K::SelfType<'a>>,
    {
        let recorder = self.recorder;
        if let Some((code, recorder)) = recorder {
            recorder.borrow_mut().remove_range(code, K::as_bytes(&first).as_ref(), K::as_bytes(&last).as_ref());
        }
        self.table.retain_in(first..=last, |key, value| {
            if let Some((code, recorder)) = recorder {
                let (key, value) = (K::as_bytes(&key), V::as_bytes(&value));
                recorder.borrow_mut().removed_in_range(code, key.as_ref(), value.as_ref());
            }
            false
        })?;
        Ok(())
    }

    /// Begins a run of rows behind the last one up to a bound.
    pub fn run_after(&mut self, bound: Bound<K::SelfType<'_>>) -> Result<RunWriter<'_, K, V>, StoreError>
    where
        for<'a> K::SelfType<'a>: Borrow<K::SelfType<'a>>,
    {
        Ok(RunWriter { cursor: self.table.upper_bound_mut(bound)?, recorder: self.recorder })
    }

    /// Inserts rows in the order of their keys: as a run where a bound is given, else one by one.
    pub fn insert_all<'r>(
        &mut self,
        append_after: Option<Bound<K::SelfType<'_>>>,
        rows: impl IntoIterator<Item = (K::SelfType<'r>, V::SelfType<'r>)>,
    ) -> Result<(), StoreError>
    where
        for<'a> K::SelfType<'a>: Borrow<K::SelfType<'a>>,
    {
        let is_yield_requested = self.is_yield_requested;
        let mut rows = rows.into_iter().enumerate();
        let look =
            |at: usize| if at.is_multiple_of(ROWS_PER_YIELD_CHECK) { check_yield(is_yield_requested) } else { Ok(()) };
        let Some(bound) = append_after else {
            return rows.try_for_each(|(at, (key, value))| look(at).and_then(|()| self.insert(key, value)));
        };
        let mut run = self.run_after(bound)?;
        rows.try_for_each(|(at, (key, value))| look(at).and_then(|()| run.push(key, value)))?;
        run.close()
    }
}

/// TableWriter that are inserted one behind the other: several times faster than single inserts.
pub(in crate::store) struct RunWriter<'a, K: Key + 'static, V: Value + 'static> {
    cursor: CursorMut<'a, K, V>,
    recorder: Option<(u8, &'a RefCell<Recorder>)>,
}

impl<K: Key + 'static, V: Value + 'static> RunWriter<'_, K, V> {
    /// Inserts the next row.
    pub fn push<'k, 'v>(
        &mut self,
        key: impl Borrow<K::SelfType<'k>>,
        value: impl Borrow<V::SelfType<'v>>,
    ) -> Result<(), StoreError> {
        let (key, value) = (key.borrow(), value.borrow());
        self.cursor.insert_before(key, value)?;
        if let Some((code, recorder)) = self.recorder {
            recorder.borrow_mut().run_row(code, K::as_bytes(key).as_ref(), V::as_bytes(value).as_ref());
        }
        Ok(())
    }

    /// Ends the run.
    pub fn close(self) -> Result<(), StoreError> {
        if let Some((_, recorder)) = self.recorder {
            recorder.borrow_mut().end_run();
        }
        Ok(self.cursor.close()?)
    }
}
