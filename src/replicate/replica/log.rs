//! Reading the log, and checking names, hashes and predecessors of its objects.
//!
//! # Gaps in the log
//!
//! **An empty slot is not the end of the log.** Objects may have been deleted, or the bucket may have been restored
//! from a copy. The heartbeat names the last slot and its hash. A replica compares this with its own position
//! ([`following`](crate::replicate::protocol::following)).
//!
//! A missing, damaged or older heartbeat decides nothing. Until one agrees, the end does not count as seen, so
//! `--max-staleness` runs. It runs from the last time that both agreed, and the heartbeat is read four times within
//! it. After a start, and while the end is in doubt, the replica also lists the log, so it sees a gap without a
//! heartbeat. A whole state after the gap repairs the replica.
//!
//! | found | a running replica | a new replica, `check`, `backup` | `promote` | a starting publisher |
//! | --- | --- | --- | --- | --- |
//! | an entry is missing, and no state follows | stale, until a newer state repairs it | refuse | refuses | refuses |
//! | the last entries are gone, `alive` stays | stale | refuse | refuses | refuses |
//! | the whole bucket is an older copy | stale, if it was further | cannot know | refuses, if it was further | refuses, by its note |
//! | `alive` is gone or damaged | stale | new replica: waits; `check`, `backup`: refuse | refuses | writes it again |
//! | only `alive` is older | stale until the next one | accept it: the log is listed | accepts it | writes it again |
//! | a state is gone or damaged | not affected | use an older state, if the log reaches back | not affected | writes another one |
//!
//! Three things are assumed of the store. A name is created only once; this is tested. A read returns the last
//! finished write. A list contains all objects that were written before it began. The store may lose objects, or
//! return older versions of them. One loss cannot be noticed: the whole bucket goes back, and no replica or publisher
//! that was further sees it.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::sleep;
use std::time::Duration;

use super::{ReplicaError, Result};
use crate::bucket::{Bucket, ListedObject};
use crate::model::{DatabaseId, Head};
use crate::replicate::entry::{self, EntryHeader, LogEntry};
use crate::replicate::frame::{MalformedObject, of_slot};
use crate::replicate::heartbeat::Heartbeat;
use crate::replicate::layout;
use crate::replicate::protocol::LastEntry;
use crate::replicate::protocol::following::{EndCheck, Link, compare, follows};
use crate::replicate::state::{Manifest, PartRef, decode_part};
use crate::store::replication::{ReplicaMark, SCHEMA};

const FETCHERS: usize = 4;
/// How often to look for the manifest of a state that an entry announces, and the pause in between.
const STATE_TRIES: usize = 20;
const STATE_PAUSE: Duration = Duration::from_millis(50);

/// The maximum number of objects that are read to find one that can be decoded. With a wrong seal key, none can.
const MAX_UNREADABLE: usize = 50;

/// A reader of the log in a bucket.
#[derive(Debug)]
pub struct LogReader {
    /// The bucket.
    pub bucket: Arc<Bucket>,
}

/// Returns the mark after `entry`, which was read from the next slot. Fails unless it continues the log from `mark`.
pub(super) fn check_next(mark: &ReplicaMark, entry: &LogEntry) -> Result<ReplicaMark> {
    let EntryHeader { id, slot, .. } = entry.header;
    let name = layout::log(slot);
    if id != mark.id {
        return Err(ReplicaError::of_database(&name, id));
    }
    if !follows(mark.hash, Link::of(&entry.header)) {
        return Err(ReplicaError::Diverged(format!(
            "`{name}` follows another entry than the one that was applied"
        )));
    }
    check_schema(entry.header.schema)?;
    Ok(ReplicaMark {
        slot,
        hash: entry.hash,
        digest: entry.header.digest,
        ..mark.clone()
    })
}

/// Fails unless an object has the format of this program.
pub(super) fn check_schema(found: u32) -> Result<()> {
    match found.cmp(&SCHEMA) {
        Ordering::Less => Err(ReplicaError::OlderSchema(found)),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(ReplicaError::Schema(found)),
    }
}

impl LogReader {
    /// Returns a reader. It sends no request yet.
    pub fn new(bucket: impl Into<Arc<Bucket>>) -> LogReader {
        LogReader {
            bucket: bucket.into(),
        }
    }

    /// Returns the bucket's URL.
    pub fn url(&self) -> String {
        self.bucket.url().to_string()
    }

    /// Reads and decodes an object; `None` if there is none.
    fn read<T>(
        &self,
        name: &str,
        decode: impl FnOnce(&[u8]) -> Result<T, MalformedObject>,
    ) -> Result<Option<T>> {
        let found = self.bucket.get(name)?;
        found
            .map(|object| decode(&object.bytes))
            .transpose()
            .map_err(|malformed| ReplicaError::object(name, malformed))
    }

    /// Reads the entry in a slot; `None` if the slot is empty.
    pub fn entry(&self, slot: u64) -> Result<Option<LogEntry>> {
        self.read(&layout::log(slot), |bytes| {
            let entry = entry::decode(bytes)?;
            of_slot(slot, entry.header.slot, entry)
        })
    }

    /// Lists the manifests of all states, by ascending slot.
    pub fn states(&self) -> Result<Vec<(u64, ListedObject)>> {
        let listed = self.bucket.list(layout::STATES, None)?;
        Ok(listed
            .into_iter()
            .filter_map(|object| Some((layout::state_slot(&object.name)?, object)))
            .collect())
    }

    /// Lists the slots of all states, newest first.
    pub fn state_slots(&self) -> Result<Vec<u64>> {
        let states = self.states()?.into_iter().rev();
        Ok(states.map(|(slot, _)| slot).collect())
    }

    /// Lists the slots of all states, newest first. If there are none, waits for the state of the first entry.
    ///
    /// # Errors
    /// [`ReplicaError::Nothing`] if there are no entries either.
    pub(super) fn needed_state_slots(&self) -> Result<Vec<u64>> {
        let slots = self.state_slots()?;
        if !slots.is_empty() {
            return Ok(slots);
        }
        let (first, _) = *self
            .entries_after(0)?
            .first()
            .ok_or_else(|| ReplicaError::Nothing(self.url()))?;
        let entry = self.entry(first)?.ok_or(ReplicaError::Missing {
            slot: first,
            later: first,
        })?;
        self.state_of(&entry).map(|_| vec![first])
    }

    /// Reads the manifest of the state after a slot; `None` if it was deleted.
    pub fn manifest(&self, slot: u64) -> Result<Option<Manifest>> {
        self.read(&layout::state(slot), |bytes| {
            let manifest = Manifest::decode(bytes)?;
            of_slot(slot, manifest.slot, manifest)
        })
    }

    /// Reads the state after an entry. The publisher writes it right after an entry that announces it, so waits for a
    /// moment.
    ///
    /// # Errors
    /// [`ReplicaError::Object`] if it is missing, or is not that of the entry.
    pub fn state_of(&self, entry: &LogEntry) -> Result<Manifest> {
        let header = &entry.header;
        check_schema(header.schema)?;
        let expected = (header.id, entry.hash, header.head(), header.digest);
        for _ in 0..STATE_TRIES {
            let Some(state) = self.manifest(header.slot)? else {
                sleep(STATE_PAUSE);
                continue;
            };
            if (state.id, state.entry_hash, state.head(), state.digest) == expected {
                return Ok(state);
            }
            let detail = "it is not the state after the entry of its slot";
            return Err(ReplicaError::object(layout::state(header.slot), detail));
        }
        let detail = "it is missing: its publisher ended before it wrote it, or the bucket lost it; a running \
                      `medfeed publish` writes another state";
        Err(ReplicaError::object(layout::state(header.slot), detail))
    }

    /// Reads the heartbeat; `None` if there is none.
    pub fn heartbeat(&self) -> Result<Option<Heartbeat>> {
        self.read(layout::ALIVE, Heartbeat::decode)
    }

    /// Reads the heartbeat to compare with a position.
    ///
    /// # Errors
    /// [`ReplicaError::Unconfirmed`] if there is no valid heartbeat of this database.
    pub(super) fn heartbeat_for(&self, position: &ReplicaMark) -> Result<Heartbeat> {
        let detail = match self.heartbeat() {
            Ok(Some(alive)) if alive.id == position.id => return Ok(alive),
            Ok(Some(alive)) => ReplicaError::of_database(layout::ALIVE, alive.id).to_string(),
            Ok(None) => "the publisher's heartbeat (`alive`) is not in the bucket".to_owned(),
            Err(error @ ReplicaError::Object { .. }) => error.to_string(),
            Err(error) => return Err(error),
        };
        Err(ReplicaError::Unconfirmed(detail, position.slot))
    }

    /// Lists the entries after a slot, ascending: slot, and bytes in the store.
    pub fn entries_after(&self, slot: u64) -> Result<Vec<(u64, u64)>> {
        let listed = self.bucket.list(layout::LOG, Some(&layout::log(slot)))?;
        Ok(listed
            .iter()
            .filter_map(|object| Some((layout::log_slot(&object.name)?, object.bytes)))
            .collect())
    }

    /// Lists the slots after a slot that have entries, ascending.
    pub fn slots_after(&self, slot: u64) -> Result<Vec<u64>> {
        let entries = self.entries_after(slot)?.into_iter();
        Ok(entries.map(|(slot, _)| slot).collect())
    }

    /// Fails unless all entries from the newest state to slot `end` are listed. A new replica needs them.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`] for the first missing one.
    pub fn check_path_to(&self, end: u64) -> Result<()> {
        let first = self
            .state_slots()?
            .into_iter()
            .find(|slot| *slot <= end)
            .unwrap_or(1);
        let mut listed = self.slots_after(first.saturating_sub(1))?.into_iter();
        match (first..=end).find(|slot| listed.next() != Some(*slot)) {
            Some(slot) => Err(ReplicaError::Missing { slot, later: end }),
            None => Ok(()),
        }
    }

    /// Whether the log ends after a position, whose last seq is `seq`, by the listed entries and the heartbeat. A
    /// missing entry alone proves nothing, because the bucket may have lost it. Returns false if the next slot has an
    /// entry by now.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`], [`ReplicaError::Unconfirmed`] and the errors of [`LogReader::confirms_end`].
    pub fn ends_after(&self, position: &ReplicaMark, seq: u64) -> Result<bool> {
        Ok(!self.lists_next(position.slot)?
            && self.confirms_end(position, seq, &self.heartbeat_for(position)?)?)
    }

    /// Whether the bucket lists an entry in the slot after `slot`.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`] if only later entries are listed.
    pub(super) fn lists_next(&self, slot: u64) -> Result<bool> {
        let next = slot + 1;
        match self.slots_after(slot)?.first().copied() {
            None => Ok(false),
            Some(later) if later > next => Err(ReplicaError::Missing { slot: next, later }),
            Some(_) => match self.entry(next)? {
                Some(_) => Ok(true),
                None => Err(ReplicaError::object(
                    layout::log(next),
                    "it is listed but cannot be read",
                )),
            },
        }
    }

    /// Whether a heartbeat confirms that the log ends at a position, whose last seq is `seq`. The slot after it was
    /// found empty. Returns false if it has an entry by now.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`] if the log continues; [`ReplicaError::Behind`] if it ended at an earlier seq;
    /// [`ReplicaError::Diverged`] if it has another entry at the position, or none.
    pub fn confirms_end(
        &self,
        position: &ReplicaMark,
        seq: u64,
        alive: &Heartbeat,
    ) -> Result<bool> {
        let last_entry = |slot, hash, seq| LastEntry {
            slot,
            hash,
            head: Head {
                seq,
                ..Head::default()
            },
        };
        let here = last_entry(position.slot, position.hash, seq);
        let alive = last_entry(alive.slot, alive.hash, alive.seq);
        // The next entry may have been created since the slot was found empty. Heartbeats are less frequent than entries.
        let check = compare(&here, &alive, |slot| {
            Ok::<_, ReplicaError>(self.entry(slot)?.map(|entry| entry.hash))
        });
        let slot = position.slot;
        let diverged = match check? {
            EndCheck::Confirmed => return Ok(true),
            EndCheck::Continues => return Ok(false),
            EndCheck::NextMissing => {
                return Err(ReplicaError::Missing {
                    slot: slot + 1,
                    later: alive.slot,
                });
            }
            EndCheck::Behind => {
                return Err(ReplicaError::Behind {
                    slot: alive.slot,
                    end: alive.head.seq,
                    here: seq,
                });
            }
            EndCheck::OtherNamed => {
                format!("`{}` names another entry of slot {slot}", layout::ALIVE)
            }
            EndCheck::OtherHeld => format!("slot {slot} holds another entry"),
            // The rows may still be as new as a state that the origin has published since.
            EndCheck::Gone => format!("slot {slot} is gone"),
        };
        Err(ReplicaError::Diverged(diverged))
    }

    /// Fails if the bucket holds another database. Returns false if it holds nothing. The newest object that can be
    /// decoded decides, because some may be damaged.
    ///
    /// # Errors
    /// [`ReplicaError::OtherDatabase`]. If no object can be decoded, as with a wrong seal key, the error of the newest
    /// one.
    pub fn check_database(&self, expected: DatabaseId) -> Result<bool> {
        let states = self.state_slots()?.into_iter();
        let of_states = states.map(|slot| Ok(self.manifest(slot)?.map(|manifest| manifest.id)));
        let entries = self.slots_after(0)?.into_iter().rev();
        let of_entries = entries.map(|slot| Ok(self.entry(slot)?.map(|entry| entry.header.id)));
        let ids = of_states.take(MAX_UNREADABLE);
        let mut first_error = None;
        for id in ids.chain(of_entries.take(MAX_UNREADABLE)) {
            match id {
                Ok(None) => {}
                Ok(Some(found)) if found != expected => {
                    return Err(ReplicaError::OtherDatabase { expected, found });
                }
                Ok(Some(_)) => return Ok(true),
                Err(error @ ReplicaError::Object { .. }) => {
                    first_error.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        first_error.map_or(Ok(false), Err)
    }

    /// Passes the parts of a state to `take`, in order, each checked against its hash.
    pub fn parts(
        &self,
        parts: &[PartRef],
        mut take: impl FnMut(&PartRef, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        std::thread::scope(|scope| {
            let fetchers: Vec<_> = (0..FETCHERS.min(parts.len()))
                .map(|first| {
                    // Each thread is at most one part ahead, which bounds the memory.
                    let (sender, receiver) = sync_channel(1);
                    scope.spawn(move || {
                        for part in parts.iter().skip(first).step_by(FETCHERS) {
                            if sender.send(self.part(part)).is_err() {
                                return;
                            }
                        }
                    });
                    receiver
                })
                .collect();
            for (part, fetcher) in parts.iter().zip(fetchers.iter().cycle()) {
                let fetched = fetcher.recv().map_err(|_| ReplicaError::Stopped)??;
                take(part, fetched)?;
            }
            Ok(())
        })
    }

    fn part(&self, part: &PartRef) -> Result<Vec<u8>> {
        self.read(&part.name, |bytes| decode_part(part, bytes))?
            .ok_or_else(|| ReplicaError::object(&part.name, "it is missing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RowDigest;
    use crate::replicate::frame::Hash;
    use crate::replicate::test_log::{ID, OTHER_ID, TestLog};

    const OTHER: Hash = [9; 32];

    fn reader(log: &TestLog) -> LogReader {
        LogReader::new(log.bucket())
    }

    fn at(slot: u64, hash: Hash) -> ReplicaMark {
        ReplicaMark {
            url: String::new(),
            id: ID,
            slot,
            hash,
            digest: RowDigest::default(),
        }
    }

    fn shown<T: std::fmt::Debug>(result: Result<T>) -> String {
        match result {
            Ok(found) => format!("{found:?}"),
            Err(ReplicaError::Diverged(detail)) => format!("Diverged: {detail}"),
            Err(ReplicaError::Missing { slot, later }) => format!("Missing {slot}, later {later}"),
            Err(ReplicaError::Unconfirmed(..)) => "Unconfirmed".to_owned(),
            Err(ReplicaError::Object { name, .. }) => format!("Object {name}"),
            Err(error) => format!("{error:?}"),
        }
    }

    #[test]
    fn a_position_is_compared_with_a_heartbeat_by_slot_and_hash() {
        let (log, hashes) = TestLog::up_to(3);
        // The position; slot and hash in the heartbeat, whose seq is 25; and the outcome.
        let cases = cases![
            at(3, hashes[2]), (3, hashes[2]), "true";
            at(3, OTHER), (3, hashes[2]), "Diverged: `alive` names another entry of slot 3";
            at(3, hashes[2]), (3, OTHER), "Diverged: `alive` names another entry of slot 3";
            at(3, hashes[2]), (2, hashes[1]), "true";
            at(3, hashes[2]), (1, hashes[0]), "true";
            at(3, OTHER), (2, hashes[1]), "Diverged: slot 3 holds another entry";
            at(4, OTHER), (3, hashes[2]), "Behind { slot: 3, end: 25, here: 40 }";
            at(4, OTHER), (1, hashes[0]), "Behind { slot: 1, end: 25, here: 40 }";
            at(2, hashes[1]), (3, hashes[2]), "false";
            at(2, hashes[1]), (9, OTHER), "false";
            at(3, hashes[2]), (4, OTHER), "Missing 4, later 4";
            at(3, hashes[2]), (7, OTHER), "Missing 4, later 7";
        ];
        for (position, (slot, hash), expected) in cases {
            log.put_alive(slot, hash, 25);
            let alive = reader(&log).heartbeat_for(&position).unwrap();
            let found = reader(&log).confirms_end(&position, position.slot * 10, &alive);
            assert_eq!(shown(found), expected, "{} {slot}", position.slot);
        }
    }

    #[test]
    fn the_end_of_the_log_is_neither_before_a_listed_entry_nor_without_a_heartbeat() {
        let (log, hashes) = TestLog::up_to(5);
        let end = |slot: usize| {
            shown(reader(&log).ends_after(&at(slot as u64, hashes[slot - 1]), slot as u64 * 10))
        };
        let expected = ("true".to_owned(), "false".to_owned(), "false".to_owned());
        assert_eq!((end(5), end(4), end(1)), expected);
        log.remove(&layout::log(4));
        let expected = ("Missing 4, later 5".to_owned(), "false".to_owned());
        assert_eq!((end(3), end(4)), expected);
        log.remove(&layout::log(5));
        assert_eq!(end(3), "Missing 4, later 5", "the heartbeat names it");
        assert_eq!(end(5), "true", "the heartbeat names it");
        log.put_alive(3, hashes[2], 30);
        assert_eq!(end(3), "true".to_owned());
        assert_eq!(end(4), "Behind { slot: 3, end: 30, here: 40 }".to_owned());
        log.bucket().put(layout::ALIVE, b"damaged").unwrap();
        assert_eq!(end(3), "Unconfirmed");
        log.remove(layout::ALIVE);
        assert_eq!(end(3), "Unconfirmed");
        let other = TestLog {
            id: OTHER_ID,
            folder: log.folder,
        };
        other.put_alive(3, hashes[2], 30);
        assert_eq!(
            shown(reader(&other).ends_after(&at(3, hashes[2]), 30)),
            "Unconfirmed"
        );
        // An entry that is listed and cannot be read.
        std::fs::create_dir_all(other.folder.path().join("log")).unwrap();
        std::fs::write(other.folder.path().join(layout::log(4)), "damaged").unwrap();
        assert_eq!(
            shown(reader(&other).ends_after(&at(3, hashes[2]), 30)),
            "Object log/00000000000000000004"
        );
    }

    fn rot(log: &TestLog, names: &[String]) {
        names
            .iter()
            .for_each(|name| log.bucket().put(name, b"rotten").unwrap());
    }

    #[test]
    fn a_bucket_is_of_the_database_in_its_newest_readable_object() {
        /// The damage of a log of three entries and a state, the expected database, and the beginning of the error.
        type Case = (&'static str, fn(&TestLog), DatabaseId, &'static str);
        let cases: [Case; 6] = cases![
            "nothing", |_| {}, ID, "";
            "another database", |_| {}, OTHER_ID, "the bucket holds database";
            "a rotten state", |log| rot(log, &[layout::state(1)]), ID, "";
            "a rotten state of another", |log| rot(log, &[layout::state(1)]), OTHER_ID, "the bucket holds database";
            "all is rotten",
                |log| { rot(log, &[layout::state(1), layout::log(1), layout::log(2), layout::log(3)]) }, ID,
                "object `states/00000000000000000001` cannot be used";
            "all is gone", TestLog::empty, OTHER_ID, "";
        ];
        for (what, change, expected, error) in cases {
            let (log, _) = TestLog::up_to(3);
            change(&log);
            let found = reader(&log)
                .check_database(expected)
                .map_err(|error| error.to_string());
            assert_eq!(found.is_ok(), error.is_empty(), "{what}: {found:?}");
            assert!(
                found.map_or_else(|found| found.starts_with(error), |_| true),
                "{what}"
            );
        }
    }

    #[test]
    fn a_new_replica_needs_all_entries_from_the_newest_state_on() {
        let (log, hashes) = TestLog::up_to(5);
        log.put_manifest(3, hashes[2], Vec::new());
        let path = |slot| shown(reader(&log).check_path_to(slot));
        assert_eq!(reader(&log).state_slots().unwrap(), [3, 1]);
        log.remove(&layout::log(2));
        assert_eq!((path(5), path(3)), ("()".to_owned(), "()".to_owned()));
        let expected = "Missing 2, later 2";
        assert_eq!(path(2), expected, "the state of slot 3 is too late");
        log.remove(&layout::log(3));
        assert_eq!(path(5), "Missing 3, later 5", "the entry of the state");
        log.put(3, hashes[1], "origin");
        log.remove(&layout::log(5));
        let expected = ("Missing 5, later 5".to_owned(), "()".to_owned());
        assert_eq!((path(5), path(4)), expected);
        for slot in [1, 3] {
            log.remove(&layout::state(slot));
        }
        let expected = "Missing 2, later 4";
        assert_eq!(path(4), expected, "without states from the first entry on");
        log.remove(&layout::log(1));
        assert_eq!(path(4), "Missing 1, later 4");
    }

    #[test]
    fn all_parts_of_a_state_are_read_in_order() {
        let log = TestLog::new(ID);
        let parts: Vec<PartRef> = (0..9)
            .map(|index| log.put_part(1, "0123456789abcdef", index))
            .collect();
        let read = |count: usize| {
            let mut names = Vec::new();
            let result = reader(&log).parts(&parts[..count], |part, changes| {
                assert_eq!(changes, b"rows");
                names.push(part.name.clone());
                Ok(())
            });
            (names, shown(result))
        };
        let names = |count: usize| {
            parts[..count]
                .iter()
                .map(|part| part.name.clone())
                .collect::<Vec<_>>()
        };
        for count in 0..=parts.len() {
            assert_eq!(read(count), (names(count), "()".to_owned()));
        }
        for bad in (0..parts.len()).rev() {
            log.bucket().put(&parts[bad].name, b"damaged").unwrap();
            let expected = (names(bad), format!("Object {}", parts[bad].name));
            assert_eq!(read(parts.len()), expected);
        }
    }

    #[test]
    fn the_next_entry_has_the_next_slot_and_the_right_parent() {
        let (log, hashes) = TestLog::up_to(3);
        let next = |slot: u64, hash, id| {
            let entry = reader(&log).entry(3).unwrap().unwrap();
            let mark = ReplicaMark {
                id,
                ..at(slot, hash)
            };
            shown(check_next(&mark, &entry).map(|next| (next.slot, next.hash, next.digest)))
        };
        let expected = format!("{:?}", (3, hashes[2], RowDigest([3; 4])));
        assert_eq!(next(2, hashes[1], ID), expected);
        let expected = "Object log/00000000000000000003";
        assert_eq!(next(2, hashes[1], OTHER_ID), expected);
        assert!(next(2, hashes[0], ID).starts_with("Diverged: "));
        let of_other_slot = log.bucket().get(&layout::log(2)).unwrap().unwrap();
        log.bucket()
            .put(&layout::log(3), &of_other_slot.bytes)
            .unwrap();
        let expected = "Object log/00000000000000000003";
        assert_eq!(shown(reader(&log).entry(3)), expected);
        log.put_state(3, Hash::default());
        assert!(
            next(2, OTHER, ID).starts_with("(3, "),
            "a state that starts the log over follows anything"
        );
    }
}
