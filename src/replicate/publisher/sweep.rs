//! Deleting objects that no replica and no restore needs any more.

use std::time::Duration;

use super::end::{LastEntry, list_states, read_manifest};
use super::error::PublishError;
use super::retry::Retry;
use crate::bucket::{Bucket, ListedObject, PROBES};
use crate::model::Timestamp;
use crate::replicate::layout;

/// Objects younger than this are kept, because they may be in use. In seconds before the last heartbeat.
const YOUNG_S: i64 = 86_400;
/// The number of newest states that are never deleted.
const KEPT_STATES: usize = 2;

/// Deletes objects before the newest state that is older than `keep`, parts of unfinished states, and leftovers of the
/// test of the store. The order is oldest first, and referring objects before the objects that they name. So a killed
/// sweep leaves no reference to a deleted object. `end` is a last entry that this publisher created.
///
/// Ages are measured by the store's clock only.
pub(super) fn sweep(bucket: &Bucket, retry: &mut Retry, end: LastEntry, keep: Duration) -> Result<(), PublishError> {
    // The store's time of the last heartbeat.
    let Some(alive) = retry.run(|| bucket.get(layout::ALIVE))? else { return Ok(()) };
    let keep_s = i64::try_from(keep.as_secs()).unwrap_or(i64::MAX);
    let states = list_states(bucket, retry)?;
    let Some(first_kept) = first_kept(&states, alive.modified, keep_s) else { return Ok(()) };
    let is_old = |object: &ListedObject| object.modified < alive.modified.plus_s(-YOUNG_S);
    let mut to_delete: Vec<String> = Vec::new();
    to_delete.extend(
        states.iter().filter(|(slot, object)| *slot < first_kept && is_old(object)).map(|(_, o)| o.name.clone()),
    );
    let parts = retry.run(|| bucket.list(layout::PARTS, None))?;
    let mut named = NamedParts::default();
    for part in parts.iter().filter(|part| is_old(part)) {
        let Some(part_name) = layout::parse_part(&part.name) else { continue };
        // A state at the end or later may still be waiting for its entry or manifest.
        let is_finished = part_name.slot < end.slot;
        if part_name.slot < first_kept || is_finished && !named.is_named(bucket, retry, &part.name, part_name.slot)? {
            to_delete.push(part.name.clone());
        }
    }
    let log = retry.run(|| bucket.list(layout::LOG, None))?;
    let before = |object: &&ListedObject| layout::log_slot(&object.name).is_some_and(|slot| slot < first_kept);
    to_delete.extend(log.iter().filter(before).filter(|object| is_old(object)).map(|object| object.name.clone()));
    let probes = retry.run(|| bucket.list(PROBES, None))?;
    to_delete.extend(probes.into_iter().filter(is_old).map(|object| object.name));
    for name in &to_delete {
        retry.run(|| bucket.delete(name))?;
    }
    if !to_delete.is_empty() {
        tracing::info!(objects = to_delete.len(), "deleted objects older than the state after slot {first_kept}");
    }
    Ok(())
}

/// The parts that the manifest of one slot names. Lists are ordered by slot, so one manifest at a time is enough.
#[derive(Default)]
struct NamedParts {
    slot: Option<u64>,
    parts: Vec<String>,
}

impl NamedParts {
    fn is_named(&mut self, bucket: &Bucket, retry: &mut Retry, part: &str, slot: u64) -> Result<bool, PublishError> {
        if self.slot != Some(slot) {
            let manifest = read_manifest(bucket, retry, slot)?;
            let parts = manifest.map(|manifest| manifest.parts.into_iter().map(|part| part.name).collect());
            *self = NamedParts { slot: Some(slot), parts: parts.unwrap_or_default() };
        }
        Ok(self.parts.iter().any(|name| name == part))
    }
}

/// Returns the slot of the newest state that is older than `keep_s` and has a newer state after it.
fn first_kept(states: &[(u64, ListedObject)], alive: Timestamp, keep_s: i64) -> Option<u64> {
    let before = alive.plus_s(keep_s.saturating_neg());
    let oldest_kept = states.len().checked_sub(KEPT_STATES)?;
    // The oldest of the `KEPT_STATES` newest states may be the first that is kept.
    states.get(..=oldest_kept)?.iter().rev().find(|(_, object)| object.modified < before).map(|(slot, _)| *slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_old_state_is_the_first_that_is_kept() {
        /// Slots and ages (days) of states, the days to keep, and the expected slot.
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
                (*slot, ListedObject { name: layout::state(*slot), bytes: 1, modified })
            };
            let states: Vec<(u64, ListedObject)> = states.iter().map(listed).collect();
            let keep_s = keep_days.saturating_mul(86_400);
            assert_eq!(first_kept(&states, alive, keep_s), expected, "{states:?} {keep_days}");
        }
    }
}
