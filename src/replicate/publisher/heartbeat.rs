//! Writing the heartbeat. It names the last entry, because replicas take an empty slot for the end of the log only if
//! the heartbeat agrees. Before each heartbeat the publisher looks for another publisher, and checks that the bucket
//! still holds its last objects.

use std::time::Instant;

use super::Publisher;
use super::end::LastEntry;
use super::error::PublishError;
use super::fence::describe_takeover;
use super::heartbeat_state::{WantedState, is_due};
use crate::replicate::follower::FollowError;
use crate::replicate::frame::Hash;
use crate::replicate::heartbeat::Heartbeat;
use crate::replicate::layout;

/// Parts and entries are listed once per this many heartbeats: a list costs more than ten times as much as a read.
const LIST_EVERY: u32 = 30;

impl Publisher {
    /// Writes the heartbeat if it is due, and looks for another publisher.
    pub(super) fn heartbeat_if_due(&mut self) -> Result<(), PublishError> {
        let Some(end) = self.end else { return Ok(()) };
        let is_heartbeat_due = is_due(self.heartbeat.written_at, self.settings.heartbeat);
        if !is_heartbeat_due && !is_due(self.heartbeat.checked_at, self.settings.heartbeat / 2) {
            return Ok(());
        }
        self.heartbeat.checked_at = Some(Instant::now());
        if let Some(next) = self.retry.run(|| self.bucket.get(&layout::log(end.slot + 1)))? {
            return self.check_next_entry(end.slot + 1, &next.bytes);
        }
        if !is_heartbeat_due {
            return Ok(());
        }
        self.heartbeat.written_at = Some(Instant::now());
        let has_end = self.has_entry(end.slot)?;
        if !has_end {
            self.refuse_if_swept(end.slot, end.hash)?;
        }
        if has_end && self.heartbeat.count.is_multiple_of(2) {
            self.overtake_heartbeat()?;
        } else {
            self.check_for_loss(end, has_end)?;
        }
        self.write_heartbeat(end)
    }

    /// Reads the heartbeat. If it is ahead of this clock, as one that a replaced publisher wrote late, the next one is
    /// later.
    fn overtake_heartbeat(&mut self) -> Result<(), PublishError> {
        match self.retry.read(|| self.log.heartbeat()) {
            Ok(Some(alive)) if alive.id == self.id => self.heartbeat.follow(alive.at),
            Ok(_) | Err(FollowError::Object { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn has_entry(&mut self, slot: u64) -> Result<bool, PublishError> {
        Ok(self.retry.run(|| self.bucket.contains(&layout::log(slot)))?)
    }

    /// Writes the heartbeat at the end of a single round, unless it names the last entry already.
    pub(super) fn end_with_heartbeat(&mut self) -> Result<(), PublishError> {
        if self.heartbeat.slot != self.end.map(|end| end.slot) {
            self.heartbeat.make_due();
            self.heartbeat_if_due()?;
        }
        Ok(())
    }

    /// Writes the heartbeat. Before each further attempt it looks for another publisher, whose heartbeat this one would
    /// replace.
    fn write_heartbeat(&mut self, end: LastEntry) -> Result<(), PublishError> {
        let seq = self.follower.refresh()?.commit().seq.max(end.head.seq);
        let at = self.heartbeat.next_at();
        let who = self.user_part().to_owned();
        let alive = Heartbeat { id: self.id, slot: end.slot, hash: end.hash, seq, at, who };
        let bytes = alive.encode()?;
        let mut is_repeated = false;
        let next = self.retry.run(|| {
            if std::mem::replace(&mut is_repeated, true)
                && let Some(next) = self.bucket.get(&layout::log(end.slot + 1))?
            {
                return Ok(Some(next));
            }
            self.bucket.put(layout::ALIVE, &bytes).map(|()| None)
        })?;
        if let Some(next) = next {
            return self.check_next_entry(end.slot + 1, &next.bytes);
        }
        self.heartbeat.wrote(end.slot, at);
        Ok(())
    }

    /// Fails if another publisher was past the entry that was just created. A publisher that was suspended for weeks
    /// can find used slots free again, because old entries were deleted. Deletion follows the order of slots, so the
    /// slot is not a deleted one while the previous entry exists.
    pub(super) fn refuse_if_overtaken(&mut self, slot: u64, hash: Hash) -> Result<(), PublishError> {
        if slot > 1 && self.has_entry(slot - 1)? {
            return Ok(());
        }
        self.refuse_if_swept(slot, hash)
    }

    /// Fails if there is a state of a later slot, or another state of this slot.
    fn refuse_if_swept(&mut self, slot: u64, hash: Hash) -> Result<(), PublishError> {
        for later in self.retry.read(|| self.log.state_slots())?.into_iter().rev().filter(|later| *later >= slot) {
            let manifest = self.retry.read(|| self.log.manifest(later))?;
            if manifest.is_none_or(|manifest| (manifest.slot, manifest.entry_hash) != (slot, hash)) {
                let by = match self.retry.read(|| self.log.entry(later)) {
                    Ok(Some(entry)) => describe_takeover(&entry.header),
                    _ => format!("another publisher had continued to slot {later}"),
                };
                return Err(self.fenced(by));
            }
        }
        Ok(())
    }

    /// Checks that the newest state can be read, because replicas start from it. From time to time also checks its
    /// parts and the entries after it.
    fn check_for_loss(&mut self, end: LastEntry, has_end: bool) -> Result<(), PublishError> {
        let (None, None, Some(state)) = (&self.state_thread, self.wanted_state, &self.newest_state) else {
            return Ok(());
        };
        let name = layout::state(state.slot);
        let manifest = self.retry.read(|| self.log.manifest(state.slot));
        let is_slot_free = state.slot != end.slot || matches!(manifest, Ok(None));
        let mut lost = match manifest {
            Ok(Some(_)) if has_end => None,
            Ok(Some(_)) => Some(layout::log(end.slot)),
            Ok(None) => Some(name),
            Err(FollowError::Object { .. }) => Some(name),
            Err(error) => return Err(error.into()),
        };
        if lost.is_none() && self.heartbeat.count % LIST_EVERY == LIST_EVERY - 1 {
            lost = state.lost_part(&self.bucket, &mut self.retry)?;
            if lost.is_none() {
                let slots = self.retry.read(|| self.log.entries_after(Some(state.slot)))?;
                let present = slots.iter().map(|(slot, _)| *slot);
                let gap = (state.slot + 1..=end.slot)
                    .zip(present.chain(std::iter::repeat(0)))
                    .find(|(at, found)| at != found);
                lost = gap.map(|(slot, _)| layout::log(slot));
            }
        }
        let Some(lost) = lost else { return Ok(()) };
        self.status.note(|progress| progress.lost_objects += 1);
        tracing::error!(
            "`{lost}` was published from here and is gone or damaged, and new replicas cannot start. Publishing a \
             whole state now; find out what deletes or changes objects in {}",
            self.bucket.url()
        );
        self.wanted_state = Some(if has_end && is_slot_free { WantedState::NextToLog } else { WantedState::Entry });
        Ok(())
    }
}
