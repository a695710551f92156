//! Copying a database row by row: the copy is as small as it can be, and nothing of the old file's free pages is in it.

use std::borrow::Borrow;
use std::ops::Bound;
use std::path::Path;

use redb::{Key, ReadTransaction, ReadableTable, TableDefinition, Value, WriteTransaction};

use crate::store::StoreError;
use crate::store::check::check;
use crate::store::file::open::{Writer, fill_new};
use crate::store::file::panics;
use crate::store::format::tables::{self, EachTable};

/// Writes all rows that a transaction sees to an empty file, and checks it.
pub(in crate::store) fn copy_checked(from: &ReadTransaction, to: &Path) -> Result<(), StoreError> {
    fill_new(to, |target| copy_rows(from, target))?;
    check_file(to)
}

/// Checks a whole draft.
pub(in crate::store) fn check_file(path: &Path) -> Result<(), StoreError> {
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
    tables::for_each_table(&mut Copy { from, to })
}

struct Copy<'t> {
    from: &'t ReadTransaction,
    to: &'t WriteTransaction,
}

impl EachTable for Copy<'_> {
    fn table<K, V>(&mut self, definition: TableDefinition<'static, K, V>) -> Result<(), StoreError>
    where
        K: Key + 'static,
        V: Value + 'static,
        for<'a> K::SelfType<'a>: Borrow<K::SelfType<'a>>,
    {
        let source = self.from.open_table(definition)?;
        let mut target = self.to.open_table(definition)?;
        let mut cursor = target.upper_bound_mut(Bound::<K::SelfType<'_>>::Unbounded)?;
        for entry in source.iter()? {
            let (key, value) = entry?;
            cursor.insert_before(key.value(), value.value())?;
        }
        cursor.close()?;
        Ok(())
    }
}
