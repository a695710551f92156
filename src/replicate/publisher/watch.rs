//! Writing the heartbeat. It names the last entry, because replicas take an empty slot for the end of the log only if
//! the heartbeat agrees. Before each heartbeat the publisher looks for another publisher, and checks that the bucket
//! still holds its last objects.
//!
//! **The heartbeat** overwrites the object `alive` every `--heartbeat`. Before that, and before a failed request is
//! repeated, the publisher looks for another publisher's entry. It looks for its own last entry. It looks for the
//! newest manifest one time, and for the last heartbeat the next time. From time to time it lists all parts and entries.
//! If an object is missing, or that manifest is damaged, it counts that for monitoring, and writes a whole state. The
//! time in a heartbeat always grows, whatever the clock does. So an old heartbeat that is put back is recognized:
//! neither its slot nor its time is later. A replaced publisher's heartbeat may come late, from a clock that is ahead.
//! Then the publisher's entry in the next slot is later, and so is its second heartbeat from then on.

use std::time::{Duration, Instant};

use super::Publisher;
use super::lock::user_part;
use super::publish_error::Result;
use crate::replicate::heartbeat::Heartbeat;
use crate::replicate::layout;
use crate::replicate::protocol::{Action, LastEntry, Observation};
use crate::replicate::replica::ReplicaError;

/// Parts and entries are listed once per this many heartbeats: a list costs more than ten times as much as a read.
const LIST_EVERY: u32 = 30;

/// Whether `every` has passed since `at`.
pub fn is_due(at: Option<Instant>, every: Duration) -> bool {
    at.is_none_or(|at| at.elapsed() >= every)
}

impl Publisher {
    /// Writes the heartbeat if it is due, and looks for another publisher.
    pub(super) fn heartbeat_if_due(&mut self) -> Result<()> {
        let end = self.known.end;
        if end.slot == 0 {
            return Ok(());
        }
        let is_heartbeat = is_due(self.heartbeat.written_at, self.settings.heartbeat);
        if !is_heartbeat && !is_due(self.heartbeat.checked_at, self.settings.heartbeat / 2) {
            return Ok(());
        }
        self.heartbeat.checked_at = Some(Instant::now());
        let action = self.observe(Observation::Due { is_heartbeat })?;
        let Action::WriteHeartbeat { is_end_lost } = action else {
            return Ok(());
        };
        self.heartbeat.written_at = Some(Instant::now());
        if is_end_lost || self.heartbeat.count.is_multiple_of(2) {
            self.overtake_heartbeat()?;
        } else {
            self.check_for_loss(end)?;
        }
        if is_end_lost && self.state.lost.is_none() {
            self.note_lost(layout::log(end.slot));
        }
        self.write_heartbeat(end)
    }

    /// Reads the heartbeat. If it names a later slot, another publisher wrote it. If its time is ahead of this clock, the
    /// next heartbeat gets a later time. A replaced publisher may have written it late.
    fn overtake_heartbeat(&mut self) -> Result<()> {
        let found = self.retry.read_valid(|| self.log.heartbeat())?;
        if let Some(alive) = found.filter(|alive| alive.id == self.id) {
            self.observe(Observation::Heartbeat(alive.slot))?;
            self.heartbeat.observe(alive.at);
        }
        Ok(())
    }

    /// Writes the heartbeat at the end of a single round, unless it names the last entry already.
    pub(super) fn end_with_heartbeat(&mut self) -> Result<()> {
        if self.heartbeat.slot != self.known.end.slot {
            self.heartbeat.written_at = None;
            self.heartbeat_if_due()?;
        }
        Ok(())
    }

    /// Writes the heartbeat. Before each further attempt it looks for another publisher, whose heartbeat this one would
    /// replace.
    fn write_heartbeat(&mut self, end: LastEntry) -> Result<()> {
        let seq = self.reader.refresh()?.commit().seq.max(end.head.seq);
        let at = self.heartbeat.next_at();
        let alive = Heartbeat {
            id: self.id,
            slot: end.slot,
            hash: end.hash,
            seq,
            at,
            who: user_part(&self.who).to_owned(),
        };
        let bytes = alive.encode()?;
        let next = end.slot + 1;
        let mut is_repeated = false;
        let is_next_free = self.retry.run(|| {
            let bucket = &self.log.bucket;
            if std::mem::replace(&mut is_repeated, true)
                && bucket.get(&layout::log(next))?.is_some()
            {
                return Ok(false);
            }
            bucket.put(layout::ALIVE, &bytes).map(|()| true)
        })?;
        if !is_next_free {
            return self.take_next_entry(next).map(drop);
        }
        self.heartbeat.slot = end.slot;
        self.heartbeat.at = at;
        self.heartbeat.count = self.heartbeat.count.wrapping_add(1);
        Ok(())
    }

    /// Checks that the newest state can be read, because replicas start from it. From time to time also checks its
    /// parts, its entry and the entries after it.
    fn check_for_loss(&mut self, end: LastEntry) -> Result<()> {
        let state = &self.state;
        if state.lost.is_some() {
            return Ok(());
        }
        let mut lost = None;
        let manifest = self.retry.read_valid(|| self.log.manifest(state.slot))?;
        if manifest.is_none() {
            lost = Some(layout::state(state.slot));
        } else if self.heartbeat.count % LIST_EVERY == LIST_EVERY - 1 {
            lost = state.lost_part(&self.log.bucket, &self.retry)?;
            match self.retry.read(|| self.log.check_path_to(end.slot)) {
                Err(ReplicaError::Missing { slot, .. }) => {
                    lost.get_or_insert(layout::log(slot));
                }
                checked => checked?,
            }
        }
        if let Some(lost) = lost {
            self.note_lost(lost);
        }
        Ok(())
    }

    /// Reports an object that is gone, without which new replicas cannot start. A whole state follows.
    pub(super) fn note_lost(&mut self, lost: String) {
        self.status.update(|progress| progress.lost_objects += 1);
        tracing::error!(
            "`{lost}` was published from here and is gone or damaged, and new replicas cannot start. Publishing a \
             whole state now; find out what deletes or changes objects in {}",
            self.log.bucket.url()
        );
        self.state.lost = Some(lost);
    }
}

#[cfg(test)]
mod tests {
    use super::super::HeartbeatTimes;
    use super::*;
    use crate::model::{Timestamp, now};

    #[test]
    fn the_time_of_heartbeats_always_grows() {
        let ahead = now().plus_s(86_400);
        let mut heartbeat = HeartbeatTimes::default();
        assert!(heartbeat.next_at() >= now().plus_s(-5) && heartbeat.next_at() < ahead);
        // Of the heartbeat and the last entry, the later one counts, in either order.
        for at in [Timestamp::EPOCH, ahead, Timestamp::EPOCH] {
            heartbeat.observe(at);
        }
        assert_eq!(heartbeat.next_at(), ahead.plus_s(1));
    }

    #[test]
    fn a_heartbeat_is_due_after_its_period() {
        let hour = Duration::from_secs(3600);
        let ago = |time| Instant::now().checked_sub(time);
        assert!(is_due(None, Duration::MAX));
        assert!(
            !is_due(Some(Instant::now()), hour) && is_due(Some(Instant::now()), Duration::ZERO)
        );
        // A machine that has just started has no such past.
        if let (Some(long), Some(short)) =
            (ago(Duration::from_secs(30)), ago(Duration::from_secs(20)))
        {
            let period = Duration::from_secs(25);
            assert!(is_due(Some(long), period) && !is_due(Some(short), period));
        }
    }
}
