//! Noticing that another publisher took over, and noting beside the database what is published.

use super::Publisher;
use super::end::{End, list_states, read_entry, read_manifest};
use super::error::{Diverged, PublishError};
use super::shown_who;
use super::standing::Reached;
use crate::replicate::entry::{self, Header};
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::store::replication::{OriginView, PublishedNote};

impl Publisher {
    /// Judges an entry that stands where the next one of ours would: one that an earlier publisher of this very file put, whose
    /// request was under way when it died, is ours; any other fences.
    pub(super) fn judge(&mut self, slot: u64, bytes: &[u8]) -> Result<(), PublishError> {
        let name = layout::log(slot);
        let Ok(found) = entry::decode(bytes) else {
            return Err(self.fenced(format!("something that is no entry stands at `{name}`")));
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
        let states = list_states(&self.bucket, &mut self.patience)?;
        for (slot, _) in states.into_iter().filter(|(slot, _)| *slot >= header.slot) {
            let manifest = read_manifest(&self.bucket, &mut self.patience, slot)?;
            if manifest.is_none_or(|manifest| manifest.slot != header.slot || manifest.entry_hash != hash) {
                let by = match read_entry(&self.bucket, &mut self.patience, slot) {
                    Ok(Some((later, _))) => took_over(&later),
                    _ => format!("another publisher had gone on to slot {slot}"),
                };
                return Err(self.fenced(by));
            }
        }
        self.end = Some(End::of(header, hash));
        self.tell_end();
        if header.state.is_some() {
            self.put_manifest_of(header, hash)?;
        }
        self.note(None);
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
    fn fenced(&mut self, by: String) -> PublishError {
        self.standing.note(|progress| progress.fenced = Some(by.clone()));
        self.note(Some(&by));
        PublishError::Fenced { path: self.path.clone(), url: self.bucket.url().to_string(), by }
    }

    /// Notes what is published beside the database. If that fails it is tried again: writers keep more than they must, and
    /// nobody who waits learns it, until then.
    pub(super) fn note(&mut self, fenced: Option<&str>) {
        let end = self.end.unwrap_or_default();
        let note = PublishedNote {
            url: self.bucket.url().to_string(),
            id: self.id,
            slot: end.slot,
            seq: end.head.seq,
            lineage: end.head.lineage,
            hash: end.hash,
            fenced: fenced.map(str::to_owned),
        };
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
fn took_over(header: &Header) -> String {
    format!("{} published slot {} at {}", shown_who(&header.who), header.slot, header.at)
}
