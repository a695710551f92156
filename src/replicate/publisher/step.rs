//! Writing pending commits as the next entry of the log.

use std::time::Instant;

use super::Publisher;
use super::error::PublishError;
use super::heartbeat_state::WantedState;
use super::retry::CreateOutcome;
use crate::model::time::now;
use crate::model::{CommitInfo, Head, RowDigest};
use crate::replicate::entry::{self, EntryHeader};
use crate::replicate::follower::FollowError;
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::store::StoreError;
use crate::store::replication::SCHEMA;
use crate::store::replication::{OriginView, Pending};

/// The maximum size of the changes in one entry, in bytes. A larger commit gets an entry of its own.
const ENTRY_BYTES: u64 = 64 << 20;

enum NextEntry {
    Nothing,
    /// Commits with their changes.
    Commits(Vec<CommitInfo>, Vec<Vec<u8>>),
    State,
}

impl Publisher {
    /// Writes one entry, if commits are pending and it is time. Returns whether nothing is pending.
    pub(super) fn publish_waiting(&mut self) -> Result<bool, PublishError> {
        let newest = self.follower.refresh()?.commit();
        if self.seen == Some(newest) {
            return Ok(true);
        }
        if !self.settings.once && self.entry_at.is_some_and(|at| at.elapsed() < self.settings.every) {
            return Ok(false);
        }
        let view = self.follower.origin()?;
        match self.next(&view)? {
            NextEntry::Nothing => {
                self.seen = Some(view.head()?);
                return Ok(true);
            }
            NextEntry::Commits(commits, changes) => {
                self.put_commits(&commits, &changes)?;
                // Under steady commits something is always pending.
                if self.is_state_due() {
                    self.begin_state(view)?;
                }
            }
            NextEntry::State => {
                drop(view);
                self.put_state_entry()?;
            }
        }
        Ok(false)
    }

    fn next(&mut self, view: &OriginView) -> Result<NextEntry, PublishError> {
        let Some(end) = self.end else { return Ok(NextEntry::State) };
        if !view.holds(end.head.seq, end.head.lineage)? {
            // The file was replaced while this publisher ran.
            if view.is_restored_over(end.head)? {
                return Ok(NextEntry::State);
            }
            let missing = FollowError::Missing { slot: end.slot, later: end.slot };
            let last = self.retry.read(|| self.log.entry(end.slot))?.ok_or(missing)?;
            return Err(self.diverged(view, &last.header, true)?);
        }
        let read = read_waiting(view, end.head);
        if let Some(damage) = read.as_ref().err().and_then(StoreError::outbox_damage) {
            tracing::error!(
                "the pending changes in {} are damaged ({damage}); publishing a whole state instead. Run `medfeed \
                 check`: there may be more damage",
                self.path.display()
            );
            return Ok(NextEntry::State);
        }
        Ok(read?)
    }

    fn put_commits(&mut self, commits: &[CommitInfo], changes: &[Vec<u8>]) -> Result<(), PublishError> {
        let Some(last) = commits.last() else { return Ok(()) };
        let head = Head { seq: last.last_seq, lineage: last.lineage };
        let header = EntryHeader { commits: commits.to_vec(), ..self.next_header(head, last.digest) };
        let changes: Vec<&[u8]> = changes.iter().map(Vec::as_slice).collect();
        self.put_entry(&header, &changes)?;
        Ok(())
    }

    /// Returns the header of the next entry, without commits.
    pub(super) fn next_header(&self, head: Head, digest: RowDigest) -> EntryHeader {
        EntryHeader {
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
        }
    }

    /// Creates the next entry: the commit point. Its bytes are built once, so they can be recognized after a lost
    /// response. Returns false if an earlier run of this publisher has created another one.
    pub(super) fn put_entry(&mut self, header: &EntryHeader, changes: &[&[u8]]) -> Result<bool, PublishError> {
        let (bytes, hash) = entry::encode(header, changes)?;
        let made = self.retry.create(&self.bucket, &layout::log(header.slot), &bytes)?;
        self.entry_at = Some(Instant::now());
        match made {
            CreateOutcome::Others(found) => self.check_next_entry(header.slot, &found).map(|()| false),
            CreateOutcome::Ours => {
                self.entries += 1;
                // The last entry exists again.
                self.wanted_state = self.wanted_state.map(|_| WantedState::NextToLog);
                self.status.note(|progress| progress.entries += 1);
                self.growth.entries += 1;
                self.growth.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                self.advance_end(header, hash)?;
                let (slot, seq, commits, bytes) = (header.slot, header.seq, header.commits.len(), bytes.len());
                tracing::info!(slot, seq, commits, bytes, "published");
                Ok(true)
            }
        }
    }
}

fn read_waiting(view: &OriginView, end: Head) -> Result<NextEntry, StoreError> {
    Ok(match view.pending_after(end.seq, ENTRY_BYTES)? {
        Pending::Commits(commits) if commits.first().is_some_and(|first| first.base == end) => {
            let changes = commits.iter().map(|commit| view.changes(commit)).collect::<Result<_, _>>()?;
            NextEntry::Commits(commits, changes)
        }
        Pending::Nothing => NextEntry::Nothing,
        // An older program wrote without an outbox, or the outbox was dropped.
        Pending::Commits(_) | Pending::Gap => NextEntry::State,
    })
}
