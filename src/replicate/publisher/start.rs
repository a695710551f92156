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
use super::fence::describe_takeover;
use super::heartbeat_times::HeartbeatTimes;
use super::lock::PublisherLock;
use super::progress::{FailureReporter, PublisherStatus};
use super::publish_error::{PublishError, Result};
use super::retry::Retry;
use super::{ONCE_TIMEOUT, POLL_EVERY, PublishSettings, Publisher};
use crate::bucket::Bucket;
use crate::model::{DatabaseId, Head};
use crate::replicate::entry::EntryHeader;
use crate::replicate::heartbeat::Heartbeat;
use crate::replicate::layout;
use crate::replicate::protocol::{
    Action, AtStart, Knowledge, LastEntry, Noted, Observation, Refusal,
};
use crate::replicate::publisher::lock::publisher_name;
use crate::replicate::replica::{LogReader, ReplicaError};
use crate::store::replication::{OriginView, PublishedNote, SCHEMA};
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
        let mut retry = Retry::new(
            settings.once.then(|| Instant::now() + ONCE_TIMEOUT),
            &status,
        );
        let start_over = settings.start_over;
        let note = PublishedNote::read(path)?;
        let own = reader.origin()?.id()?;
        let url = bucket.url().to_string();
        // If the folder of a database that was published is missing, then its disk is not mounted.
        if start_over
            || note
                .as_ref()
                .is_none_or(|note| note.url != url || Some(note.id) != own)
        {
            retry.run(|| bucket.prepare())?;
        }
        // Read before the log, so that it cannot name an entry that is created after the log is read.
        let log = LogReader::new(Arc::clone(&bucket));
        let alive = match retry.read(|| log.heartbeat()) {
            Err(ReplicaError::Object { .. }) => None,
            found => found?,
        };
        let found = match read_end(&log, &mut retry) {
            // `--start-over` drops the entries before a gap, and an end that cannot be used. With a wrong seal key, no
            // object can be read.
            Err(error @ (ReplicaError::Missing { .. } | ReplicaError::Object { .. }))
                if start_over =>
            {
                retry.read(|| log.check_database(own.unwrap_or(NO_ID)))?;
                tracing::warn!("{error}");
                None
            }
            found => found?,
        };
        if let Some(found) = &found {
            check_id(&bucket, found, own)?;
        }
        let mut publisher = Publisher {
            path: path.to_owned(),
            who: publisher_name(&lock.name),
            log,
            settings,
            reader,
            retry,
            local: FailureReporter::new(&status),
            status,
            // Known once the database is marked.
            id: own.unwrap_or(NO_ID),
            known: Knowledge::default(),
            state: NewestState::default(),
            entry_at: None,
            seen: None,
            note_due: false,
            heartbeat: HeartbeatTimes::default(),
            _lock: lock,
        };
        publisher.continue_after(found, note, alive)?;
        publisher.retry.retries_refusals = !publisher.settings.once;
        Ok(publisher)
    }

    /// Makes the end of the log the position of this publisher, if this database may continue there.
    fn continue_after(
        &mut self,
        found: Option<FoundLog>,
        note: Option<PublishedNote>,
        alive: Option<Heartbeat>,
    ) -> Result<()> {
        let url = self.log.url();
        self.warn_of_other_note(note.as_ref(), &url);
        let note = note.filter(|note| note.url == url && note.id == self.id);
        let alive = alive.filter(|alive| alive.id == self.id);
        let view = self.reader.origin()?;
        let action = self.ask_to_start(&view, found.as_ref(), note.as_ref(), alive.as_ref())?;
        let found = match action {
            Action::StartOver(known) => {
                self.end_over(known, note.as_ref(), alive.as_ref())?;
                None
            }
            _ => found,
        };
        let times = [
            alive.map(|alive| alive.at),
            found.as_ref().map(|found| found.header.at),
        ];
        for at in times.into_iter().flatten() {
            self.heartbeat.observe(at);
        }
        drop(view);
        // The last check, because it takes the most requests.
        let random = layout::new_random().map_err(StoreError::from)?;
        self.retry
            .run(|| self.log.bucket().probe(&layout::probe(&random)))?;
        self.mark_published()?;
        self.skip_abandoned_seqs()?;
        self.log_start(&url);
        let Some(FoundLog { header, state, .. }) = found else {
            return self.replace_by_state();
        };
        self.state = state;
        if action == Action::Continue {
            self.continue_log(&header);
            Ok(())
        } else {
            self.replace_by_state()
        }
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
        let position = self.known.end.map_or_else(
            || "from the start".to_owned(),
            |end| format!("after slot {}", end.slot),
        );
        tracing::info!("publishing {} to {url}, {position}", self.path.display());
        if !self.log.bucket().is_sealed() {
            tracing::warn!(
                "{url} is not sealed: anybody with read access can read all records and the secret of sync tokens, and \
                 anybody with write access can create API keys; seal it with --seal-key, or restrict access to \
                 trusted users"
            );
        }
    }

    /// Continues after the last entry, whose header is `end`.
    fn continue_log(&mut self, end: &EntryHeader) {
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
        view: &OriginView,
        found: Option<&FoundLog>,
        note: Option<&PublishedNote>,
        alive: Option<&Heartbeat>,
    ) -> Result<Action> {
        let end = found
            .map(|found| self.compare(view, &found.header, found.hash))
            .transpose()?;
        let action = self.known.step(Observation::Start(AtStart {
            end,
            note: note.map(|note| Noted {
                slot: note.slot,
                hash: note.hash,
                is_fenced: note.fenced.is_some(),
            }),
            announced: alive.map_or(0, |alive| alive.slot),
            start_over: self.settings.start_over,
        }));
        match (action, found) {
            (Action::End(refusal), found) => Err(self.refused(refusal, view, found)?),
            (Action::WriteState, Some(found))
                if self.settings.start_over && end.is_some_and(|end| !end.is_contained) =>
            {
                tracing::warn!(
                    "starting over: a whole state of {} follows slot {}, which it does not contain; commits that only \
                     the log has are dropped",
                    self.path.display(),
                    found.header.slot
                );
                Ok(action)
            }
            _ => Ok(action),
        }
    }

    /// Returns the error for a refused start.
    fn refused(
        &mut self,
        refusal: Refusal,
        view: &OriginView,
        found: Option<&FoundLog>,
    ) -> Result<PublishError> {
        let path = self.path.clone();
        let url = self.log.bucket().url().to_string();
        Ok(match (refusal, found.map(|found| &found.header)) {
            (Refusal::Behind { known, .. }, None) => PublishError::Emptied {
                path,
                url,
                slot: known,
            },
            (
                Refusal::Behind {
                    known,
                    is_announced,
                },
                Some(header),
            ) => PublishError::WentBack {
                path,
                url,
                slot: header.slot,
                known,
                by: if is_announced {
                    "the heartbeat there"
                } else {
                    "the note next to it"
                },
            },
            (Refusal::Diverged { is_own }, Some(header)) => {
                if !is_own {
                    // A copy that never published: another publisher continued, or this copy is old.
                    self.note_takeover(&describe_takeover(header));
                }
                self.diverged(view, header, is_own)?
            }
            (_, Some(header)) => self.fenced_by(header),
            (_, None) => self.fenced("another publisher".to_owned()),
        })
    }

    /// Makes the greatest known slot the end of the log.
    fn end_over(
        &mut self,
        known: u64,
        note: Option<&PublishedNote>,
        alive: Option<&Heartbeat>,
    ) -> Result<()> {
        // Start after every known slot: replicas follow from there, and no known object is overwritten.
        let entry = self
            .retry
            .read(|| self.log.entries_after(None))?
            .last()
            .map(|(slot, _)| *slot);
        let state = self.retry.read(|| self.log.state_slots())?.first().copied();
        let slot = entry.max(state).unwrap_or_default().max(known);
        if slot == 0 {
            return Ok(());
        }
        let last = self.read_last(slot)?;
        let unknown = |seq| Head {
            seq,
            ..Head::default()
        };
        let heads = [
            last,
            note.map(PublishedNote::head),
            alive.map(|alive| unknown(alive.seq)),
        ];
        let head = heads
            .into_iter()
            .flatten()
            .max_by_key(|head| (head.seq, head.lineage))
            .unwrap_or_default();
        // Without a hash, the state has no parent: entries before it are missing.
        self.known.end = Some(LastEntry {
            slot,
            head,
            ..LastEntry::default()
        });
        tracing::warn!(
            "starting over after slot {slot}: no time between the missing entries and now can be restored"
        );
        Ok(())
    }

    /// Returns the last commit after slot `slot`, if its entry or its manifest can be read.
    fn read_last(&mut self, slot: u64) -> Result<Option<Head>> {
        let entry = self.retry.read(|| self.log.entry(slot));
        let manifest = self.retry.read(|| self.log.manifest(slot));
        let last = match (entry, manifest) {
            (Ok(Some(entry)), _) => Some((entry.header.id, entry.header.head())),
            (_, Ok(Some(manifest))) => Some((manifest.id, manifest.head())),
            (Err(error @ ReplicaError::Bucket(_)), _) => return Err(error.into()),
            _ => None,
        };
        match last {
            Some((found, _)) if found != self.id => {
                Err(other_database(self.log.bucket(), found, Some(self.id)))
            }
            last => Ok(last.map(|(_, head)| head)),
        }
    }

    /// Skips the seqs of dropped commits, so that their tokens stay invalid and the seqs of replicas never decrease.
    fn skip_abandoned_seqs(&mut self) -> Result<()> {
        let Some(end) = self.known.end.filter(|_| self.settings.start_over) else {
            return Ok(());
        };
        if !self
            .reader
            .origin()?
            .holds(end.head.seq, end.head.lineage)?
        {
            Writer::open(&self.path, self.settings.wait)?
                .jump_past(end.head.seq, "published by starting over")?;
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
                self.local.passed();
                return Ok(());
            }
            match Writer::open(&self.path, self.settings.wait)
                .and_then(|writer| writer.mark_published())
            {
                Err(error @ StoreError::Busy { .. }) if !self.settings.once => {
                    self.local.report(&error);
                    sleep(POLL_EVERY);
                }
                marked => drop(marked?),
            }
        }
    }
}

fn check_id(bucket: &Bucket, found: &FoundLog, own: Option<DatabaseId>) -> Result<()> {
    if own == Some(found.header.id) {
        Ok(())
    } else {
        Err(other_database(bucket, found.header.id, own))
    }
}

fn other_database(bucket: &Bucket, found: DatabaseId, own: Option<DatabaseId>) -> PublishError {
    let own = own.filter(|own| *own != NO_ID);
    PublishError::OtherDatabase {
        url: bucket.url().to_string(),
        found,
        own: own.map_or_else(|| "was never published".to_owned(), |id| format!("is {id}")),
    }
}
