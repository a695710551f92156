//! Writing the heartbeat. It names the last entry, because replicas take an empty slot for the end of the log only if
//! the heartbeat agrees. Before each heartbeat the publisher looks for another publisher, and checks that the bucket
//! still holds its last objects.

use std::time::Instant;

use super::Publisher;
use super::end::{LastEntry, later_states, list_log, read_entry, read_manifest};
use super::error::PublishError;
use super::fence::describe_takeover;
use super::heartbeat_state::{WantedState, is_due};
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
        self.check_for_loss(end, has_end)?;
        self.write_heartbeat(end)
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

    fn write_heartbeat(&mut self, end: LastEntry) -> Result<(), PublishError> {
        let seq = self.follower.refresh()?.commit().seq.max(end.head.seq);
        let at = self.heartbeat.next_at();
        let who = self.user_part().to_owned();
        let alive = Heartbeat { id: self.id, slot: end.slot, hash: end.hash, seq, at, who };
        let bytes = alive.encode()?;
        self.retry.run(|| self.bucket.put(layout::ALIVE, &bytes))?;
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
        for later in later_states(&self.bucket, &mut self.retry, slot)? {
            let manifest = read_manifest(&self.bucket, &mut self.retry, later)?;
            if manifest.is_none_or(|manifest| (manifest.slot, manifest.entry_hash) != (slot, hash)) {
                let by = match read_entry(&self.bucket, &mut self.retry, later) {
                    Ok(Some((entry, _))) => describe_takeover(&entry),
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
        let manifest = read_manifest(&self.bucket, &mut self.retry, state.slot);
        let is_slot_free = state.slot != end.slot || matches!(manifest, Ok(None));
        let mut lost = match manifest {
            Ok(Some(_)) if has_end => None,
            Ok(Some(_)) => Some(layout::log(end.slot)),
            Ok(None) => Some(name),
            Err(error) if error.is_of_object() => Some(name),
            Err(error) => return Err(error),
        };
        if lost.is_none() && self.heartbeat.count % LIST_EVERY == LIST_EVERY - 1 {
            lost = state.lost_part(&self.bucket, &mut self.retry)?;
            if lost.is_none() {
                let slots = list_log(&self.bucket, &mut self.retry, Some(state.slot))?;
                let present = slots.iter().map(|(slot, _)| *slot);
                let gap = (state.slot + 1..=end.slot)
                    .zip(present.chain(std::iter::repeat(0)))
                    .find(|(at, found)| at != found);
                lost = gap.map(|(slot, _)| layout::log(slot));
            }
        }
        let Some(lost) = lost else { return Ok(()) };
        tracing::error!(
            "`{lost}` was published from here and is gone or damaged, and new replicas cannot start. Publishing a \
             whole state now; find out what deletes or changes objects in {}",
            self.bucket.url()
        );
        self.wanted_state = Some(if has_end && is_slot_free { WantedState::NextToLog } else { WantedState::Entry });
        Ok(())
    }
}
