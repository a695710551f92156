//! Detecting that another publisher took over, and noting next to the database what is published.
//!
//! **The note** `NAME.published` says what is published, and who took over. Commands then empty the outbox, wait
//! (`--publish-wait`), or refuse to write. The note may be lost or late; the log stays the truth. It counts only if it
//! names this database and a commit of this very file. A server watches it too (`serve/watching/fence_watch.rs`). After
//! another publisher took over, this machine no longer learns of revocations.

use std::time::Instant;

use super::publish_error::{PublishError, Result};
use super::{ONCE_TIMEOUT, Publisher};
use crate::model::{Printable, now};
use crate::replicate::entry::{self, EntryHeader};
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::replicate::protocol::{Action, FoundEntry, Held, LastEntry, Observation, Refusal};
use crate::replicate::publisher::lock::{is_same_publisher, user_part};
use crate::replicate::replica::ReplicaError;
use crate::store::StoreError;
use crate::store::replication::{OriginView, PublishedNote, SCHEMA};

impl Publisher {
    /// Checks an entry found in the slot of our next one. It is ours if an earlier publisher of this file sent it just
    /// before it died. Any other entry fences this publisher. So does a later one under our name: it is of a copy of
    /// the whole folder, because a late entry can only arrive before this run's first entry.
    pub(super) fn check_next_entry(&mut self, slot: u64, bytes: &[u8]) -> Result<()> {
        let name = layout::log(slot);
        let is_readable = |bytes| entry::decode(bytes).is_ok_and(|found| found.header.slot == slot);
        let again;
        let bytes = if is_readable(bytes) {
            bytes
        } else {
            // The response may have been changed on its way. A free slot is published to in the next round.
            let Some(found) = self.retry.run(|| self.log.bucket().get(&name))? else {
                return Ok(());
            };
            again = found.bytes;
            &again
        };
        let found = match entry::decode(bytes) {
            Ok(found) if found.header.slot == slot => found,
            Ok(found) => {
                return Err(ReplicaError::object(
                    name,
                    format!("it is of slot {}", found.header.slot),
                )
                .into());
            }
            Err(_) if entry::is_of_other_format(bytes) => {
                return Err(
                    self.fenced(format!("another version of medfeed published slot {slot}"))
                );
            }
            Err(error) => return Err(ReplicaError::object(name, error).into()),
        };
        let header = found.header;
        if header.id != self.id {
            return Err(self.fenced_by(&header));
        }
        self.reader.refresh()?;
        let next = self.compare(&self.reader.origin()?, &header, found.hash)?;
        match self.observe(Observation::Next(next))? {
            Action::TakeBack(own) => {
                self.take_back(own);
                Err(self.fenced_by(&header))
            }
            Action::End(_) => Err(self.fenced_by(&header)),
            _ => {
                tracing::info!(
                    "slot {slot} was published by an earlier run of this publisher; continuing after it"
                );
                // The parts of a state are unknown here, and replicas of this format read no entry of another. So
                // another state follows, before any commits.
                self.state.is_unfinished |= header.is_state() || header.schema != SCHEMA;
                self.note_accepted(&header);
                Ok(())
            }
        }
    }

    /// Deletes an entry from here that is in a gap of another publisher's log. That publisher then finds the gap, and
    /// writes a whole state.
    fn take_back(&self, own: LastEntry) {
        let name = layout::log(own.slot);
        let mut retry = self.retry.for_thread();
        retry.until = Some(Instant::now() + ONCE_TIMEOUT);
        retry.retries_refusals = false;
        let taken_back = retry.read(|| match self.log.entry(own.slot)? {
            Some(found) if found.hash == own.hash => Ok(self.log.bucket().delete(&name)?),
            _ => Ok(()),
        });
        if let Err(error) = taken_back {
            tracing::error!(
                "`{name}` was published from here into a gap of another publisher's log, and cannot be deleted: {error}. \
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
            is_contained: view.holds(header.seq, header.lineage)?,
            has_own_name: is_same_publisher(&header.who, &self.who),
            is_last_restored: view.restored_over()? == Some(entry.head),
            is_restored: view.is_restored_over(entry.head)?,
        })
    }

    /// Passes an observation to the protocol, and sends the requests that it asks for. Returns the first action that is
    /// no request.
    ///
    /// # Errors
    /// Those of requests, and [`PublishError::Fenced`] if a later state exists.
    pub(super) fn observe(&mut self, observed: Observation) -> Result<Action> {
        let mut action = self.known.step(observed);
        loop {
            let observed = match action {
                Action::ReadNext(slot) => {
                    let name = layout::log(slot);
                    match self.retry.run(|| self.log.bucket().get(&name))? {
                        None => Observation::NextIsFree,
                        Some(next) => {
                            self.check_next_entry(slot, &next.bytes)?;
                            return Ok(Action::Continue);
                        }
                    }
                }
                Action::ReadHash(slot) => {
                    Observation::Held(match self.retry.read(|| self.log.entry(slot)) {
                        Ok(None) => Held::Nothing,
                        Ok(Some(found)) => Held::Entry(found.hash),
                        Err(ReplicaError::Object { .. }) => Held::Unreadable,
                        Err(error) => return Err(error.into()),
                    })
                }
                Action::ReadStates(slot) => Observation::States(self.read_states(slot)?),
                Action::End(Refusal::Overtaken(slot)) => return Err(self.overtaken(slot)),
                done => return Ok(done),
            };
            action = self.known.step(observed);
        }
    }

    /// Reads the manifests from a slot on: their slots, and the hashes of their entries.
    fn read_states(&mut self, first: u64) -> Result<Vec<(u64, Option<Hash>)>> {
        let mut states = Vec::new();
        for slot in self
            .retry
            .read(|| self.log.state_slots())?
            .into_iter()
            .rev()
        {
            if slot >= first {
                let manifest = self.retry.read(|| self.log.manifest(slot))?;
                states.push((slot, manifest.map(|manifest| manifest.entry_hash)));
            }
        }
        Ok(states)
    }

    /// Fences this publisher because of another publisher's state; returns the error.
    fn overtaken(&mut self, slot: u64) -> PublishError {
        let by = match self.retry.read(|| self.log.entry(slot)) {
            Ok(Some(entry)) => describe_takeover(&entry.header),
            _ => format!("another publisher had continued to slot {slot}"),
        };
        self.fenced(by)
    }

    /// Notes an entry that became the end of the log. The note of a state is written after its manifest.
    pub(super) fn note_accepted(&mut self, header: &EntryHeader) {
        self.note_end();
        if !header.is_state() {
            self.note();
        }
    }

    pub(super) fn note_end(&self) {
        let log_end = self.known.end.map(|end| (self.id, end));
        self.status.update(|progress| progress.log_end = log_end);
    }

    /// Fences this publisher because of another publisher's entry; returns the error.
    pub(super) fn fenced_by(&mut self, header: &EntryHeader) -> PublishError {
        self.fenced(describe_takeover(header))
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
            url: self.log.bucket().url().to_string(),
            by,
            alone,
        }
    }

    /// Notes next to the database that another publisher took over, so that no command writes to this file any more.
    pub(super) fn note_takeover(&mut self, by: &str) {
        self.status
            .update(|progress| progress.fenced = Some(by.to_owned()));
        let own = PublishedNote::read(&self.path).ok().flatten();
        let own = own
            .filter(|note| note.id == self.id && note.url == self.log.bucket().url().to_string());
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
        let ends = self
            .known
            .end
            .map(|end| end.head)
            .into_iter()
            .chain(note.map(|note| note.head()));
        for head in ends {
            if view.holds(head.seq, head.lineage)? {
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
        let end = self.known.end.unwrap_or_default();
        PublishedNote::new(
            self.log.bucket().url().to_string(),
            self.id,
            end.slot,
            end.hash,
            end.head,
        )
    }

    fn write_note(&mut self, note: &PublishedNote) {
        match note.write(&self.path) {
            Ok(()) => self.note_due = false,
            Err(error) => {
                self.note_due = true;
                self.local.report(&format!(
                    "the note of what is published cannot be written: {error}"
                ));
            }
        }
    }

    /// Returns the error of a file that was replaced while this publisher ran, and lacks the end of the log.
    pub(super) fn diverged_from(
        &mut self,
        view: &OriginView,
        end: LastEntry,
    ) -> Result<PublishError> {
        let missing = ReplicaError::Missing {
            slot: end.slot,
            later: end.slot,
        };
        let last = self
            .retry
            .read(|| self.log.entry(end.slot))?
            .ok_or(missing)?;
        self.diverged(view, &last.header, true)
    }

    pub(super) fn diverged(
        &self,
        view: &OriginView,
        end: &EntryHeader,
        is_own: bool,
    ) -> Result<PublishError> {
        let own = view.head()?;
        let text = format!(
            "{} does not contain the last entry of {}: slot {} there, published by {}{} at {}, is the commit of seq {}; \
             the last commit here is seq {} of {}, and its history lacks that commit. Publish the database that contains \
             it; or, to drop commits that only the log has, add --start-over once",
            self.path.display(),
            self.log.bucket().url(),
            end.slot,
            Printable(user_part(&end.who)),
            if is_own { " from this very file" } else { "" },
            end.at,
            end.seq,
            own.seq,
            own.time,
        );
        Ok(PublishError::Diverged {
            slot: end.slot,
            is_own,
            text,
        })
    }
}

pub fn describe_takeover(header: &EntryHeader) -> String {
    format!(
        "{} published slot {} at {}",
        user_part(&header.who),
        header.slot,
        header.at
    )
}
