//! The table `outbox`: the changes of commits that are not published yet.
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
//! outbox is dropped at 256 MiB, at a quarter of the file, or at 64 MiB in one commit. The publisher then finds a gap,
//! and publishes a whole state: all rows as runs, in the same encoding.

use redb::ReadableTable;
use serde::{Deserialize, Serialize};

use crate::model::CommitInfo;
use crate::store::StoreError;
use crate::store::format::codec::{ShortHash, hash, unseal};

/// The length of each part of a commit's changes except the last, in bytes.
pub(in crate::store) const PART_BYTES: usize = 1 << 20;

/// The header of a commit's changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct OutboxHeader {
    pub commit: CommitInfo,
    pub hash: ShortHash,
    /// The bytes of all changes ever written to this outbox. The difference of two headers is what was written in
    /// between.
    pub written: u64,
}

type OutboxKey = (u64, u32);

pub(in crate::store) fn next_header(
    outbox: &impl ReadableTable<OutboxKey, &'static [u8]>,
    seq: u64,
) -> Result<Option<OutboxHeader>, StoreError> {
    let Some(from) = seq.checked_add(1) else { return Ok(None) };
    let next = outbox.range((from, 0)..)?.next().transpose()?;
    next.map(|(key, bytes)| open_header(key.value(), bytes.value())).transpose()
}

pub(in crate::store) fn last_header(
    outbox: &impl ReadableTable<OutboxKey, &'static [u8]>,
) -> Result<Option<OutboxHeader>, StoreError> {
    let Some(last) = outbox.last()?.map(|(key, _)| key.value().0) else { return Ok(None) };
    let header = outbox.get((last, 0))?;
    header.map(|bytes| open_header((last, 0), bytes.value())).transpose()
}

fn open_header(key: OutboxKey, bytes: &[u8]) -> Result<OutboxHeader, StoreError> {
    let header: OutboxHeader = unseal("outbox", bytes)?;
    let found = (header.commit.last_seq, 0);
    if found == key { Ok(header) } else { Err(damaged(key.0, "its header is missing, or of another commit")) }
}

/// Reads the changes of a commit, and checks their hash.
pub(in crate::store) fn read_changes(
    outbox: &impl ReadableTable<OutboxKey, &'static [u8]>,
    header: &OutboxHeader,
) -> Result<Vec<u8>, StoreError> {
    let mut changes = Vec::new();
    for row in outbox.range((header.commit.last_seq, 1)..=(header.commit.last_seq, u32::MAX))? {
        changes.extend_from_slice(row?.1.value());
        if u64::try_from(changes.len()).map_or(true, |found| found > header.commit.bytes) {
            break;
        }
    }
    if u64::try_from(changes.len()) == Ok(header.commit.bytes) && hash(&changes) == header.hash {
        Ok(changes)
    } else {
        Err(damaged(header.commit.last_seq, "its changes do not match their hash"))
    }
}

/// Reads the whole outbox to check it.
pub(in crate::store) fn read_all(outbox: &impl ReadableTable<OutboxKey, &'static [u8]>) -> Result<(), StoreError> {
    let mut last = 0;
    while let Some(header) = next_header(outbox, last)? {
        read_changes(outbox, &header)?;
        last = header.commit.last_seq;
    }
    Ok(())
}

fn damaged(seq: u64, detail: &str) -> StoreError {
    StoreError::damaged("outbox", format!("the commit of seq {seq}: {detail}"))
}
