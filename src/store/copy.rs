//! Copying a database row by row: the copy is as small as it can be, and nothing of the old file's free pages is in it.

use std::borrow::Borrow;
use std::ops::Bound;
use std::path::Path;

use redb::{Key, ReadTransaction, ReadableTable, TableDefinition, Value, WriteTransaction};

use super::check::check;
use super::file::{self, Writer};
use super::{StoreError, panics, tables};

/// Writes all rows that a transaction sees to an empty file, and checks it.
pub(super) fn copy_checked(from: &ReadTransaction, to: &Path) -> Result<(), StoreError> {
    file::fill_new(to, |target| copy_rows(from, target))?;
    check_file(to)
}

/// Checks a whole draft.
pub(super) fn check_file(path: &Path) -> Result<(), StoreError> {
    let mut writer = Writer::open_draft(path)?;
    let report = check(&mut writer)?;
    drop(writer);
    if let Some(damage) = panics::take_at_close() {
        return Err(damage);
    }
    match report.findings.into_iter().next() {
        None => Ok(()),
        Some(finding) => Err(StoreError::Damaged { table: finding.table, detail: finding.detail }),
    }
}

fn copy_rows(from: &ReadTransaction, to: &WriteTransaction) -> Result<(), StoreError> {
    copy_table(from, to, tables::META)?;
    copy_table(from, to, tables::COMMITS)?;
    copy_table(from, to, tables::REMOVALS)?;
    copy_table(from, to, tables::RECORDS)?;
    copy_table(from, to, tables::ORGANIZATIONS)?;
    copy_table(from, to, tables::TAGS)?;
    copy_table(from, to, tables::LINKS)?;
    copy_table(from, to, tables::LOG)?;
    copy_table(from, to, tables::FEED)?;
    copy_table(from, to, tables::FEED_RECORDS)?;
    copy_table(from, to, tables::LICENSE_FEED)?;
    copy_table(from, to, tables::LICENSE_RECORDS)?;
    copy_table(from, to, tables::LICENSES)?;
    copy_table(from, to, tables::KEYS)
}

fn copy_table<K, V>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    definition: TableDefinition<'_, K, V>,
) -> Result<(), StoreError>
where
    K: Key + 'static,
    V: Value + 'static,
    for<'a> K::SelfType<'a>: Borrow<K::SelfType<'a>>,
{
    let source = from.open_table(definition)?;
    let mut target = to.open_table(definition)?;
    let mut cursor = target.upper_bound_mut(Bound::<K::SelfType<'_>>::Unbounded)?;
    for entry in source.iter()? {
        let (key, value) = entry?;
        cursor.insert_before(key.value(), value.value())?;
    }
    cursor.close()?;
    Ok(())
}
