//! The digest of all rows that an origin and its replicas have in common.

use redb::{Key, ReadOnlyTable, ReadTransaction, ReadableTable, Value};

use crate::model::RowDigest;
use crate::store::StoreError;
use crate::store::format::tables::{CODED_TABLES, is_local, on_table};

impl RowDigest {
    pub(in crate::store) fn add(&mut self, table: u8, key: &[u8], value: &[u8]) {
        for (lane, part) in self.0.iter_mut().zip(lanes(table, key, value)) {
            *lane = lane.wrapping_add(part);
        }
    }

    pub(in crate::store) fn subtract(&mut self, table: u8, key: &[u8], value: &[u8]) {
        for (lane, part) in self.0.iter_mut().zip(lanes(table, key, value)) {
            *lane = lane.wrapping_sub(part);
        }
    }
}

/// The BLAKE3 hash of the table's code, the key's length (u32 LE), the key and the value, as four u64 LE.
fn lanes(table: u8, key: &[u8], value: &[u8]) -> [u64; 4] {
    let length = u32::try_from(key.len()).unwrap_or(u32::MAX).to_le_bytes();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[table, length[0], length[1], length[2], length[3]]).update(key).update(value);
    let hash = hasher.finalize();
    let mut lanes = [0; 4];
    for (lane, bytes) in lanes.iter_mut().zip(hash.as_bytes().as_chunks::<8>().0) {
        *lane = u64::from_le_bytes(*bytes);
    }
    lanes
}

/// Reads all rows, and returns their digest.
pub(in crate::store) fn digest_of(transaction: &ReadTransaction) -> Result<RowDigest, StoreError> {
    let mut digest = RowDigest::default();
    for_each_row(transaction, &mut |table, key, value| {
        digest.add(table, key, value);
        Ok(())
    })?;
    Ok(digest)
}

/// A callback that receives the code of the table, the key and the value.
type EachRow<'a> = dyn FnMut(u8, &[u8], &[u8]) -> Result<(), StoreError> + 'a;

/// Calls `each` with every row that is not local, in the order of tables and keys.
pub(in crate::store) fn for_each_row(transaction: &ReadTransaction, each: &mut EachRow<'_>) -> Result<(), StoreError> {
    for code in 0..CODED_TABLES {
        on_table!(code, table => for_each_row_of(code, &transaction.open_table(table)?, each)?);
    }
    Ok(())
}

fn for_each_row_of<K: Key + 'static, V: Value + 'static>(
    code: u8,
    table: &ReadOnlyTable<K, V>,
    each: &mut EachRow<'_>,
) -> Result<(), StoreError> {
    for entry in table.iter()? {
        let (key, value) = entry?;
        let (key, value) = (key.value(), value.value());
        let (key, value) = (K::as_bytes(&key), V::as_bytes(&value));
        if !is_local(code, key.as_ref()) {
            each(code, key.as_ref(), value.as_ref())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    type TestRow = (u8, &'static [u8], &'static [u8]);

    fn of(rows: &[TestRow]) -> RowDigest {
        let mut digest = RowDigest::default();
        rows.iter().for_each(|(table, key, value)| digest.add(*table, key, value));
        digest
    }

    #[test]
    fn every_difference_is_noticed_but_not_the_order() {
        let sound: [TestRow; 2] = [(1, b"ab", b"c"), (2, b"", b"x")];
        assert_eq!(of(&sound), of(&[sound[1], sound[0]]));
        let others: [&[TestRow]; 6] = [
            &[],
            &sound[..1],
            &[(1, b"a", b"bc"), sound[1]],
            &[(2, b"ab", b"c"), sound[1]],
            &[(1, b"ab", b"d"), sound[1]],
            &[sound[0], sound[0], sound[1]],
        ];
        for other in others {
            assert_ne!(of(other), of(&sound), "{other:?}");
        }
    }

    #[test]
    fn a_subtracted_row_leaves_no_trace() {
        let mut moved = of(&[(1, b"a", b"old"), (1, b"b", b"")]);
        moved.subtract(1, b"a", b"old");
        moved.add(1, b"a", b"new");
        assert_eq!(moved, of(&[(1, b"a", b"new"), (1, b"b", b"")]));
    }

    /// Files and objects contain digests, so their value is part of the format.
    #[test]
    fn the_digest_is_what_it_was() {
        let hash = blake3::hash(b"\x05\x02\x00\x00\x00kyvalue");
        let lane = |at: usize| u64::from_le_bytes(hash.as_bytes()[at * 8..][..8].try_into().unwrap());
        assert_eq!(of(&[(5, b"ky", b"value")]), RowDigest([lane(0), lane(1), lane(2), lane(3)]));
    }
}
