//! The publisher's sign of life. Replicas trust an empty slot to be the end of the log only where it agrees, so it names the last
//! entry. Before each one the publisher looks whether another publisher took over, and whether the bucket still holds what was
//! put last.

use std::time::Instant;

use super::Publisher;
use super::end::{End, later_states, list_log, read_entry, read_manifest};
use super::error::PublishError;
use super::fence::took_over;
use super::life::{WantedState, is_due};
use crate::bucket::BucketError;
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::replicate::report::Alive;

/// Entries and parts are listed once in so many signs of life: lists cost more than ten times as much as reads.
const LIST_EVERY: u32 = 30;

impl Publisher {
    /// Overwrites the sign of life when that is due, and looks whether another publisher took over.
    pub(super) fn show_life(&mut self) -> Result<(), PublishError> {
        let Some(end) = self.end else { return Ok(()) };
        let is_life_due = is_due(self.life.shown_at, self.settings.heartbeat);
        if !is_life_due && !is_due(self.life.looked_at, self.settings.heartbeat / 2) {
            return Ok(());
        }
        self.life.looked_at = Some(Instant::now());
        if let Some(next) = self.patience.ask(|| self.bucket.get(&layout::log(end.slot + 1)))? {
            return self.judge(end.slot + 1, &next.bytes);
        }
        if !is_life_due {
            return Ok(());
        }
        self.life.shown_at = Some(Instant::now());
        let has_end = self.has_entry(end.slot)?;
        if !has_end {
            self.refuse_if_swept(end.slot, end.hash)?;
        }
        self.look_for_loss(end, has_end)?;
        self.write_life(end)
    }

    fn has_entry(&mut self, slot: u64) -> Result<bool, PublishError> {
        Ok(self.patience.ask(|| self.bucket.contains(&layout::log(slot)))?)
    }

    /// Ends a single round with a sign of life that names the last entry.
    pub(super) fn end_with_life(&mut self) -> Result<(), PublishError> {
        if self.life.slot != self.end.map(|end| end.slot) {
            self.life.make_due();
            self.show_life()?;
        }
        Ok(())
    }

    fn write_life(&mut self, end: End) -> Result<(), PublishError> {
        let seq = self.follower.refresh()?.commit().seq.max(end.head.seq);
        let at = self.life.next_at();
        let who = self.shown_who().to_owned();
        let alive = Alive { id: self.id, slot: end.slot, hash: end.hash, seq, at, who };
        let bytes = alive.encode()?;
        self.patience.ask(|| self.bucket.put(layout::ALIVE, &bytes))?;
        self.life.wrote(end.slot, at);
        Ok(())
    }

    /// Fails if another publisher has been further than an entry that was just put. A publisher that stood still for weeks finds
    /// the slots free again that others used, once they are swept. Slots are swept in their order, so that is not so while the
    /// slot before is there.
    pub(super) fn refuse_if_overtaken(&mut self, slot: u64, hash: Hash) -> Result<(), PublishError> {
        if slot > 1 && self.has_entry(slot - 1)? {
            return Ok(());
        }
        self.refuse_if_swept(slot, hash)
    }

    /// Fails if there is a state of a later slot, or another one of the same.
    fn refuse_if_swept(&mut self, slot: u64, hash: Hash) -> Result<(), PublishError> {
        for later in later_states(&self.bucket, &mut self.patience, slot)? {
            let manifest = read_manifest(&self.bucket, &mut self.patience, later)?;
            if manifest.is_none_or(|manifest| (manifest.slot, manifest.entry_hash) != (slot, hash)) {
                let by = match read_entry(&self.bucket, &mut self.patience, later) {
                    Ok(Some((entry, _))) => took_over(&entry),
                    _ => format!("another publisher had gone on to slot {later}"),
                };
                return Err(self.fenced(by));
            }
        }
        Ok(())
    }

    /// Looks whether the newest state is there, from which replicas start, and now and then whether its parts and the entries
    /// after it are.
    fn look_for_loss(&mut self, end: End, has_end: bool) -> Result<(), PublishError> {
        let (None, None, Some(state)) = (&self.beside, self.wanted_state, &self.newest_state) else { return Ok(()) };
        let name = layout::state(state.slot);
        let manifest = self.patience.ask(|| self.bucket.get(&name));
        let is_slot_free = state.slot != end.slot || matches!(manifest, Ok(None));
        let mut lost = match manifest {
            Ok(Some(_)) if has_end => None,
            Ok(Some(_)) => Some(layout::log(end.slot)),
            Ok(None) | Err(BucketError::Damaged { .. }) => Some(name),
            Err(error) => return Err(error.into()),
        };
        if lost.is_none() && self.life.count % LIST_EVERY == LIST_EVERY - 1 {
            lost = state.lost_part(&self.bucket, &mut self.patience)?;
            if lost.is_none() {
                let slots = list_log(&self.bucket, &mut self.patience, Some(state.slot))?;
                let present = slots.iter().map(|(slot, _)| *slot);
                let gap = (state.slot + 1..=end.slot)
                    .zip(present.chain(std::iter::repeat(0)))
                    .find(|(at, found)| at != found);
                lost = gap.map(|(slot, _)| layout::log(slot));
            }
        }
        let Some(lost) = lost else { return Ok(()) };
        tracing::error!(
            "`{lost}` was put from here and is gone: the bucket lost objects, and replicas that need it cannot start. A whole \
             state goes out now; look who deletes objects in {}",
            self.bucket.url()
        );
        self.wanted_state = Some(if has_end && is_slot_free { WantedState::Beside } else { WantedState::Entry });
        Ok(())
    }
}
