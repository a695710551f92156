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
use super::retry::CreateOutcome;
use crate::model::{CommitInfo, Head, RowDigest, now};
use crate::replicate::entry::{self, EntryHeader};
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::replicate::protocol::{Action, LastEntry, Observation};
use crate::store::StoreError;
use crate::store::replication::OriginView;

/// The maximum size of the changes in one entry, in bytes. A larger commit gets an entry of its own.
const ENTRY_BYTES: u64 = 64 << 20;

/// Commits, and the changes of each.
type CommitsWithChanges = (Vec<CommitInfo>, Vec<Vec<u8>>);

/// The next entry of the log.
enum NextEntry {
    /// Everything is published, and no state is due.
    Nothing,
    /// Commits wait for [`PublishSettings::every`](super::PublishSettings::every).
    Later,
    /// Commits with their changes, and the view that they come from.
    Commits(Vec<CommitInfo>, Vec<Vec<u8>>, OriginView),
    /// A whole state of the last published commit. Replicas that have it continue with their rows.
    State(OriginView),
    /// A whole state, because the log cannot continue with changes.
    Replacement,
}

impl Publisher {
    /// Writes what is due. Returns whether nothing is pending.
    pub(super) fn publish_next(&mut self) -> Result<bool> {
        match self.next_entry()? {
            NextEntry::Nothing => return Ok(true),
            NextEntry::Later => {}
            NextEntry::Commits(commits, changes, view) => {
                self.put_commits(&commits, &changes)?;
                // Under steady commits something is always pending.
                if self.is_state_due() && self.is_at_end(&view)? {
                    self.put_state(view)?;
                }
            }
            NextEntry::State(view) => self.put_state(view)?,
            NextEntry::Replacement => self.replace_by_state()?,
        }
        Ok(false)
    }

    fn next_entry(&mut self) -> Result<NextEntry> {
        let newest = self.reader.refresh()?.commit();
        if self.seen == Some(newest) {
            if !self.is_state_due() {
                return Ok(NextEntry::Nothing);
            }
        } else if !self.settings.once
            && self
                .entry_at
                .is_some_and(|at| at.elapsed() < self.settings.every)
        {
            return Ok(NextEntry::Later);
        }
        let view = self.reader.origin()?;
        let Some(end) = self.known.end else {
            return Ok(NextEntry::Replacement);
        };
        let holds_end = view.holds(end.head.seq, end.head.lineage)?;
        // The file may have been replaced while this publisher ran.
        let database = Observation::Database {
            holds_end,
            is_restored: !holds_end && view.is_restored_over(end.head)?,
        };
        match self.known.step(database) {
            Action::Continue => {}
            Action::End(_) => return Err(self.diverged_from(&view, end)?),
            _ => return Ok(NextEntry::Replacement),
        }
        if self.state.is_unfinished {
            return Ok(NextEntry::Replacement);
        }
        match read_pending(&view, end.head) {
            Ok(Some((commits, _))) if commits.is_empty() => {
                self.seen = Some(view.head()?);
                Ok(if self.is_state_due() {
                    NextEntry::State(view)
                } else {
                    NextEntry::Nothing
                })
            }
            Ok(Some((commits, changes))) => Ok(NextEntry::Commits(commits, changes, view)),
            Ok(None) => Ok(NextEntry::Replacement),
            Err(error) => match error.outbox_damage() {
                Some(damage) => {
                    tracing::error!(
                        "the pending changes in {} are damaged ({damage}); publishing a whole state instead. Run \
                         `medfeed check`: there may be more damage",
                        self.path.display()
                    );
                    Ok(NextEntry::Replacement)
                }
                None => Err(error.into()),
            },
        }
    }

    fn is_state_due(&self) -> bool {
        self.state.is_due(now(), self.settings.state_every)
    }

    fn is_at_end(&self, view: &OriginView) -> Result<bool, StoreError> {
        Ok(self.known.end.map(|end| end.head) == Some(view.head()?.head()))
    }

    fn put_commits(&mut self, commits: &[CommitInfo], changes: &[Vec<u8>]) -> Result<()> {
        let Some(last) = commits.last() else {
            return Ok(());
        };
        let header = EntryHeader {
            commits: commits.to_vec(),
            ..self.next_header(last.head(), last.digest)
        };
        let changes: Vec<&[u8]> = changes.iter().map(Vec::as_slice).collect();
        self.put_entry(&header, &changes)?;
        Ok(())
    }

    /// Returns the header of the next entry, without commits.
    pub(super) fn next_header(&self, head: Head, digest: RowDigest) -> EntryHeader {
        let (slot, parent) = self
            .known
            .end
            .map_or((1, Hash::default()), |end| (end.slot + 1, end.hash));
        EntryHeader::new(self.id, slot, parent, &self.who, head, digest)
    }

    /// Creates the next entry: the commit point. Its bytes are built once, so they can be recognized after a lost
    /// response. Returns its hash; `None` if an earlier run of this publisher has created another one.
    pub(super) fn put_entry(
        &mut self,
        header: &EntryHeader,
        changes: &[&[u8]],
    ) -> Result<Option<Hash>> {
        let (bytes, hash) = entry::encode(header, changes)?;
        let made = self
            .retry
            .create(self.log.bucket(), &layout::log(header.slot), &bytes)?;
        match made {
            CreateOutcome::Others(found) => {
                self.check_next_entry(header.slot, &found).map(|()| None)
            }
            CreateOutcome::Ours => {
                self.entry_at = Some(Instant::now());
                self.status.update(|progress| progress.entries += 1);
                self.state
                    .add_entry(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                let action = self.observe(Observation::Created(LastEntry::of(header, hash)))?;
                let is_previous_lost = Action::Accept {
                    is_previous_lost: true,
                } == action;
                if is_previous_lost && !header.is_state() {
                    self.note_lost(layout::log(header.slot - 1));
                }
                self.note_accepted(header);
                let slot = header.slot;
                let seq = header.seq;
                let commits = header.commits.len();
                let bytes = bytes.len();
                tracing::info!(slot, seq, commits, bytes, "published");
                Ok(Some(hash))
            }
        }
    }
}

/// Returns the commits after `end` with their changes; `None` if the outbox does not reach back to `end`,
/// because it was dropped.
fn read_pending(view: &OriginView, end: Head) -> Result<Option<CommitsWithChanges>, StoreError> {
    let Some(commits) = view.pending_after(end, ENTRY_BYTES)? else {
        return Ok(None);
    };
    let changes = commits
        .iter()
        .map(|commit| view.changes(commit))
        .collect::<Result<_, _>>()?;
    Ok(Some((commits, changes)))
}
