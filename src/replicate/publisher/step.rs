//! Writing the next entry of the log: pending commits, or a whole state.
//!
//! `replicate/publisher` writes the outbox as the next entry of one log. An entry holds commits, or says that the log
//! continues from the whole state of its slot. A whole state is a manifest and the parts that it names. All objects
//! are one frame (`replicate/frame.rs`). A frame ends with a hash, names its database and slot, and has exactly one
//! encoding. Each entry names the hash of the previous one. `LogReader` (`replicate/replica/log.rs`) reads and
//! compares objects for everyone: replicas, the publisher, `check`, `backup` and `promote`.
//!
//! The bytes of an entry are built once, and sent until the store confirms them. After a refusal the publisher reads the
//! object. It may be its own, from a request whose response was lost. Other bytes fence this publisher, with one
//! exception: they come from the same file's publisher, killed while its request was under way, and this one has
//! created no entry yet. `NAME.publisher` holds a lock and a random name for this, and entries carry that name.

use std::time::Instant;

use super::Publisher;
use super::publish_error::Result;
use super::watch::is_due;
use crate::model::{CommitInfo, Head, RowDigest, now};
use crate::replicate::entry::{self, EntryHeader};
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::replicate::protocol::{Action, LastEntry, Observation};
use crate::store::StoreError;
use crate::store::replication::OriginView;

/// The maximum size of the changes in one entry, in bytes. A larger commit gets an entry of its own.
const ENTRY_BYTES: u64 = 64 << 20;

/// A commit with its encoded changes.
type CommitWithChanges = (CommitInfo, Vec<u8>);

impl Publisher {
    /// Writes what is due. Returns whether nothing is pending.
    pub(super) fn publish_next(&mut self) -> Result<bool> {
        let newest = self.reader.refresh()?.commit();
        if self.seen == Some(newest) {
            if !self.is_state_due() {
                return Ok(true);
            }
        } else if !self.settings.once && !is_due(self.entry_at, self.settings.every) {
            return Ok(false);
        }
        let view = self.reader.origin()?;
        match self.read_pending(&view)? {
            None => {
                drop(view);
                self.replace_by_state()?;
            }
            Some(commits) if commits.is_empty() => {
                self.seen = Some(view.head()?);
                if !self.is_state_due() {
                    return Ok(true);
                }
                self.put_state(view)?;
            }
            Some(commits) => {
                self.put_commits(commits)?;
                // Under steady commits something is always pending.
                if self.is_state_due() && self.known.end.head == view.head()?.head() {
                    self.put_state(view)?;
                }
            }
        }
        Ok(false)
    }

    /// Returns the commits after the end of the log; `None` if a whole state must follow, because the log cannot
    /// continue with changes.
    fn read_pending(&mut self, view: &OriginView) -> Result<Option<Vec<CommitWithChanges>>> {
        let end = self.known.end;
        if end.slot == 0 {
            return Ok(None);
        }
        // The file may have been replaced while this publisher ran.
        if !view.holds(end.head)? {
            let is_restored = view.is_restored_over(end.head)?;
            self.observe(Observation::EndIsGone { is_restored })?;
            return Ok(None);
        }
        if self.state.is_unfinished {
            return Ok(None);
        }
        let pending = with_changes(view, end.head);
        if let Err(error) = &pending
            && let Some(damage) = error.outbox_damage()
        {
            tracing::error!(
                "the pending changes in {} are damaged ({damage}); publishing a whole state instead. Run \
                 `medfeed check`: there may be more damage",
                self.path.display()
            );
            return Ok(None);
        }
        Ok(pending?)
    }

    fn is_state_due(&self) -> bool {
        self.state.is_due(now(), self.settings.state_every)
    }

    fn put_commits(&mut self, pending: Vec<CommitWithChanges>) -> Result<()> {
        let (commits, changes): (Vec<_>, Vec<_>) = pending.into_iter().unzip();
        let Some(last) = commits.last().copied() else {
            return Ok(());
        };
        let header = EntryHeader {
            commits,
            ..self.next_header(last.head(), last.digest)
        };
        let changes: Vec<&[u8]> = changes.iter().map(Vec::as_slice).collect();
        self.put_entry(&header, &changes)?;
        Ok(())
    }

    /// Returns the header of the next entry, without commits.
    pub(super) fn next_header(&self, head: Head, digest: RowDigest) -> EntryHeader {
        EntryHeader::after(self.known.end, self.id, &self.who, head, digest)
    }

    /// Creates the next entry: the commit point. Its bytes are built once, so they can be recognized after a lost
    /// response. Returns its hash; `None` if an earlier run of this publisher has created another one.
    pub(super) fn put_entry(
        &mut self,
        header: &EntryHeader,
        changes: &[&[u8]],
    ) -> Result<Option<Hash>> {
        let (bytes, hash) = entry::encode(header, changes)?;
        let name = layout::log(header.slot);
        if !self.retry.create(&self.log.bucket, &name, &bytes)? {
            self.take_next_entry(header.slot)?;
            return Ok(None);
        }
        let size = bytes.len() as u64;
        self.entry_at = Some(Instant::now());
        self.status.update(|progress| progress.entries += 1);
        self.state.add_entry(size);
        let action = self.observe(Observation::Created(LastEntry::of(header, hash)))?;
        let is_previous_lost = Action::Accept {
            is_previous_lost: true,
        } == action;
        if is_previous_lost && !header.is_state() {
            self.note_lost(layout::log(header.slot - 1));
        }
        self.note_accepted(header);
        tracing::info!(
            slot = header.slot,
            seq = header.seq,
            commits = header.commits.len(),
            bytes = size,
            "published"
        );
        Ok(Some(hash))
    }
}

/// Returns the commits after `end` with their changes; `None` if the outbox does not reach back to `end`,
/// because it was dropped.
fn with_changes(
    view: &OriginView,
    end: Head,
) -> Result<Option<Vec<CommitWithChanges>>, StoreError> {
    let Some(commits) = view.pending_after(end, ENTRY_BYTES)? else {
        return Ok(None);
    };
    let commits = commits.into_iter();
    commits
        .map(|commit| Ok(Some((commit, view.changes(&commit)?))))
        .collect()
}
