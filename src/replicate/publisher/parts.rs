//! Writing the objects of a whole state: several parts at a time, then the manifest.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::end::{LastEntry, StateObjects};
use super::error::PublishError;
use super::retry::{CreateOutcome, Retry};
use crate::bucket::Bucket;
use crate::model::time::now;
use crate::model::{DatabaseId, RowDigest, Timestamp};
use crate::replicate::follower::FollowError;
use crate::replicate::layout;
use crate::replicate::state::{Manifest, PartRef, encode_part};
use crate::store::StoreError;
use crate::store::replication::{OriginView, SCHEMA};

/// The size of a part before compression, in bytes.
const PART_BYTES: usize = 8 << 20;
/// The number of parts that are compressed and sent at a time. Replicas read as many at a time.
const AT_ONCE: usize = 4;

/// The parts of a state, which has no manifest yet.
pub(super) struct StateParts {
    pub parts: Vec<PartRef>,
    pub digest: RowDigest,
    /// The size of the parts in the store, in bytes.
    pub bytes: u64,
}

/// A part and its size in the store, in bytes.
type StoredPart = (PartRef, usize);

/// Writes all rows of a view as parts of the state after `slot`.
pub(super) fn put_parts(
    bucket: &Bucket,
    retry: &Retry,
    view: &OriginView,
    slot: u64,
) -> Result<StateParts, PublishError> {
    let random = layout::new_random().map_err(StoreError::from)?;
    let (stored, failed) = (Mutex::new(Vec::new()), Mutex::new(None));
    let put = |retry: &mut Retry, (index, changes): (usize, Vec<u8>)| {
        if lock(&failed).is_some() {
            return;
        }
        match put_part(bucket, retry, layout::part(slot, &random, index), &changes) {
            Ok(part) => lock(&stored).push((index, part)),
            Err(error) => drop(lock(&failed).get_or_insert(error)),
        }
    };
    let state_parts = thread::scope(|scope| {
        let (sender, queue) = sync_channel(0);
        // Only the sending threads hold the receiver. When all of them have ended, sending fails and `dump` stops.
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..AT_ONCE {
            let (queue, mut retry, put) = (Arc::clone(&queue), retry.for_thread(), &put);
            scope.spawn(move || {
                while let Some(part) = next(&queue) {
                    put(&mut retry, part);
                }
            });
        }
        drop(queue);
        let mut indexes = 0..;
        view.dump(PART_BYTES, &mut |changes| {
            let index = indexes.next().unwrap_or_default();
            if sender.send((index, changes)).is_ok() && lock(&failed).is_none() {
                return Ok(());
            }
            // This error only stops `dump`.
            Err(StoreError::damaged("(pages)", "a part of a state could not be written"))
        })
    });
    if let Some(error) = into_inner(failed) {
        return Err(error);
    }
    let digest = state_parts?;
    if digest != view.digest()? {
        return Err(StoreError::damaged("meta", "the rows do not add up to their stored digest").into());
    }
    let mut stored: Vec<(usize, StoredPart)> = into_inner(stored);
    stored.sort_unstable_by_key(|(index, _)| *index);
    let bytes = stored.iter().map(|(_, (_, bytes))| u64::try_from(*bytes).unwrap_or(u64::MAX)).sum();
    Ok(StateParts { parts: stored.into_iter().map(|(_, (part, _))| part).collect(), digest, bytes })
}

fn next<T>(queue: &Mutex<Receiver<T>>) -> Option<T> {
    lock(queue).recv().ok()
}

fn put_part(bucket: &Bucket, retry: &mut Retry, name: String, changes: &[u8]) -> Result<StoredPart, PublishError> {
    let (encoded, part) = encode_part(name, changes)?;
    match retry.create(bucket, &part.name, &encoded)? {
        CreateOutcome::Ours => Ok((part, encoded.len())),
        CreateOutcome::Others(_) => Err(FollowError::object(part.name, "another program wrote it").into()),
    }
}

/// A state whose manifest is in the bucket.
#[derive(Clone, Debug)]
pub(super) struct StoredState {
    pub at: Timestamp,
    /// The size of its parts in the store, in bytes.
    pub bytes: u64,
    pub objects: StateObjects,
}

/// Creates the manifest of the state after an entry. If there is one with other parts already, that one stays.
pub(super) fn put_manifest(
    bucket: &Bucket,
    retry: &mut Retry,
    id: DatabaseId,
    end: LastEntry,
    state: StateParts,
) -> Result<StoredState, PublishError> {
    if state.digest != end.digest {
        return Err(StoreError::damaged("meta", "the rows do not add up to the published digest").into());
    }
    let name = layout::state(end.slot);
    let manifest = Manifest {
        id,
        slot: end.slot,
        entry_hash: end.hash,
        schema: SCHEMA,
        seq: end.head.seq,
        lineage: end.head.lineage,
        digest: state.digest,
        at: now(),
        parts: state.parts,
    };
    let stored = match retry.create(bucket, &name, &manifest.encode()?)? {
        CreateOutcome::Ours => {
            tracing::info!(slot = end.slot, seq = end.head.seq, bytes = state.bytes, "published a whole state");
            manifest
        }
        CreateOutcome::Others(found) => match Manifest::decode(&found) {
            Ok(other) if (other.slot, other.entry_hash) == (end.slot, end.hash) => other,
            Ok(_) => return Err(FollowError::object(name, "it is of another log; publish to another prefix").into()),
            Err(error) => return Err(FollowError::object(name, error).into()),
        },
    };
    let objects = StateObjects::of(stored.slot, &stored.parts);
    Ok(StoredState { at: stored.at, bytes: state.bytes, objects })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
