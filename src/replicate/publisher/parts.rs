//! The objects of a whole state: parts that hold all rows in order, several on their way at once, and the manifest that names
//! them.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::end::unusable;
use super::error::PublishError;
use super::patience::{Made, Patience};
use crate::bucket::Bucket;
use crate::model::RowDigest;
use crate::replicate::layout;
use crate::replicate::state::{Manifest, PartRef, encode_part};
use crate::store::StoreError;
use crate::store::replication::OriginView;

/// The size of a part before it is deflated, in bytes.
const PART_BYTES: usize = 8 << 20;
/// How many parts are deflated and put at once, as many as replicas read at once.
const AT_ONCE: usize = 4;

/// The parts of a state in the bucket.
pub(super) struct Dumped {
    pub parts: Vec<PartRef>,
    pub digest: RowDigest,
    /// Their bytes in the store.
    pub bytes: u64,
}

/// A part and its bytes in the store.
type Stored = (PartRef, usize);

/// Puts all rows that a view sees as parts of the state after a slot.
pub(super) fn put_parts(
    bucket: &Bucket,
    patience: &Patience,
    view: &OriginView,
    slot: u64,
) -> Result<Dumped, PublishError> {
    let random = layout::new_random().map_err(StoreError::from)?;
    let (stored, failed) = (Mutex::new(Vec::new()), Mutex::new(None));
    let put = |patience: &mut Patience, (index, changes): (usize, Vec<u8>)| {
        if lock(&failed).is_some() {
            return;
        }
        match put_part(bucket, patience, layout::part(slot, &random, index), &changes) {
            Ok(part) => lock(&stored).push((index, part)),
            Err(error) => drop(lock(&failed).get_or_insert(error)),
        }
    };
    let dumped = thread::scope(|scope| {
        let (hand_over, handed) = sync_channel(0);
        // Only those who put hold it: once none of them lives, the walk ends.
        let handed = Arc::new(Mutex::new(handed));
        for _ in 0..AT_ONCE {
            let (handed, mut patience, put) = (Arc::clone(&handed), patience.another(), &put);
            scope.spawn(move || {
                while let Some(part) = next(&handed) {
                    put(&mut patience, part);
                }
            });
        }
        drop(handed);
        let mut indexes = 0..;
        view.dump(PART_BYTES, &mut |changes| {
            let index = indexes.next().unwrap_or_default();
            if hand_over.send((index, changes)).is_ok() && lock(&failed).is_none() {
                return Ok(());
            }
            // Only ends the walk.
            Err(StoreError::damaged("(pages)", "a part of a state could not be put"))
        })
    });
    if let Some(error) = into_inner(failed) {
        return Err(error);
    }
    let digest = dumped?;
    if digest != view.digest()? {
        return Err(StoreError::damaged("meta", "the rows do not add up to the digest that is kept of them").into());
    }
    let mut stored: Vec<(usize, Stored)> = into_inner(stored);
    stored.sort_unstable_by_key(|(index, _)| *index);
    let bytes = stored.iter().map(|(_, (_, bytes))| u64::try_from(*bytes).unwrap_or(u64::MAX)).sum();
    Ok(Dumped { parts: stored.into_iter().map(|(_, (part, _))| part).collect(), digest, bytes })
}

/// Takes the next part; `None` when there is none any more.
fn next<T>(handed: &Mutex<Receiver<T>>) -> Option<T> {
    lock(handed).recv().ok()
}

fn put_part(bucket: &Bucket, patience: &mut Patience, name: String, changes: &[u8]) -> Result<Stored, PublishError> {
    let (encoded, part) = encode_part(name, changes)?;
    match patience.create(bucket, &part.name, &encoded)? {
        Made::Ours => Ok((part, encoded.len())),
        Made::Others(_) => Err(unusable(bucket, &part.name, "somebody else put it")),
    }
}

/// Creates a manifest. Returns the one that is there already, if there is one of that state: it names other parts.
pub(super) fn put_manifest(
    bucket: &Bucket,
    patience: &mut Patience,
    manifest: &Manifest,
) -> Result<Option<Manifest>, PublishError> {
    let name = layout::state(manifest.slot);
    let (bytes, _) = manifest.encode()?;
    let Made::Others(found) = patience.create(bucket, &name, &bytes)? else { return Ok(None) };
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
