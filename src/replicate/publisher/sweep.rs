//! Deleting what no replica and no restore needs any more.

use std::time::Duration;

use super::end::{End, list_states, read_manifest};
use super::error::PublishError;
use super::patience::Patience;
use crate::bucket::{Bucket, Listed, PROBES};
use crate::model::Timestamp;
use crate::replicate::layout;

/// What the store dates within so many seconds of the last sign of life is not deleted: somebody may be putting or reading it.
const YOUNG_S: i64 = 86_400;
/// The newest states, which are never deleted.
const KEPT_STATES: usize = 2;

/// Deletes what stands before the newest state that is older than the time to keep, parts of states that were never finished,
/// and what starts that were killed left of trying the store. Names go from old to new, and what names others goes first, so
/// that whoever dies here leaves nothing that names what is gone. `end` is an end of the log that was put from here.
///
/// Ages are told by the store's clock alone.
pub(super) fn sweep(bucket: &Bucket, patience: &mut Patience, end: End, keep: Duration) -> Result<(), PublishError> {
    // What the store's clock said at the last sign of life.
    let Some(alive) = patience.ask(|| bucket.get(layout::ALIVE))? else { return Ok(()) };
    let keep_s = i64::try_from(keep.as_secs()).unwrap_or(i64::MAX);
    let states = list_states(bucket, patience)?;
    let Some(first_kept) = first_kept(&states, alive.modified, keep_s) else { return Ok(()) };
    let is_old = |object: &Listed| object.modified < alive.modified.plus_s(-YOUNG_S);
    let mut doomed: Vec<String> = Vec::new();
    doomed.extend(
        states.iter().filter(|(slot, object)| *slot < first_kept && is_old(object)).map(|(_, o)| o.name.clone()),
    );
    let parts = patience.ask(|| bucket.list(layout::PARTS, None))?;
    let mut named = Named::default();
    for part in parts.iter().filter(|part| is_old(part)) {
        let Some(place) = layout::part_place(&part.name) else { continue };
        // A later state, and that of the end itself, may be between entry and manifest.
        let is_finished = place.slot < end.slot;
        if place.slot < first_kept || is_finished && !named.is_named(bucket, patience, &part.name, place.slot)? {
            doomed.push(part.name.clone());
        }
    }
    let log = patience.ask(|| bucket.list(layout::LOG, None))?;
    let before = |object: &&Listed| layout::log_slot(&object.name).is_some_and(|slot| slot < first_kept);
    doomed.extend(log.iter().filter(before).filter(|object| is_old(object)).map(|object| object.name.clone()));
    let probes = patience.ask(|| bucket.list(PROBES, None))?;
    doomed.extend(probes.into_iter().filter(is_old).map(|object| object.name));
    for name in &doomed {
        patience.ask(|| bucket.delete(name))?;
    }
    if !doomed.is_empty() {
        tracing::info!(objects = doomed.len(), "deleted what is older than the state after slot {first_kept}");
    }
    Ok(())
}

/// The parts that the manifest of a slot names: lists are in the order of slots, so one is read at a time.
#[derive(Default)]
struct Named {
    slot: Option<u64>,
    parts: Vec<String>,
}

impl Named {
    /// Whether the manifest of a slot names a part.
    fn is_named(
        &mut self,
        bucket: &Bucket,
        patience: &mut Patience,
        part: &str,
        slot: u64,
    ) -> Result<bool, PublishError> {
        if self.slot != Some(slot) {
            let manifest = read_manifest(bucket, patience, slot)?;
            let parts = manifest.map(|manifest| manifest.parts.into_iter().map(|part| part.name).collect());
            *self = Named { slot: Some(slot), parts: parts.unwrap_or_default() };
        }
        Ok(self.parts.iter().any(|name| name == part))
    }
}

/// The slot of the newest state that is older than the time to keep, and not one of the newest; `None` if there is none.
fn first_kept(states: &[(u64, Listed)], alive: Timestamp, keep_s: i64) -> Option<u64> {
    let before = alive.plus_s(keep_s.saturating_neg());
    let spare = states.len().checked_sub(KEPT_STATES)?;
    // The first of the newest ones may be the first that is kept.
    states.get(..=spare)?.iter().rev().find(|(_, object)| object.modified < before).map(|(slot, _)| *slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_old_state_is_the_first_that_is_kept() {
        /// Slots and ages in days of states, the days to keep, and the first that is kept.
        type Case = (&'static [(u64, i64)], i64, Option<u64>);
        let cases: [Case; 9] = [
            (&[], 30, None),
            (&[(1, 90)], 30, None),
            (&[(1, 90), (5, 60)], 30, Some(1)),
            (&[(1, 90), (5, 60), (9, 40)], 30, Some(5)),
            (&[(1, 90), (5, 60), (9, 40), (12, 1)], 30, Some(9)),
            (&[(1, 90), (5, 60), (9, 20), (12, 1)], 30, Some(5)),
            (&[(1, 20), (5, 10), (9, 1)], 30, None),
            (&[(1, 20), (5, 10), (9, 1)], 0, Some(5)),
            (&[(1, 20), (5, 10), (9, 1)], i64::MAX, None),
        ];
        let alive = Timestamp::from_unix_s(1_800_000_000);
        for (states, keep_days, expected) in cases {
            let listed = |(slot, days): &(u64, i64)| {
                let modified = alive.plus_s(-86_400 * days);
                (*slot, Listed { name: layout::state(*slot), bytes: 1, modified })
            };
            let states: Vec<(u64, Listed)> = states.iter().map(listed).collect();
            let keep_s = keep_days.saturating_mul(86_400);
            assert_eq!(first_kept(&states, alive, keep_s), expected, "{states:?} {keep_days}");
        }
    }
}
