//! What tells a database, and a state of it, from all others: what an origin, its replicas and the bucket between them agree on.

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// A database, whatever its file: random, made when it is first published, kept by backups and restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DatabaseId(pub [u8; 16]);

impl Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

/// The last commit of a state: its last seq, and the random value that tells it from a commit of another history with that seq.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs, reason = "described above")]
pub struct Head {
    pub seq: u64,
    pub lineage: [u8; 16],
}

/// A digest of all rows: the sum, modulo 2^64 in four lanes, of the rows' BLAKE3 hashes. A change moves it by its old and new
/// rows, so it is kept up to date without reading the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowDigest(pub [u64; 4]);

/// A commit whose changes are published: as the outbox keeps it, the log tells it and replicas apply it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitInfo {
    /// Its first seq.
    pub first_seq: u64,
    /// Its last seq.
    pub last_seq: u64,
    /// The random value that tells it from a commit of another history.
    pub lineage: [u8; 16],
    /// When its writing began.
    pub time: Timestamp,
    /// The commit before it, to whose state its changes are made.
    pub base: Head,
    /// The digest of all rows after it.
    pub digest: RowDigest,
    /// The length of its encoded changes, in bytes, inflated.
    pub bytes: u64,
}

impl CommitInfo {
    /// The last commit after it.
    pub fn head(&self) -> Head {
        Head { seq: self.last_seq, lineage: self.lineage }
    }
}
