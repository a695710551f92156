//! Reading the end of the log.

use super::error::PublishError;
use super::retry::Retry;
use crate::bucket::{Bucket, ListedObject};
use crate::model::{Head, RowDigest};
use crate::replicate::entry::{EntryHeader, LogEntry};
use crate::replicate::follower::{FollowError, LogReader};
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::replicate::state::{Manifest, PartRef};

/// The maximum number of attempts to read the newest state while another publisher deletes states.
const TRIES: usize = 5;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LastEntry {
    pub slot: u64,
    pub hash: Hash,
    pub head: Head,
    pub digest: RowDigest,
}

impl LastEntry {
    pub fn of(header: &EntryHeader, hash: Hash) -> LastEntry {
        LastEntry { slot: header.slot, hash, head: header.head(), digest: header.digest }
    }
}

#[derive(Clone, Debug)]
pub(super) struct FoundLog {
    pub header: EntryHeader,
    pub hash: Hash,
    /// The newest state that can be read; `None` if a publisher died between the first entry and its state.
    pub manifest: Option<Manifest>,
    pub growth: Growth,
    /// The name of a missing part of the newest state.
    pub lost_part: Option<String>,
    /// The slot of the newest state, if its manifest is damaged. Its name is not free.
    pub damaged_state: Option<u64>,
}

/// The size of the log since the newest state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Growth {
    /// Entries after the newest state.
    pub entries: u64,
    /// Their bytes in the store.
    pub bytes: u64,
    /// The state's bytes in the store.
    pub state_bytes: u64,
}

impl FoundLog {
    pub fn end(&self) -> LastEntry {
        LastEntry::of(&self.header, self.hash)
    }

    /// Whether the last entry is a whole state without a manifest.
    pub fn lacks_manifest(&self) -> bool {
        self.header.is_state() && !self.has_state_name()
    }

    /// Whether the name of the state at the last slot is taken.
    pub fn has_state_name(&self) -> bool {
        let newest = self.manifest.as_ref().map(|newest| newest.slot);
        newest.max(self.damaged_state) >= Some(self.header.slot)
    }
}

/// Reads the end of the log; `None` if there is no log. Passes over manifests that are damaged.
///
/// # Errors
/// If neither a manifest nor the last entry can be read, as with a wrong seal key, the error of the newest manifest.
pub(super) fn read_end(log: &LogReader, retry: &mut Retry) -> Result<Option<FoundLog>, FollowError> {
    'tries: for _ in 0..TRIES {
        let (mut newest, mut damaged) = (None, None);
        for slot in retry.read(|| log.state_slots())? {
            match retry.read(|| log.manifest(slot)) {
                Ok(Some(manifest)) => {
                    newest = Some(manifest);
                    break;
                }
                // It was deleted since the list was read, so there are newer ones.
                Ok(None) => continue 'tries,
                Err(error @ FollowError::Object { .. }) => {
                    damaged.get_or_insert((slot, error));
                }
                Err(error) => return Err(error),
            }
        }
        let is_readable = newest.is_some();
        let found = read_after(log, retry, newest);
        return match (found, damaged) {
            (Err(FollowError::Object { .. }), Some((_, damage))) if !is_readable => Err(damage),
            // The log does not end before its newest state.
            (Ok(Some(found)), Some((later, _))) if later > found.header.slot => {
                Err(FollowError::Missing { slot: found.header.slot + 1, later })
            }
            (Ok(Some(found)), Some((slot, _))) => Ok(Some(FoundLog { damaged_state: Some(slot), ..found })),
            (found, _) => found,
        };
    }
    Err(FollowError::object(
        layout::STATES,
        "the newest one is listed but cannot be read; check the health of the store",
    ))
}

fn read_after(log: &LogReader, retry: &mut Retry, manifest: Option<Manifest>) -> Result<Option<FoundLog>, FollowError> {
    let state_slot = manifest.as_ref().map(|manifest| manifest.slot);
    let entries = retry.read(|| log.entries_after(state_slot.map(|slot| slot.saturating_sub(1))))?;
    let first = entries.first().map(|(slot, _)| *slot);
    let Some(mut slot) = state_slot.or(first) else { return Ok(None) };
    let mut growth = Growth::default();
    for (expected, (found, bytes)) in (slot..).zip(&entries) {
        if *found != expected {
            return Err(FollowError::Missing { slot: expected, later: *found });
        }
        slot = *found;
        if Some(slot) != state_slot {
            growth.entries += 1;
            growth.bytes += bytes;
        }
    }
    let missing = FollowError::Missing { slot, later: slot };
    let mut read = |slot| retry.read(|| log.entry(slot)).map_err(with_advice);
    let mut last = read(slot)?.ok_or(missing)?;
    // Entries that were created since the list was read.
    while let Some(next) = read(last.header.slot + 1)? {
        growth.entries += 1;
        last = next;
    }
    let LogEntry { header, hash, .. } = last;
    let mut lost_part = None;
    if let Some(manifest) = &manifest {
        if manifest.id != header.id || (manifest.slot == header.slot && manifest.entry_hash != hash) {
            let detail = "it does not belong to the newest state: two logs are mixed here; publish to another prefix";
            return Err(FollowError::object(layout::log(header.slot), detail));
        }
        let state = StateObjects::of(manifest.slot, &manifest.parts);
        let listed = state.list(log.bucket(), retry)?;
        growth.state_bytes = listed.iter().map(|part| part.bytes).sum();
        lost_part = state.lost_of(&listed);
    }
    Ok(Some(FoundLog { header, hash, manifest, growth, lost_part, damaged_state: None }))
}

/// Adds what to do to the error of an entry that cannot be used.
pub(super) fn with_advice(error: FollowError) -> FollowError {
    match error {
        FollowError::Object { name, detail } => FollowError::object(
            name,
            format!("{detail}. Find out who wrote it. Put back the right entry, or delete it if there is none"),
        ),
        other => other,
    }
}

/// The names of a whole state's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateObjects {
    /// The slot after which the state is.
    pub slot: u64,
    parts: Vec<String>,
}

impl StateObjects {
    pub fn of(slot: u64, parts: &[PartRef]) -> StateObjects {
        StateObjects { slot, parts: parts.iter().map(|part| part.name.clone()).collect() }
    }

    fn list(&self, bucket: &Bucket, retry: &mut Retry) -> Result<Vec<ListedObject>, FollowError> {
        let Some((folder, _)) = self.parts.first().and_then(|part| part.rsplit_once('/')) else {
            return Ok(Vec::new());
        };
        Ok(retry.run(|| bucket.list(folder, None))?)
    }

    pub fn lost_part(&self, bucket: &Bucket, retry: &mut Retry) -> Result<Option<String>, PublishError> {
        Ok(self.lost_of(&self.list(bucket, retry)?))
    }

    fn lost_of(&self, listed: &[ListedObject]) -> Option<String> {
        let is_lost = |part: &&String| listed.iter().all(|listed| listed.name != **part);
        self.parts.iter().find(is_lost).cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::replicate::test_log::{OTHER_ID, TestLog};

    const RANDOM: &str = "0123456789abcdef";

    fn retry() -> Retry {
        Retry::new(None, &Arc::default())
    }

    fn end_of(log: &TestLog) -> Result<FoundLog, String> {
        read_end(&LogReader::new(log.bucket()), &mut retry()).map(Option::unwrap).map_err(|error| error.to_string())
    }

    fn bytes_of(log: &TestLog, names: &[String]) -> u64 {
        names.iter().map(|name| log.bucket().get(name).unwrap().unwrap().bytes.len() as u64).sum()
    }

    #[test]
    fn the_end_is_the_last_entry_with_the_size_since_the_newest_state() {
        let (log, hashes) = TestLog::up_to(5);
        let parts: Vec<PartRef> = (0..2).map(|index| log.put_part(3, RANDOM, index)).collect();
        let names: Vec<String> = parts.iter().map(|part| part.name.clone()).collect();
        log.put_manifest(3, hashes[2], parts);
        log.put_part(3, "fedcba9876543210", 0);
        let found = end_of(&log).unwrap();
        let growth = Growth {
            entries: 2,
            bytes: bytes_of(&log, &[layout::log(4), layout::log(5)]),
            state_bytes: bytes_of(&log, &names),
        };
        assert_eq!((found.header.slot, found.hash, found.growth), (5, hashes[4], growth));
        assert_eq!((found.manifest.map(|manifest| manifest.slot), found.lost_part), (Some(3), None));
        log.remove(&names[1]);
        assert_eq!(end_of(&log).unwrap().lost_part.as_deref(), Some(names[1].as_str()), "the second of two parts");
        // Without any manifest the log begins with its first entry.
        for slot in [1, 3] {
            log.remove(&layout::state(slot));
        }
        assert_eq!(end_of(&log).unwrap().growth.entries, 5);
        assert!(end_of(&log).unwrap().manifest.is_none());
    }

    #[test]
    fn a_state_without_a_manifest_is_noticed() {
        let (log, hashes) = TestLog::up_to(2);
        assert!(!end_of(&log).unwrap().lacks_manifest(), "the last entry is no state");
        let hash = log.put_state(3, hashes[1]);
        assert!(end_of(&log).unwrap().lacks_manifest());
        log.put_manifest(3, hash, Vec::new());
        assert!(!end_of(&log).unwrap().lacks_manifest());
    }

    #[test]
    fn a_damaged_manifest_is_passed_over() {
        /// The slots of damaged manifests, and of damaged entries; the slot of the state that is found, or the object
        /// that the error names.
        type Case = (&'static [u64], &'static [u64], Result<Option<u64>, String>);
        let cases: [Case; 6] = [
            (&[1], &[], Ok(Some(3))),
            (&[3], &[], Ok(Some(1))),
            (&[1, 3], &[], Ok(None)),
            (&[1, 3], &[1, 2, 3, 4], Err(layout::state(3))),
            (&[3], &[4], Err(layout::log(4))),
            (&[9], &[], Err(layout::log(5))),
        ];
        for (states, entries, expected) in cases {
            let (log, hashes) = TestLog::up_to(4);
            log.put_manifest(3, hashes[2], Vec::new());
            let names =
                states.iter().map(|slot| layout::state(*slot)).chain(entries.iter().map(|slot| layout::log(*slot)));
            names.for_each(|name| log.bucket().put(&name, b"rotten").unwrap());
            match (end_of(&log), expected) {
                (Ok(found), Ok(slot)) => {
                    let damaged = states.contains(&3).then_some(3);
                    assert_eq!((found.header.slot, found.damaged_state), (4, damaged), "{states:?}");
                    assert_eq!(found.manifest.map(|manifest| manifest.slot), slot, "{states:?}");
                }
                (Err(error), Err(name)) => assert!(error.contains(&name), "{states:?} {entries:?}: {error}"),
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
                (Err(error), Some(slot)) => assert!(error.contains(&format!("(`{}`)", layout::log(slot))), "{error}"),
                (found, _) => panic!("slot {missing}: {found:?}"),
            }
        }
        let (log, hashes) = TestLog::up_to(2);
        log.put_manifest(4, hashes[1], Vec::new());
        assert!(end_of(&log).unwrap_err().contains(&format!("(`{}`)", layout::log(4))), "a later state");
    }

    #[test]
    fn the_last_entry_and_the_newest_state_are_of_one_log() {
        let mixed = |log: &TestLog| end_of(log).unwrap_err().contains("two logs are mixed");
        let (log, hashes) = TestLog::up_to(3);
        log.put_manifest(3, hashes[1], Vec::new());
        assert!(mixed(&log), "another entry of the last slot");
        log.put_manifest(3, hashes[2], Vec::new());
        assert!(end_of(&log).is_ok());
        let other = TestLog { id: OTHER_ID, folder: log.folder };
        other.put_manifest(2, hashes[1], Vec::new());
        other.remove(&layout::state(3));
        assert!(mixed(&other), "another database");
    }
}
