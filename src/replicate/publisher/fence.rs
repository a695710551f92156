//! Noticing that another publisher took over, and noting beside the database what is published.

use super::Publisher;
use super::end::{End, unusable_entry};
use super::error::{Diverged, PublishError};
use super::shown_who;
use super::standing::Reached;
use crate::model::time::now;
use crate::replicate::entry::{self, Header};
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::store::StoreError;
use crate::store::replication::{OriginView, PublishedNote};

impl Publisher {
    /// Judges an entry that stands where the next one of ours would: one that an earlier publisher of this very file put, whose
    /// request was under way when it died, is ours; any other fences.
    pub(super) fn judge(&mut self, slot: u64, bytes: &[u8]) -> Result<(), PublishError> {
        let name = layout::log(slot);
        let found = match entry::decode(bytes) {
            Ok(found) => found,
            Err(_) if entry::is_of_other_format(bytes) => {
                return Err(self.fenced(format!("a medfeed of another version published slot {slot}")));
            }
            Err(error) => return Err(unusable_entry(&self.bucket, &name, error)),
        };
        let parent = self.end.map_or_else(Hash::default, |end| end.hash);
        let header = found.header;
        let follows = (header.id, header.slot, header.parent) == (self.id, slot, parent);
        self.follower.refresh()?;
        if follows && header.who == self.who && self.follower.origin()?.holds(header.seq, header.lineage)? {
            tracing::info!("slot {slot} was put by an earlier start, whose answer came late; going on after it");
            return self.take_end(&header, found.hash);
        }
        Err(self.fenced_by(&header))
    }

    /// Makes an entry of ours the end, once nobody else turns out to have been further. The place may have been used and swept
    /// long ago, while this publisher stood still: then there is a later state.
    pub(super) fn take_end(&mut self, header: &Header, hash: Hash) -> Result<(), PublishError> {
        self.refuse_if_overtaken(header.slot, hash)?;
        self.end = Some(End::of(header, hash));
        self.tell_end();
        if header.state.is_some() {
            self.put_manifest_of(header, hash)?;
        }
        self.note();
        Ok(())
    }

    /// Tells those who watch what the end of the log is.
    pub(super) fn tell_end(&self) {
        let reached = self.end.map(|end| Reached { id: self.id, slot: end.slot, head: end.head });
        self.standing.note(|progress| progress.reached = reached);
    }

    /// The error of who finds another publisher's entry.
    pub(super) fn fenced_by(&mut self, header: &Header) -> PublishError {
        self.fenced(took_over(header))
    }

    /// Notes beside the database that another publisher took over, so that nothing is written here that nobody else gets.
    pub(super) fn fenced(&mut self, by: String) -> PublishError {
        self.standing.note(|progress| progress.fenced = Some(by.clone()));
        let own = PublishedNote::read(&self.path).ok().flatten();
        let own = own.filter(|note| note.id == self.id && note.url == self.bucket.url().to_string());
        let own = own.unwrap_or_else(|| self.present_note());
        // Keep the last own entry, and the time at which another publisher was first noticed.
        let fenced_at = own.fenced_at.or(Some(now()));
        self.write_note(&PublishedNote { fenced: Some(by.clone()), fenced_at, ..own });
        let alone = self.follower.origin().and_then(|view| self.commits_alone(&view)).unwrap_or_default();
        PublishError::Fenced { path: self.path.clone(), url: self.bucket.url().to_string(), by, alone }
    }

    /// The commits that are in this file and not in the log, in words; empty if it is not known what the log has.
    fn commits_alone(&self, view: &OriginView) -> Result<String, StoreError> {
        let note = PublishedNote::read(&self.path)?.filter(|note| note.id == self.id);
        let ends = self.end.map(|end| end.head).into_iter().chain(note.map(|note| note.head()));
        for head in ends {
            if view.holds(head.seq, head.lineage)? {
                return view.describe_commits_after(head.seq);
            }
        }
        Ok(String::new())
    }

    /// Notes what is published beside the database. If that fails it is tried again: writers keep more than they must, and
    /// nobody who waits learns it, until then.
    pub(super) fn note(&mut self) {
        self.write_note(&self.present_note());
    }

    fn present_note(&self) -> PublishedNote {
        let end = self.end.unwrap_or_default();
        PublishedNote {
            url: self.bucket.url().to_string(),
            id: self.id,
            slot: end.slot,
            seq: end.head.seq,
            lineage: end.head.lineage,
            hash: end.hash,
            fenced: None,
            fenced_at: None,
            probed_at: self.probed_at,
        }
    }

    fn write_note(&mut self, note: &PublishedNote) {
        match note.write(&self.path) {
            Ok(()) => self.note_due = false,
            Err(error) => {
                self.note_due = true;
                self.local.tell(&format!("what is published cannot be noted: {error}"));
            }
        }
    }

    /// The error of a database that does not hold the log's end.
    pub(super) fn diverged(&self, view: &OriginView, end: &Header, is_own: bool) -> Result<PublishError, PublishError> {
        let own = view.head()?;
        Ok(PublishError::Diverged(Box::new(Diverged {
            path: self.path.clone(),
            url: self.bucket.url().to_string(),
            slot: end.slot,
            who: shown_who(&end.who).to_owned(),
            is_own,
            published_at: end.at.to_string(),
            published_seq: end.seq,
            own_seq: own.seq,
            own_time: own.time.to_string(),
        })))
    }
}

/// Who took over, and when, in words.
pub(super) fn took_over(header: &Header) -> String {
    format!("{} published slot {} at {}", shown_who(&header.who), header.slot, header.at)
}
