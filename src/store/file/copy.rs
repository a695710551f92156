//! Copying a database row by row. The copy has the smallest size, and nothing of the old file's free pages.

use std::borrow::Borrow;
use std::ops::Bound;
use std::path::Path;

use redb::{Key, ReadTransaction, ReadableTable, TableDefinition, Value, WriteTransaction};

use crate::store::StoreError;
use crate::store::check::check;
use crate::store::file::open::{Writer, fill_new};
use crate::store::format::tables::{self, EachTable};
use crate::store::panics;

/// Copies all rows of a transaction to an empty file, and checks the copy.
pub(in crate::store) fn copy_checked(from: &ReadTransaction, to: &Path) -> Result<(), StoreError> {
    fill_new(to, |to| tables::for_each_table(&mut Copy { from, to }))?;
    check_file(to)
}

/// Checks a draft.
pub(in crate::store) fn check_file(path: &Path) -> Result<(), StoreError> {
    let mut writer = Writer::open_draft(path)?;
    let report = check(&mut writer)?;
    drop(writer);
    if let Some(damage) = panics::take_at_close() {
        return Err(damage);
    }
    report.findings.into_iter().next().map_or(Ok(()), |found| Err(StoreError::damaged(found.table, found.detail)))
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
        Ok(cursor.close()?)
    }
}
