//! Marks databases as published, and adds the empty commits of restores and promotions.

use std::path::Path;

use redb::ReadableTableMetadata;

use super::notes::{PublishedNote, current_user, published_note_path};
use super::open::Writer;
use crate::model::{DatabaseId, RowDigest, Timestamp, now};
use crate::store::format::meta::{database_id, stored_digest};
use crate::store::format::outbox::digest_of;
use crate::store::format::rows::{StoredCommit, TableCounts, last_commit, seal};
use crate::store::format::tables::{
    COMMITS, KEYS, META, META_CODE, META_DATABASE, META_LOCAL, META_PUBLISH, OUTBOX, REPLICA,
};
use crate::store::write_tx::WriteTx;
use crate::store::{Result, StoreError};

impl Writer {
    /// Marks the database as published: from now on its commits store their changes and the digest of all rows. Reads
    /// all rows to compute the digest. Assigns an id the first time. Does nothing if the database is marked already.
    pub fn mark_published(&self) -> Result<DatabaseId> {
        let tx = WriteTx::new(self.begin_raw()?);
        let meta = tx.open(META)?;
        let stored_id = database_id(&*meta)?;
        let is_published = stored_digest(&*meta)?.is_some();
        drop(meta);
        if let Some(id) = stored_id.filter(|_| is_published) {
            tx.abort()?;
            return Ok(id);
        }
        let mut digest = digest_of(&self.begin_read()?)?;
        let id = match stored_id {
            Some(id) => id,
            None => {
                let mut id = [0_u8; 16];
                getrandom::fill(&mut id)?;
                tx.open(META)?.insert(META_DATABASE, id.as_slice())?;
                digest.add(META_CODE, META_DATABASE.as_bytes(), &id);
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
        tx.open(META)?.remove(META_PUBLISH)?;
        tx.drop_table(OUTBOX)?;
        tx.drop_table(REPLICA)?;
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
    tx.open(META)?
        .insert(META_PUBLISH, seal(&digest)?.as_slice())
}

/// Removes local rows: those of a published database or a replica.
pub fn remove_local_rows(tx: &WriteTx) -> Result<()> {
    let mut meta = tx.open(META)?;
    for key in META_LOCAL {
        meta.remove(key)?;
    }
    tx.drop_table(OUTBOX)?;
    tx.drop_table(REPLICA)
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
    let mut commits = tx.open(COMMITS)?;
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
            keys: tx.open(KEYS)?.len()?,
            ..last.counts
        },
        ..last
    };
    getrandom::fill(&mut row.lineage)?;
    commits.insert(row.last_seq, seal(&row)?.as_slice())?;
    Ok(row)
}
