//! The end of a commit of a published database: stores the digest of all rows, and the changes in the outbox.

use redb::ReadableTable;

use crate::model::{CommitInfo, Head, RowDigest};
use crate::store::StoreError;
use crate::store::file::open::Writer;
use crate::store::file::publish::{refuse_fenced, store_digest};
use crate::store::file::published_note::PublishedNote;
use crate::store::format::codec::{StoredCommit, hash, seal, unseal_commit};
use crate::store::format::meta::{database_id, stored_digest};
use crate::store::format::outbox::{OutboxHeader, PART_BYTES, last_header, next_header};
use crate::store::format::tables;
use crate::store::write_tx::{Recorder, WriteTx};

/// The maximum size of one commit's changes, in bytes. For a larger commit, a whole state is published.
const MAX_COMMIT_BYTES: u64 = 64 << 20;
/// The maximum size of the outbox, in bytes. Beyond it, a whole state is published.
const MAX_OUTBOX_BYTES: u64 = 256 << 20;
/// The outbox may have one byte for this many bytes of the file. Beyond it, a whole state is cheaper.
const FILE_SHARE: u64 = 4;
/// The outbox may have this many bytes, even if the file is small.
const SMALL_BYTES: u64 = 1 << 20;

/// The publication of a commit that is being written.
pub(super) struct CommitPublication {
    base: Head,
    /// The maximum size of the outbox after this commit, in bytes.
    max_outbox_bytes: u64,
    /// The last published commit, as far as known.
    published: Option<PublishedNote>,
}

impl CommitPublication {
    /// Starts to record the writes on top of `base`. `None` if the database is not published.
    pub fn begin(writer: &Writer, tx: &mut WriteTx, base: Head) -> Result<Option<CommitPublication>, StoreError> {
        let (stored, id) = {
            let meta = tx.open(tables::META)?;
            (stored_digest(&*meta)?, database_id(&*meta)?)
        };
        let published = match id {
            Some(id) => PublishedNote::read(&writer.path())?.filter(|note| note.id == id),
            None if stored.is_some() => {
                return Err(StoreError::damaged("meta", "the id of the published database is missing"));
            }
            None => None,
        };
        // A restored backup may replace a fenced file. It is not published itself, but must not be written either.
        refuse_fenced(&writer.path(), published.as_ref())?;
        let Some(digest) = stored else { return Ok(None) };
        let path = writer.path();
        let file_bytes = std::fs::metadata(&path).map_err(StoreError::io(&path))?.len();
        let share = (file_bytes / FILE_SHARE).max(SMALL_BYTES);
        let max_bytes = usize::try_from(share.min(MAX_COMMIT_BYTES)).unwrap_or(usize::MAX);
        tx.set_recorder(Some(Recorder::new(digest, max_bytes)));
        Ok(Some(CommitPublication { base, max_outbox_bytes: share.min(MAX_OUTBOX_BYTES), published }))
    }

    /// Writes the digest and the recorded changes. Must be the last write of the transaction.
    pub fn finish(self, tx: &mut WriteTx, row: &StoredCommit) -> Result<(), StoreError> {
        let Some(recorder) = tx.set_recorder(None) else { return Ok(()) };
        let digest = recorder.digest();
        store_digest(tx, digest)?;
        let changes = recorder.into_changes();
        let is_within_limits = match self.update_outbox(tx, row, digest, changes.as_deref()) {
            // Drop the damaged outbox. The publisher then finds a gap, and publishes a whole state.
            Err(error) if error.outbox_damage().is_some() => {
                tx.drop_table(tables::OUTBOX)?;
                self.update_outbox(tx, row, digest, changes.as_deref())
            }
            is_within_limits => is_within_limits,
        };
        if is_within_limits? { Ok(()) } else { tx.drop_table(tables::OUTBOX) }
    }

    /// Removes published commits, and appends the changes if there are any. Returns whether the outbox is within its
    /// limits.
    fn update_outbox(
        &self,
        tx: &WriteTx,
        row: &StoredCommit,
        digest: RowDigest,
        changes: Option<&[u8]>,
    ) -> Result<bool, StoreError> {
        self.remove_published(tx)?;
        changes.map_or(Ok(false), |changes| self.append(tx, row, digest, changes))
    }

    /// Removes the commits that are in the bucket.
    fn remove_published(&self, tx: &WriteTx) -> Result<(), StoreError> {
        let Some(note) = &self.published else { return Ok(()) };
        let commits = tx.open(tables::COMMITS)?;
        let is_in_history = match commits.get(note.seq)? {
            Some(bytes) => unseal_commit(note.seq, bytes.value())?.lineage == note.lineage,
            None => false,
        };
        let mut outbox = tx.open(tables::OUTBOX)?;
        if is_in_history && next_header(&*outbox, 0)?.is_some_and(|first| first.commit.last_seq <= note.seq) {
            outbox.remove_range((0, 0), (note.seq, u32::MAX))?;
        }
        Ok(())
    }

    /// Appends the changes to the outbox. Returns whether it is within its limits.
    fn append(&self, tx: &WriteTx, row: &StoredCommit, digest: RowDigest, changes: &[u8]) -> Result<bool, StoreError> {
        let bytes = u64::try_from(changes.len()).unwrap_or(u64::MAX);
        let mut outbox = tx.open(tables::OUTBOX)?;
        let written = last_header(&*outbox)?.map_or(0, |last| last.written).saturating_add(bytes);
        let before = next_header(&*outbox, 0)?.map_or(0, |first| first.written.saturating_sub(first.commit.bytes));
        if written.saturating_sub(before) > self.max_outbox_bytes {
            return Ok(false);
        }
        let commit = CommitInfo {
            first_seq: row.first_seq,
            last_seq: row.last_seq,
            lineage: row.lineage,
            time: row.time,
            base: self.base,
            digest,
            bytes,
        };
        let header = OutboxHeader { commit, hash: hash(changes), written };
        outbox.insert((row.last_seq, 0), seal(&header)?.as_slice())?;
        for (part, chunk) in (1..).zip(changes.chunks(PART_BYTES)) {
            outbox.insert((row.last_seq, part), chunk)?;
        }
        Ok(true)
    }
}
