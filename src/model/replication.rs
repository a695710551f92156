//! The identity of a database, its states and its commits. Origin, bucket and replicas use these types.

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// The random id of a database. It is created at the first publishing, and kept by backups and restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseId(pub [u8; 16]);

impl Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

/// The last commit of a state: its last seq, and its lineage.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[allow(missing_docs, reason = "described above")]
pub struct Head {
    pub seq: u64,
    pub lineage: [u8; 16],
}

impl Head {
    /// Whether a restore replaced a database that ended with this commit, or with a later one. `over` is the last commit
    /// of that database, if a restore replaced one.
    pub fn is_replaced(self, over: Option<Head>) -> bool {
        over.is_some_and(|over| over == self || over.seq > self.seq)
    }
}

/// A digest of all rows: the sum of their BLAKE3 hashes, modulo 2^64 in four lanes. A commit updates it with its old
/// and new rows, without reading the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowDigest(pub [u64; 4]);

/// A published commit, as in the outbox and the log.
#[allow(missing_docs, reason = "the names explain the other fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitInfo {
    pub first_seq: u64,
    pub last_seq: u64,
    pub lineage: [u8; 16],
    /// When the commit began.
    pub time: Timestamp,
    /// The previous commit.
    pub base: Head,
    /// The digest of all rows after the commit.
    pub digest: RowDigest,
    /// The size of the encoded changes in bytes, inflated.
    pub bytes: u64,
}

impl CommitInfo {
    /// Returns the seq and lineage of this commit.
    pub fn head(&self) -> Head {
        Head {
            seq: self.last_seq,
            lineage: self.lineage,
        }
    }
}
