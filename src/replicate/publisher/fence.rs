//! Detecting that another publisher took over, and noting next to the database what is published.
//!
//! **The note** `NAME.published` says what is published, and who took over. Commands then empty the outbox, wait
//! (`--publish-wait`), or refuse to write. The note may be lost or late; the log stays the truth. It counts only if it
//! names this database and a commit of this very file. A server watches it too (`serve/watching/fence_watch.rs`). After
//! another publisher took over, this machine no longer learns of revocations.

use super::lock::{is_same_publisher, user_part};
use super::publish_error::{PublishError, Result};
use super::{DATABASE, ONCE_TIMEOUT, Publisher};
use crate::model::{Printable, now};
use crate::replicate::entry::{self, EntryHeader, LogEntry};
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::replicate::protocol::{Action, FoundEntry, Held, LastEntry, Observation, Refusal};
use crate::replicate::replica::ReplicaError;
use crate::store::StoreError;
use crate::store::replication::{OriginView, PublishedNote, SCHEMA};

impl Publisher {
    /// Reads the entry in the slot of our next one, and continues after it if it is ours: if an earlier publisher of this
    /// file sent it just before it died. Any other entry fences this publisher. So does a later one under our name: it is
    /// of a copy of the whole folder, because a late entry can only arrive before this run's first entry. Returns false
    /// if the slot is free.
    pub(super) fn take_next_entry(&mut self, slot: u64) -> Result<bool> {
        let found = match self.retry.read(|| self.log.entry(slot)) {
            Err(ReplicaError::Object { name, .. }) if self.is_of_other_version(&name)? => {
                return Err(
                    self.fenced(format!("another version of medfeed published slot {slot}"))
                );
            }
            found => found?,
        };
        let Some(LogEntry { header, hash, .. }) = found else {
            return Ok(false);
        };
        if header.id != self.id {
            return Err(self.refused(Refusal::Fenced(slot))?);
        }
        self.reader.refresh()?;
        let next = self.compare(&self.reader.origin()?, &header, hash)?;
        self.observe(Observation::Next(next))?;
        tracing::info!(
            "slot {slot} was published by an earlier run of this publisher; continuing after it"
        );
        // The parts of a state are unknown here, and replicas of this format read no entry of another. So another state
        // follows, before any commits.
        self.state.is_unfinished |= header.is_state() || header.schema != SCHEMA;
        self.note_accepted(&header);
        Ok(true)
    }

    fn is_of_other_version(&mut self, name: &str) -> Result<bool> {
        let found = self.retry.run(|| self.log.bucket.get(name))?;
        Ok(found.is_some_and(|found| entry::is_of_other_format(&found.bytes)))
    }

    /// Deletes an entry from here that does not belong to the log of another publisher. If it was in a gap, that publisher
    /// then finds the gap, and writes a whole state.
    fn take_back(&self, own: LastEntry) {
        let name = layout::log(own.slot);
        let taken_back =
            self.retry
                .within(ONCE_TIMEOUT)
                .read(|| match self.log.entry(own.slot)? {
                    Some(found) if found.hash == own.hash => Ok(self.log.bucket.delete(&name)?),
                    _ => Ok(()),
                });
        if let Err(error) = taken_back {
            tracing::error!(
                "`{name}` was published from here into the log of another publisher, and cannot be deleted: {error}. \
                 Delete it: replicas cannot get past it"
            );
        }
    }

    /// Compares an entry with this publisher and its database.
    pub(super) fn compare(
        &self,
        view: &OriginView,
        header: &EntryHeader,
        hash: Hash,
    ) -> Result<FoundEntry> {
        let entry = LastEntry::of(header, hash);
        Ok(FoundEntry {
            entry,
            parent: header.parent,
            is_contained: view.holds(entry.head)?,
            has_own_name: is_same_publisher(&header.who, &self.who),
            restored_over: view.restored_over()?,
        })
    }

    /// Passes an observation to the protocol, and sends the requests that it asks for. Returns the first action that is
    /// no request.
    ///
    /// # Errors
    /// Those of requests, and the error of a refusal.
    pub(super) fn observe(&mut self, observed: Observation) -> Result<Action> {
        let mut observed = observed;
        loop {
            let action = match self.known.step(observed) {
                Ok(action) => action,
                Err(refusal) => return Err(self.refused(refusal)?),
            };
            observed = match action {
                Action::ReadNext(slot) => match self.take_next_entry(slot)? {
                    true => return Ok(Action::Continue),
                    false => Observation::NextIsFree,
                },
                Action::ReadHash(slot) => {
                    Observation::Held(match self.retry.read(|| self.log.entry(slot)) {
                        Ok(None) => Held::Nothing,
                        Ok(Some(found)) => Held::Entry(found.hash),
                        Err(ReplicaError::Object { .. }) => Held::Unreadable,
                        Err(error) => return Err(error.into()),
                    })
                }
                Action::ReadStates(slot) => Observation::States(self.read_states(slot)?),
                Action::TakeBack { own, fenced_by } => {
                    self.take_back(own);
                    return Err(self.refused(Refusal::Fenced(fenced_by))?);
                }
                done => return Ok(done),
            };
        }
    }

    /// Reads the manifests from a slot on: their slots, and the hashes of their entries.
    fn read_states(&mut self, first: u64) -> Result<Vec<(u64, Option<Hash>)>> {
        let slots = self.retry.read(|| self.log.state_slots())?;
        let slots = slots.into_iter().take_while(|slot| *slot >= first);
        slots
            .map(|slot| {
                let manifest = self.retry.read(|| self.log.manifest(slot))?;
                Ok((slot, manifest.map(|manifest| manifest.entry_hash)))
            })
            .collect()
    }

    /// Returns the error of a refusal.
    fn refused(&mut self, refusal: Refusal) -> Result<PublishError> {
        let path = self.path.clone();
        let url = self.log.url();
        let slot = self.known.end.slot;
        Ok(match refusal {
            Refusal::Fenced(slot) => {
                let by = match self.retry.read(|| self.log.entry(slot)) {
                    Ok(Some(entry)) => describe_takeover(&entry.header),
                    _ => format!("another publisher had continued to slot {slot}"),
                };
                self.fenced(by)
            }
            Refusal::Diverged { is_own } => self.diverged(slot, is_own)?,
            Refusal::Behind { known, .. } if slot == 0 => PublishError::Emptied {
                path,
                url,
                slot: known,
            },
            Refusal::Behind {
                known,
                is_announced,
            } => PublishError::WentBack {
                path,
                url,
                slot,
                known,
                by: match is_announced {
                    true => "the heartbeat there",
                    false => "the note next to it",
                },
            },
        })
    }

    /// Notes an entry that became the end of the log. The note of a state is written after its manifest.
    pub(super) fn note_accepted(&mut self, header: &EntryHeader) {
        self.note_end();
        if !header.is_state() {
            self.note();
        }
    }

    pub(super) fn note_end(&self) {
        let log_end = (self.id, self.known.end);
        self.status
            .update(|progress| progress.log_end = Some(log_end));
    }

    /// Fences this publisher; returns the error.
    pub(super) fn fenced(&mut self, by: String) -> PublishError {
        self.note_takeover(&by);
        let alone = self
            .reader
            .origin()
            .and_then(|view| self.commits_alone(&view))
            .unwrap_or_default();
        PublishError::Fenced {
            path: self.path.clone(),
            url: self.log.url(),
            by,
            alone,
        }
    }

    /// Notes next to the database that another publisher took over, so that no command writes to this file any more.
    pub(super) fn note_takeover(&mut self, by: &str) {
        self.status
            .update(|progress| progress.fenced = Some(by.to_owned()));
        let own = PublishedNote::read(&self.path).ok().flatten();
        let own = own.filter(|note| note.id == self.id && note.url == self.log.url());
        let own = own.unwrap_or_else(|| self.current_note());
        // Keep the last entry from here, and the time when the other publisher was first noticed.
        let fenced_at = own.fenced_at.or(Some(now()));
        self.write_note(&PublishedNote {
            fenced: Some(by.to_owned()),
            fenced_at,
            ..own
        });
    }

    /// Describes the commits that only this file contains; empty if the end of the log is unknown.
    fn commits_alone(&self, view: &OriginView) -> Result<String, StoreError> {
        let note = PublishedNote::read(&self.path)?.filter(|note| note.id == self.id);
        let end = self.known.end;
        let known = (end.slot > 0).then_some(end.head);
        for head in known.into_iter().chain(note.map(|note| note.head())) {
            if view.holds(head)? {
                return view.describe_commits_after(head.seq);
            }
        }
        Ok(String::new())
    }

    /// Writes the note of what is published next to the database. After a failure it is tried again. Until then the
    /// outbox is kept, and waiting commands wait on.
    pub(super) fn note(&mut self) {
        self.write_note(&self.current_note());
    }

    fn current_note(&self) -> PublishedNote {
        let end = self.known.end;
        PublishedNote::new(self.log.url(), self.id, end.slot, end.hash, end.head)
    }

    fn write_note(&mut self, note: &PublishedNote) {
        match note.write(&self.path) {
            Ok(()) => self.note_due = false,
            Err(error) => {
                self.note_due = true;
                let error = format!("the note of what is published cannot be written: {error}");
                self.status.report(DATABASE, &error);
            }
        }
    }

    /// Returns the error of a database that does not contain the entry in a slot, which is the end of the log.
    fn diverged(&mut self, slot: u64, is_own: bool) -> Result<PublishError> {
        let missing = ReplicaError::Missing { slot, later: slot };
        let end = self
            .retry
            .read(|| self.log.entry(slot))?
            .ok_or(missing)?
            .header;
        if !is_own {
            // A copy that never published: another publisher continued, or this copy is old.
            self.note_takeover(&describe_takeover(&end));
        }
        let own = self.reader.origin()?.head()?;
        let text = format!(
            "{} does not contain the last entry of {}: slot {} there, published by {}{} at {}, is the commit of seq {}; \
             the last commit here is seq {} of {}, and its history lacks that commit. Publish the database that contains \
             it; or, to drop commits that only the log has, add --start-over once",
            self.path.display(),
            self.log.bucket.url(),
            slot,
            Printable(user_part(&end.who)),
            if is_own { " from this very file" } else { "" },
            end.at,
            end.seq,
            own.seq,
            own.time,
        );
        Ok(PublishError::Diverged { slot, is_own, text })
    }
}

fn describe_takeover(header: &EntryHeader) -> String {
    format!(
        "{} published slot {} at {}",
        user_part(&header.who),
        header.slot,
        header.at
    )
}
