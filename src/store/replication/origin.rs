//! Reading a published database, for its publisher.

use redb::{ReadTransaction, ReadableTable};

use crate::model::{CommitInfo, DatabaseId, Head, RowDigest};
use crate::store::error::opaque_debug;
use crate::store::file::open::Reader;
use crate::store::format::changes::ChangeEncoder;
use crate::store::format::meta::{database_id, restored_over, stored_digest};
use crate::store::format::outbox::{
    OutboxHeader, digest_of, for_each_row, next_header, read_changes,
};
use crate::store::format::rows::{CommitPoint, has_commit, optional_table};
use crate::store::format::tables::{COMMITS, META, OUTBOX};
use crate::store::panics::guard;
use crate::store::read::snapshot::Snapshot;
use crate::store::{Result, StoreError};

impl Reader {
    /// Opens the present state for a publisher. Call [`Reader::refresh`] first if the file may have been replaced.
    pub fn origin(&self) -> Result<OriginView> {
        Ok(OriginView {
            transaction: self.file.begin_read()?,
        })
    }
}

/// One committed state, for its publisher. As long as it exists, redb keeps the pages of this state, so drop it soon.
pub struct OriginView {
    transaction: ReadTransaction,
}

impl OriginView {
    /// The id of the database; `None` if it was never published.
    pub fn id(&self) -> Result<Option<DatabaseId>> {
        guard(|| database_id(&self.transaction.open_table(META)?))
    }

    /// The id of the database; `None` if its commits are not stored for publishing.
    pub fn published_id(&self) -> Result<Option<DatabaseId>> {
        guard(|| {
            let meta = self.transaction.open_table(META)?;
            Ok(stored_digest(&meta)?.and(database_id(&meta)?))
        })
    }

    /// The last commit.
    pub fn head(&self) -> Result<CommitPoint> {
        guard(|| Snapshot::read_commit(&self.transaction))
    }

    /// The digest of all rows that replicas have too. Reads all rows if the database is not published.
    pub fn digest(&self) -> Result<RowDigest> {
        guard(
            || match stored_digest(&self.transaction.open_table(META)?)? {
                Some(digest) => Ok(digest),
                None => digest_of(&self.transaction),
            },
        )
    }

    /// Whether the history contains a commit. Seq 0 is part of every history.
    pub fn holds(&self, head: Head) -> Result<bool> {
        guard(|| has_commit(&self.transaction.open_table(COMMITS)?, head))
    }

    /// The last commit of the database that a restore replaced by this one; `None` if none did.
    pub fn restored_over(&self) -> Result<Option<Head>> {
        guard(|| restored_over(&self.transaction.open_table(META)?))
    }

    /// Whether a restore replaced a database that ended with this commit, or with a later one.
    pub fn is_restored_over(&self, head: Head) -> Result<bool> {
        Ok(head.is_replaced(self.restored_over()?))
    }

    /// Describes the commits after a seq, such as `3 commits (seq 12 to 14)`. Empty if there are none.
    pub fn describe_commits_after(&self, seq: u64) -> Result<String> {
        guard(|| {
            let commits = self.transaction.open_table(COMMITS)?;
            let mut count = 0_u64;
            let mut last = seq;
            for commit in commits.range(seq.saturating_add(1)..)? {
                count += 1;
                last = commit?.0.value();
            }
            let first = seq.saturating_add(1);
            Ok(match count {
                0 => String::new(),
                1 => format!("1 commit (seq {last})"),
                _ => format!("{count} commits (seq {first} to {last})"),
            })
        })
    }

    /// The next commits after the commit `end`, oldest first, up to `max_bytes` of changes in total, but at least one.
    /// Empty if `end` is the last commit. `None` if the outbox was dropped, and lacks the next one: then a whole state
    /// must be published.
    pub fn pending_after(&self, end: Head, max_bytes: u64) -> Result<Option<Vec<CommitInfo>>> {
        guard(|| {
            let mut last = end;
            let mut bytes = 0_u64;
            let mut commits = Vec::new();
            if self.head()?.head() == end {
                return Ok(Some(commits));
            }
            let Some(outbox) = optional_table(self.transaction.open_table(OUTBOX))? else {
                return Ok(None);
            };
            while let Some(OutboxHeader { commit, .. }) = next_header(&outbox, last.seq)? {
                bytes = bytes.saturating_add(commit.bytes);
                let follows = commit.base == last && self.holds(commit.head())?;
                if !follows || (bytes > max_bytes && !commits.is_empty()) {
                    break;
                }
                last = commit.head();
                commits.push(commit);
            }
            Ok(Some(commits).filter(|commits| !commits.is_empty()))
        })
    }

    /// The encoded changes of a commit. Fails if their hash is wrong.
    pub fn changes(&self, commit: &CommitInfo) -> Result<Vec<u8>> {
        guard(|| {
            let outbox = self.transaction.open_table(OUTBOX)?;
            match next_header(&outbox, commit.last_seq.saturating_sub(1))? {
                Some(header) if header.commit == *commit => read_changes(&outbox, &header),
                _ => {
                    let detail = format!("the commit of seq {} is gone", commit.last_seq);
                    Err(StoreError::damaged("outbox", detail))
                }
            }
        })
    }

    /// Passes all rows that replicas have too to `sink`, encoded as runs. Each part has about `part_bytes` and can be
    /// applied by itself, in order. Returns the digest of the rows.
    pub fn dump<E: From<StoreError>>(
        &self,
        part_bytes: usize,
        sink: &mut dyn FnMut(Vec<u8>) -> Result<(), E>,
    ) -> Result<RowDigest, E> {
        let mut digest = RowDigest::default();
        let mut part = ChangeEncoder::default();
        guard(|| {
            for_each_row::<E>(&self.transaction, &mut |table, key, value| {
                digest.add(table, key, value);
                part.run_row(table, key, value);
                if part.len() >= part_bytes {
                    sink(std::mem::take(&mut part).finish())?;
                }
                Ok(())
            })
        })?;
        if !part.is_empty() {
            sink(part.finish())?;
        }
        Ok(digest)
    }
}

opaque_debug!(OriginView);
