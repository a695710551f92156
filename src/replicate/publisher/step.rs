//! Putting what waits as the next entry of the log.

use std::time::Instant;

use super::Publisher;
use super::end::read_entry;
use super::error::PublishError;
use super::life::WantedState;
use super::patience::Made;
use crate::model::time::now;
use crate::model::{CommitInfo, Head, RowDigest};
use crate::replicate::entry::{self, Header};
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::replicate::state::PartRef;
use crate::store::StoreError;
use crate::store::replication::SCHEMA;
use crate::store::replication::{OriginView, Pending};

/// The most bytes of changes that are joined into one entry.
const ENTRY_BYTES: u64 = 64 << 20;

/// What is to be put next.
enum Next {
    Nothing,
    /// Commits with their changes.
    Commits(Vec<CommitInfo>, Vec<Vec<u8>>),
    State,
}

impl Publisher {
    /// Puts one entry, if something waits and it is time; returns whether nothing waits.
    pub(super) fn publish_waiting(&mut self) -> Result<bool, PublishError> {
        let newest = self.follower.refresh()?.commit();
        if self.seen == Some(newest) {
            return Ok(true);
        }
        if !self.settings.once && self.put_at.is_some_and(|at| at.elapsed() < self.settings.every) {
            return Ok(false);
        }
        let view = self.follower.origin()?;
        match self.next(&view)? {
            Next::Nothing => {
                self.seen = Some(view.head()?);
                return Ok(true);
            }
            Next::Commits(commits, changes) => {
                self.put_commits(&commits, &changes)?;
                // Under steady commits there is always something that waits.
                if self.is_state_due() {
                    self.begin_state(view)?;
                }
            }
            Next::State => {
                drop(view);
                self.put_state_entry()?;
            }
        }
        Ok(false)
    }

    fn next(&mut self, view: &OriginView) -> Result<Next, PublishError> {
        let Some(end) = self.end else { return Ok(Next::State) };
        if !view.holds(end.head.seq, end.head.lineage)? {
            // Another file took the place while this publisher ran.
            if view.restored_over()?.is_some_and(|over| over.seq >= end.head.seq) {
                return Ok(Next::State);
            }
            let last = read_entry(&self.bucket, &mut self.patience, end.slot)?;
            let Some((header, _)) = last else {
                return Err(self.missing(end.slot));
            };
            return Err(self.diverged(view, &header, true)?);
        }
        let read = read_waiting(view, end.head);
        if let Some(damage) = read.as_ref().err().and_then(StoreError::outbox_damage) {
            tracing::error!(
                "what waits in {} to be published is damaged ({damage}); a whole state goes out in its place. Run `medfeed \
                 check`: there may be more",
                self.path.display()
            );
            return Ok(Next::State);
        }
        Ok(read?)
    }

    fn missing(&self, slot: u64) -> PublishError {
        super::end::unusable(
            &self.bucket,
            &layout::log(slot),
            "it was put from here and is missing now; look who deletes objects there",
        )
    }

    fn put_commits(&mut self, commits: &[CommitInfo], changes: &[Vec<u8>]) -> Result<(), PublishError> {
        let Some(last) = commits.last() else { return Ok(()) };
        let head = Head { seq: last.last_seq, lineage: last.lineage };
        let header = Header { commits: commits.to_vec(), ..self.next_header(head, last.digest, None) };
        let changes: Vec<&[u8]> = changes.iter().map(Vec::as_slice).collect();
        self.put_entry(&header, &changes)
    }

    /// The header of the next entry, without commits.
    pub(super) fn next_header(&self, head: Head, digest: RowDigest, state: Option<Vec<PartRef>>) -> Header {
        Header {
            id: self.id,
            slot: self.end.map_or(1, |end| end.slot + 1),
            parent: self.end.map_or_else(Hash::default, |end| end.hash),
            schema: SCHEMA,
            who: self.who.clone(),
            at: now(),
            commits: Vec::new(),
            seq: head.seq,
            lineage: head.lineage,
            digest,
            state,
        }
    }

    /// Creates the next entry: the commit point. Its bytes are made once, so that an answer that was lost is known again.
    pub(super) fn put_entry(&mut self, header: &Header, changes: &[&[u8]]) -> Result<(), PublishError> {
        let (bytes, hash) = entry::encode(header, changes)?;
        let made = self.patience.create(&self.bucket, &layout::log(header.slot), &bytes)?;
        self.put_at = Some(Instant::now());
        match made {
            Made::Others(found) => self.judge(header.slot, &found),
            Made::Ours => {
                self.entries += 1;
                // The last entry is there again, whatever was lost.
                self.wanted_state = self.wanted_state.map(|_| WantedState::Beside);
                self.standing.note(|progress| {
                    progress.entries += 1;
                    progress.states += u64::from(header.state.is_some());
                });
                self.growth.entries += 1;
                self.growth.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                self.take_end(header, hash)?;
                let (slot, seq, bytes) = (header.slot, header.seq, bytes.len());
                match &header.state {
                    None => tracing::info!(slot, seq, commits = header.commits.len(), bytes, "published"),
                    Some(parts) => tracing::info!(slot, seq, parts = parts.len(), "published a whole state"),
                }
                Ok(())
            }
        }
    }
}

/// Reads what a database has after the end of the log.
fn read_waiting(view: &OriginView, end: Head) -> Result<Next, StoreError> {
    Ok(match view.pending_after(end.seq, ENTRY_BYTES)? {
        Pending::Commits(commits) if commits.first().is_some_and(|first| first.base == end) => {
            let changes = commits.iter().map(|commit| view.changes(commit)).collect::<Result<_, _>>()?;
            Next::Commits(commits, changes)
        }
        Pending::Nothing if view.head()?.seq == end.seq => Next::Nothing,
        // An older program wrote without an outbox, or too much waited.
        Pending::Nothing | Pending::Commits(_) | Pending::Gap => Next::State,
    })
}
