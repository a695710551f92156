//! Writing a whole state: its parts, several at a time, then its entry, then its manifest.
//!
//! **A state is also written** when much has changed since the last one, so that new replicas start from it. It is an
//! entry too, with the head and digest of the entry before. Replicas that have these rows do not load it. Commits wait
//! meanwhile: for a fraction of a second with 12,000 records, and longer with more. The heartbeat goes on. The parts
//! are written before the entry, four at a time, and the manifest after it. If a publisher is killed in between, the
//! next entry is another state, before any commits. Otherwise new replicas could not get past the one without a
//! manifest.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use parking_lot::Mutex;

use crate::bucket::Bucket;
use crate::model::now;
use crate::replicate::layout;
use crate::replicate::publisher::Publisher;
use crate::replicate::publisher::end::NewestState;
use crate::replicate::publisher::publish_error::Result;
use crate::replicate::publisher::retry::{CreateOutcome, Retry};
use crate::replicate::publisher::sweep::sweep;
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
    pub(super) fn replace_by_state(&mut self) -> Result<()> {
        // The database may have been replaced by a file that is not marked as published.
        self.mark_published()?;
        self.put_state(self.reader.origin()?)
    }

    /// Writes a state as the next entry, then deletes old objects. Commits wait meanwhile.
    pub(super) fn put_state(&mut self, view: OriginView) -> Result<()> {
        let slot = self.known.end.map_or(1, |end| end.slot + 1);
        let (parts, bytes) = self.put_parts(&view, slot)?;
        let header = self.next_header(view.head()?.head(), view.digest()?);
        // The heartbeat found an entry of an earlier run in the slot. The next round decides what follows it.
        if header.slot != slot {
            return Ok(());
        }
        // Lets the database reuse the pages of the view.
        drop(view);
        let Some(entry_hash) = self.put_entry(&header, &[])? else {
            return Ok(());
        };
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
            parts,
        };
        let name = layout::state(slot);
        if self
            .retry
            .create(self.log.bucket(), &name, &manifest.encode()?)?
            != CreateOutcome::Ours
        {
            return Err(ReplicaError::object(
                name,
                "it is of another log; publish to another prefix",
            )
            .into());
        }
        tracing::info!(slot, seq = header.seq, bytes, "published a whole state");
        self.status.update(|progress| progress.states += 1);
        self.state = NewestState::of(&manifest, bytes);
        self.note();
        // Deletion needs the store's present time, which the heartbeat gives.
        self.heartbeat.make_due();
        self.heartbeat_if_due()?;
        sweep(&self.log, &mut self.retry, slot, self.settings.keep)
    }

    /// Writes all rows of a view as parts of the state in `slot`. The heartbeat goes on meanwhile. Returns the parts,
    /// and their size in the store in bytes.
    fn put_parts(&mut self, view: &OriginView, slot: u64) -> Result<(Vec<PartRef>, u64)> {
        let bucket = Arc::clone(self.log.bucket());
        let first_retry = self.retry.for_thread();
        let random = layout::new_random().map_err(StoreError::from)?;
        let stored = Mutex::new(Vec::new());
        let failed = Mutex::new(None);
        let put = |retry: &mut Retry, (index, changes): (usize, Vec<u8>)| {
            if failed.lock().is_some() {
                return;
            }
            match put_part(&bucket, retry, layout::part(slot, &random, index), &changes) {
                Ok(part) => stored.lock().push((index, part)),
                Err(error) => drop(failed.lock().get_or_insert(error)),
            }
        };
        let state_parts = thread::scope(|scope| {
            let (sender, queue) = sync_channel(0);
            // Only the sending threads hold the receiver. When all of them have ended, sending fails and `dump` stops.
            let queue = Arc::new(Mutex::new(queue));
            for _ in 0..AT_ONCE {
                let queue = Arc::clone(&queue);
                let mut retry = first_retry.for_thread();
                let put = &put;
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
                    failed.lock().get_or_insert(error);
                }
                if sender.send((index, changes)).is_ok() && failed.lock().is_none() {
                    return Ok(());
                }
                // This error only stops `dump`.
                Err(StoreError::damaged(
                    "(pages)",
                    "a part of a state could not be written",
                ))
            })
        });
        if let Some(error) = failed.into_inner() {
            return Err(error);
        }
        if state_parts? != view.digest()? {
            return Err(StoreError::damaged(
                "meta",
                "the rows do not add up to their stored digest",
            )
            .into());
        }
        let mut stored: Vec<(usize, StoredPart)> = stored.into_inner();
        stored.sort_unstable_by_key(|(index, _)| *index);
        let bytes = stored
            .iter()
            .map(|(_, (_, bytes))| u64::try_from(*bytes).unwrap_or(u64::MAX))
            .sum();
        Ok((
            stored.into_iter().map(|(_, (part, _))| part).collect(),
            bytes,
        ))
    }
}

/// A part and its size in the store, in bytes.
type StoredPart = (PartRef, usize);

fn next<T>(queue: &Mutex<Receiver<T>>) -> Option<T> {
    queue.lock().recv().ok()
}

fn put_part(
    bucket: &Bucket,
    retry: &mut Retry,
    name: String,
    changes: &[u8],
) -> Result<StoredPart> {
    let (encoded, part) = encode_part(name, changes)?;
    match retry.create(bucket, &part.name, &encoded)? {
        CreateOutcome::Ours => Ok((part, encoded.len())),
        CreateOutcome::Others(_) => {
            Err(ReplicaError::object(part.name, "another program wrote it").into())
        }
    }
}
