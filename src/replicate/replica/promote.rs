//! Making a replica the origin.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::log::LogReader;
use super::{Replica, ReplicaError, Result};
use crate::bucket::BucketError;
use crate::model::Head;
use crate::replicate::entry::{self, EntryHeader};
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::replicate::protocol::LastEntry;
use crate::replicate::protocol::following::{
    Link, PROMOTION_TRIES, is_in_gap, is_promoted, may_follow_promotion,
};
use crate::replicate::publisher::lock::is_same_publisher;
use crate::replicate::publisher::retry::Retry;
use crate::store::StoredCommit;
use crate::store::replication::{PublishedNote, ReplicaMark, ReplicaWriter};

/// The time limit of retries to create the entry, and to learn whether it was created.
const CREATE_TIMEOUT: Duration = Duration::from_secs(2);

/// A replica that became the origin.
#[derive(Clone, Copy, Debug)]
pub struct Promoted {
    /// The slot of the entry of the promotion.
    pub slot: u64,
    /// The last commit of the old origin that was kept.
    pub before: Head,
    /// The commit of the promotion.
    pub head: Head,
}

fn note_of(mark: &ReplicaMark, head: Head) -> PublishedNote {
    PublishedNote::new(mark.url.clone(), mark.id, mark.slot, mark.hash, head)
}

impl Replica {
    /// Makes this replica the origin. It appends an entry with a commit that skips all seqs of tokens that the old
    /// origin may have given. This fences the old origin's publisher. After a failure the file is still a replica, and
    /// can be promoted again.
    ///
    /// `since` is the replica's last seq when the promotion was requested; `who` is unique to this file.
    ///
    /// # Errors
    /// [`ReplicaError::TakenOver`] if another replica was promoted after `since` and has not published since, or
    /// between two attempts. [`ReplicaError::Overtaken`] if other publishers were first in all attempts.
    pub fn promote(
        mut self,
        since: u64,
        who: &str,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Promoted> {
        let mut since = since;
        for attempt in 0..PROMOTION_TRIES {
            self.advance_or_reload(keep_going)?;
            if let Some(commit) = self.file.writer()?.promotion_after(since)? {
                let is_last = commit.last_seq == self.file.head.seq;
                if !may_follow_promotion(attempt, is_last, self.has_promoted(&commit, who)?) {
                    return Err(ReplicaError::TakenOver {
                        who: commit.who,
                        what: commit.what,
                        at: commit.time,
                    });
                }
            }
            let before = self.file.head;
            let here = self.file.mark.clone();
            since = before.seq;
            // New replicas start from a state, and so does this file's publisher.
            self.log.check_path_to(here.slot)?;
            let (commit, changes) = self.file.writer()?.prepare_promotion(&here.url)?;
            let head = commit.head();
            let end = LastEntry {
                slot: here.slot,
                hash: here.hash,
                head: before,
            };
            let header = EntryHeader {
                commits: vec![commit],
                ..EntryHeader::after(end, here.id, who, head, commit.digest)
            };
            let name = layout::log(header.slot);
            let (bytes, hash) = entry::encode(&header, &[&changes])
                .map_err(|malformed| ReplicaError::object(&name, malformed))?;
            if !is_promoted(self.create_entry(&name, &bytes)?)
                || self.leave_gap(here.slot + 1, hash)?
            {
                continue;
            }
            let mark = ReplicaMark {
                slot: header.slot,
                hash,
                digest: commit.digest,
                ..here
            };
            let mut file = self.file;
            file.apply(&[(commit, &changes)], mark, head)?;
            // Written before the first commit. It replaces the note of an earlier database of this name. And if another
            // publisher is first, this file's publisher knows by it what was published from here.
            note_of(&file.mark, head).write(&file.path)?;
            file.promote()?;
            return Ok(Promoted {
                slot: header.slot,
                before,
                head,
            });
        }
        Err(ReplicaError::Overtaken)
    }

    /// Whether the last entry is the promotion from this file by a process that was killed. It was applied like any other.
    fn has_promoted(&self, commit: &StoredCommit, who: &str) -> Result<bool> {
        let last = self.log.entry(self.file.mark.slot)?;
        Ok(last.is_some_and(|last| {
            last.header.seq == commit.last_seq && is_same_publisher(&last.header.who, who)
        }))
    }

    /// Deletes the entry of the promotion if it is in a gap. Returns whether it was. If a request fails, the entry may stay.
    pub(super) fn leave_gap(&self, slot: u64, hash: Hash) -> Result<bool> {
        let after = self.log.entry(slot + 1).map_err(|error| match error {
            ReplicaError::Bucket(error) => ReplicaError::Unsure(error),
            error => error,
        })?;
        let is_in_gap = is_in_gap(hash, after.map(|after| Link::of(&after.header)));
        if is_in_gap {
            let deleted = self.log.bucket.delete(&layout::log(slot));
            deleted.map_err(ReplicaError::Unsure)?;
        }
        Ok(is_in_gap)
    }

    /// Makes this replica's file an independent database, whatever the log contains. A publisher then starts the log
    /// over with a whole state of it, which fences the old origin.
    ///
    /// # Errors
    /// [`ReplicaError::Store`], or the bucket holds another database or cannot be read. The file is still a replica
    /// then.
    pub fn start_over(path: &Path, log: &LogReader) -> Result<Promoted> {
        let writer = ReplicaWriter::open(path)?;
        let mark = writer.mark()?;
        let before = writer.head()?.head();
        log.check_database(mark.id)?;
        // Written first: it replaces the note of an earlier database of this name.
        note_of(&mark, before).write(path)?;
        let writer = writer.start_over(&mark.url)?;
        Ok(Promoted {
            slot: mark.slot,
            before,
            head: writer.snapshot()?.commit().head(),
        })
    }

    /// Creates an entry. Returns whether it is ours: after an error, the bytes in the bucket decide.
    fn create_entry(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let bucket = &self.log.bucket;
        let status = Arc::default();
        let retry = Retry::new(Some(Instant::now() + CREATE_TIMEOUT), &status);
        let error = match retry.create(bucket, name, bytes) {
            Ok(is_ours) => return Ok(is_ours),
            Err(error) => error,
        };
        match (bucket.get(name), error) {
            (Ok(Some(found)), _) => Ok(found.bytes == bytes),
            // No request before may have been done.
            (Ok(None), error @ BucketError::Refused(_)) if status.progress().failures == 1 => {
                Err(error.into())
            }
            (_, error) => Err(ReplicaError::Unsure(error)),
        }
    }
}
