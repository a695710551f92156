//! Starting: whether this database may go on after the end of the log.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::end::{End, Found, Growth, read_end};
use super::error::PublishError;
use super::lock::PublisherLock;
use super::patience::Patience;
use super::standing::{Standing, Trouble};
use super::{ONCE_TRIES, Publisher, Settings, who};
use crate::bucket::Bucket;
use crate::model::{DatabaseId, Head, Timestamp};
use crate::store::replication::{OriginView, PublishedNote};
use crate::store::{Follower, StoreError, Writer};

impl Publisher {
    /// Takes the database's lock, tries the store, reads the end of the log, and marks the database as published. `standing` tells
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
        patience.ask(|| bucket.probe())?;
        let found = read_end(&bucket, &mut patience)?;
        let own = follower.origin()?.id()?;
        if let Some(found) = &found {
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
            id: own.unwrap_or(DatabaseId([0; 16])),
            end: None,
            growth: Growth::default(),
            state_at: Timestamp::EPOCH,
            beside: None,
            entries: 0,
            put_at: None,
            seen: None,
            note_due: false,
            alive_at: None,
            _lock: lock,
        };
        publisher.go_on_after(found)?;
        publisher.patience.bears_refusal = !publisher.settings.once;
        Ok(publisher)
    }

    /// Takes the end of the log as the place to go on, if this database may.
    fn go_on_after(&mut self, found: Option<Found>) -> Result<(), PublishError> {
        let view = self.follower.origin()?;
        let note = PublishedNote::read(&self.path)?.filter(|note| note.url == self.bucket.url().to_string());
        match (&found, &note) {
            (None, Some(note)) if note.slot > 0 => {
                if !self.settings.start_over {
                    return Err(PublishError::Emptied {
                        path: self.path.clone(),
                        url: note.url.clone(),
                        slot: note.slot,
                    });
                }
                // Replicas go on from there.
                let head = Head { seq: note.seq, lineage: note.lineage };
                self.end = Some(End { slot: note.slot, hash: note.hash, head, ..End::default() });
            }
            (None, _) => {}
            (Some(found), _) => self.end = Some(found.end()),
        }
        let is_held = match &found {
            Some(found) => view.holds(found.header.seq, found.header.lineage)?,
            None => false,
        };
        if let Some(found) = &found
            && !is_held
        {
            self.may_replace(&view, found)?;
        }
        drop(view);
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
            if found.lacks_manifest() {
                self.put_manifest_of(&found.header, found.hash)?;
            }
            if is_held {
                self.tell_end();
                self.note(None);
            } else {
                self.put_state_entry()?;
            }
        } else {
            self.put_state_entry()?;
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
    fn may_replace(&mut self, view: &OriginView, found: &Found) -> Result<(), PublishError> {
        if self.settings.start_over {
            tracing::warn!(
                "starting over: a state of {} follows slot {}, which it does not hold; what only that has is given up",
                self.path.display(),
                found.header.slot
            );
            return Ok(());
        }
        let note = PublishedNote::read(&self.path)?.filter(|note| note.url == self.bucket.url().to_string());
        let is_fenced = note.as_ref().is_some_and(|note| note.fenced.is_some());
        let is_restored = view.restored_over()?.is_some_and(|over| over.seq >= found.header.seq);
        if is_restored && !is_fenced {
            return Ok(());
        }
        // From here: by the name of this very file, which the entry carries, or by the note.
        let is_noted = note.as_ref().is_some_and(|note| (note.slot, note.hash) == (found.header.slot, found.hash));
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

/// Fails for the log of another database.
fn check_id(bucket: &Bucket, found: &Found, own: Option<DatabaseId>) -> Result<(), PublishError> {
    if own == Some(found.header.id) {
        return Ok(());
    }
    Err(PublishError::OtherDatabase {
        url: bucket.url().to_string(),
        found: found.header.id,
        own: own.map_or_else(|| "one that was never published".to_owned(), |id| id.to_string()),
    })
}
