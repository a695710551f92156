//! Applies encoded changes. They come from a bucket, so all bytes are validated before redb decodes them.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::iter::Peekable;
use std::ops::Bound;

use redb::{Key, Value};

use crate::store::StoreError;
use crate::store::format::changes::{ChangeDecoder, EncodedChange};
use crate::store::format::meta::known_fields;
use crate::store::format::tables::{
    self, META_CODE, META_FIELDS, META_SCHEMA, SCHEMA, fits, on_table,
};
use crate::store::write_tx::{TableWriter, WriteTx};

/// Changes could not be applied. The file is unchanged.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages explain the variants")]
pub enum ApplyError {
    #[error(
        "the commit follows seq {expected}, but the last commit here is at seq {found}, or of another history"
    )]
    Base { expected: u64, found: u64 },
    #[error("the rows after seq {0} do not add up to the origin's digest")]
    Digest(u64),
    #[error("the changes cannot be applied: {0}")]
    Malformed(String),
    #[error("the rows are of another version of medfeed")]
    OtherVersion,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Applies changes to rows, in order. After an error, the transaction must be aborted.
pub fn apply(tx: &WriteTx, changes: &[u8]) -> Result<(), ApplyError> {
    let mut changes = ChangeDecoder::new(changes).peekable();
    while let Some(next) = changes.peek() {
        let code = next.as_ref().map_err(|error| malformed(*error))?.0;
        on_table!(code, table => apply_to(&mut tx.open(table)?, code, &mut changes)?)
            .ok_or_else(|| malformed(format!("there is no table {code}")))?;
    }
    Ok(())
}

fn malformed(error: impl Into<String>) -> ApplyError {
    ApplyError::Malformed(error.into())
}

/// Applies the next changes, as long as they are of one table.
fn apply_to<K: Key + 'static, V: Value + 'static>(
    rows: &mut TableWriter<'_, K, V>,
    code: u8,
    changes: &mut Peekable<ChangeDecoder<'_>>,
) -> Result<(), ApplyError>
where
    for<'a> K::SelfType<'a>: Borrow<K::SelfType<'a>>,
{
    let is_of_table = |next: &Result<(u8, EncodedChange<'_>), _>| {
        next.as_ref().is_ok_and(|(table, _)| *table == code)
    };
    while let Some(Ok((_, change))) = changes.next_if(is_of_table) {
        match change {
            EncodedChange::Put { key, value } => {
                let (key, value) = row::<K, V>(code, key, value)?;
                rows.insert(key, value)?;
            }
            EncodedChange::Remove { key } => {
                rows.remove(key_of::<K>(code, key)?)?;
            }
            EncodedChange::RemoveRange { first, last } => {
                let bounds = (key_of::<K>(code, first)?, key_of::<K>(code, last)?);
                if K::compare(first, last) == Ordering::Greater {
                    return Err(malformed("a range that ends before it begins"));
                }
                if code == META_CODE {
                    return Err(malformed("a range that may contain a local row"));
                }
                rows.remove_range(bounds.0, bounds.1)?;
            }
            EncodedChange::Run { rows: run_rows } => {
                let mut run = rows.run_after(Bound::Excluded(key_of::<K>(code, run_rows[0].0)?))?;
                for (key, value) in run_rows {
                    let (key, value) = row::<K, V>(code, key, value)?;
                    run.push(key, value).map_err(out_of_order)?;
                }
                run.close()?;
            }
        }
    }
    Ok(())
}

fn row<'a, K: Key, V: Value>(
    table: u8,
    key: &'a [u8],
    value: &'a [u8],
) -> Result<(K::SelfType<'a>, V::SelfType<'a>), ApplyError> {
    let fitting = key_of::<K>(table, key)?;
    if !fits::<V>(value) {
        return Err(malformed(format!("an invalid value for table {table}")));
    }
    let schema = SCHEMA.to_le_bytes();
    let versions = [
        (META_SCHEMA, schema.as_slice()),
        (META_FIELDS, known_fields().as_bytes()),
    ];
    if table == META_CODE
        && versions
            .iter()
            .any(|(name, own)| key == name.as_bytes() && value != *own)
    {
        return Err(ApplyError::OtherVersion);
    }
    Ok((fitting, V::from_bytes(value)))
}

fn key_of<K: Key>(table: u8, key: &[u8]) -> Result<K::SelfType<'_>, ApplyError> {
    if !fits::<K>(key) {
        return Err(malformed(format!("an invalid key for table {table}")));
    }
    if tables::is_local(table, key) {
        return Err(malformed("a local row"));
    }
    Ok(K::from_bytes(key))
}

/// An unordered run is an error in the changes; other errors come from the file.
fn out_of_order(error: StoreError) -> ApplyError {
    match error {
        StoreError::Engine(engine) if matches!(*engine, redb::Error::UnorderedKey) => {
            malformed("a run whose rows are not in order")
        }
        error => error.into(),
    }
}
