//! The digest of all rows, and the table `outbox`: the changes of commits that are not published yet.
//!
//! All rows are written through `store/write_tx`, a typed wrapper around redb's tables. Once a database is published
//! (`Writer::mark_published`), it also records each write in order: put, remove, remove a range, and runs of ascending
//! keys (`store/format/changes.rs`). The commit stores these changes in the table `outbox`, in the same transaction. A
//! database that is not published has no recorder and no cost.
//!
//! A *digest* of all rows is the sum of their hashes. Each commit updates it by the old and new rows, and stores it.
//! It stays correct if the outbox is dropped because there are too many changes. A replica updates its digest by the
//! rows that it had itself. So a wrong row makes the sums differ.
//!
//! Changes stay in the outbox until the note `NAME.published`, next to the file, says that the bucket has them. The
//! outbox is dropped at 256 MiB, at a quarter of the file, at 64 MiB in one commit, and by a compaction. If it had
//! unpublished commits, the publisher finds a gap, and publishes a whole state: all rows as runs, in the same encoding.

use redb::{Key, ReadOnlyTable, ReadTransaction, ReadableTable, Value};
use serde::{Deserialize, Serialize};

use super::rows::{ShortHash, hash, unseal};
use super::tables::{CODED_TABLES, is_local, on_table};
use crate::model::{CommitInfo, RowDigest};
use crate::store::{Result, StoreError};

/// The length of each part of a commit's changes except the last, in bytes.
pub const PART_BYTES: usize = 1 << 20;

/// The header of a commit's changes.
#[derive(Debug, Serialize, Deserialize)]
pub struct OutboxHeader {
    pub commit: CommitInfo,
    pub hash: ShortHash,
    /// The bytes of all changes ever written to this outbox. The difference of two headers is what was written in
    /// between.
    pub written: u64,
}

type OutboxKey = (u64, u32);

pub fn next_header(
    outbox: &impl ReadableTable<OutboxKey, &'static [u8]>,
    seq: u64,
) -> Result<Option<OutboxHeader>> {
    let Some(from) = seq.checked_add(1) else {
        return Ok(None);
    };
    let next = outbox.range((from, 0)..)?.next().transpose()?;
    next.map(|(key, bytes)| open_header(key.value(), bytes.value()))
        .transpose()
}

pub fn last_header(
    outbox: &impl ReadableTable<OutboxKey, &'static [u8]>,
) -> Result<Option<OutboxHeader>> {
    let Some(last) = outbox.last()?.map(|(key, _)| key.value().0) else {
        return Ok(None);
    };
    let header = outbox.get((last, 0))?;
    header
        .map(|bytes| open_header((last, 0), bytes.value()))
        .transpose()
}

fn open_header(key: OutboxKey, bytes: &[u8]) -> Result<OutboxHeader> {
    let header: OutboxHeader = unseal("outbox", bytes)?;
    let found = (header.commit.last_seq, 0);
    if found == key {
        Ok(header)
    } else {
        Err(damaged(
            key.0,
            "its header is missing, or of another commit",
        ))
    }
}

/// Reads the changes of a commit, and checks their hash.
pub fn read_changes(
    outbox: &impl ReadableTable<OutboxKey, &'static [u8]>,
    header: &OutboxHeader,
) -> Result<Vec<u8>> {
    let mut changes = Vec::new();
    for row in outbox.range((header.commit.last_seq, 1)..=(header.commit.last_seq, u32::MAX))? {
        changes.extend_from_slice(row?.1.value());
        if changes.len() as u64 > header.commit.bytes {
            break;
        }
    }
    if changes.len() as u64 == header.commit.bytes && hash(&changes) == header.hash {
        Ok(changes)
    } else {
        Err(damaged(
            header.commit.last_seq,
            "its changes do not match their hash",
        ))
    }
}

fn damaged(seq: u64, detail: &str) -> StoreError {
    StoreError::damaged("outbox", format!("the commit of seq {seq}: {detail}"))
}

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
    let length = u32::try_from(key.len()).unwrap_or(u32::MAX);
    let hash = blake3::Hasher::new()
        .update(&[table])
        .update(&length.to_le_bytes())
        .update(key)
        .update(value)
        .finalize();
    let (lanes, _) = hash.as_bytes().as_chunks::<8>();
    std::array::from_fn(|lane| u64::from_le_bytes(lanes[lane]))
}

/// Reads all rows, and returns their digest.
pub fn digest_of(transaction: &ReadTransaction) -> Result<RowDigest> {
    let mut digest = RowDigest::default();
    for_each_row(transaction, &mut |table, key, value| {
        digest.add(table, key, value);
        Ok::<_, StoreError>(())
    })?;
    Ok(digest)
}

/// A callback that receives the code of the table, the key and the value.
type EachRow<'a, E> = dyn FnMut(u8, &[u8], &[u8]) -> Result<(), E> + 'a;

/// Calls `each` with every row that is not local, in the order of tables and keys.
pub fn for_each_row<E: From<StoreError>>(
    transaction: &ReadTransaction,
    each: &mut EachRow<'_, E>,
) -> Result<(), E> {
    for code in 0..CODED_TABLES {
        on_table!(code, table => {
            let table = transaction.open_table(table).map_err(StoreError::from)?;
            for_each_row_of(code, &table, each)?;
        });
    }
    Ok(())
}

fn for_each_row_of<K: Key + 'static, V: Value + 'static, E: From<StoreError>>(
    code: u8,
    table: &ReadOnlyTable<K, V>,
    each: &mut EachRow<'_, E>,
) -> Result<(), E> {
    for entry in table.iter().map_err(StoreError::from)? {
        let (key, value) = entry.map_err(StoreError::from)?;
        let key = key.value();
        let value = value.value();
        let key = K::as_bytes(&key);
        let value = V::as_bytes(&value);
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
        rows.iter()
            .for_each(|(table, key, value)| digest.add(*table, key, value));
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
    fn the_digest_of_a_known_row_is_unchanged() {
        let hash = blake3::hash(b"\x05\x02\x00\x00\x00kyvalue");
        let lane =
            |at: usize| u64::from_le_bytes(hash.as_bytes()[at * 8..][..8].try_into().unwrap());
        let expected = RowDigest([lane(0), lane(1), lane(2), lane(3)]);
        assert_eq!(of(&[(5, b"ky", b"value")]), expected);
    }
}
