//! What content comes to, so that two copies can be compared without laying them side by side.

use sha2::{Digest as _, Sha256};

/// What content comes to: equal content has equal digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentDigest {
    /// The number of records.
    pub records: u64,
    /// SHA-256 over the records' JSON in the order of their ids, each with a line feed behind it, in hexadecimal.
    pub sha256: String,
}

/// Computes a [`ContentDigest`].
#[derive(Clone, Debug, Default)]
pub struct Hasher {
    hash: Sha256,
    records: u64,
}

impl Hasher {
    /// Takes the next record, in the order of ids.
    pub fn add(&mut self, json: &[u8]) {
        self.hash.update(json);
        self.hash.update(b"\n");
        self.records += 1;
    }

    /// The digest of all that came.
    pub fn finish(self) -> ContentDigest {
        let sha256 = data_encoding::HEXLOWER.encode(&self.hash.finalize());
        ContentDigest { records: self.records, sha256 }
    }
}
