//! Marking a database as published, and commits that only add an entry to the history.

use std::path::Path;

use redb::ReadTransaction;

use crate::model::time::now;
use crate::model::{DatabaseId, Head, RowDigest, Timestamp};
use crate::store::StoreError;
use crate::store::file::open::Writer;
use crate::store::file::published_note::{PublishedNote, note_path};
use crate::store::file::writer_note::current_user;
use crate::store::format::codec::{StoredCommit, seal};
use crate::store::format::digest::digest_of;
use crate::store::format::meta::{database_id, stored_digest};
use crate::store::format::rows::last_commit;
use crate::store::format::tables;
use crate::store::write_tx::{Recorder, WriteTx};

impl Writer {
    /// Marks the database as published: from now on its commits store their changes and the digest of all rows. Reads
    /// all rows to compute the digest. Assigns an id the first time. Does nothing if the database is marked already.
    pub fn mark_published(&self) -> Result<DatabaseId, StoreError> {
        let mut tx = WriteTx::new(self.begin_raw()?);
        let (stored_id, kept) = {
            let meta = tx.open(tables::META)?;
            (database_id(&*meta)?, stored_digest(&*meta)?)
        };
        if let (Some(id), Some(_)) = (stored_id, kept) {
            tx.abort()?;
            return Ok(id);
        }
        tx.set_recorder(Some(Recorder::digest_only(digest_of(&self.begin_read()?)?)));
        let id = match stored_id {
            Some(id) => id,
            None => {
                let mut id = [0_u8; 16];
                getrandom::fill(&mut id)?;
                tx.open(tables::META)?.insert(tables::META_DATABASE, id.as_slice())?;
                DatabaseId(id)
            }
        };
        let digest = tx.set_recorder(None).map(|recorder| recorder.digest()).unwrap_or_default();
        store_digest(&tx, digest)?;
        self.check_not_replaced()?;
        tx.commit()?;
        Ok(id)
    }

    /// Adds an empty commit 2^32 seqs after `seq`, and empties the outbox, so that a whole state is published next. All
    /// tokens for lost seqs are then behind the head. `what` is the description in the history.
    pub fn jump_past(&self, seq: u64, what: &str) -> Result<DatabaseId, StoreError> {
        let tx = WriteTx::new(self.begin_raw()?);
        tx.open(tables::META)?.remove(tables::META_PUBLISH)?;
        tx.drop_table(tables::OUTBOX)?;
        put_seq_jump(&tx, seq, Timestamp::EPOCH, what)?;
        self.check_not_replaced()?;
        tx.commit()?;
        self.mark_published()
    }
}

/// Fails if the note of a database says that another publisher took over.
pub(in crate::store) fn refuse_fenced(database: &Path, note: Option<&PublishedNote>) -> Result<(), StoreError> {
    let Some(by) = note.and_then(|note| note.fenced.clone()) else { return Ok(()) };
    Err(StoreError::Fenced { note: note_path(database), path: database.to_owned(), by })
}

/// Stores the digest of all rows after a commit.
pub(in crate::store) fn store_digest(tx: &WriteTx, digest: RowDigest) -> Result<(), StoreError> {
    tx.open(tables::META)?.insert(tables::META_PUBLISH, seal(&digest)?.as_slice())
}

/// Removes local rows: those of a published database or a replica.
pub(in crate::store) fn remove_local_rows(tx: &WriteTx) -> Result<(), StoreError> {
    let mut meta = tx.open(tables::META)?;
    meta.remove(tables::META_PUBLISH)?;
    meta.remove(tables::META_RESTORED)?;
    tx.drop_table(tables::OUTBOX)?;
    tx.drop_table(tables::REPLICA)
}

/// The identity of a published database, which a restore keeps.
pub(in crate::store) struct OriginIdentity {
    id: DatabaseId,
    /// Its last commit, or the last published one if it cannot be read.
    head: Head,
}

impl OriginIdentity {
    /// Reads the identity; `None` if the database is not published.
    pub fn read(transaction: &ReadTransaction, head: Head) -> Result<Option<OriginIdentity>, StoreError> {
        let meta = transaction.open_table(tables::META)?;
        let id = stored_digest(&meta)?.and(database_id(&meta)?);
        Ok(id.map(|id| OriginIdentity { id, head }))
    }

    pub fn of_note(note: &PublishedNote) -> OriginIdentity {
        OriginIdentity { id: note.id, head: Head { seq: note.seq, lineage: note.lineage } }
    }

    /// Writes the identity into the restored database, with a seq jump. `what` is the description for the history.
    pub fn put(&self, tx: &WriteTx, committed: Timestamp, what: &str) -> Result<(), StoreError> {
        let mut meta = tx.open(tables::META)?;
        meta.insert(tables::META_DATABASE, self.id.0.as_slice())?;
        meta.insert(tables::META_RESTORED, seal(&self.head)?.as_slice())?;
        drop(meta);
        put_seq_jump(tx, self.head.seq, committed, what)?;
        Ok(())
    }
}

/// The number of seqs that a jump skips.
const JUMP_SEQS: u64 = 1 << 32;

/// Adds an empty commit 2^32 seqs after `seq` and the last commit, not before `committed`. Tokens for lost seqs are
/// behind it.
pub(in crate::store) fn put_seq_jump(
    tx: &WriteTx,
    seq: u64,
    committed: Timestamp,
    what: &str,
) -> Result<StoredCommit, StoreError> {
    put_empty_commit(tx, committed, what, |base| base.max(seq).saturating_add(JUMP_SEQS))
}

/// Adds an empty commit of one seq, as an entry of the history.
pub(in crate::store) fn put_history_entry(tx: &WriteTx, what: &str) -> Result<StoredCommit, StoreError> {
    put_empty_commit(tx, Timestamp::EPOCH, what, |base| base + 1)
}

/// Adds an empty commit. `last_seq` computes its seq from the previous one. Its time is not before `committed`.
fn put_empty_commit(
    tx: &WriteTx,
    committed: Timestamp,
    what: &str,
    last_seq: impl FnOnce(u64) -> u64,
) -> Result<StoredCommit, StoreError> {
    let mut commits = tx.open(tables::COMMITS)?;
    let last = last_commit(&*commits)?;
    let mut lineage = [0_u8; 16];
    getrandom::fill(&mut lineage)?;
    let row = StoredCommit {
        time: last.time.max(committed).max(now()),
        lineage,
        first_seq: last.last_seq + 1,
        last_seq: last_seq(last.last_seq),
        who: current_user(),
        what: what.to_owned(),
        ..last
    };
    commits.insert(row.last_seq, seal(&row)?.as_slice())?;
    Ok(row)
}
