//! Starting: whether this database may go on after the end of the log.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::end::{End, Found, Growth, StateObjects, last_listed, read_end, read_entry, read_manifest};
use super::error::PublishError;
use super::life::{Life, WantedState};
use super::lock::PublisherLock;
use super::patience::Patience;
use super::standing::{Standing, Trouble};
use super::{ONCE_TRIES, Publisher, Settings, who};
use crate::bucket::{Bucket, BucketError};
use crate::model::time::now;
use crate::model::{DatabaseId, Head, Timestamp};
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::replicate::report::Alive;
use crate::store::replication::{OriginView, PublishedNote, SCHEMA};
use crate::store::{Follower, StoreError, Writer};

/// The id of a database that was never published.
const NO_ID: DatabaseId = DatabaseId([0; 16]);
/// For how long a store that created a name only once is not tried again, in seconds.
const PROBED_FOR_S: i64 = 86_400;

/// The log as it was read at the start.
enum Read {
    Nothing,
    Whole(Box<Found>),
    /// Entries are missing in it.
    Broken,
}

impl Publisher {
    /// Takes the database's lock, reads the end of the log, tries the store, and marks the database as published. `standing` tells
    /// how it stands from here on.
    ///
    /// # Errors
    /// [`PublishError`]. Unless the bucket takes what is published, the database is not marked.
    pub fn start(
        path: &Path,
        bucket: Arc<Bucket>,
        settings: Settings,
        standing: Arc<Standing>,
    ) -> Result<Publisher, PublishError> {
        let follower = Follower::open(path)?;
        let lock = PublisherLock::take(path)?;
        let mut patience = Patience::new(settings.once.then(|| Instant::now() + ONCE_TRIES), &standing);
        let start_over = settings.start_over;
        let note = PublishedNote::read(path)?;
        patience.ask(|| bucket.prepare())?;
        // Before the log, so that it names no entry that came after that was read.
        let alive = read_life(&bucket, &mut patience)?;
        let found = match read_end(&bucket, &mut patience) {
            // `--start-over` gives up the entries before the gap.
            Err(error @ PublishError::Missing { .. }) if start_over => {
                tracing::warn!("{error}");
                Read::Broken
            }
            found => found?.map_or(Read::Nothing, |found| Read::Whole(Box::new(found))),
        };
        let own = follower.origin()?.id()?;
        if let Read::Whole(found) = &found {
            check_id(&bucket, found, own)?;
        }
        let mut publisher = Publisher {
            path: path.to_owned(),
            who: who(&lock),
            bucket,
            settings,
            follower,
            patience,
            local: Trouble::new(&standing),
            standing,
            // Known once the database is marked.
            id: own.unwrap_or(NO_ID),
            end: None,
            growth: Growth::default(),
            state_at: Timestamp::EPOCH,
            newest_state: None,
            wanted_state: None,
            beside: None,
            entries: 0,
            put_at: None,
            seen: None,
            note_due: false,
            life: Life::default(),
            probed_at: None,
            _lock: lock,
        };
        publisher.go_on_after(found, note, alive)?;
        publisher.patience.bears_refusal = !publisher.settings.once;
        Ok(publisher)
    }

    /// Takes the end of the log as the position after which to go on, if this database may.
    fn go_on_after(
        &mut self,
        read: Read,
        note: Option<PublishedNote>,
        alive: Option<Alive>,
    ) -> Result<(), PublishError> {
        let view = self.follower.origin()?;
        let url = self.bucket.url().to_string();
        if let Some(other) = note.as_ref().filter(|note| note.id != self.id) {
            tracing::warn!(
                "the note of what is published beside {} is about another database ({}), and is not used",
                self.path.display(),
                other.id
            );
        }
        let note = note.filter(|note| note.url == url && note.id == self.id);
        let alive = alive.filter(|alive| alive.id == self.id);
        let found = self.set_end(read, note.as_ref(), alive.as_ref())?;
        self.life.follow(alive.map_or(Timestamp::EPOCH, |alive| alive.at));
        self.life.follow(found.as_ref().map_or(Timestamp::EPOCH, |found| found.header.at));
        let is_held = match &found {
            Some(found) => view.holds(found.header.seq, found.header.lineage)?,
            None => false,
        };
        if let Some(found) = &found
            && !is_held
        {
            self.may_replace(&view, found, note.as_ref())?;
        }
        drop(view);
        // Last of all that may refuse: it takes many requests, and services are started again and again.
        self.probe(note.as_ref())?;
        self.mark()?;
        self.leap_over_what_is_given_up()?;
        let place = self.end.map_or_else(|| "from the start".to_owned(), |end| format!("after slot {}", end.slot));
        tracing::info!("publishing {} to {}, {place}", self.path.display(), self.bucket.url());
        if !self.bucket.is_sealed() {
            tracing::warn!(
                "nothing in {} is sealed: who can read it has all records and the secret of sync tokens, and who can write to \
                 it can make API keys; seal it with --seal-key, or trust everybody who has access",
                self.bucket.url()
            );
        }
        if let Some(found) = found {
            self.growth = found.growth;
            self.state_at = found.manifest.as_ref().map_or(found.header.at, |manifest| manifest.at);
            self.newest_state =
                found.manifest.as_ref().map(|manifest| StateObjects::of(manifest.slot, &manifest.parts));
            if found.lacks_manifest() {
                self.put_manifest_of(&found.header, found.hash)?;
            } else if found.manifest.is_none() || found.lost_part.is_some() {
                tracing::error!(
                    "{}: {} is not there, so no replica can start; a whole state goes out now. Look who deletes objects",
                    self.bucket.url(),
                    found.lost_part.as_deref().unwrap_or("the newest state")
                );
                let is_slot_free = found.manifest.as_ref().is_none_or(|state| state.slot != found.header.slot);
                self.wanted_state = Some(if is_slot_free { WantedState::Beside } else { WantedState::Entry });
            }
            if is_held && found.header.schema == SCHEMA {
                self.tell_end();
                self.note();
            } else {
                // Also after an upgrade: replicas of this version start from a state of its format.
                self.put_state_entry()?;
            }
        } else {
            self.put_state_entry()?;
        }
        Ok(())
    }

    /// Sets the end of the log. Neither the note nor the sign of life may name a later slot than the one that was read.
    fn set_end(
        &mut self,
        read: Read,
        note: Option<&PublishedNote>,
        alive: Option<&Alive>,
    ) -> Result<Option<Found>, PublishError> {
        // The note of a database that another publisher took over from is told of below.
        let known = note.filter(|note| note.fenced.is_none()).map_or(0, |note| note.slot);
        let named = alive.map_or(0, |alive| alive.slot);
        match read {
            Read::Whole(found) if found.header.slot >= known.max(named) => {
                self.end = Some(found.end());
                return Ok(Some(*found));
            }
            Read::Nothing if known == 0 && named == 0 => return Ok(None),
            Read::Broken => {}
            read if !self.settings.start_over => {
                let (path, url) = (self.path.clone(), self.bucket.url().to_string());
                let known = known.max(named);
                let by = if known == named { "the sign of life there" } else { "the note beside it" };
                return Err(match read {
                    Read::Whole(found) => PublishError::WentBack { path, url, slot: found.header.slot, known, by },
                    _ => PublishError::Emptied { path, url, slot: known },
                });
            }
            _ => {}
        }
        // Replicas go on from there; nothing that is known of the log is overwritten.
        let listed = last_listed(&self.bucket, &mut self.patience)?;
        let (slot, is_empty) = (listed.max(known).max(named), listed == 0);
        let last = self.read_last(slot)?;
        let unknown = |seq| Head { seq, ..Head::default() };
        let heads = [last, note.map(PublishedNote::head), alive.map(|alive| unknown(alive.seq))];
        let head = heads.into_iter().flatten().max_by_key(|head| (head.seq, head.lineage)).unwrap_or_default();
        // In an empty bucket the last entry is known all the same. Else there is no parent: entries on the way to it are missing.
        let known = [note.map(|note| (note.slot, note.hash)), alive.map(|alive| (alive.slot, alive.hash))];
        let known = known.into_iter().flatten().find(|(known, _)| is_empty && *known == slot);
        let hash = known.map_or_else(Hash::default, |(_, hash)| hash);
        self.end = Some(End { slot, hash, head, ..End::default() });
        tracing::warn!("starting over after slot {slot}: no instant between what is missing and now can be restored");
        Ok(None)
    }

    /// The last commit after the last slot that is listed, if its entry or its state can be read.
    ///
    /// # Errors
    /// [`PublishError::OtherDatabase`], and what the bucket says.
    fn read_last(&mut self, slot: u64) -> Result<Option<Head>, PublishError> {
        let entry = read_entry(&self.bucket, &mut self.patience, slot);
        let manifest = read_manifest(&self.bucket, &mut self.patience, slot);
        let last = match (entry, manifest) {
            (Ok(Some((header, _))), _) => Some((header.id, header.head())),
            (_, Ok(Some(manifest))) => Some((manifest.id, manifest.head())),
            (Err(error @ PublishError::Bucket(_)), _) => return Err(error),
            _ => None,
        };
        match last {
            Some((found, _)) if found != self.id => Err(other_database(&self.bucket, found, Some(self.id))),
            last => Ok(last.map(|(_, head)| head)),
        }
    }

    /// Tries whether the store creates a name only once, unless it was tried from here within a day.
    fn probe(&mut self, note: Option<&PublishedNote>) -> Result<(), PublishError> {
        self.probed_at = note.and_then(|note| note.probed_at);
        let is_fresh = |at: Timestamp| (at..at.plus_s(PROBED_FOR_S)).contains(&now());
        if !self.probed_at.is_some_and(is_fresh) {
            self.patience.ask(|| self.bucket.probe())?;
            self.probed_at = Some(now());
        }
        Ok(())
    }

    /// Where a database starts over, tokens for what only the log had must not come true, and replicas never go back.
    fn leap_over_what_is_given_up(&mut self) -> Result<(), PublishError> {
        let Some(end) = self.end.filter(|_| self.settings.start_over) else { return Ok(()) };
        if !self.follower.origin()?.holds(end.head.seq, end.head.lineage)? {
            Writer::open(&self.path, self.settings.wait)?.leap_over(end.head.seq, "published by starting over")?;
            self.follower.refresh()?;
        }
        Ok(())
    }

    /// Marks the database as published, which takes the writer's lock.
    pub(super) fn mark(&mut self) -> Result<(), PublishError> {
        loop {
            match Writer::open(&self.path, self.settings.wait).and_then(|writer| writer.mark_published()) {
                Ok(id) => {
                    self.id = id;
                    self.local.passed();
                    self.follower.refresh()?;
                    return Ok(());
                }
                Err(error @ StoreError::Busy { .. }) if !self.settings.once => {
                    self.local.tell(&error);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Fails unless a state of this database may take the place of an end that it does not hold.
    fn may_replace(
        &mut self,
        view: &OriginView,
        found: &Found,
        note: Option<&PublishedNote>,
    ) -> Result<(), PublishError> {
        if self.settings.start_over {
            tracing::warn!(
                "starting over: a state of {} follows slot {}, which it does not hold; what only that has is given up",
                self.path.display(),
                found.header.slot
            );
            return Ok(());
        }
        let is_fenced = note.is_some_and(|note| note.fenced.is_some());
        let is_restored = view.restored_over()?.is_some_and(|over| over.seq >= found.header.seq);
        if is_restored && !is_fenced {
            return Ok(());
        }
        // From here: by the name of this very file, which the entry carries, or by the note.
        let is_noted = note.is_some_and(|note| (note.slot, note.hash) == (found.header.slot, found.hash));
        let is_own = found.header.who == self.who || is_noted;
        // Somebody put entries after the last one that was put from here.
        if is_fenced || (note.is_some() && !is_own) {
            return Err(self.fenced_by(&found.header));
        }
        if !is_own {
            // A copy from which nothing was put: another one goes on, or this is an old one.
            drop(self.fenced_by(&found.header));
        }
        Err(self.diverged(view, &found.header, is_own)?)
    }
}

/// The sign of life in a bucket; `None` if there is none that can be read.
fn read_life(bucket: &Bucket, patience: &mut Patience) -> Result<Option<Alive>, PublishError> {
    match patience.ask(|| bucket.get(layout::ALIVE)) {
        Ok(found) => Ok(found.and_then(|object| Alive::decode(&object.bytes).ok())),
        Err(BucketError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Fails for the log of another database.
fn check_id(bucket: &Bucket, found: &Found, own: Option<DatabaseId>) -> Result<(), PublishError> {
    if own == Some(found.header.id) { Ok(()) } else { Err(other_database(bucket, found.header.id, own)) }
}

fn other_database(bucket: &Bucket, found: DatabaseId, own: Option<DatabaseId>) -> PublishError {
    let own = own.filter(|own| *own != NO_ID);
    PublishError::OtherDatabase {
        url: bucket.url().to_string(),
        found,
        own: own.map_or_else(|| "one that was never published".to_owned(), |id| id.to_string()),
    }
}
