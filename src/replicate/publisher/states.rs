//! Writing whole states: as an entry if there are no changes to publish, and next to the log for new replicas.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::Publisher;
use super::end::Growth;
use super::error::PublishError;
use super::heartbeat_state::WantedState;
use super::parts::{StoredState, put_manifest, put_parts};
use super::sweep::sweep;
use crate::model::time::now;
use crate::model::{RowDigest, Timestamp};
use crate::replicate::entry::EntryHeader;
use crate::store::StoreError;
use crate::store::replication::OriginView;

/// The maximum number of entries that a new replica applies after a state.
const MAX_ENTRIES: u64 = 1000;
/// The time by which a state may be ahead of this clock, in seconds. A state that is further ahead counts as old.
const AHEAD_S: i64 = 3600;
/// The size of entries that may follow any state, however small, in bytes.
const SMALL_BYTES: u64 = 1 << 20;

/// A thread that writes a whole state next to the log, while entries continue, and then deletes old objects. Its view was
/// taken while the last entry was the end of the log.
#[derive(Debug)]
pub(super) struct StateThread {
    /// The size of the log since the previous state, when this one began.
    before: Growth,
    thread: JoinHandle<Result<StoredState, PublishError>>,
}

impl Publisher {
    /// Writes a state as the next entry.
    pub(super) fn put_state_entry(&mut self) -> Result<(), PublishError> {
        // At most one state is written at a time.
        self.await_state()?;
        // The database may have been replaced by a file without the mark.
        self.mark()?;
        let view = self.follower.origin()?;
        let header = self.next_header(view.head()?.head(), RowDigest::default());
        let parts = put_parts(&self.bucket, &self.retry, &view, header.slot)?;
        let header = EntryHeader { digest: parts.digest, ..header };
        if let (true, Some(end)) = (self.put_entry(&header, &[])?, self.end) {
            let stored = put_manifest(&self.bucket, &mut self.retry, self.id, end, parts)?;
            self.status.note(|progress| progress.states += 1);
            self.growth = Growth::default();
            self.note_state(stored);
        }
        Ok(())
    }

    fn note_state(&mut self, stored: StoredState) {
        self.growth.state_bytes = stored.bytes;
        self.state_at = stored.at;
        self.newest_state = Some(stored.objects);
        self.wanted_state = None;
        self.note();
    }

    /// Whether much log has gathered since the last state, or the last state is lost, and none is being written.
    pub(super) fn is_state_due(&self) -> bool {
        if self.state_thread.is_some() {
            return false;
        }
        if self.wanted_state.is_some() {
            return true;
        }
        needs_state(self.growth, self.state_at, now(), self.settings.state_every)
    }

    /// Starts writing a state of the last entry next to the log. Does nothing if there are newer commits, which go
    /// first.
    pub(super) fn begin_state(&mut self, view: OriginView) -> Result<(), PublishError> {
        let Some(end) = self.end else { return Ok(()) };
        if view.head()?.head() != end.head {
            return Ok(());
        }
        // A fenced publisher must not delete objects. Deletion also needs the store's present time, which the heartbeat
        // gives.
        self.heartbeat.make_due();
        self.heartbeat_if_due()?;
        if self.end != Some(end) || self.wanted_state == Some(WantedState::Entry) {
            return Ok(());
        }
        // Only a publisher that created an entry deletes, because only it knows that the log is its own.
        let keep = (self.entries > 0).then_some(self.settings.keep);
        let (log, status, id) = (self.log.clone(), Arc::clone(&self.status), self.id);
        let mut retry = self.retry.for_thread();
        let work = move || {
            let parts = put_parts(log.bucket(), &retry, &view, end.slot)?;
            // Lets the database reuse the pages of the view.
            drop(view);
            let stored = put_manifest(log.bucket(), &mut retry, id, end, parts)?;
            status.note(|progress| progress.states += 1);
            if let Some(keep) = keep {
                sweep(&log, &mut retry, end, keep)?;
            }
            Ok(stored)
        };
        let thread = Builder::new().name("state".to_owned()).spawn(work);
        let thread = thread.map_err(|source| StoreError::Io { path: self.path.clone(), source })?;
        self.state_thread = Some(StateThread { before: self.growth, thread });
        Ok(())
    }

    /// Takes the result of the state thread, if it has finished.
    pub(super) fn collect_state(&mut self) -> Result<(), PublishError> {
        let done = self.state_thread.take_if(|running| running.thread.is_finished());
        done.map_or(Ok(()), |state_thread| self.finish_state(state_thread))
    }

    pub(super) fn await_state(&mut self) -> Result<(), PublishError> {
        self.state_thread.take().map_or(Ok(()), |state_thread| self.finish_state(state_thread))
    }

    fn finish_state(&mut self, StateThread { before, thread }: StateThread) -> Result<(), PublishError> {
        let put = thread.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        self.growth.entries = self.growth.entries.saturating_sub(before.entries);
        self.growth.bytes = self.growth.bytes.saturating_sub(before.bytes);
        self.note_state(put);
        Ok(())
    }
}

/// Whether much log has gathered since a state, or the state is old. The clock may have been ahead when it was written.
fn needs_state(growth: Growth, state_at: Timestamp, now: Timestamp, state_every: Duration) -> bool {
    let Growth { entries, bytes, state_bytes } = growth;
    let age_s = now.unix_s().saturating_sub(state_at.unix_s());
    let is_old = u64::try_from(age_s).map_or(age_s < -AHEAD_S, |age_s| age_s >= state_every.as_secs());
    let is_much = entries >= MAX_ENTRIES || bytes > (state_bytes / 2).max(SMALL_BYTES);
    entries > 0 && (is_much || is_old)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_due_after_many_entries_many_bytes_or_a_time() {
        // Entries, bytes, the bytes of the last state, its age in seconds, and whether a state is due every 3600 s.
        let cases = [
            (0, 0, 0, 1_000_000, false),
            (1, 0, 0, 0, false),
            (1, 0, 0, 3599, false),
            (1, 0, 0, 3600, true),
            (1, 0, 0, -1, false),
            (1, 0, 0, -3600, false),
            (1, 0, 0, -3601, true),
            (0, 0, 0, -1_000_000, false),
            (999, 0, 0, 0, false),
            (1000, 0, 0, 0, true),
            (1, 1 << 20, 0, 0, false),
            (1, (1 << 20) + 1, 0, 0, true),
            (1, 2 << 20, 4 << 20, 0, false),
            (1, (2 << 20) + 1, 4 << 20, 0, true),
        ];
        let now = Timestamp::from_unix_s(1_800_000_000);
        for (entries, bytes, state_bytes, age_s, expected) in cases {
            let growth = Growth { entries, bytes, state_bytes };
            let is_due = needs_state(growth, now.plus_s(-age_s), now, Duration::from_secs(3600));
            assert_eq!(is_due, expected, "{growth:?}, {age_s} s");
        }
        let growth = Growth { entries: 1, ..Growth::default() };
        assert!(!needs_state(growth, Timestamp::EPOCH, now, Duration::MAX));
    }
}
