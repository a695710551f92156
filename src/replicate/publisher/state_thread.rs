//! A thread that writes a whole state next to the log, while entries continue, and then deletes old objects.
//!
//! The state is that of the last entry: its view was taken while that entry was the end of the log. A manifest names
//! the parts only if their rows add up to the digest in the entry.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::end::{Growth, LastEntry};
use super::error::PublishError;
use super::parts::{StoredState, put_manifest, put_parts};
use super::progress::PublisherStatus;
use super::retry::Retry;
use super::sweep::sweep;
use crate::bucket::Bucket;
use crate::model::DatabaseId;
use crate::replicate::follower::LogReader;
use crate::store::replication::OriginView;

#[derive(Debug)]
pub(super) struct StateThread {
    /// The size of the log since the previous state, when this one began.
    before: Growth,
    thread: JoinHandle<Result<StoredState, PublishError>>,
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
        let parts = put_parts(&self.bucket, &self.retry, &view, self.end.slot)?;
        // Lets the database reuse the pages of the view.
        drop(view);
        let stored = put_manifest(&self.bucket, &mut self.retry, self.id, self.end, parts)?;
        self.status.note(|progress| progress.states += 1);
        if let Some(keep) = self.keep {
            sweep(&LogReader::new(self.bucket), &mut self.retry, self.end, keep)?;
        }
        Ok(stored)
    }
}
