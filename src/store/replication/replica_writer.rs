//! The only writer of a replica's file.

use std::path::Path;

use redb::ReadableTable;

use super::apply::{ApplyError, apply};
use crate::model::{CommitInfo, Head, Timestamp};
use crate::store::file::open::{OpenOptions, Writer};
use crate::store::file::published::{put_empty_commit, store_digest};
use crate::store::format::meta::{ReplicaMark, find_mark};
use crate::store::format::rows::{CommitPoint, StoredCommit, last_commit, seal, unseal_commit};
use crate::store::format::tables::{COMMITS, REPLICA, REPLICA_KEY};
use crate::store::panics::guard;
use crate::store::read::snapshot::Snapshot;
use crate::store::write_tx::WriteTx;
use crate::store::{Result, StoreError};

/// The beginning of the description of a promotion in the history.
const PROMOTED: &str = "promoted in place of ";

fn promoted(url: &str) -> String {
    format!("{PROMOTED}{url}")
}

/// A commit of the origin, with its encoded changes.
pub type CommitChanges<'a> = (CommitInfo, &'a [u8]);

/// The only writer of a replica's file. Other processes cannot write while it exists.
#[derive(Debug)]
pub struct ReplicaWriter {
    pub(super) writer: Writer,
}

impl ReplicaWriter {
    /// Opens a replica for writing. Follows links. Fails at once if another process has opened it for writing.
    pub fn open(path: &Path) -> Result<ReplicaWriter> {
        ReplicaWriter::open_with(path, OpenOptions::ANY_CURRENT)
    }

    /// Opens a replica whose rows may lack fields of this program, to replace it.
    pub fn open_older(path: &Path) -> Result<ReplicaWriter> {
        ReplicaWriter::open_with(path, OpenOptions::ANY)
    }

    fn open_with(path: &Path, options: OpenOptions) -> Result<ReplicaWriter> {
        let replica = ReplicaWriter {
            writer: Writer::open_with(path, options)?,
        };
        replica.mark()?;
        Ok(replica)
    }

    /// The position in the origin's log, with the digest of the rows.
    pub fn mark(&self) -> Result<ReplicaMark> {
        let mark = guard(|| find_mark(&self.writer.begin_read()?))?;
        mark.ok_or_else(|| StoreError::NotAReplica {
            path: self.writer.path(),
        })
    }

    /// The last commit.
    pub fn head(&self) -> Result<CommitPoint> {
        guard(|| Snapshot::read_commit(&self.writer.begin_read()?))
    }

    /// Applies commits and stores the mark, in one transaction. `mark.digest` is the digest after the last commit.
    pub fn apply(
        &mut self,
        commits: &[CommitChanges<'_>],
        mark: &ReplicaMark,
    ) -> Result<(), ApplyError> {
        guard(|| self.apply_all(commits, mark))
    }

    fn apply_all(
        &self,
        commits: &[CommitChanges<'_>],
        mark: &ReplicaMark,
    ) -> Result<(), ApplyError> {
        let mut digest = self.mark()?.digest;
        let mut tx = WriteTx::new(self.writer.begin_raw()?);
        for (commit, changes) in commits {
            self.expect_head(&tx, commit.base)?;
            tx.start_recording(digest, None);
            apply(&tx, changes)?;
            (digest, _) = tx.stop_recording();
            if digest != commit.digest {
                return Err(ApplyError::Digest(commit.last_seq));
            }
            self.expect_head(&tx, commit.head())?;
        }
        if digest != mark.digest {
            return Err(ApplyError::Digest(
                commits.last().map_or(0, |(commit, _)| commit.last_seq),
            ));
        }
        put_mark(&tx, mark)?;
        self.writer.check_not_replaced()?;
        tx.commit()?;
        Ok(self.writer.check_not_replaced()?)
    }

    /// Fails unless `expected` is the last commit.
    fn expect_head(&self, tx: &WriteTx, expected: Head) -> Result<(), ApplyError> {
        let found = last_commit(&*tx.open(COMMITS)?)?.point().head();
        if found == expected {
            Ok(())
        } else {
            Err(ApplyError::Base {
                expected: expected.seq,
                found: found.seq,
            })
        }
    }

    /// The last promotion of a replica after a seq; `None` if there is none.
    pub fn promotion_after(&self, seq: u64) -> Result<Option<StoredCommit>> {
        guard(|| {
            let commits = self.writer.begin_read()?.open_table(COMMITS)?;
            for commit in commits.range(seq.saturating_add(1)..)?.rev() {
                let (seq, row) = commit?;
                let commit = unseal_commit(seq.value(), row.value())?;
                if commit.what.starts_with(PROMOTED) {
                    return Ok(Some(commit));
                }
            }
            Ok(None)
        })
    }

    /// Makes the replica an independent, published database, without regard to its origin's log. Adds a commit that
    /// skips 2^32 seqs, so that later tokens of the origin are behind it. `url` is the origin's log.
    pub fn start_over(self, url: &str) -> Result<Writer> {
        guard(|| self.writer.jump_past(self.head()?.seq, &promoted(url)))?;
        Ok(self.writer)
    }

    /// Prepares the commit by which this replica replaces the origin that publishes to `url`, and its encoded changes.
    /// It is empty, and skips 2^32 seqs, so that all tokens for lost seqs are behind it. Changes nothing. After the
    /// commit is published and applied, call [`ReplicaWriter::promote`].
    pub fn prepare_promotion(&self, url: &str) -> Result<(CommitInfo, Vec<u8>)> {
        guard(|| {
            let base = self.head()?.head();
            let mut tx = WriteTx::new(self.writer.begin_raw()?);
            tx.start_recording(self.mark()?.digest, Some(usize::MAX));
            let row =
                put_empty_commit(&tx, Some(base.seq), Timestamp::EPOCH, &promoted(url), None)?;
            let (digest, changes) = tx.stop_recording();
            tx.abort()?;
            let changes = changes.unwrap_or_default();
            Ok((row.info(base, digest, &changes), changes))
        })
    }

    /// Makes the replica an independent, published database: removes the mark, and stores the digest.
    pub fn promote(self) -> Result<Writer> {
        let mark = self.mark()?;
        let tx = WriteTx::new(self.writer.begin_raw()?);
        tx.drop_table(REPLICA)?;
        store_digest(&tx, mark.digest)?;
        self.writer.check_not_replaced()?;
        tx.commit()?;
        Ok(self.writer)
    }
}

pub(super) fn put_mark(tx: &WriteTx, mark: &ReplicaMark) -> Result<()> {
    tx.open(REPLICA)?
        .insert(REPLICA_KEY, seal(mark)?.as_slice())
}
