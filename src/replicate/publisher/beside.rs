//! A whole state that is put beside the log in a thread of its own, for those who start, while entries go on; then sweeping.
//!
//! The rows are those of the entry at its slot: they are read from one state of the database, taken while that was the end of the
//! log, and no manifest names them unless they add up to the digest that the entry says.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::end::{End, Growth, StateObjects};
use super::error::PublishError;
use super::parts::{put_manifest, put_parts};
use super::patience::Patience;
use super::standing::Standing;
use super::sweep::sweep;
use crate::bucket::Bucket;
use crate::model::time::now;
use crate::model::{DatabaseId, Timestamp};
use crate::replicate::state::Manifest;
use crate::store::StoreError;
use crate::store::replication::{OriginView, SCHEMA};

/// A state that is being put.
#[derive(Debug)]
pub(super) struct Beside {
    /// What had gathered since the last one when it began.
    before: Growth,
    thread: JoinHandle<Result<Put, PublishError>>,
}

/// A state that was put.
#[derive(Clone, Debug)]
pub(super) struct Put {
    /// When its manifest was written.
    pub at: Timestamp,
    /// The bytes of its parts in the store.
    pub bytes: u64,
    /// Its objects.
    pub objects: StateObjects,
}

/// What the thread needs.
pub(super) struct Work {
    pub bucket: Arc<Bucket>,
    pub patience: Patience,
    pub standing: Arc<Standing>,
    pub id: DatabaseId,
    /// The end of the log, which the state is of.
    pub end: End,
    /// For how long what is swept is kept; `None` sweeps nothing.
    pub keep: Option<Duration>,
}

impl Beside {
    /// Begins to put what a view sees, after `before` has gathered.
    pub fn begin(work: Work, view: OriginView, before: Growth) -> io::Result<Beside> {
        let thread = Builder::new().name("state".to_owned()).spawn(move || work.run(view))?;
        Ok(Beside { before, thread })
    }

    pub fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end. Returns what had gathered when it began, and what became of it.
    pub fn finish(self) -> Result<(Growth, Put), PublishError> {
        let put = self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        Ok((self.before, put))
    }
}

impl Work {
    fn run(mut self, view: OriginView) -> Result<Put, PublishError> {
        let put = self.put(view)?;
        if let Some(keep) = self.keep {
            sweep(&self.bucket, &mut self.patience, self.end, keep)?;
        }
        Ok(put)
    }

    fn put(&mut self, view: OriginView) -> Result<Put, PublishError> {
        let dumped = put_parts(&self.bucket, &self.patience, &view, self.end.slot)?;
        // The pages of its state are free again.
        drop(view);
        let manifest = Manifest {
            id: self.id,
            slot: self.end.slot,
            entry_hash: self.end.hash,
            schema: SCHEMA,
            seq: self.end.head.seq,
            lineage: self.end.head.lineage,
            digest: dumped.digest,
            at: now(),
            parts: dumped.parts,
        };
        if manifest.digest != self.end.digest {
            return Err(StoreError::damaged("meta", "the rows do not add up to the digest that was published").into());
        }
        let present = put_manifest(&self.bucket, &mut self.patience, &manifest)?;
        if present.is_none() {
            self.standing.note(|progress| progress.states += 1);
            tracing::info!(slot = manifest.slot, seq = manifest.seq, bytes = dumped.bytes, "put a state");
        }
        let objects = StateObjects::of(manifest.slot, &present.as_ref().unwrap_or(&manifest).parts);
        Ok(Put { at: manifest.at, bytes: dumped.bytes, objects })
    }
}
