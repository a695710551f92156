//! The pen: the only way to write a row of a database that is in use. While it records, it takes each write down.
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
pub(in crate::store) struct Pen {
    transaction: WriteTransaction,
    recorder: Option<RefCell<Recorder>>,
    /// Tells whether another command asks for the lock, of a writer that gives way.
    is_wanted: Option<IsWanted>,
}

/// Tells whether another command asks for the lock.
pub(in crate::store) type IsWanted = Box<dyn Fn() -> bool>;

/// After so many rows of a run the pen looks whether the writer is to give way.
const ROWS_BETWEEN_LOOKS: usize = 1_000;

/// Fails where another command asks a writer that gives way for the lock.
fn check_wanted(is_wanted: Option<&IsWanted>) -> Result<(), StoreError> {
    if is_wanted.is_some_and(|is_wanted| is_wanted()) { Err(StoreError::Wanted) } else { Ok(()) }
}

impl Pen {
    /// Writes without recording.
    pub fn new(transaction: WriteTransaction) -> Pen {
        Pen { transaction, recorder: None, is_wanted: None }
    }

    /// Has writes fail with [`StoreError::Wanted`] once `is_wanted` says that another command asks for the lock.
    pub fn give_way(&mut self, is_wanted: IsWanted) {
        self.is_wanted = Some(is_wanted);
    }

    /// Fails when a command asks for the lock, and the writer gives way.
    pub fn check_wanted(&self) -> Result<(), StoreError> {
        check_wanted(self.is_wanted.as_ref())
    }

    /// Records from now on, or no longer. Returns what was recorded.
    pub fn record(&mut self, recorder: Option<Recorder>) -> Option<Recorder> {
        std::mem::replace(&mut self.recorder, recorder.map(RefCell::new)).map(RefCell::into_inner)
    }

    /// Opens a table for reading and writing, or makes it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn open<K: Key + 'static, V: Value + 'static>(
        &self,
        definition: TableDefinition<'static, K, V>,
    ) -> Result<Rows<'_, K, V>, StoreError> {
        let recorder = self.recorder.as_ref();
        let recorder = recorder.and_then(|recorder| Some((code_of(definition.name())?, recorder)));
        let is_wanted = self.is_wanted.as_ref();
        Ok(Rows { table: self.transaction.open_table(definition)?, recorder, is_wanted })
    }

    /// Removes a table with all its rows, if it is there. It must be a local one.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn drop_table<K: Key + 'static, V: Value + 'static>(
        &self,
        definition: TableDefinition<'static, K, V>,
    ) -> Result<(), StoreError> {
        debug_assert_eq!(code_of(definition.name()), None, "what replicas have too is removed row by row");
        self.transaction.delete_table(definition)?;
        Ok(())
    }

    /// Makes the writes durable and visible.
    ///
    /// # Errors
    /// When the database cannot be written; nothing is changed then.
    pub fn commit(self) -> Result<(), StoreError> {
        Ok(self.transaction.commit()?)
    }

    /// Undoes the writes.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn abort(self) -> Result<(), StoreError> {
        Ok(self.transaction.abort()?)
    }
}

/// An open table: read as the engine's, written by these functions alone.
pub(in crate::store) struct Rows<'p, K: Key + 'static, V: Value + 'static> {
    table: Table<'p, K, V>,
    /// The table's code, and who takes writes down.
    recorder: Option<(u8, &'p RefCell<Recorder>)>,
    is_wanted: Option<&'p IsWanted>,
}

impl<'p, K: Key + 'static, V: Value + 'static> Deref for Rows<'p, K, V> {
    type Target = Table<'p, K, V>;

    fn deref(&self) -> &Self::Target {
        &self.table
    }
}

impl<K: Key + 'static, V: Value + 'static> Rows<'_, K, V> {
    /// Inserts a row, or replaces that of its key.
    ///
    /// # Errors
    /// When the database cannot be written.
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
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn remove<'k>(&mut self, key: impl Borrow<K::SelfType<'k>>) -> Result<Option<AccessGuard<'_, V>>, StoreError> {
        let key = key.borrow();
        let old = self.table.remove(key)?;
        if let (Some((code, recorder)), Some(old)) = (self.recorder, &old) {
            recorder.borrow_mut().remove(code, K::as_bytes(key).as_ref(), V::as_bytes(&old.value()).as_ref());
        }
        Ok(old)
    }

    /// Removes all rows between two keys, both included.
    ///
    /// # Errors
    /// When the database cannot be written.
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
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn run_after(&mut self, bound: Bound<K::SelfType<'_>>) -> Result<Run<'_, K, V>, StoreError>
    where
        for<'a> K::SelfType<'a>: Borrow<K::SelfType<'a>>,
    {
        Ok(Run { cursor: self.table.upper_bound_mut(bound)?, recorder: self.recorder })
    }

    /// Inserts rows in the order of their keys: as a run where a bound is given, else one by one.
    ///
    /// # Errors
    /// As [`Run::push`].
    pub fn insert_all<'r>(
        &mut self,
        append_after: Option<Bound<K::SelfType<'_>>>,
        rows: impl IntoIterator<Item = (K::SelfType<'r>, V::SelfType<'r>)>,
    ) -> Result<(), StoreError>
    where
        for<'a> K::SelfType<'a>: Borrow<K::SelfType<'a>>,
    {
        let is_wanted = self.is_wanted;
        let mut rows = rows.into_iter().enumerate();
        let look = |at: usize| if at.is_multiple_of(ROWS_BETWEEN_LOOKS) { check_wanted(is_wanted) } else { Ok(()) };
        let Some(bound) = append_after else {
            return rows.try_for_each(|(at, (key, value))| look(at).and_then(|()| self.insert(key, value)));
        };
        let mut run = self.run_after(bound)?;
        rows.try_for_each(|(at, (key, value))| look(at).and_then(|()| run.push(key, value)))?;
        run.close()
    }
}

/// Rows that are inserted one behind the other: several times faster than single inserts.
pub(in crate::store) struct Run<'a, K: Key + 'static, V: Value + 'static> {
    cursor: CursorMut<'a, K, V>,
    recorder: Option<(u8, &'a RefCell<Recorder>)>,
}

impl<K: Key + 'static, V: Value + 'static> Run<'_, K, V> {
    /// Inserts the next row.
    ///
    /// # Errors
    /// [`redb::Error::UnorderedKey`] when its key does not stand after the one before and before the one behind, and when the
    /// database cannot be written.
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
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn close(self) -> Result<(), StoreError> {
        if let Some((_, recorder)) = self.recorder {
            recorder.borrow_mut().end_run();
        }
        Ok(self.cursor.close()?)
    }
}
