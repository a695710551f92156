//! Writing rows in runs.

use std::borrow::Borrow;
use std::ops::Bound;

use redb::{Key, Table, Value};

use crate::store::StoreError;

/// Inserts rows in the order of their keys. With `append_after` they go behind the row at that bound, which is the last
/// before them: a cursor appends several times faster than single inserts do.
pub(super) fn insert_rows<'r, K, V>(
    table: &mut Table<'_, K, V>,
    append_after: Option<Bound<K::SelfType<'_>>>,
    rows: impl IntoIterator<Item = (K::SelfType<'r>, V::SelfType<'r>)>,
) -> Result<(), StoreError>
where
    K: Key + 'static,
    V: Value + 'static,
    for<'a> K::SelfType<'a>: Borrow<K::SelfType<'a>>,
{
    let Some(bound) = append_after else {
        for (key, value) in rows {
            table.insert(key, value)?;
        }
        return Ok(());
    };
    let mut cursor = table.upper_bound_mut(bound)?;
    for (key, value) in rows {
        cursor.insert_before(key, value)?;
    }
    Ok(cursor.close()?)
}
