//! Writing a whole state: its parts, several at a time, then its entry, then its manifest. After that, deleting objects
//! that no replica and no restore needs any more.
//!
//! **A state is also written** when much has changed since the last one, so that new replicas start from it. It is an
//! entry too, with the head and digest of the entry before. Replicas that have these rows do not load it. Commits wait
//! meanwhile: for a fraction of a second with 12,000 records, and longer with more. The heartbeat goes on. The parts
//! are written before the entry, four at a time, and the manifest after it. If a publisher is killed in between, the
//! next entry is another state, before any commits. Otherwise new replicas could not get past the one without a
//! manifest.
//!
//! **Old objects** are deleted after that, by the clock of the store. Two whole states always stay. If an object cannot
//! be deleted, the next state tries again.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::bucket::{Bucket, ListedObject};
use crate::model::{Timestamp, now};
use crate::replicate::layout;
use crate::replicate::publisher::Publisher;
use crate::replicate::publisher::end::NewestState;
use crate::replicate::publisher::publish_error::Result;
use crate::replicate::publisher::retry::{CreateOutcome, Retry};
use crate::replicate::replica::{LogReader, ReplicaError};
use crate::replicate::state::{Manifest, PartRef, encode_part};
use crate::store::StoreError;
use crate::store::replication::{OriginView, SCHEMA};

/// The size of a part before compression, in bytes.
const PART_BYTES: usize = 8 << 20;
/// The number of parts that are compressed and sent at a time. Replicas read as many at a time.
const AT_ONCE: usize = 4;

impl Publisher {
    /// Writes the newest commit as a whole state, whatever the end of the log is.
    pub(in crate::replicate::publisher) fn replace_by_state(&mut self) -> Result<()> {
        // The database may have been replaced by a file that is not marked as published.
        self.mark_published()?;
        self.put_state(self.reader.origin()?)
    }

    /// Writes a state as the next entry, then deletes old objects. Commits wait meanwhile.
    pub(in crate::replicate::publisher) fn put_state(&mut self, view: OriginView) -> Result<()> {
        let slot = self.known.end.map_or(1, |end| end.slot + 1);
        let (parts, bytes) = self.put_parts(&view, slot)?;
        let header = self.next_header(view.head()?.head(), view.digest()?);
        // The heartbeat found an entry of an earlier run in the slot. The next round decides what follows it.
        if header.slot != slot {
            return Ok(());
        }
        // Lets the database reuse the pages of the view.
        drop(view);
        let Some(entry_hash) = self.put_entry(&header, &[])? else {
            return Ok(());
        };
        self.state.is_unfinished = true;
        let manifest = Manifest {
            id: self.id,
            slot,
            entry_hash,
            schema: SCHEMA,
            seq: header.seq,
            lineage: header.lineage,
            digest: header.digest,
            at: now(),
            parts,
        };
        let name = layout::state(slot);
        if self
            .retry
            .create(self.log.bucket(), &name, &manifest.encode()?)?
            != CreateOutcome::Ours
        {
            return Err(ReplicaError::object(
                name,
                "it is of another log; publish to another prefix",
            )
            .into());
        }
        tracing::info!(slot, seq = header.seq, bytes, "published a whole state");
        self.status.update(|progress| progress.states += 1);
        self.state = NewestState::of(&manifest, bytes);
        self.note();
        // Deletion needs the store's present time, which the heartbeat gives.
        self.heartbeat.make_due();
        self.heartbeat_if_due()?;
        sweep(&self.log, &mut self.retry, slot, self.settings.keep)
    }

    /// Writes all rows of a view as parts of the state in `slot`. The heartbeat goes on meanwhile. Returns the parts,
    /// and their size in the store in bytes.
    fn put_parts(&mut self, view: &OriginView, slot: u64) -> Result<(Vec<PartRef>, u64)> {
        let bucket = Arc::clone(self.log.bucket());
        let first_retry = self.retry.for_thread();
        let random = layout::new_random().map_err(StoreError::from)?;
        let stored = Mutex::new(Vec::new());
        let failed = Mutex::new(None);
        let put = |retry: &mut Retry, (index, changes): (usize, Vec<u8>)| {
            if failed.lock().is_some() {
                return;
            }
            match put_part(&bucket, retry, layout::part(slot, &random, index), &changes) {
                Ok(part) => stored.lock().push((index, part)),
                Err(error) => drop(failed.lock().get_or_insert(error)),
            }
        };
        let state_parts = thread::scope(|scope| {
            let (sender, queue) = sync_channel(0);
            // Only the sending threads hold the receiver. When all of them have ended, sending fails and `dump` stops.
            let queue = Arc::new(Mutex::new(queue));
            for _ in 0..AT_ONCE {
                let queue = Arc::clone(&queue);
                let mut retry = first_retry.for_thread();
                let put = &put;
                scope.spawn(move || {
                    while let Some(part) = next(&queue) {
                        put(&mut retry, part);
                    }
                });
            }
            drop(queue);
            let mut indexes = 0..;
            view.dump(PART_BYTES, &mut |changes| {
                let index = indexes.next().unwrap_or_default();
                if let Err(error) = self.heartbeat_if_due() {
                    failed.lock().get_or_insert(error);
                }
                if sender.send((index, changes)).is_ok() && failed.lock().is_none() {
                    return Ok(());
                }
                // This error only stops `dump`.
                Err(StoreError::damaged(
                    "(pages)",
                    "a part of a state could not be written",
                ))
            })
        });
        if let Some(error) = failed.into_inner() {
            return Err(error);
        }
        if state_parts? != view.digest()? {
            return Err(StoreError::damaged(
                "meta",
                "the rows do not add up to their stored digest",
            )
            .into());
        }
        let mut stored: Vec<(usize, StoredPart)> = stored.into_inner();
        stored.sort_unstable_by_key(|(index, _)| *index);
        let bytes = stored
            .iter()
            .map(|(_, (_, bytes))| u64::try_from(*bytes).unwrap_or(u64::MAX))
            .sum();
        Ok((
            stored.into_iter().map(|(_, (part, _))| part).collect(),
            bytes,
        ))
    }
}

/// A part and its size in the store, in bytes.
type StoredPart = (PartRef, usize);

fn next<T>(queue: &Mutex<Receiver<T>>) -> Option<T> {
    queue.lock().recv().ok()
}

fn put_part(
    bucket: &Bucket,
    retry: &mut Retry,
    name: String,
    changes: &[u8],
) -> Result<StoredPart> {
    let (encoded, part) = encode_part(name, changes)?;
    match retry.create(bucket, &part.name, &encoded)? {
        CreateOutcome::Ours => Ok((part, encoded.len())),
        CreateOutcome::Others(_) => {
            Err(ReplicaError::object(part.name, "another program wrote it").into())
        }
    }
}

/// Objects younger than this are kept, because they may be in use. In seconds before the last heartbeat.
const YOUNG_S: i64 = 86_400;
/// The number of newest states that are never deleted.
const KEPT_STATES: usize = 2;
/// The maximum number of objects that a sweep deletes, because commits and heartbeats wait for it. More than are
/// written between two states.
const MAX_DELETED: usize = 2000;
/// The time limit of retries in a sweep.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(10);

/// Deletes objects before the newest state that is older than `keep`, parts of unfinished states, and leftovers of the
/// test of the store. The order is oldest first, and referring objects before the objects that they name. So a killed
/// sweep leaves no reference to a deleted object. A sweep also ends at the first object that cannot be deleted. The
/// next one, after the next state, continues there. `end` is the slot of the last entry, which this publisher created.
/// Only such a publisher deletes, because only it knows that the log is its own.
///
/// Ages are measured by the store's clock only.
pub(in crate::replicate::publisher) fn sweep(
    log: &LogReader,
    retry: &mut Retry,
    end: u64,
    keep: Duration,
) -> Result<()> {
    let bucket = log.bucket();
    // The store's time of the last heartbeat.
    let Some(alive) = retry.run(|| bucket.get(layout::ALIVE))? else {
        return Ok(());
    };
    // The parts and the entry of a state are a little older than its manifest, and stay as long as it.
    let keep_s = i64::try_from(keep.as_secs())
        .unwrap_or(i64::MAX)
        .max(YOUNG_S);
    let states = retry.read(|| log.states())?;
    let Some(first_kept) = first_kept(&states, alive.modified, keep_s) else {
        return Ok(());
    };
    let is_old = |object: &ListedObject| object.modified < alive.modified.plus_s(-YOUNG_S);
    let mut to_delete: Vec<String> = Vec::new();
    to_delete.extend(
        states
            .iter()
            .filter(|(slot, object)| *slot < first_kept && is_old(object))
            .map(|(_, o)| o.name.clone()),
    );
    let parts = retry.run(|| bucket.list(layout::PARTS, None))?;
    let slot_of = |part: &ListedObject| layout::parse_part(&part.name).map(|name| name.slot);
    let old_parts: Vec<(u64, String)> = parts
        .into_iter()
        .filter(is_old)
        .filter_map(|part| Some((slot_of(&part)?, part.name)))
        .collect();
    for of_slot in old_parts.chunk_by(|(slot, _), (next, _)| slot == next) {
        let slot = of_slot[0].0;
        // A state at the end or later may still be waiting for its entry or manifest.
        if slot >= first_kept && slot >= end {
            continue;
        }
        let named = match slot < first_kept {
            true => Some(Vec::new()),
            false => named_parts(
                log,
                retry,
                slot,
                states.iter().any(|(listed, _)| *listed == slot),
            )?,
        };
        if let Some(named) = named {
            to_delete.extend(
                of_slot
                    .iter()
                    .map(|(_, name)| name.clone())
                    .filter(|name| !named.contains(name)),
            );
        }
    }
    let entries = retry.run(|| bucket.list(layout::LOG, None))?;
    let before = |object: &&ListedObject| {
        layout::log_slot(&object.name).is_some_and(|slot| slot < first_kept)
    };
    to_delete.extend(
        entries
            .iter()
            .filter(before)
            .filter(|object| is_old(object))
            .map(|object| object.name.clone()),
    );
    let probes = retry.run(|| bucket.list(layout::PROBES, None))?;
    let is_old_probe = |object: &ListedObject| layout::is_probe(&object.name) && is_old(object);
    to_delete.extend(
        probes
            .into_iter()
            .filter(is_old_probe)
            .map(|object| object.name),
    );
    let mut retry = retry.for_thread();
    retry.until = Some(Instant::now() + SWEEP_TIMEOUT);
    retry.retries_refusals = false;
    let mut deleted = 0;
    for name in to_delete.iter().take(MAX_DELETED) {
        if let Err(error) = retry.run(|| bucket.delete(name)) {
            tracing::warn!("old objects stay in the bucket until the next whole state: {error}");
            break;
        }
        deleted += 1;
    }
    if deleted > 0 {
        tracing::info!(
            objects = deleted,
            "deleted objects older than the state after slot {first_kept}"
        );
    }
    Ok(())
}

/// Returns the parts that the manifest of a slot names. `None` if it is damaged, or was listed and then not found, as
/// behind a proxy that answers 404 itself.
fn named_parts(
    log: &LogReader,
    retry: &mut Retry,
    slot: u64,
    is_listed: bool,
) -> Result<Option<Vec<String>>> {
    match retry.read(|| log.manifest(slot)) {
        Ok(Some(manifest)) => Ok(Some(
            manifest.parts.into_iter().map(|part| part.name).collect(),
        )),
        Ok(None) => Ok((!is_listed).then(Vec::new)),
        Err(ReplicaError::Object { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
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

    fn sweep_log(log: &TestLog, end: u64, keep: Duration) {
        sweep(
            &LogReader::new(log.bucket()),
            &mut Retry::new(None, &Arc::default()),
            end,
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
        sweep_log(&log, 7, Duration::ZERO);
        assert_eq!(names(&log), of_slots(5..=7));
        sweep_log(&log, 7, Duration::ZERO);
        assert_eq!(names(&log), of_slots(5..=7));
        // The state of slot 5 is too young to be the first.
        let log = swept();
        log.date(&layout::state(5), time().plus_s(-30 * DAY_S));
        sweep_log(&log, 7, Duration::from_secs(30 * 86_400));
        assert_eq!(names(&log), of_slots(3..=7));
        sweep_log(&log, 7, Duration::from_secs(30 * 86_400 - 1));
        assert_eq!(names(&log), of_slots(5..=7));
        for keep in [Duration::MAX, Duration::from_secs(90 * 86_400)] {
            let log = swept();
            sweep_log(&log, 7, keep);
            assert_eq!(names(&log), of_slots(1..=7), "{keep:?}");
        }
    }

    #[test]
    fn without_a_heartbeat_or_a_second_state_nothing_is_deleted() {
        let log = swept();
        log.remove(layout::ALIVE);
        sweep_log(&log, 7, Duration::ZERO);
        assert_eq!(names(&log), of_slots(1..=7));
        let log = swept();
        for slot in [1, 3, 5] {
            log.remove(&layout::state(slot));
        }
        let before = names(&log);
        sweep_log(&log, 7, Duration::ZERO);
        assert_eq!(
            names(&log),
            before,
            "the only state needs its entries, but nothing was asked of older ones"
        );
    }

    #[test]
    fn a_sweep_deletes_a_bounded_number_of_objects() {
        let log = swept();
        sweep_log(&log, 7, Duration::ZERO);
        let probes = log.folder.path().join(layout::PROBES);
        std::fs::create_dir(&probes).unwrap();
        for number in 0..=MAX_DELETED {
            let name = layout::probe(&format!("{number:016x}"));
            std::fs::write(log.folder.path().join(&name), "x").unwrap();
            log.date(&name, time().plus_s(-2 * DAY_S));
        }
        for left in [1, 0] {
            sweep_log(&log, 7, Duration::ZERO);
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
            log.put_part(6, OTHER_RANDOM, 0);
            let young = [
                layout::log(2),
                layout::state(3),
                layout::part(3, RANDOM, 1),
                probe,
                layout::part(6, OTHER_RANDOM, 0),
            ];
            for name in &young {
                log.date(name, time().plus_s(-age_s));
            }
            sweep_log(&log, 7, Duration::ZERO);
            let left = names(&log);
            for name in young {
                assert_eq!(left.contains(&name), !goes, "{name} of {age_s} s");
            }
            assert!(left.contains(&foreign), "no publisher wrote it");
            assert!(
                !left.contains(&layout::log(3)) && left.contains(&layout::log(5)),
                "{left:?}"
            );
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
        sweep_log(&log, 7, Duration::ZERO);
        assert!(
            of_slots(3..=3)
                .iter()
                .all(|name| names(&log).contains(name)),
            "{:?}",
            names(&log)
        );
    }

    #[test]
    fn parts_of_unfinished_states_go_once_their_slot_is_past() {
        let log = swept();
        // Attempts that were killed: at slots with a manifest and without one, at the end, and after it.
        for slot in [5, 6, 7, 8] {
            let part = log.put_part(slot, OTHER_RANDOM, 0);
            log.date(&part.name, time().plus_s(-2 * DAY_S));
        }
        sweep_log(&log, 7, Duration::ZERO);
        let left = names(&log);
        let is_left = |slot| left.contains(&layout::part(slot, OTHER_RANDOM, 0));
        assert_eq!([5, 6, 7, 8].map(is_left), [false, false, true, true]);
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
        sweep_log(&log, 7, Duration::ZERO);
        assert_eq!(names(&log), of_slots(5..=7));
    }

    #[test]
    fn parts_of_a_manifest_that_is_listed_and_not_found_are_kept() {
        let log = swept();
        log.remove(&layout::state(5));
        for (is_listed, expected) in [(true, None), (false, Some(Vec::new()))] {
            let mut retry = Retry::new(None, &Arc::default());
            assert_eq!(
                named_parts(&LogReader::new(log.bucket()), &mut retry, 5, is_listed).unwrap(),
                expected
            );
        }
    }
}
