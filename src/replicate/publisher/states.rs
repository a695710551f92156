//! Putting whole states: as an entry where there are no changes to put, and beside the log for those who start.

use std::sync::Arc;

use super::Publisher;
use super::beside::{Beside, Work};
use super::end::{Growth, StateObjects};
use super::error::PublishError;
use super::life::WantedState;
use super::parts::{put_manifest, put_parts};
use crate::model::RowDigest;
use crate::model::time::now;
use crate::replicate::entry::Header;
use crate::replicate::frame::Hash;
use crate::replicate::state::Manifest;
use crate::store::StoreError;
use crate::store::replication::OriginView;

/// The most entries that whoever starts applies after a state.
const MAX_ENTRIES: u64 = 1000;
/// What may follow any state, however small, in bytes.
const SMALL_BYTES: u64 = 1 << 20;

impl Publisher {
    /// Puts a state as the next entry.
    pub(super) fn put_state_entry(&mut self) -> Result<(), PublishError> {
        // There is never more than one on its way.
        self.await_state()?;
        // A file that took the place of the database need not be marked.
        self.mark()?;
        let view = self.follower.origin()?;
        let header = self.next_header(view.head()?.head(), RowDigest::default(), None);
        let dumped = put_parts(&self.bucket, &self.patience, &view, header.slot)?;
        let header = Header { digest: dumped.digest, state: Some(dumped.parts), ..header };
        self.put_entry(&header, &[])?;
        self.growth = Growth { state_bytes: dumped.bytes, ..Growth::default() };
        self.state_at = header.at;
        self.wanted_state = None;
        Ok(())
    }

    /// Puts the manifest of an entry that is a state; the same bytes whoever does it.
    pub(super) fn put_manifest_of(&mut self, header: &Header, hash: Hash) -> Result<(), PublishError> {
        let manifest = Manifest {
            id: header.id,
            slot: header.slot,
            entry_hash: hash,
            schema: header.schema,
            seq: header.seq,
            lineage: header.lineage,
            digest: header.digest,
            at: header.at,
            parts: header.state.clone().unwrap_or_default(),
        };
        let present = put_manifest(&self.bucket, &mut self.patience, &manifest)?;
        self.newest_state = Some(StateObjects::of(manifest.slot, &present.unwrap_or(manifest).parts));
        Ok(())
    }

    /// Whether much log has gathered since the last state, or that is lost, and none is on its way.
    pub(super) fn is_state_due(&self) -> bool {
        if self.beside.is_some() {
            return false;
        }
        if self.wanted_state.is_some() {
            return true;
        }
        let Growth { entries, bytes, state_bytes } = self.growth;
        let age_s = u64::try_from(now().unix_s().saturating_sub(self.state_at.unix_s())).unwrap_or(0);
        let is_much = entries >= MAX_ENTRIES || bytes > (state_bytes / 2).max(SMALL_BYTES);
        entries > 0 && (is_much || age_s >= self.settings.state_every.as_secs())
    }

    /// Begins to put a state beside the log's end for those who start, while entries go on. Does nothing where a commit came
    /// meanwhile, which goes first.
    pub(super) fn begin_state(&mut self, view: OriginView) -> Result<(), PublishError> {
        let Some(end) = self.end else { return Ok(()) };
        if view.head()?.head() != end.head {
            return Ok(());
        }
        // Nobody who was overtaken goes on to sweep, and sweeping goes by the store's clock as of now.
        self.life.make_due();
        self.show_life()?;
        if self.end != Some(end) || self.wanted_state == Some(WantedState::Entry) {
            return Ok(());
        }
        let work = Work {
            bucket: Arc::clone(&self.bucket),
            patience: self.patience.another(),
            standing: Arc::clone(&self.standing),
            id: self.id,
            end,
            // Only who has put an entry, and so knows that nobody else publishes, deletes.
            keep: (self.entries > 0).then_some(self.settings.keep),
        };
        let begun = Beside::begin(work, view, self.growth);
        self.beside = Some(begun.map_err(|source| StoreError::Io { path: self.path.clone(), source })?);
        Ok(())
    }

    /// Takes in the state that was put beside the log, if that is done.
    pub(super) fn take_in_state(&mut self) -> Result<(), PublishError> {
        let done = self.beside.take_if(|beside| beside.is_done());
        done.map_or(Ok(()), |beside| self.finish_state(beside))
    }

    /// Waits for the state that is being put beside the log, if there is one.
    pub(super) fn await_state(&mut self) -> Result<(), PublishError> {
        self.beside.take().map_or(Ok(()), |beside| self.finish_state(beside))
    }

    fn finish_state(&mut self, beside: Beside) -> Result<(), PublishError> {
        let (before, put) = beside.finish()?;
        self.growth = Growth {
            entries: self.growth.entries.saturating_sub(before.entries),
            bytes: self.growth.bytes.saturating_sub(before.bytes),
            state_bytes: put.bytes,
        };
        self.state_at = put.at;
        self.newest_state = Some(put.objects);
        self.wanted_state = None;
        Ok(())
    }
}
