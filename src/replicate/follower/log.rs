//! Reading the log: objects are taken for what they say only where their names, hashes and predecessors agree.

use std::cmp::Ordering;
use std::sync::mpsc::sync_channel;

use super::trouble::Trouble;
use crate::bucket::Bucket;
use crate::model::{DatabaseId, Head, RowDigest};
use crate::replicate::entry::{self, Entry, Header};
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::replicate::report::Alive;
use crate::replicate::state::{Manifest, PartRef, decode_part};
use crate::store::replication::{OLDEST, SCHEMA};

/// The parts of a state that are fetched at once.
const FETCHERS: usize = 4;

/// What becomes of a part's changes.
pub type TakePart<'a> = &'a mut dyn FnMut(&PartRef, Vec<u8>) -> Result<(), Trouble>;

/// A log, as its readers see it.
#[derive(Debug)]
pub struct LogReader {
    bucket: Bucket,
}

/// A place in a log: after an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The log's database.
    pub id: DatabaseId,
    /// The entry's slot.
    pub slot: u64,
    /// The entry's hash.
    pub hash: Hash,
}

impl Place {
    /// Fails unless an entry, read from the slot after this place, goes on from here.
    ///
    /// # Errors
    /// [`Trouble::Object`] for an object of another place, [`Trouble::Parted`], [`Trouble::Schema`].
    pub fn check_next(&self, entry: &Entry) -> Result<Place, Trouble> {
        let slot = self.slot + 1;
        let name = layout::log(slot);
        entry.header.check(slot, self.id).map_err(|misplaced| Trouble::object(&name, misplaced))?;
        if entry.header.parent != self.hash && !entry.header.starts_over() {
            return Err(Trouble::Parted(format!("`{name}` follows another entry than the one that was applied")));
        }
        check_schema(entry.header.schema)?;
        Ok(Place { slot, hash: entry.hash, ..*self })
    }
}

/// Fails for a format that this program cannot read.
fn check_schema(found: u32) -> Result<(), Trouble> {
    if (OLDEST..=SCHEMA).contains(&found) { Ok(()) } else { Err(Trouble::Schema { found, known: SCHEMA }) }
}

/// Where the log ends, seen from a position whose next slot was found empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The sign of life agrees: this is the end.
    Confirmed,
    /// An entry is in the next slot by now.
    More,
    /// The log no longer holds the position: it ends earlier.
    Before {
        /// The last slot that the sign of life names.
        slot: u64,
        /// The origin's last seq when the sign of life was written.
        seq: u64,
    },
}

/// How a position compares with the end of the log that a sign of life names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    At,
    Before,
    /// The sign of life is older than the last entry, or the bucket lost entries.
    Beyond,
    /// The same slot, another entry.
    Forked,
}

impl Relation {
    fn of(place: Place, alive: &Alive) -> Relation {
        match place.slot.cmp(&alive.slot) {
            Ordering::Less => Relation::Before,
            Ordering::Greater => Relation::Beyond,
            Ordering::Equal if place.hash == alive.hash => Relation::At,
            Ordering::Equal => Relation::Forked,
        }
    }
}

/// A whole state that the log holds.
#[derive(Clone, Debug)]
pub struct StateAt {
    /// After which entry it is.
    pub place: Place,
    /// Its last commit.
    pub head: Head,
    /// The digest of its rows.
    pub digest: RowDigest,
    /// The format of its rows.
    pub schema: u32,
    /// Its rows.
    pub parts: Vec<PartRef>,
}

impl StateAt {
    /// The state that a manifest names.
    pub fn of_manifest(manifest: Manifest) -> StateAt {
        let head = manifest.head();
        let place = Place { id: manifest.id, slot: manifest.slot, hash: manifest.entry_hash };
        StateAt { place, head, digest: manifest.digest, schema: manifest.schema, parts: manifest.parts }
    }

    /// The state that an entry holds in place of commits.
    pub fn of_entry(header: &Header, hash: Hash) -> Option<StateAt> {
        let parts = header.state.clone()?;
        let place = Place { id: header.id, slot: header.slot, hash };
        Some(StateAt { place, head: header.head(), digest: header.digest, schema: header.schema, parts })
    }
}

impl LogReader {
    /// A reader of a bucket's log. Nothing is asked of the bucket yet.
    pub fn new(bucket: Bucket) -> LogReader {
        LogReader { bucket }
    }

    /// The bucket.
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// The bucket's URL.
    pub fn url(&self) -> String {
        self.bucket.url().to_string()
    }

    /// The entry in a slot; `None` if the slot is free.
    ///
    /// # Errors
    /// [`Trouble::Bucket`], [`Trouble::Object`].
    pub fn entry(&self, slot: u64) -> Result<Option<Entry>, Trouble> {
        let name = layout::log(slot);
        let Some(object) = self.bucket.get(&name)? else { return Ok(None) };
        entry::decode(&object.bytes).map(Some).map_err(Trouble::malformed(&name))
    }

    /// The slots of the states that there are, the newest first.
    ///
    /// # Errors
    /// [`Trouble::Bucket`].
    pub fn state_slots(&self) -> Result<Vec<u64>, Trouble> {
        let listed = self.bucket.list(layout::STATES, None)?;
        let mut slots: Vec<u64> = listed.iter().filter_map(|object| layout::state_slot(&object.name)).collect();
        slots.reverse();
        Ok(slots)
    }

    /// The manifest of the state after a slot; `None` if it was swept.
    ///
    /// # Errors
    /// [`Trouble::Bucket`], [`Trouble::Object`], [`Trouble::Schema`].
    pub fn manifest(&self, slot: u64) -> Result<Option<Manifest>, Trouble> {
        let name = layout::state(slot);
        let Some(object) = self.bucket.get(&name)? else { return Ok(None) };
        let (manifest, _) = Manifest::decode(&object.bytes).map_err(Trouble::malformed(&name))?;
        manifest.check(slot, manifest.id).map_err(|misplaced| Trouble::object(&name, misplaced))?;
        check_schema(manifest.schema)?;
        Ok(Some(manifest))
    }

    /// The publisher's sign of life, by which a position is to be judged.
    ///
    /// # Errors
    /// [`Trouble::Unconfirmed`] where there is none of this database that can be read; [`Trouble::Bucket`].
    pub(super) fn alive_for(&self, place: Place) -> Result<Alive, Trouble> {
        let name = layout::ALIVE;
        let found = match self.bucket.get(name).map_err(Trouble::from) {
            Ok(None) => Err("the publisher's sign of life (`alive`) is not in the bucket".to_owned()),
            Ok(Some(object)) => Alive::decode(&object.bytes).map_err(|error| Trouble::object(name, error).to_string()),
            Err(trouble @ Trouble::Object { .. }) => Err(trouble.to_string()),
            Err(trouble) => return Err(trouble),
        };
        let found = found.and_then(|alive| match alive.id == place.id {
            true => Ok(alive),
            false => Err(Trouble::object(name, format!("it is of another database ({})", alive.id)).to_string()),
        });
        found.map_err(|detail| Trouble::Unconfirmed(detail, place.slot))
    }

    /// The slots after another that the bucket lists entries in, ascending.
    ///
    /// # Errors
    /// [`Trouble::Bucket`].
    pub(super) fn slots_after(&self, slot: u64) -> Result<Vec<u64>, Trouble> {
        let listed = self.bucket.list(layout::LOG, Some(&layout::log(slot)))?;
        Ok(listed.iter().filter_map(|object| layout::log_slot(&object.name)).collect())
    }

    /// Fails unless all entries are listed that whoever starts from the newest state needs to come to a position.
    ///
    /// # Errors
    /// [`Trouble::Missing`], [`Trouble::Bucket`].
    pub fn check_way_to(&self, place: Place) -> Result<(), Trouble> {
        let first = self.state_slots()?.into_iter().find(|slot| *slot <= place.slot).unwrap_or(1);
        let mut listed = self.slots_after(first.saturating_sub(1))?.into_iter();
        match (first..=place.slot).find(|slot| listed.next() != Some(*slot)) {
            Some(slot) => Err(Trouble::Missing { slot, later: place.slot }),
            None => Ok(()),
        }
    }

    /// Decides by the entries that are listed and by the sign of life whether the log ends after a position. An entry that is
    /// absent does not show that: objects may have been lost.
    ///
    /// # Errors
    /// [`Trouble::Missing`], [`Trouble::Unconfirmed`] and the errors of [`LogReader::compare`].
    pub fn end_after(&self, place: Place) -> Result<End, Trouble> {
        if self.lists_next(place)? {
            return Ok(End::More);
        }
        let alive = self.alive_for(place)?;
        self.compare(place, &alive)
    }

    /// Whether the bucket lists an entry in the slot after a position.
    ///
    /// # Errors
    /// [`Trouble::Missing`] when it lists only later ones, [`Trouble::Object`] when the entry is listed and not there;
    /// [`Trouble::Bucket`].
    pub(super) fn lists_next(&self, place: Place) -> Result<bool, Trouble> {
        let next = place.slot + 1;
        match self.slots_after(place.slot)?.first().copied() {
            None => Ok(false),
            Some(later) if later > next => Err(Trouble::Missing { slot: next, later }),
            Some(_) => match self.entry(next)? {
                Some(_) => Ok(true),
                None => Err(Trouble::object(layout::log(next), "it is listed and cannot be read")),
            },
        }
    }

    /// Whether the entry of a position is in the log, or was: the sign of life names the last one.
    pub(super) fn holds(&self, place: Place) -> Result<bool, Trouble> {
        if let Some(entry) = self.entry(place.slot)? {
            return Ok(entry.hash == place.hash);
        }
        match self.alive_for(place) {
            Ok(alive) => Ok(Relation::of(place, &alive) == Relation::At),
            Err(Trouble::Unconfirmed(..)) => Ok(false),
            Err(trouble) => Err(trouble),
        }
    }

    /// Compares a position, after which no entry was found, with the end that a sign of life names.
    ///
    /// # Errors
    /// [`Trouble::Missing`] when the log goes on, [`Trouble::Parted`] when it holds another entry at the position;
    /// [`Trouble::Bucket`], [`Trouble::Object`].
    pub fn compare(&self, place: Place, alive: &Alive) -> Result<End, Trouble> {
        match Relation::of(place, alive) {
            Relation::At => Ok(End::Confirmed),
            Relation::Forked => {
                Err(Trouble::Parted(format!("`{}` names another entry of slot {}", layout::ALIVE, place.slot)))
            }
            // It may have been created since the slot was found empty.
            Relation::Before => match self.entry(place.slot + 1)? {
                Some(_) => Ok(End::More),
                None => Err(Trouble::Missing { slot: place.slot + 1, later: alive.slot }),
            },
            // The publisher writes the sign of life less often than entries.
            Relation::Beyond => match self.entry(place.slot)? {
                Some(entry) if entry.hash == place.hash => Ok(End::Confirmed),
                Some(_) => Err(Trouble::Parted(format!("slot {} holds another entry", place.slot))),
                None => Ok(End::Before { slot: alive.slot, seq: alive.seq }),
            },
        }
    }

    /// Whether the entries after a place lead to a state: all are there, and each follows the one before. Nothing may be
    /// applied before that is known: an entry that was put into a swept place follows too, and leads nowhere.
    ///
    /// # Errors
    /// [`Trouble::Bucket`], [`Trouble::Object`], [`Trouble::Schema`].
    pub fn leads_to(&self, from: Place, state: Place, go_on: &dyn Fn() -> bool) -> Result<bool, Trouble> {
        let mut place = from;
        while place.slot < state.slot {
            if !go_on() {
                return Err(Trouble::Stopped);
            }
            let Some(entry) = self.entry(place.slot + 1)? else { return Ok(false) };
            place = match place.check_next(&entry) {
                Err(Trouble::Parted(_)) => return Ok(false),
                next => next?,
            };
        }
        Ok(place == state)
    }

    /// Hands over the parts of a state in their order, each checked against its hash.
    ///
    /// # Errors
    /// Those of `take`, [`Trouble::Bucket`], [`Trouble::Object`].
    pub fn parts(&self, parts: &[PartRef], take: TakePart<'_>) -> Result<(), Trouble> {
        std::thread::scope(|scope| {
            let fetchers: Vec<_> = (0..FETCHERS.min(parts.len()))
                .map(|first| {
                    // Each is at most one part ahead, so memory holds few.
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
                let fetched = fetcher.recv().map_err(|_| Trouble::Stopped)??;
                take(part, fetched)?;
            }
            Ok(())
        })
    }

    fn part(&self, part: &PartRef) -> Result<Vec<u8>, Trouble> {
        let object = self.bucket.get(&part.name)?;
        let object = object.ok_or_else(|| Trouble::object(&part.name, "it is not there"))?;
        decode_part(part, &object.bytes).map_err(Trouble::malformed(&part.name))
    }
}
