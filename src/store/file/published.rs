//! Marks databases as published, and stores the digest and changes of each commit. Also the empty commits of restores
//! and promotions.

use std::path::Path;

use redb::ReadableTableMetadata;

use crate::model::{DatabaseId, Head, RowDigest, Timestamp, now};
use crate::store::file::notes::{PublishedNote, current_user, published_note_path};
use crate::store::file::open::Writer;
use crate::store::format::meta::{database_id, stored_digest};
use crate::store::format::outbox::{OutboxHeader, PART_BYTES, digest_of, last_header, next_header};
use crate::store::format::rows::{StoredCommit, TableCounts, has_commit, hash, last_commit, seal};
use crate::store::format::tables;
use crate::store::write_tx::WriteTx;
use crate::store::{Result, StoreError};

impl Writer {
    /// Marks the database as published: from now on its commits store their changes and the digest of all rows. Reads
    /// all rows to compute the digest. Assigns an id the first time. Does nothing if the database is marked already.
    pub fn mark_published(&self) -> Result<DatabaseId> {
        let tx = WriteTx::new(self.begin_raw()?);
        let (stored_id, kept) = {
            let meta = tx.open(tables::META)?;
            (database_id(&*meta)?, stored_digest(&*meta)?)
        };
        if let (Some(id), Some(_)) = (stored_id, kept) {
            tx.abort()?;
            return Ok(id);
        }
        let mut digest = digest_of(&self.begin_read()?)?;
        let id = match stored_id {
            Some(id) => id,
            None => {
                let mut id = [0_u8; 16];
                getrandom::fill(&mut id)?;
                tx.open(tables::META)?
                    .insert(tables::META_DATABASE, id.as_slice())?;
                digest.add(tables::META_CODE, tables::META_DATABASE.as_bytes(), &id);
                DatabaseId(id)
            }
        };
        store_digest(&tx, digest)?;
        self.check_not_replaced()?;
        tx.commit()?;
        Ok(id)
    }

    /// Adds an empty commit 2^32 seqs after `seq`, and empties the outbox, so that a whole state is published next. All
    /// tokens for lost seqs are then behind the head. A replica becomes an independent, published database. `what` is
    /// the description in the history.
    pub fn jump_past(&self, seq: u64, what: &str) -> Result<DatabaseId> {
        let tx = WriteTx::new(self.begin_raw()?);
        tx.open(tables::META)?.remove(tables::META_PUBLISH)?;
        tx.drop_table(tables::OUTBOX)?;
        tx.drop_table(tables::REPLICA)?;
        put_empty_commit(&tx, Some(seq), Timestamp::EPOCH, what, None)?;
        self.check_not_replaced()?;
        tx.commit()?;
        self.mark_published()
    }
}

/// Fails if the note of a database says that another publisher took over.
pub fn refuse_fenced(database: &Path, note: Option<&PublishedNote>) -> Result<()> {
    let Some(by) = note.and_then(|note| note.fenced.clone()) else {
        return Ok(());
    };
    Err(StoreError::Fenced {
        note: published_note_path(database),
        path: database.to_owned(),
        by,
    })
}

/// Stores the digest of all rows after a commit.
pub fn store_digest(tx: &WriteTx, digest: RowDigest) -> Result<()> {
    tx.open(tables::META)?
        .insert(tables::META_PUBLISH, seal(&digest)?.as_slice())
}

/// Removes local rows: those of a published database or a replica.
pub fn remove_local_rows(tx: &WriteTx) -> Result<()> {
    let mut meta = tx.open(tables::META)?;
    for key in tables::META_LOCAL {
        meta.remove(key)?;
    }
    tx.drop_table(tables::OUTBOX)?;
    tx.drop_table(tables::REPLICA)
}

/// The number of seqs that a jump skips.
pub const JUMP_SEQS: u64 = 1 << 32;

/// Adds an empty commit, as an entry of the history. Its time is not before `committed`. It is 2^32 seqs after
/// `jump_past` and the last commit, or takes one seq.
pub fn put_empty_commit(
    tx: &WriteTx,
    jump_past: Option<u64>,
    committed: Timestamp,
    what: &str,
    note: Option<String>,
) -> Result<StoredCommit> {
    let mut commits = tx.open(tables::COMMITS)?;
    let last = last_commit(&*commits)?;
    let jump = jump_past.map(|seq| last.last_seq.max(seq).saturating_add(JUMP_SEQS));
    let mut row = StoredCommit {
        time: last.time.max(committed).max(now()),
        first_seq: last.last_seq + 1,
        last_seq: jump.unwrap_or(last.last_seq + 1),
        who: current_user(),
        what: what.to_owned(),
        imported: None,
        note,
        counts: TableCounts {
            keys: tx.open(tables::KEYS)?.len()?,
            ..last.counts
        },
        ..last
    };
    getrandom::fill(&mut row.lineage)?;
    commits.insert(row.last_seq, seal(&row)?.as_slice())?;
    Ok(row)
}

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
        let (stored, id) = {
            let meta = tx.open(tables::META)?;
            (stored_digest(&*meta)?, database_id(&*meta)?)
        };
        let published = match id {
            Some(id) => PublishedNote::read(&writer.path())?.filter(|note| note.id == id),
            None if stored.is_some() => {
                return Err(StoreError::damaged(
                    "meta",
                    "the id of the published database is missing",
                ));
            }
            None => None,
        };
        // A restored backup may replace a fenced file. It is not published itself, but must not be written either.
        refuse_fenced(&writer.path(), published.as_ref())?;
        let Some(digest) = stored else {
            return Ok(None);
        };
        let path = writer.path();
        let file_bytes = std::fs::metadata(&path)
            .map_err(StoreError::io(&path))?
            .len();
        let share = (file_bytes / FILE_SHARE).max(SMALL_BYTES);
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
                    tx.drop_table(tables::OUTBOX)?;
                    append(changes)
                }
                kept => kept,
            }
        });
        if kept? {
            Ok(())
        } else {
            tx.drop_table(tables::OUTBOX)
        }
    }

    /// Removes the commits that are in the bucket.
    fn remove_published(&self, tx: &WriteTx) -> Result<()> {
        let Some(note) = &self.published else {
            return Ok(());
        };
        let mut outbox = tx.open(tables::OUTBOX)?;
        if has_commit(&*tx.open(tables::COMMITS)?, note.head())?
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
        let mut outbox = tx.open(tables::OUTBOX)?;
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
