//! Writing a whole state: its parts, several at a time, then its entry, then its manifest.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::Publisher;
use super::end::NewestState;
use super::publish_error::PublishError;
use super::retry::{CreateOutcome, Retry};
use super::sweep::sweep;
use crate::bucket::Bucket;
use crate::model::RowDigest;
use crate::model::time::now;
use crate::replicate::layout;
use crate::replicate::replica::ReplicaError;
use crate::replicate::state::{Manifest, PartRef, encode_part};
use crate::store::StoreError;
use crate::store::replication::{OriginView, SCHEMA};

/// The size of a part before compression, in bytes.
const PART_BYTES: usize = 8 << 20;
/// The number of parts that are compressed and sent at a time. Replicas read as many at a time.
const AT_ONCE: usize = 4;

impl Publisher {
    /// Writes the newest commit as a whole state, whatever the end of the log is.
    pub(super) fn replace_by_state(&mut self) -> Result<(), PublishError> {
        // The database may have been replaced by a file that is not marked as published.
        self.mark_published()?;
        self.put_state(self.reader.origin()?)
    }

    /// Writes a state as the next entry, then deletes old objects. Commits wait meanwhile.
    pub(super) fn put_state(&mut self, view: OriginView) -> Result<(), PublishError> {
        let slot = self.end.map_or(1, |end| end.slot + 1);
        let parts = self.put_parts(&view, slot)?;
        let header = self.next_header(view.head()?.head(), parts.digest);
        // Lets the database reuse the pages of the view.
        drop(view);
        let Some(entry_hash) = self.put_entry(&header, &[])? else { return Ok(()) };
        self.state.is_unfinished = true;
        let manifest = Manifest {
            id: self.id,
            slot,
            entry_hash,
            schema: SCHEMA,
            seq: header.seq,
            lineage: header.lineage,
            digest: header.digest,
            at: now(),
            parts: parts.parts,
        };
        let name = layout::state(slot);
        if self.retry.create(self.log.bucket(), &name, &manifest.encode()?)? != CreateOutcome::Ours {
            return Err(ReplicaError::object(name, "it is of another log; publish to another prefix").into());
        }
        tracing::info!(slot, seq = header.seq, bytes = parts.bytes, "published a whole state");
        self.status.note(|progress| progress.states += 1);
        self.state = NewestState::of(&manifest, parts.bytes);
        self.note();
        // Deletion needs the store's present time, which the heartbeat gives.
        self.heartbeat.make_due();
        self.heartbeat_if_due()?;
        sweep(&self.log, &mut self.retry, slot, self.settings.keep)
    }

    /// Writes all rows of a view as parts of the state in `slot`. The heartbeat goes on meanwhile.
    fn put_parts(&mut self, view: &OriginView, slot: u64) -> Result<StateParts, PublishError> {
        let (bucket, first_retry) = (Arc::clone(self.log.bucket()), self.retry.for_thread());
        let random = layout::new_random().map_err(StoreError::from)?;
        let (stored, failed) = (Mutex::new(Vec::new()), Mutex::new(None));
        let put = |retry: &mut Retry, (index, changes): (usize, Vec<u8>)| {
            if lock(&failed).is_some() {
                return;
            }
            match put_part(&bucket, retry, layout::part(slot, &random, index), &changes) {
                Ok(part) => lock(&stored).push((index, part)),
                Err(error) => drop(lock(&failed).get_or_insert(error)),
            }
        };
        let state_parts = thread::scope(|scope| {
            let (sender, queue) = sync_channel(0);
            // Only the sending threads hold the receiver. When all of them have ended, sending fails and `dump` stops.
            let queue = Arc::new(Mutex::new(queue));
            for _ in 0..AT_ONCE {
                let (queue, mut retry, put) = (Arc::clone(&queue), first_retry.for_thread(), &put);
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
                if let Err(error) = self.heartbeat_if_due() {
                    lock(&failed).get_or_insert(error);
                }
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
}

/// The parts of a state, which has no manifest yet.
struct StateParts {
    parts: Vec<PartRef>,
    digest: RowDigest,
    /// The size of the parts in the store, in bytes.
    bytes: u64,
}

/// A part and its size in the store, in bytes.
type StoredPart = (PartRef, usize);

fn next<T>(queue: &Mutex<Receiver<T>>) -> Option<T> {
    lock(queue).recv().ok()
}

fn put_part(bucket: &Bucket, retry: &mut Retry, name: String, changes: &[u8]) -> Result<StoredPart, PublishError> {
    let (encoded, part) = encode_part(name, changes)?;
    match retry.create(bucket, &part.name, &encoded)? {
        CreateOutcome::Ours => Ok((part, encoded.len())),
        CreateOutcome::Others(_) => Err(ReplicaError::object(part.name, "another program wrote it").into()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
