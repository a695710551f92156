//! The outbox: the changes of commits that wait to be published, in table `outbox`.

use redb::ReadableTable;
use serde::{Deserialize, Serialize};

use crate::model::CommitInfo;
use crate::store::StoreError;
use crate::store::format::codec::{ShortHash, hash, unseal};

/// The length of the parts into which changes are cut, but for the last.
pub(in crate::store) const PART_BYTES: usize = 1 << 20;

/// What stands before a commit's changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct OutboxHeader {
    /// The commit. Its last seq is in the key too.
    pub commit: CommitInfo,
    /// The hash of its changes.
    pub hash: ShortHash,
    /// The length of all changes that were ever written to this outbox, these included: what waits is told by two headers.
    pub written: u64,
}

type OutboxKey = (u64, u32);

/// The header of the first commit after a seq.
pub(in crate::store) fn next_header(
    outbox: &impl ReadableTable<OutboxKey, &'static [u8]>,
    seq: u64,
) -> Result<Option<OutboxHeader>, StoreError> {
    let Some(from) = seq.checked_add(1) else { return Ok(None) };
    let next = outbox.range((from, 0)..)?.next().transpose()?;
    next.map(|(key, bytes)| open_header(key.value(), bytes.value())).transpose()
}

/// The header of the last commit.
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

/// A commit's changes, compared with their hash.
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
        Err(damaged(header.commit.last_seq, "its changes are not what was written"))
    }
}

/// Reads all that waits.
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
