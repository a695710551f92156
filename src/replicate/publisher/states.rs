//! Writing a whole state: its parts, several at a time, then its entry, then its manifest.
//!
//! **A state is also written** when much has changed since the last one, so that new replicas start from it. It is an
//! entry too, with the head and digest of the entry before. Replicas that have these rows do not load it. Commits wait
//! meanwhile: for a fraction of a second with 12,000 records, and longer with more. The heartbeat goes on. The parts
//! are written before the entry, four at a time, and the manifest after it. If a publisher is killed in between, the
//! next entry is another state, before any commits. Otherwise new replicas could not get past the one without a
//! manifest.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use super::Publisher;
use super::end::NewestState;
use super::publish_error::{PublishError, Result};
use super::retry::Retry;
use super::sweep::sweep;
use crate::bucket::Bucket;
use crate::model::now;
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
    pub(super) fn replace_by_state(&mut self) -> Result<()> {
        // The database may have been replaced by a file that is not marked as published.
        self.mark_published()?;
        self.put_state(self.reader.origin()?)
    }

    /// Writes a state as the next entry, then deletes old objects. Commits wait meanwhile.
    pub(super) fn put_state(&mut self, view: OriginView) -> Result<()> {
        let slot = self.known.end.slot + 1;
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
        if !self
            .retry
            .create(&self.log.bucket, &name, &manifest.encode()?)?
        {
            let detail = "it is of another log; publish to another prefix";
            return Err(ReplicaError::object(name, detail).into());
        }
        tracing::info!(slot, seq = header.seq, bytes, "published a whole state");
        self.status.update(|progress| progress.states += 1);
        self.state = NewestState::of(&manifest, bytes);
        self.note();
        // Deletion needs the store's present time, which the heartbeat gives.
        self.heartbeat.written_at = None;
        self.heartbeat_if_due()?;
        sweep(&self.log, &self.retry, self.settings.keep)
    }

    /// Writes all rows of a view as parts of the state in `slot`. The heartbeat goes on meanwhile. Returns the parts,
    /// and their size in the store in bytes.
    fn put_parts(&mut self, view: &OriginView, slot: u64) -> Result<(Vec<PartRef>, u64)> {
        let random = layout::new_random().map_err(StoreError::from)?;
        let bucket = Arc::clone(&self.log.bucket);
        let mut stored = Vec::new();
        let digest = thread::scope(|scope| {
            let bucket = &bucket;
            let mut sending = VecDeque::new();
            let mut indexes = 0..;
            let digest = view.dump(PART_BYTES, &mut |changes| {
                self.heartbeat_if_due()?;
                if sending.len() == AT_ONCE {
                    stored.extend(sending.pop_front().map(join).transpose()?);
                }
                let index = indexes.next().unwrap_or_default();
                let name = layout::part(slot, &random, index);
                let retry = self.retry.clone();
                sending.push_back(scope.spawn(move || put_part(bucket, &retry, name, &changes)));
                Ok::<_, PublishError>(())
            })?;
            for part in sending {
                stored.push(join(part)?);
            }
            Ok::<_, PublishError>(digest)
        })?;
        if digest != view.digest()? {
            return Err(StoreError::damaged(
                "meta",
                "the rows do not add up to their stored digest",
            )
            .into());
        }
        let (parts, sizes): (Vec<_>, Vec<u64>) = stored.into_iter().unzip();
        Ok((parts, sizes.iter().sum()))
    }
}

/// A part and its size in the store, in bytes.
type StoredPart = (PartRef, u64);

/// Waits for a thread that stores a part. Its panic goes on here.
fn join(thread: ScopedJoinHandle<'_, Result<StoredPart>>) -> Result<StoredPart> {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

fn put_part(bucket: &Bucket, retry: &Retry, name: String, changes: &[u8]) -> Result<StoredPart> {
    let (encoded, part) = encode_part(name, changes)?;
    if retry.create(bucket, &part.name, &encoded)? {
        Ok((part, encoded.len() as u64))
    } else {
        Err(ReplicaError::object(part.name, "another program wrote it").into())
    }
}
