//! Copies a database row by row. The copy has the smallest size, and nothing of the old file's free pages.

use std::borrow::Borrow;
use std::ops::Bound;
use std::path::Path;

use redb::{Key, ReadTransaction, ReadableTable, TableDefinition, TableHandle, Value, WriteTransaction};

use crate::store::StoreError;
use crate::store::check::check;
use crate::store::file::open::{Writer, fill_new};
use crate::store::format::outbox::read_all;
use crate::store::format::rows::optional_table;
use crate::store::format::tables::{self, StoredType, TableVisitor};
use crate::store::panics;

/// The treatment of local rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum LocalRows {
    /// Copies them, for a copy that replaces the file.
    Copy,
    /// Leaves them out, for a copy that is a separate database.
    Skip,
}

/// Copies all rows of a transaction to an empty file, and checks the copy.
pub(in crate::store) fn copy_checked(from: &ReadTransaction, to: &Path, local: LocalRows) -> Result<(), StoreError> {
    fill_new(to, |to| {
        let mut copy = TableCopier { from, to, local };
        tables::for_each_table(&mut copy)?;
        let outbox = optional_table(from.open_table(tables::OUTBOX))?.filter(|_| local == LocalRows::Copy);
        match outbox.map(|outbox| read_all(&outbox)).transpose() {
            Ok(None) => Ok(()),
            Ok(Some(())) => copy.table(tables::OUTBOX),
            // A damaged outbox is left out. The publisher then publishes a whole state, which needs no outbox.
            Err(error) if error.outbox_damage().is_some() => Ok(()),
            Err(error) => Err(error),
        }
    })?;
    check_file(to)
}

/// Copies all rows of the tables that every file has.
pub(in crate::store) fn copy_tables(from: &ReadTransaction, to: &WriteTransaction) -> Result<(), StoreError> {
    tables::for_each_table(&mut TableCopier { from, to, local: LocalRows::Copy })
}

pub(in crate::store) fn check_file(path: &Path) -> Result<(), StoreError> {
    let mut writer = Writer::open_draft(path)?;
    let report = check(&mut writer)?;
    drop(writer);
    if let Some(damage) = panics::take_damage_at_close() {
        return Err(damage);
    }
    report.findings.into_iter().next().map_or(Ok(()), |found| Err(StoreError::damaged(found.table, found.detail)))
}

struct TableCopier<'t> {
    from: &'t ReadTransaction,
    to: &'t WriteTransaction,
    local: LocalRows,
}

impl TableVisitor for TableCopier<'_> {
    type Error = StoreError;

    fn table<K, V>(&mut self, definition: TableDefinition<'static, K, V>) -> Result<(), StoreError>
    where
        K: Key + StoredType + 'static,
        V: Value + StoredType + 'static,
        for<'a> K::SelfType<'a>: Borrow<K::SelfType<'a>>,
    {
        let code = tables::code_of(definition.name());
        let source = self.from.open_table(definition)?;
        let mut target = self.to.open_table(definition)?;
        let mut cursor = target.upper_bound_mut(Bound::<K::SelfType<'_>>::Unbounded)?;
        for entry in source.iter()? {
            let (key, value) = entry?;
            let is_local = code.is_some_and(|code| tables::is_local(code, K::as_bytes(&key.value()).as_ref()));
            if is_local && self.local == LocalRows::Skip {
                continue;
            }
            cursor.insert_before(key.value(), value.value())?;
        }
        Ok(cursor.close()?)
    }
}
