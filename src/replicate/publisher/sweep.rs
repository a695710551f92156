//! Deleting objects that no replica and no restore needs any more, by the clock of the store. Two whole states always
//! stay. If an object cannot be deleted, the next state tries again.

use std::time::Duration;

use super::publish_error::Result;
use super::retry::Retry;
use crate::bucket::{Bucket, ListedObject};
use crate::model::Timestamp;
use crate::replicate::layout;
use crate::replicate::replica::LogReader;

/// Objects younger than this are kept, because they may be in use. In seconds before the last heartbeat.
const YOUNG_S: i64 = 86_400;
/// The number of newest states that are never deleted.
const KEPT_STATES: usize = 2;
/// The maximum number of objects that a sweep deletes, because commits and heartbeats wait for it. More than are
/// written between two states.
const MAX_DELETED: usize = 2000;
/// The time limit of retries in a sweep.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(10);

/// Deletes objects before the newest state that is older than `keep`, and leftovers of the test of the store. The order
/// is oldest first, and referring objects before the objects that they name. So a killed sweep leaves no reference to a
/// deleted object. A sweep also ends at the first object that cannot be deleted. The next one, after the next state,
/// continues there. Parts of a state that was never finished go with the states around it.
///
/// Only a publisher that has just created an entry deletes, because only it knows that the log is its own. Ages are
/// measured by the store's clock only.
pub fn sweep(log: &LogReader, retry: &Retry, keep: Duration) -> Result<()> {
    let bucket = &log.bucket;
    // The store's time of the last heartbeat.
    let Some(alive) = retry.run(|| bucket.get(layout::ALIVE))? else {
        return Ok(());
    };
    // The parts and the entry of a state are a little older than its manifest, and stay as long as it.
    let keep_s = i64::try_from(keep.as_secs()).unwrap_or(i64::MAX);
    let states = retry.read(|| log.states())?;
    let Some(first_kept) = first_kept(&states, alive.modified, keep_s.max(YOUNG_S)) else {
        return Ok(());
    };
    let old_before = alive.modified.plus_s(-YOUNG_S);
    let mut unused = Vec::new();
    for folder in [layout::STATES, layout::PARTS, layout::LOG, layout::PROBES] {
        let listed = retry.run(|| bucket.list(folder, None))?;
        let old = listed
            .into_iter()
            .filter(|object| object.modified < old_before)
            .map(|object| object.name);
        unused.extend(old.filter(|name| is_unused(name, first_kept)));
    }
    let deleted = delete(bucket, &retry.within(SWEEP_TIMEOUT), &unused);
    if deleted > 0 {
        tracing::info!(
            objects = deleted,
            "deleted objects older than the state after slot {first_kept}"
        );
    }
    Ok(())
}

/// Deletes objects, up to the first one that cannot be deleted. Returns their number.
fn delete(bucket: &Bucket, retry: &Retry, names: &[String]) -> usize {
    let mut deleted = 0;
    for name in names.iter().take(MAX_DELETED) {
        if let Err(error) = retry.run(|| bucket.delete(name)) {
            tracing::warn!("old objects stay in the bucket until the next whole state: {error}");
            break;
        }
        deleted += 1;
    }
    deleted
}

/// Whether an old object is before the first state that is kept, or tested the store.
fn is_unused(name: &str, first_kept: u64) -> bool {
    let part_slot = layout::parse_part(name).map(|(slot, ..)| slot);
    let slot = layout::log_slot(name)
        .or(layout::state_slot(name))
        .or(part_slot);
    slot.map_or(layout::is_probe(name), |slot| slot < first_kept)
}

/// Returns the slot of the newest state that is older than `keep_s` and has a newer state after it.
fn first_kept(states: &[(u64, ListedObject)], alive: Timestamp, keep_s: i64) -> Option<u64> {
    let before = alive.plus_s(keep_s.saturating_neg());
    let oldest_kept = states.len().checked_sub(KEPT_STATES)?;
    // The oldest of the `KEPT_STATES` newest states may be the first that is kept.
    states
        .get(..=oldest_kept)?
        .iter()
        .rev()
        .find(|(_, object)| object.modified < before)
        .map(|(slot, _)| *slot)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::replicate::test_log::{TestLog, time};

    const DAY_S: i64 = 86_400;
    const RANDOM: &str = "0123456789abcdef";
    const OTHER_RANDOM: &str = "fedcba9876543210";

    fn sweep_log(log: &TestLog, keep: Duration) {
        sweep(
            &LogReader::new(log.bucket()),
            &Retry::new(None, &Arc::default()),
            keep,
        )
        .unwrap();
    }

    fn names(log: &TestLog) -> Vec<String> {
        let folders = [layout::LOG, layout::STATES, layout::PARTS, layout::PROBES];
        let listed = folders.map(|folder| log.bucket().list(folder, None).unwrap());
        listed
            .into_iter()
            .flatten()
            .map(|object| object.name)
            .collect()
    }

    /// A log of seven entries, with a state after each of slots 1, 3, 5 and 7. Each state has two parts.
    fn swept() -> TestLog {
        let (log, hashes) = TestLog::up_to(7);
        for slot in [1, 3, 5, 7] {
            let parts = (0..2)
                .map(|index| log.put_part(slot, RANDOM, index))
                .collect();
            log.put_manifest(slot, hashes[usize::try_from(slot - 1).unwrap()], parts);
        }
        log.date(layout::ALIVE, time());
        for name in names(&log) {
            log.date(&name, time().plus_s(-90 * DAY_S));
        }
        log
    }

    fn of_slots(slots: std::ops::RangeInclusive<u64>) -> Vec<String> {
        let states: Vec<u64> = slots.clone().filter(|slot| slot % 2 == 1).collect();
        let parts = states
            .iter()
            .flat_map(|slot| (0..2).map(|index| layout::part(*slot, RANDOM, index)));
        let parts: Vec<String> = parts.collect();
        slots
            .map(layout::log)
            .chain(states.iter().copied().map(layout::state))
            .chain(parts)
            .collect()
    }

    #[test]
    fn a_sweep_deletes_exactly_the_objects_before_the_first_kept_state() {
        let log = swept();
        // One state before the newest is always kept.
        sweep_log(&log, Duration::ZERO);
        assert_eq!(names(&log), of_slots(5..=7));
        sweep_log(&log, Duration::ZERO);
        assert_eq!(names(&log), of_slots(5..=7));
        // The state of slot 5 is too young to be the first.
        let log = swept();
        log.date(&layout::state(5), time().plus_s(-30 * DAY_S));
        sweep_log(&log, Duration::from_secs(30 * 86_400));
        assert_eq!(names(&log), of_slots(3..=7));
        sweep_log(&log, Duration::from_secs(30 * 86_400 - 1));
        assert_eq!(names(&log), of_slots(5..=7));
        for keep in [Duration::MAX, Duration::from_secs(90 * 86_400)] {
            let log = swept();
            sweep_log(&log, keep);
            assert_eq!(names(&log), of_slots(1..=7), "{keep:?}");
        }
    }

    #[test]
    fn without_a_heartbeat_or_a_second_state_nothing_is_deleted() {
        let log = swept();
        log.remove(layout::ALIVE);
        sweep_log(&log, Duration::ZERO);
        assert_eq!(names(&log), of_slots(1..=7));
        let log = swept();
        for slot in [1, 3, 5] {
            log.remove(&layout::state(slot));
        }
        let before = names(&log);
        sweep_log(&log, Duration::ZERO);
        assert_eq!(
            names(&log),
            before,
            "the only state needs its entries, but nothing was asked of older ones"
        );
    }

    #[test]
    fn a_sweep_deletes_a_bounded_number_of_objects() {
        let log = swept();
        sweep_log(&log, Duration::ZERO);
        let probes = log.folder.path().join(layout::PROBES);
        std::fs::create_dir(&probes).unwrap();
        for number in 0..=MAX_DELETED {
            let name = layout::probe(&format!("{number:016x}"));
            std::fs::write(log.folder.path().join(&name), "x").unwrap();
            log.date(&name, time().plus_s(-2 * DAY_S));
        }
        for left in [1, 0] {
            sweep_log(&log, Duration::ZERO);
            assert_eq!(names(&log).len(), of_slots(5..=7).len() + left);
        }
    }

    #[test]
    fn objects_of_the_last_day_are_kept() {
        // The age in seconds before the heartbeat, and whether the object is deleted.
        for (age_s, goes) in [(0, false), (DAY_S, false), (DAY_S + 1, true)] {
            let log = swept();
            let (probe, foreign) = (
                layout::probe(RANDOM),
                format!("{}/2026/samples.csv", layout::PROBES),
            );
            log.bucket().put(&probe, b"x").unwrap();
            log.bucket().put(&foreign, b"x").unwrap();
            log.date(&foreign, time().plus_s(-90 * DAY_S));
            log.put_part(4, OTHER_RANDOM, 0);
            let young = [
                layout::log(2),
                layout::state(3),
                layout::part(3, RANDOM, 1),
                probe,
                layout::part(4, OTHER_RANDOM, 0),
            ];
            for name in &young {
                log.date(name, time().plus_s(-age_s));
            }
            sweep_log(&log, Duration::ZERO);
            let left = names(&log);
            for name in young {
                assert_eq!(left.contains(&name), !goes, "{name} of {age_s} s");
            }
            assert!(left.contains(&foreign), "no publisher wrote it");
            assert!(!left.contains(&layout::log(3)), "{left:?}");
            assert!(left.contains(&layout::log(5)), "{left:?}");
        }
    }

    #[test]
    fn the_parts_and_the_entry_of_a_manifest_stay_as_long_as_the_manifest() {
        let log = swept();
        // The manifest is the last object that is written.
        for (name, age_s) in [
            (layout::state(3), DAY_S),
            (layout::state(5), 1),
            (layout::state(7), 0),
        ] {
            log.date(&name, time().plus_s(-age_s));
        }
        sweep_log(&log, Duration::ZERO);
        assert!(
            of_slots(3..=3)
                .iter()
                .all(|name| names(&log).contains(name)),
            "{:?}",
            names(&log)
        );
    }

    #[test]
    fn parts_of_unfinished_states_go_with_the_states_around_them() {
        let log = swept();
        // Attempts that were killed: at slots with a manifest and without one, at the end, and after it.
        for slot in [3, 4, 5, 6, 7, 8] {
            let part = log.put_part(slot, OTHER_RANDOM, 0);
            log.date(&part.name, time().plus_s(-2 * DAY_S));
        }
        sweep_log(&log, Duration::ZERO);
        let left = names(&log);
        let is_left = |slot| left.contains(&layout::part(slot, OTHER_RANDOM, 0));
        assert_eq!(
            [3, 4, 5, 6, 7, 8].map(is_left),
            [false, false, true, true, true, true]
        );
        assert!(
            of_slots(5..=7).iter().all(|name| left.contains(name)),
            "{left:?}"
        );
    }

    #[test]
    fn parts_of_a_damaged_manifest_are_kept() {
        let log = swept();
        log.bucket().put(&layout::state(5), b"rotten").unwrap();
        log.date(&layout::state(5), time().plus_s(-90 * DAY_S));
        sweep_log(&log, Duration::ZERO);
        assert_eq!(names(&log), of_slots(5..=7));
    }
}
