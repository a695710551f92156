//! Making a replica the database that others follow.

use std::path::Path;

use super::load::{mark_at, place_of};
use super::log::Place;
use super::replica::Replica;
use super::trouble::Trouble;
use crate::bucket::{BucketError, Created};
use crate::model::Head;
use crate::model::time::now;
use crate::replicate::entry::{self, Header};
use crate::replicate::layout;
use crate::store::replication::{Leap, PublishedNote, ReplicaWriter, SCHEMA};

/// How often another entry may come in between, and how often an answer of the bucket may be lost.
const TRIES: usize = 3;

/// What became of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promoted {
    /// The slot of the entry that says so.
    pub slot: u64,
    /// The last commit of the origin that is lost.
    pub before: Head,
    /// The commit that takes its place.
    pub head: Head,
}

/// The note of a database whose last entry in the log is at a place.
fn note_of(url: String, place: Place, head: Head) -> PublishedNote {
    let (Place { id, slot, hash }, Head { seq, lineage }) = (place, head);
    PublishedNote { url, id, slot, seq, lineage, hash, fenced: None, fenced_at: None, probed_at: None }
}

/// What became of the next place in the log.
enum Placed {
    Ours,
    Others,
}

impl Replica {
    /// Makes this replica the origin: after the end of the log goes a commit that leaps over all tokens that the old origin may
    /// have given. From that moment its publisher is fenced. What stops on the way leaves a replica, to be promoted again.
    /// `since` is the replica's last seq when that was asked for; `who` is unique to this file.
    ///
    /// # Errors
    /// [`Trouble`]; [`Trouble::TakenOver`] when another replica was promoted after `since` and has not published since, or between
    /// two attempts; [`Trouble::Overtaken`] when others published all the time.
    pub fn promote(mut self, since: u64, who: &str, go_on: &dyn Fn() -> bool) -> Result<Promoted, Trouble> {
        let mut since = since;
        for attempt in 0..TRIES {
            self.catch_up(go_on)?;
            let promotion = self.writer()?.promotion_after(since)?;
            // The promoted replica may have published since, and be lost too, unless that was between two attempts.
            let promotion = promotion.filter(|commit| attempt > 0 || commit.seq == self.head().seq);
            // One that was put from here before this was killed is followed like any other.
            if let Some(commit) = promotion.filter(|commit| self.putter_of(commit.seq) != Some(who)) {
                return Err(Trouble::TakenOver { who: commit.who, what: commit.what, at: commit.time });
            }
            let (before, here) = (self.head(), place_of(self.mark()));
            since = before.seq;
            // Others start from a state, and so does the publisher here.
            self.log().check_way_to(here)?;
            let log_url = self.log().url();
            let Leap { commit, changes } = self.writer()?.prepare_leap(&log_url)?;
            let head = Head { seq: commit.last_seq, lineage: commit.lineage };
            let header = Header {
                id: here.id,
                slot: here.slot + 1,
                parent: here.hash,
                schema: SCHEMA,
                who: who.to_owned(),
                at: now(),
                commits: vec![commit],
                seq: head.seq,
                lineage: head.lineage,
                digest: commit.digest,
                state: None,
            };
            let name = layout::log(header.slot);
            let (bytes, hash) = entry::encode(&header, &[&changes]).map_err(Trouble::malformed(&name))?;
            if let Placed::Others = self.place(&name, &bytes)? {
                continue;
            }
            let place = Place { slot: header.slot, hash, ..here };
            let mark = mark_at(log_url.clone(), place, commit.digest);
            let path = self.path().to_owned();
            let mut writer: ReplicaWriter = self.into_writer()?;
            writer.apply(&[(commit, &changes)], &mark).map_err(|error| Trouble::of_apply(error, &name))?;
            // Before the first commit: a note may be left from when another database of this name was taken over, and who is
            // overtaken before the first publishing knows by it what was put from here.
            note_of(log_url, place, head).write(&path)?;
            drop(writer.promote()?);
            return Ok(Promoted { slot: place.slot, before, head });
        }
        Err(Trouble::Overtaken)
    }

    /// Makes this replica's file a database of its own as it is, whatever the log in the bucket holds. A publisher then starts the
    /// log over with a whole state of it, which fences the old origin.
    ///
    /// # Errors
    /// [`Trouble::Store`]; it is a replica still.
    pub fn start_over(path: &Path) -> Result<Promoted, Trouble> {
        let writer = ReplicaWriter::open(path)?;
        let (mark, before) = (writer.mark()?, writer.head()?.head());
        // First: a note may be left from when another database of this name was taken over.
        note_of(mark.url.clone(), place_of(&mark), before).write(path)?;
        let writer = writer.start_over(&mark.url)?;
        Ok(Promoted { slot: mark.slot, before, head: writer.snapshot()?.commit().head() })
    }

    /// Creates an entry. An answer that is lost is asked for again: the same bytes are ours.
    fn place(&self, name: &str, bytes: &[u8]) -> Result<Placed, Trouble> {
        let bucket = self.log().bucket();
        let mut lost = None;
        for _ in 0..TRIES {
            let found = match bucket.create(name, bytes) {
                Ok(Created::New) => return Ok(Placed::Ours),
                Ok(Created::Exists) => bucket.get(name),
                Err(error @ BucketError::Refused(_)) if lost.is_none() => return Err(error.into()),
                Err(error) => Err(error),
            };
            match found {
                Ok(Some(object)) if object.bytes == bytes => return Ok(Placed::Ours),
                Ok(Some(_)) => return Ok(Placed::Others),
                // Refused since another request was under way.
                Ok(None) => {}
                Err(error) => lost = Some(error),
            }
        }
        Err(lost.map_or(Trouble::Overtaken, Trouble::Unsure))
    }
}
