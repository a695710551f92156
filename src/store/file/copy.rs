//! Copies a database row by row. The copy has the smallest size, and nothing of the old file's free pages.

use std::ops::Bound;
use std::path::Path;

use redb::{Key, ReadTransaction, ReadableTable, TableDefinition, TableHandle, Value, WriteTransaction};

use crate::store::StoreError;
use crate::store::check::check;
use crate::store::file::open::{Writer, fill_new};
use crate::store::format::outbox::read_all;
use crate::store::format::rows::optional_table;
use crate::store::format::tables::{self, CODED_TABLES, on_table};
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
        copy_tables(from, to, local)?;
        let outbox = optional_table(from.open_table(tables::OUTBOX))?.filter(|_| local == LocalRows::Copy);
        match outbox.map(|outbox| read_all(&outbox)).transpose() {
            Ok(None) => Ok(()),
            Ok(Some(())) => copy_table(from, to, tables::OUTBOX, local),
            // A damaged outbox is left out. The publisher then publishes a whole state, which needs no outbox.
            Err(error) if error.outbox_damage().is_some() => Ok(()),
            Err(error) => Err(error),
        }
    })?;
    check_file(to)
}

/// Copies all rows of the tables that every file has.
pub(in crate::store) fn copy_tables(
    from: &ReadTransaction,
    to: &WriteTransaction,
    local: LocalRows,
) -> Result<(), StoreError> {
    for code in 0..CODED_TABLES {
        on_table!(code, table => copy_table(from, to, table, local)?);
    }
    Ok(())
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

fn copy_table<K: Key + 'static, V: Value + 'static>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    table: TableDefinition<'static, K, V>,
    local: LocalRows,
) -> Result<(), StoreError> {
    let code = tables::code_of(table.name());
    let mut target = to.open_table(table)?;
    let mut cursor = target.upper_bound_mut(Bound::<K::SelfType<'_>>::Unbounded)?;
    for entry in from.open_table(table)?.iter()? {
        let (key, value) = entry?;
        let is_local = code.is_some_and(|code| tables::is_local(code, K::as_bytes(&key.value()).as_ref()));
        if !is_local || local == LocalRows::Copy {
            cursor.insert_before(key.value(), value.value())?;
        }
    }
    Ok(cursor.close()?)
}
