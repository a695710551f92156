//! The end of the log: its last entry, and the newest whole state before it.

use std::time::Duration;

use super::publish_error::Result;
use super::retry::Retry;
use crate::bucket::{Bucket, ListedObject};
use crate::model::Timestamp;
use crate::replicate::entry::{EntryHeader, LogEntry};
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::replicate::replica::{LogReader, ReplicaError};
use crate::replicate::state::Manifest;

/// The maximum number of attempts to read the newest state while another publisher deletes states.
const TRIES: usize = 5;
/// The maximum number of entries that a new replica applies after a state.
const MAX_ENTRIES: u64 = 1000;
/// The time by which a state may be ahead of this clock, in seconds. A state that is further ahead counts as old.
const AHEAD_S: i64 = 3600;
/// The size of entries that may follow any state, however small, in bytes.
const SMALL_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub struct FoundLog {
    pub header: EntryHeader,
    pub hash: Hash,
    pub state: NewestState,
}

/// The newest whole state that can be read, and the size of the log since it.
#[derive(Debug, Default)]
pub struct NewestState {
    /// Its slot; 0 if there is none.
    pub slot: u64,
    /// The names of its parts.
    parts: Vec<String>,
    /// The time of writing, by the publisher's clock.
    pub at: Timestamp,
    /// The size of its parts in the store, in bytes.
    pub bytes: u64,
    /// The entries after it.
    pub entries_since: u64,
    /// Their size in the store, in bytes.
    pub bytes_since: u64,
    /// A lost object, without which replicas cannot start. So another state must be written.
    pub lost: Option<String>,
    /// Whether the last entry is a whole state without a manifest, because its publisher was killed or failed in
    /// between. The next entry must be a state: after commits, replicas could not get past the one without a manifest.
    pub is_unfinished: bool,
}

/// Reads the end of the log; `None` if there is no log. Passes over manifests that are damaged.
///
/// # Errors
/// If neither a manifest nor the last entry can be read, as with a wrong seal key, the error of the newest manifest.
pub fn read_end(log: &LogReader, retry: &Retry) -> Result<Option<FoundLog>, ReplicaError> {
    'tries: for _ in 0..TRIES {
        let mut newest = None;
        let mut damaged = None;
        for slot in retry.read(|| log.state_slots())? {
            match retry.read(|| log.manifest(slot)) {
                Ok(Some(manifest)) => {
                    newest = Some(manifest);
                    break;
                }
                // It was deleted since the list was read, so there are newer ones.
                Ok(None) => continue 'tries,
                Err(error @ ReplicaError::Object { .. }) => {
                    damaged.get_or_insert((slot, error));
                }
                Err(error) => return Err(error),
            }
        }
        let is_readable = newest.is_some();
        let found = read_after(log, retry, newest);
        return match (found, damaged) {
            (Err(ReplicaError::Object { .. }), Some((_, damage))) if !is_readable => Err(damage),
            // The log does not end before its newest state.
            (Ok(Some(found)), Some((later, _))) if later > found.header.slot => {
                Err(ReplicaError::Missing {
                    slot: found.header.slot + 1,
                    later,
                })
            }
            (Ok(Some(mut found)), Some((slot, _))) => {
                found.state.lost = Some(layout::state(slot));
                found.state.is_unfinished &= slot < found.header.slot;
                Ok(Some(found))
            }
            (found, _) => found,
        };
    }
    Err(ReplicaError::object(
        layout::STATES,
        "the newest one is listed but cannot be read; check the health of the store",
    ))
}

fn read_after(
    log: &LogReader,
    retry: &Retry,
    manifest: Option<Manifest>,
) -> Result<Option<FoundLog>, ReplicaError> {
    let state_slot = manifest.as_ref().map(|manifest| manifest.slot);
    let entries = retry.read(|| log.entries_after(state_slot.unwrap_or(1).saturating_sub(1)))?;
    let first = entries.first().map(|(slot, _)| *slot);
    let Some(mut slot) = state_slot.or(first) else {
        return Ok(None);
    };
    let mut state = manifest
        .as_ref()
        .map(|manifest| NewestState::of(manifest, 0))
        .unwrap_or_default();
    for (expected, (found, bytes)) in (slot..).zip(&entries) {
        if *found != expected {
            return Err(ReplicaError::Missing {
                slot: expected,
                later: *found,
            });
        }
        slot = *found;
        if Some(slot) != state_slot {
            state.add_entry(*bytes);
        }
    }
    let missing = ReplicaError::Missing { slot, later: slot };
    let read = |slot| retry.read(|| log.entry(slot));
    let mut last = read(slot)?.ok_or(missing)?;
    // Entries that were created since the list was read.
    while let Some(next) = read(last.header.slot + 1)? {
        state.entries_since += 1;
        last = next;
    }
    let LogEntry { header, hash, .. } = last;
    match &manifest {
        Some(manifest)
            if manifest.id != header.id
                || (manifest.slot == header.slot && manifest.entry_hash != hash) =>
        {
            let detail = "it does not belong to the newest state: two logs are mixed here; publish to another prefix";
            return Err(ReplicaError::object(layout::log(header.slot), detail));
        }
        Some(_) => {
            let listed = state.list_parts(&log.bucket, retry)?;
            state.bytes = listed.iter().map(|part| part.bytes).sum();
            state.lost = state.lost_of(&listed);
        }
        None => (state.at, state.lost) = (header.at, Some(layout::state(first.unwrap_or(1)))),
    }
    state.is_unfinished = header.is_state() && state.slot < header.slot;
    Ok(Some(FoundLog {
        header,
        hash,
        state,
    }))
}

impl NewestState {
    /// Returns the state of a manifest. Its parts have `bytes` in the store.
    pub fn of(manifest: &Manifest, bytes: u64) -> NewestState {
        let parts = manifest
            .parts
            .iter()
            .map(|part| part.name.clone())
            .collect();
        NewestState {
            slot: manifest.slot,
            parts,
            at: manifest.at,
            bytes,
            ..NewestState::default()
        }
    }

    /// Counts an entry after this state.
    pub fn add_entry(&mut self, bytes: u64) {
        self.entries_since += 1;
        self.bytes_since += bytes;
    }

    /// Whether another state must be written: this one is lost or old, the last one is unfinished, or the log
    /// has grown much.
    pub fn is_due(&self, now: Timestamp, state_every: Duration) -> bool {
        let age_s = now.unix_s().saturating_sub(self.at.unix_s());
        // The clock may have been ahead when it was written.
        let is_old =
            u64::try_from(age_s).map_or(age_s < -AHEAD_S, |age_s| age_s >= state_every.as_secs());
        let is_much = self.entries_since >= MAX_ENTRIES
            || self.bytes_since > (self.bytes / 2).max(SMALL_BYTES);
        self.is_unfinished || self.lost.is_some() || (self.entries_since > 0 && (is_much || is_old))
    }

    fn list_parts(
        &self,
        bucket: &Bucket,
        retry: &Retry,
    ) -> Result<Vec<ListedObject>, ReplicaError> {
        let Some((folder, _)) = self.parts.first().and_then(|part| part.rsplit_once('/')) else {
            return Ok(Vec::new());
        };
        Ok(retry.run(|| bucket.list(folder, None))?)
    }

    /// Lists the parts; returns a missing one.
    pub fn lost_part(&self, bucket: &Bucket, retry: &Retry) -> Result<Option<String>> {
        Ok(self.lost_of(&self.list_parts(bucket, retry)?))
    }

    fn lost_of(&self, listed: &[ListedObject]) -> Option<String> {
        let mut parts = self.parts.iter();
        let lost = parts.find(|part| listed.iter().all(|listed| listed.name != **part));
        lost.cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::replicate::state::PartRef;
    use crate::replicate::test_log::{OTHER_ID, TestLog};

    const RANDOM: &str = "0123456789abcdef";

    fn retry() -> Retry {
        Retry::new(None, &Arc::default())
    }

    fn end_of(log: &TestLog) -> Result<FoundLog, String> {
        read_end(&LogReader::new(log.bucket()), &retry())
            .map(Option::unwrap)
            .map_err(|error| error.to_string())
    }

    fn bytes_of(log: &TestLog, names: &[String]) -> u64 {
        names
            .iter()
            .map(|name| log.bucket().get(name).unwrap().unwrap().bytes.len() as u64)
            .sum()
    }

    #[test]
    fn the_end_is_the_last_entry_with_the_size_since_the_newest_state() {
        let (log, hashes) = TestLog::up_to(5);
        let parts: Vec<PartRef> = (0..2).map(|index| log.put_part(3, RANDOM, index)).collect();
        let names: Vec<String> = parts.iter().map(|part| part.name.clone()).collect();
        log.put_manifest(3, hashes[2], parts);
        log.put_part(3, "fedcba9876543210", 0);
        let found = end_of(&log).unwrap();
        let state = &found.state;
        assert_eq!((found.header.slot, found.hash), (5, hashes[4]));
        let expected = (3, bytes_of(&log, &names), None);
        assert_eq!((state.slot, state.bytes, state.lost.as_ref()), expected);
        let since = bytes_of(&log, &[layout::log(4), layout::log(5)]);
        assert_eq!((state.entries_since, state.bytes_since), (2, since));
        log.remove(&names[1]);
        assert_eq!(
            end_of(&log).unwrap().state.lost.as_deref(),
            Some(names[1].as_str()),
            "the second of two parts"
        );
        // Without any manifest the log begins with its first entry.
        for slot in [1, 3] {
            log.remove(&layout::state(slot));
        }
        let state = end_of(&log).unwrap().state;
        assert_eq!(state.entries_since, 5);
        assert_eq!(state.slot, 0);
        assert!(state.lost.is_some());
    }

    #[test]
    fn a_state_is_due_after_many_entries_many_bytes_or_a_time() {
        // Entries, bytes, the bytes of the last state, its age in seconds, and whether a state is due every 3600 s.
        let cases = [
            (0, 0, 0, 1_000_000, false),
            (1, 0, 0, 0, false),
            (1, 0, 0, 3599, false),
            (1, 0, 0, 3600, true),
            (1, 0, 0, -1, false),
            (1, 0, 0, -3600, false),
            (1, 0, 0, -3601, true),
            (0, 0, 0, -1_000_000, false),
            (999, 0, 0, 0, false),
            (1000, 0, 0, 0, true),
            (1, 1 << 20, 0, 0, false),
            (1, (1 << 20) + 1, 0, 0, true),
            (1, 2 << 20, 4 << 20, 0, false),
            (1, (2 << 20) + 1, 4 << 20, 0, true),
        ];
        let now = Timestamp::from_unix_s(1_800_000_000);
        for (entries_since, bytes_since, bytes, age_s, expected) in cases {
            let at = now.plus_s(-age_s);
            let state = NewestState {
                at,
                bytes,
                entries_since,
                bytes_since,
                ..NewestState::default()
            };
            let is_due = state.is_due(now, Duration::from_secs(3600));
            assert_eq!(is_due, expected, "{state:?}");
        }
        let forever = NewestState {
            entries_since: 1,
            ..NewestState::default()
        };
        assert!(!forever.is_due(now, Duration::MAX));
        let lost = NewestState {
            lost: Some(layout::state(1)),
            ..NewestState::default()
        };
        assert!(lost.is_due(now, Duration::MAX));
    }

    #[test]
    fn a_damaged_manifest_is_passed_over() {
        /// The slots of damaged manifests, and of damaged entries; the slot of the state that is found, or the object
        /// that the error names.
        type Case = (&'static [u64], &'static [u64], Result<u64, String>);
        let cases: [Case; 6] = [
            (&[1], &[], Ok(3)),
            (&[3], &[], Ok(1)),
            (&[1, 3], &[], Ok(0)),
            (&[1, 3], &[1, 2, 3, 4], Err(layout::state(3))),
            (&[3], &[4], Err(layout::log(4))),
            (&[9], &[], Err(layout::log(5))),
        ];
        for (states, entries, expected) in cases {
            let (log, hashes) = TestLog::up_to(4);
            log.put_manifest(3, hashes[2], Vec::new());
            let names = states.iter().map(|slot| layout::state(*slot));
            let names = names.chain(entries.iter().map(|slot| layout::log(*slot)));
            names.for_each(|name| log.bucket().put(&name, b"rotten").unwrap());
            match (end_of(&log), expected) {
                (Ok(found), Ok(slot)) => {
                    let lost = states.contains(&3).then(|| layout::state(3));
                    assert_eq!(found.header.slot, 4, "{states:?}");
                    assert_eq!(found.state.slot, slot, "{states:?}");
                    assert_eq!(found.state.lost, lost, "{states:?}");
                }
                (Err(error), Err(name)) => {
                    assert!(error.contains(&name), "{states:?} {entries:?}: {error}")
                }
                (found, _) => panic!("{states:?} {entries:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_gap_after_the_newest_state_is_an_error() {
        for (missing, expected) in [(1, None), (2, None), (3, Some(3)), (4, Some(4))] {
            let (log, hashes) = TestLog::up_to(5);
            log.put_manifest(3, hashes[2], Vec::new());
            log.remove(&layout::log(missing));
            match (end_of(&log), expected) {
                (Ok(found), None) => assert_eq!(found.header.slot, 5),
                (Err(error), Some(slot)) => assert!(
                    error.contains(&format!("(`{}`)", layout::log(slot))),
                    "{error}"
                ),
                (found, _) => panic!("slot {missing}: {found:?}"),
            }
        }
        let (log, hashes) = TestLog::up_to(2);
        log.put_manifest(4, hashes[1], Vec::new());
        assert!(
            end_of(&log)
                .unwrap_err()
                .contains(&format!("(`{}`)", layout::log(4))),
            "a later state"
        );
    }

    #[test]
    fn the_last_entry_and_the_newest_state_are_of_one_log() {
        let mixed = |log: &TestLog| end_of(log).unwrap_err().contains("two logs are mixed");
        let (log, hashes) = TestLog::up_to(3);
        log.put_manifest(3, hashes[1], Vec::new());
        assert!(mixed(&log), "another entry of the last slot");
        log.put_manifest(3, hashes[2], Vec::new());
        assert!(end_of(&log).is_ok());
        let other = TestLog {
            id: OTHER_ID,
            folder: log.folder,
        };
        other.put_manifest(2, hashes[1], Vec::new());
        other.remove(&layout::state(3));
        assert!(mixed(&other), "another database");
    }
}
