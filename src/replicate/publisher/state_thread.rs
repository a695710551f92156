//! A thread that writes a whole state next to the log, while entries continue, and then deletes old objects.
//!
//! The state is that of the last entry: its view was taken while that entry was the end of the log. A manifest names
//! the parts only if their rows add up to the digest in the entry.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::end::{Growth, LastEntry, StateObjects};
use super::error::PublishError;
use super::parts::{put_manifest, put_parts};
use super::progress::PublisherStatus;
use super::retry::Retry;
use super::sweep::sweep;
use crate::bucket::Bucket;
use crate::model::time::now;
use crate::model::{DatabaseId, Timestamp};
use crate::replicate::state::Manifest;
use crate::store::StoreError;
use crate::store::replication::{OriginView, SCHEMA};

#[derive(Debug)]
pub(super) struct StateThread {
    /// The size of the log since the previous state, when this one began.
    before: Growth,
    thread: JoinHandle<Result<StoredState, PublishError>>,
}

#[derive(Clone, Debug)]
pub(super) struct StoredState {
    pub at: Timestamp,
    /// The size of its parts in the store, in bytes.
    pub bytes: u64,
    pub objects: StateObjects,
}

pub(super) struct StateJob {
    pub bucket: Arc<Bucket>,
    pub retry: Retry,
    pub status: Arc<PublisherStatus>,
    pub id: DatabaseId,
    /// The entry whose state is written.
    pub end: LastEntry,
    /// The time for which old objects are kept; `None` deletes nothing.
    pub keep: Option<Duration>,
}

impl StateThread {
    /// Starts writing the rows of a view. `before` is the size of the log since the previous state.
    pub fn begin(job: StateJob, view: OriginView, before: Growth) -> io::Result<StateThread> {
        let thread = Builder::new().name("state".to_owned()).spawn(move || job.run(view))?;
        Ok(StateThread { before, thread })
    }

    pub fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the thread. Returns the size of the log when it began, and the state.
    pub fn finish(self) -> Result<(Growth, StoredState), PublishError> {
        let put = self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        Ok((self.before, put))
    }
}

impl StateJob {
    fn run(mut self, view: OriginView) -> Result<StoredState, PublishError> {
        let put = self.put(view)?;
        if let Some(keep) = self.keep {
            sweep(&self.bucket, &mut self.retry, self.end, keep)?;
        }
        Ok(put)
    }

    fn put(&mut self, view: OriginView) -> Result<StoredState, PublishError> {
        let state_parts = put_parts(&self.bucket, &self.retry, &view, self.end.slot)?;
        // Lets the database reuse the pages of the view.
        drop(view);
        let manifest = Manifest {
            id: self.id,
            slot: self.end.slot,
            entry_hash: self.end.hash,
            schema: SCHEMA,
            seq: self.end.head.seq,
            lineage: self.end.head.lineage,
            digest: state_parts.digest,
            at: now(),
            parts: state_parts.parts,
        };
        if manifest.digest != self.end.digest {
            return Err(StoreError::damaged("meta", "the rows do not add up to the published digest").into());
        }
        let present = put_manifest(&self.bucket, &mut self.retry, &manifest)?;
        if present.is_none() {
            self.status.note(|progress| progress.states += 1);
            tracing::info!(
                slot = manifest.slot,
                seq = manifest.seq,
                bytes = state_parts.bytes,
                "published a state next to the log"
            );
        }
        let objects = StateObjects::of(manifest.slot, &present.as_ref().unwrap_or(&manifest).parts);
        Ok(StoredState { at: manifest.at, bytes: state_parts.bytes, objects })
    }
}
