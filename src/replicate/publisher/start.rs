//! Starting: whether this database may continue the log.
//!
//! **A start** continues after the end of the log, if its database contains the commit of that end. So a killed
//! publisher leaves nothing to repair. If the outbox does not reach from there to now, the next entry says that the
//! log continues from a whole state. That happens at first, after `restore`, after a very large commit, and with a
//! damaged outbox.
//!
//! **A start refuses** a log that is shorter than the note or the heartbeat says, or that has a gap after its newest
//! state. With `--start-over` it writes a state into the slot after all known ones. If the log was incomplete, the
//! state has no parent, and the log starts over there. `check` continues behind such a gap, and behind any
//! other one that a state follows. A damaged manifest counts as lost. The test of the store comes last.
//!
//! # Restores
//!
//! A restore of a published database keeps the id, records the commit that it replaced, and takes 2^32 seqs. So every
//! token of the lost time is behind the head. If the file is missing or damaged, its id comes from the note
//! `NAME.published`. A note next to a missing file may be left from another database, so it does not count if the
//! backup has another id. `promote` and `publish --start-over` also take 2^32 seqs. `promote --start-over` first
//! decodes the newest readable object, and refuses a bucket of another database.

use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Instant;

use super::end::{FoundLog, NewestState, read_end};
use super::lock::PublisherLock;
use super::progress::PublisherStatus;
use super::publish_error::{PublishError, Result};
use super::retry::Retry;
use super::{DATABASE, HeartbeatTimes, ONCE_TIMEOUT, POLL_EVERY, PublishSettings, Publisher};
use crate::bucket::Bucket;
use crate::model::{DatabaseId, Head};
use crate::replicate::entry::EntryHeader;
use crate::replicate::heartbeat::Heartbeat;
use crate::replicate::layout;
use crate::replicate::protocol::{Action, AtStart, Knowledge, LastEntry, Noted, Observation};
use crate::replicate::replica::{LogReader, ReplicaError};
use crate::store::replication::{PublishedNote, SCHEMA};
use crate::store::{Reader, StoreError, Writer};

/// The id of a database that was never published.
const NO_ID: DatabaseId = DatabaseId([0; 16]);

impl Publisher {
    /// Takes the database's lock, reads the end of the log, tests the store, and marks the database as published.
    /// `status` reports the progress.
    ///
    /// # Errors
    /// [`PublishError`]. The database is marked only if the bucket can be used.
    pub fn start(
        path: &Path,
        bucket: Arc<Bucket>,
        settings: PublishSettings,
        status: Arc<PublisherStatus>,
    ) -> Result<Publisher> {
        let reader = Reader::open(path)?;
        reader.refuse_replica()?;
        let lock = PublisherLock::take(path)?;
        let until = settings.once.then(|| Instant::now() + ONCE_TIMEOUT);
        let mut publisher = Publisher {
            path: path.to_owned(),
            who: lock.who.clone(),
            log: LogReader::new(bucket),
            // Known once the database is marked.
            id: reader.origin()?.id()?.unwrap_or(NO_ID),
            settings,
            reader,
            retry: Retry::new(until, &status),
            status,
            known: Knowledge::default(),
            state: NewestState::default(),
            entry_at: None,
            seen: None,
            note_due: false,
            heartbeat: HeartbeatTimes::default(),
            _lock: lock,
        };
        publisher.continue_log()?;
        publisher.retry.retries_refusals = !publisher.settings.once;
        Ok(publisher)
    }

    /// Makes the end of the log the position of this publisher, if this database may continue there.
    fn continue_log(&mut self) -> Result<()> {
        let url = self.log.url();
        let note = PublishedNote::read(&self.path)?;
        self.warn_of_other_note(note.as_ref(), &url);
        let note = note.filter(|note| note.url == url && note.id == self.id);
        // If the folder of a database that was published is missing, then its disk is not mounted.
        if self.settings.start_over || note.is_none() {
            self.retry.run(|| self.log.bucket.prepare())?;
        }
        // Read before the log, so that it cannot name an entry that is created after the log is read.
        let alive = self.retry.read_valid(|| self.log.heartbeat())?;
        let alive = alive.filter(|alive| alive.id == self.id);
        let mut found = self.find_end()?;
        let action = self.ask_to_start(found.as_ref(), note.as_ref(), alive.as_ref())?;
        if let Action::StartOver(known) = action {
            self.end_over(known, note.as_ref(), alive.as_ref())?;
            found = None;
        }
        let entry_at = found.as_ref().map(|found| found.header.at);
        for at in alive.map(|alive| alive.at).into_iter().chain(entry_at) {
            self.heartbeat.observe(at);
        }
        // The last check, because it takes the most requests.
        let random = layout::new_random().map_err(StoreError::from)?;
        self.retry
            .run(|| self.log.bucket.probe(&layout::probe(&random)))?;
        self.mark_published()?;
        self.skip_abandoned_seqs()?;
        self.log_start(&url);
        match found {
            Some(FoundLog { header, state, .. }) if action == Action::Continue => {
                self.state = state;
                self.continue_after(&header);
                Ok(())
            }
            _ => self.replace_by_state(),
        }
    }

    /// Reads the end of the log; `None` if there is none, or `--start-over` drops it.
    fn find_end(&mut self) -> Result<Option<FoundLog>> {
        let found = match read_end(&self.log, &self.retry) {
            // `--start-over` drops the entries before a gap, and an end that cannot be used. With a wrong seal key, no
            // object can be read.
            Err(error @ (ReplicaError::Missing { .. } | ReplicaError::Object { .. }))
                if self.settings.start_over =>
            {
                self.retry.read(|| self.log.check_database(self.id))?;
                tracing::warn!("{error}");
                None
            }
            found => found?,
        };
        if let Some(found) = &found
            && found.header.id != self.id
        {
            return Err(PublishError::OtherDatabase {
                url: self.log.url(),
                found: found.header.id,
                own: match self.id {
                    NO_ID => "was never published".to_owned(),
                    id => format!("is {id}"),
                },
            });
        }
        Ok(found)
    }

    /// Warns if the note next to the database is of another database, or of another bucket.
    fn warn_of_other_note(&self, note: Option<&PublishedNote>, url: &str) {
        match note {
            Some(other) if other.id != self.id => tracing::warn!(
                "the file {}.published belongs to another database ({}); it is ignored",
                self.path.display(),
                other.id
            ),
            Some(former) if former.url != url && former.fenced.is_none() => tracing::warn!(
                "{} was published to {} until now: replicas of it get no further changes, and do not learn of revoked keys",
                self.path.display(),
                former.url
            ),
            _ => {}
        }
    }

    fn log_start(&self, url: &str) {
        let position = match self.known.end.slot {
            0 => "from the start".to_owned(),
            slot => format!("after slot {slot}"),
        };
        tracing::info!("publishing {} to {url}, {position}", self.path.display());
        if !self.log.bucket.is_sealed() {
            tracing::warn!(
                "{url} is not sealed: anybody with read access can read all records and the secret of sync tokens, and \
                 anybody with write access can create API keys; seal it with --seal-key, or restrict access to \
                 trusted users"
            );
        }
    }

    /// Continues after the last entry, whose header is `end`.
    fn continue_after(&mut self, end: &EntryHeader) {
        self.note_end();
        // After an upgrade, replicas of this version start from a state of its format.
        self.state.is_unfinished |= end.schema != SCHEMA;
        // A state is the next entry. By then, the file may have been replaced.
        if self.state.is_unfinished {
            return;
        }
        if let Some(lost) = &self.state.lost {
            tracing::error!(
                "{}: {lost} is missing or damaged; publishing a whole state now, from which replicas can start. Find \
                 out what deletes or changes objects",
                self.log.url()
            );
            self.status.update(|progress| progress.lost_objects += 1);
        }
        self.note();
    }

    /// Asks the protocol whether and how this database continues the log.
    fn ask_to_start(
        &mut self,
        found: Option<&FoundLog>,
        note: Option<&PublishedNote>,
        alive: Option<&Heartbeat>,
    ) -> Result<Action> {
        let view = self.reader.origin()?;
        let end = found
            .map(|found| self.compare(&view, &found.header, found.hash))
            .transpose()?;
        let start_over = self.settings.start_over;
        let action = self.observe(Observation::Start(AtStart {
            end,
            note: note.map(|note| Noted {
                slot: note.slot,
                hash: note.hash,
                is_fenced: note.fenced.is_some(),
            }),
            announced: alive.map_or(0, |alive| alive.slot),
            start_over,
        }))?;
        if let Some(end) = end.filter(|end| start_over && !end.is_contained)
            && action == Action::WriteState
        {
            tracing::warn!(
                "starting over: a whole state of {} follows slot {}, which it does not contain; commits that only \
                 the log has are dropped",
                self.path.display(),
                end.entry.slot
            );
        }
        Ok(action)
    }

    /// Makes the greatest known slot the end of the log.
    fn end_over(
        &mut self,
        known: u64,
        note: Option<&PublishedNote>,
        alive: Option<&Heartbeat>,
    ) -> Result<()> {
        // Start after every known slot: replicas follow from there, and no known object is overwritten.
        let entry = self.retry.read(|| self.log.slots_after(0))?.last().copied();
        let state = self.retry.read(|| self.log.state_slots())?.first().copied();
        let slot = entry.max(state).unwrap_or_default().max(known);
        if slot == 0 {
            return Ok(());
        }
        let entry = self.retry.read_valid(|| self.log.entry(slot))?;
        let manifest = self.retry.read_valid(|| self.log.manifest(slot))?;
        let announced = alive.map(|alive| Head {
            seq: alive.seq,
            ..Head::default()
        });
        let heads = [
            entry.map(|entry| entry.header.head()),
            manifest.map(|manifest| manifest.head()),
            note.map(PublishedNote::head),
            announced,
        ];
        let head = heads.into_iter().flatten().max().unwrap_or_default();
        // Without a hash, the state has no parent: entries before it are missing.
        self.known.end = LastEntry {
            slot,
            head,
            ..LastEntry::default()
        };
        tracing::warn!(
            "starting over after slot {slot}: no time between the missing entries and now can be restored"
        );
        Ok(())
    }

    /// Skips the seqs of dropped commits, so that their tokens stay invalid and the seqs of replicas never decrease.
    fn skip_abandoned_seqs(&mut self) -> Result<()> {
        let head = self.known.end.head;
        if self.settings.start_over && !self.reader.origin()?.holds(head)? {
            Writer::open(&self.path, self.settings.wait)?
                .jump_past(head.seq, "published by starting over")?;
            self.reader.refresh()?;
        }
        Ok(())
    }

    /// Marks the database as published. This takes the lock for writing, unless it is marked already.
    pub(super) fn mark_published(&mut self) -> Result<()> {
        loop {
            self.reader.refresh()?;
            if let Some(id) = self.reader.origin()?.published_id()? {
                self.id = id;
                self.status.passed(DATABASE);
                return Ok(());
            }
            match Writer::open(&self.path, self.settings.wait)
                .and_then(|writer| writer.mark_published())
            {
                Err(error @ StoreError::Busy { .. }) if !self.settings.once => {
                    self.status.report(DATABASE, &error);
                    sleep(POLL_EVERY);
                }
                marked => drop(marked?),
            }
        }
    }
}
