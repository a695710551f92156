//! Writing the objects of a whole state: several parts at a time, then the manifest.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::end::unusable;
use super::error::PublishError;
use super::retry::{CreateOutcome, Retry};
use crate::bucket::Bucket;
use crate::model::RowDigest;
use crate::replicate::layout;
use crate::replicate::state::{Manifest, PartRef, encode_part};
use crate::store::StoreError;
use crate::store::replication::OriginView;

/// The size of a part before compression, in bytes.
const PART_BYTES: usize = 8 << 20;
/// The number of parts that are compressed and sent at a time. Replicas read as many at a time.
const AT_ONCE: usize = 4;

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
        CreateOutcome::Others(_) => Err(unusable(bucket, &part.name, "another program wrote it")),
    }
}

/// Creates a manifest. If the state has a manifest with other parts already, returns that one.
pub(super) fn put_manifest(
    bucket: &Bucket,
    retry: &mut Retry,
    manifest: &Manifest,
) -> Result<Option<Manifest>, PublishError> {
    let name = layout::state(manifest.slot);
    let (bytes, _) = manifest.encode()?;
    let CreateOutcome::Others(found) = retry.create(bucket, &name, &bytes)? else { return Ok(None) };
    match Manifest::decode(&found) {
        Ok((other, _)) if (other.slot, other.entry_hash) == (manifest.slot, manifest.entry_hash) => Ok(Some(other)),
        Ok(_) => Err(unusable(bucket, &name, "it is of another log; publish to another prefix")),
        Err(error) => Err(unusable(bucket, &name, error)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
