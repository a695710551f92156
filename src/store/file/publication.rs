//! Stores the digest and the changes of each commit of a published database.

use super::notes::PublishedNote;
use super::open::Writer;
use super::published::{refuse_fenced, store_digest};
use crate::model::{Head, RowDigest};
use crate::store::format::meta::{database_id, stored_digest};
use crate::store::format::outbox::{OutboxHeader, PART_BYTES, last_header, next_header};
use crate::store::format::rows::{StoredCommit, has_commit, hash, seal};
use crate::store::format::tables::{COMMITS, META, OUTBOX};
use crate::store::write_tx::WriteTx;
use crate::store::{Result, StoreError};

/// The maximum size of one commit's changes, in bytes. For a larger commit, a whole state is published.
const MAX_COMMIT_BYTES: u64 = 64 << 20;
/// The maximum size of the outbox, in bytes. Beyond it, a whole state is published.
const MAX_OUTBOX_BYTES: u64 = 256 << 20;
/// The outbox may have one byte for this many bytes of the file. Beyond it, a whole state is cheaper.
const FILE_SHARE: u64 = 4;
/// The outbox may have this many bytes, even if the file is small.
const SMALL_BYTES: u64 = 1 << 20;

/// The publication of a commit that is being written.
pub struct CommitPublication {
    base: Head,
    /// The maximum size of the outbox after this commit, in bytes.
    max_outbox_bytes: u64,
    /// The last published commit, as far as known.
    published: Option<PublishedNote>,
}

impl CommitPublication {
    /// Starts to record the writes on top of `base`. `None` if the database is not published.
    pub fn begin(
        writer: &Writer,
        tx: &mut WriteTx,
        base: Head,
    ) -> Result<Option<CommitPublication>> {
        let meta = tx.open(META)?;
        let stored = stored_digest(&*meta)?;
        let id = database_id(&*meta)?;
        drop(meta);
        let published = match id {
            Some(id) => PublishedNote::read(&writer.path())?.filter(|note| note.id == id),
            None if stored.is_some() => {
                let detail = "the id of the published database is missing";
                return Err(StoreError::damaged("meta", detail));
            }
            None => None,
        };
        // A restored backup may replace a fenced file. It is not published itself, but must not be written either.
        refuse_fenced(&writer.path(), published.as_ref())?;
        let Some(digest) = stored else {
            return Ok(None);
        };
        let path = writer.path();
        let file = std::fs::metadata(&path).map_err(StoreError::io(&path))?;
        let share = (file.len() / FILE_SHARE).max(SMALL_BYTES);
        let max_bytes = usize::try_from(share.min(MAX_COMMIT_BYTES)).unwrap_or(usize::MAX);
        tx.start_recording(digest, Some(max_bytes));
        Ok(Some(CommitPublication {
            base,
            max_outbox_bytes: share.min(MAX_OUTBOX_BYTES),
            published,
        }))
    }

    /// Writes the digest and the recorded changes. Must be the last write of the transaction.
    pub fn finish(self, tx: &mut WriteTx, row: &StoredCommit) -> Result<()> {
        let (digest, changes) = tx.stop_recording();
        store_digest(tx, digest)?;
        let append = |changes| self.append(tx, row, digest, changes);
        let kept = changes.as_deref().map_or(Ok(false), |changes| {
            match self.remove_published(tx).and_then(|()| append(changes)) {
                // Begin a damaged outbox anew. The publisher finds a gap, and publishes a whole state.
                Err(error) if error.outbox_damage().is_some() => {
                    tx.drop_table(OUTBOX)?;
                    append(changes)
                }
                kept => kept,
            }
        });
        if kept? { Ok(()) } else { tx.drop_table(OUTBOX) }
    }

    /// Removes the commits that are in the bucket.
    fn remove_published(&self, tx: &WriteTx) -> Result<()> {
        let Some(note) = &self.published else {
            return Ok(());
        };
        let mut outbox = tx.open(OUTBOX)?;
        if has_commit(&*tx.open(COMMITS)?, note.head())?
            && next_header(&*outbox, 0)?.is_some_and(|first| first.commit.last_seq <= note.seq)
        {
            outbox.remove_range((0, 0), (note.seq, u32::MAX))?;
        }
        Ok(())
    }

    /// Appends the changes to the outbox. Returns whether it is within its limits.
    fn append(
        &self,
        tx: &WriteTx,
        row: &StoredCommit,
        digest: RowDigest,
        changes: &[u8],
    ) -> Result<bool> {
        let commit = row.info(self.base, digest, changes);
        let mut outbox = tx.open(OUTBOX)?;
        let written = last_header(&*outbox)?
            .map_or(0, |last| last.written)
            .saturating_add(commit.bytes);
        let before = next_header(&*outbox, 0)?
            .map_or(0, |first| first.written.saturating_sub(first.commit.bytes));
        if written.saturating_sub(before) > self.max_outbox_bytes {
            return Ok(false);
        }
        let header = OutboxHeader {
            commit,
            hash: hash(changes),
            written,
        };
        outbox.insert((row.last_seq, 0), seal(&header)?.as_slice())?;
        for (part, chunk) in (1..).zip(changes.chunks(PART_BYTES)) {
            outbox.insert((row.last_seq, part), chunk)?;
        }
        Ok(true)
    }
}
