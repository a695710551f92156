//! A replica that is being loaded, as a draft without a name.

use std::path::Path;

use redb::ReadableTable;

use super::apply::{ApplyError, apply};
use super::replica_writer::{ReplicaWriter, put_mark};
use crate::model::{DatabaseId, Head, RowDigest, Timestamp};
use crate::store::Result;
use crate::store::error::opaque_debug;
use crate::store::file::draft::Draft;
use crate::store::file::metadata::{refuse_other_names, resolve};
use crate::store::file::open::Writer;
use crate::store::file::published::JUMP_SEQS;
use crate::store::file::replace::{BackupReport, create_tables, write_backup};
use crate::store::format::meta::{ReplicaMark, Version, database_id};
use crate::store::format::rows::{CommitPoint, last_commit, unseal_commit};
use crate::store::format::tables::{COMMITS, META, META_SECRET};
use crate::store::write_tx::WriteTx;

/// A load in one transaction. Dropping it leaves nothing behind.
pub struct ReplicaDraft {
    // Dropped in this order: the transaction, its database, the file.
    tx: WriteTx,
    writer: Writer,
    new: Draft,
}

impl ReplicaDraft {
    /// Begins a load in the folder of the replica's file. Follows links.
    pub fn create_for(path: &Path) -> Result<ReplicaDraft> {
        let new = Draft::create(&resolve(path))?;
        let writer = new.writer()?;
        let transaction = writer.begin_raw()?;
        create_tables(&transaction)?;
        let mut tx = WriteTx::new(transaction);
        tx.start_recording(RowDigest::default(), None);
        Ok(ReplicaDraft { tx, writer, new })
    }

    /// Applies the next part of a state. After an error, the draft must be dropped.
    pub fn add_part(&mut self, part: &[u8]) -> Result<(), ApplyError> {
        apply(&self.tx, part)
    }

    /// Ends the load. Fails unless the rows match the mark's digest, and `head` is the last commit.
    pub fn finish(self, mark: &ReplicaMark, head: Head) -> Result<LoadedDraft, ApplyError> {
        let ReplicaDraft {
            mut tx,
            writer,
            new,
        } = self;
        if tx.stop_recording().0 != mark.digest {
            return Err(ApplyError::Digest(head.seq));
        }
        let found = last_commit(&*tx.open(COMMITS)?)?.point().head();
        if found != head {
            return Err(ApplyError::Base {
                expected: head.seq,
                found: found.seq,
            });
        }
        if !is_database(&tx, mark.id)? {
            return Err(ApplyError::Malformed(format!(
                "the rows are not those of database {}",
                mark.id
            )));
        }
        put_mark(&tx, mark)?;
        tx.commit()?;
        Ok(LoadedDraft {
            replica: ReplicaWriter { writer },
            new,
        })
    }
}

/// Whether the rows are a database of this version and id.
fn is_database(tx: &WriteTx, id: DatabaseId) -> Result<bool> {
    let meta = tx.open(META)?;
    let is_current = Version::read(&*meta)?.is_some_and(|version| version.is_current());
    Ok(is_current && meta.get(META_SECRET)?.is_some() && database_id(&*meta)? == Some(id))
}

/// A loaded replica without a name.
#[derive(Debug)]
pub struct LoadedDraft {
    /// Its only writer.
    pub replica: ReplicaWriter,
    new: Draft,
}

impl LoadedDraft {
    /// Whether there may have been a commit between `base` and a time. The seq of a restore shows whether it replaced
    /// commits after `base`, whose times are unknown.
    pub fn may_skip_commit(&self, base: CommitPoint, until: Timestamp) -> Result<bool> {
        let commits = self.replica.writer.begin_read()?.open_table(COMMITS)?;
        let Some(next) = commits.range(base.seq.saturating_add(1)..)?.next() else {
            return Ok(false);
        };
        let (seq, row) = next?;
        let has_replaced = seq.value() > base.seq.saturating_add(JUMP_SEQS);
        let is_in_time = unseal_commit(seq.value(), row.value())?.time <= until;
        Ok(is_in_time || (has_replaced && until > base.time))
    }

    /// Writes a checked backup of the loaded state.
    pub fn write_backup(&self, target: &Path) -> Result<BackupReport> {
        write_backup(self.new.path(), &self.replica.writer.begin_read()?, target)
    }

    /// Gives the replica its name in one step. `replaced` has this name now, and stays locked until then.
    pub fn persist(self, replaced: Option<ReplicaWriter>) -> Result<ReplicaWriter> {
        let LoadedDraft { replica, new } = self;
        let target = new.target().to_owned();
        match &replaced {
            None => new.persist_new()?,
            Some(old) => {
                refuse_other_names(&target)?;
                new.replace(old.writer.identity)?;
            }
        }
        drop(replaced);
        Ok(ReplicaWriter {
            writer: replica.writer.moved_to(&target),
        })
    }
}

opaque_debug!(ReplicaDraft);
