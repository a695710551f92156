//! Digests of content: they compare two copies without a transfer of the records.

use data_encoding::{BASE64, HEXLOWER};
use sha2::{Digest as _, Sha256};

/// A digest of content. Equal content has equal digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentDigest {
    /// The number of records.
    pub records: u64,
    /// SHA-256, in hexadecimal, of the records' JSON, ordered by id, each followed by a line feed.
    pub sha256: String,
}

impl ContentDigest {
    /// Parses a digest field (RFC 9530, section 2) with a member `sha-256=:BASE64:`. `None` if there is no such member.
    pub fn announced(records: u64, field: &str) -> Option<ContentDigest> {
        let mut members = field.split(',').map(str::trim);
        let base64 = members.find_map(|member| member.strip_prefix("sha-256=:")?.strip_suffix(':'))?;
        let hash = BASE64.decode(base64.as_bytes()).ok().filter(|hash| hash.len() == Sha256::output_size())?;
        Some(ContentDigest { records, sha256: HEXLOWER.encode(&hash) })
    }
}

/// Computes a [`ContentDigest`].
#[derive(Clone, Debug, Default)]
pub struct Hasher {
    hash: Sha256,
    records: u64,
}

impl Hasher {
    /// Adds the next record, in the order of ids.
    pub fn add(&mut self, json: &[u8]) {
        self.hash.update(json);
        self.hash.update(b"\n");
        self.records += 1;
    }

    /// The digest of all added records.
    pub fn finish(self) -> ContentDigest {
        let sha256 = HEXLOWER.encode(&self.hash.finalize());
        ContentDigest { records: self.records, sha256 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_digests_are_those_that_are_computed() {
        let mut hasher = Hasher::default();
        hasher.add(br#"{"id":1}"#);
        let digest = hasher.finish();
        // printf '{"id":1}\n' | openssl dgst -sha256 -binary | base64
        const BYTES: &str = "UbxRMRNUjgYq2mKwPv6hU8riq99GsFHFUcPmKk37iM8=";
        let cases = [
            (format!("sha-256=:{BYTES}:"), true),
            (format!("sha-512=:AAAA:, sha-256=:{BYTES}:"), true),
            (format!("sha-256=:{BYTES}:,md5=:AAAA:"), true),
            (format!("sha-256=:{}:", BYTES.replace("Pv6", "Pv7")), false),
            (format!("sha-256={BYTES}"), false),
            ("sha-256=:AAAA:".to_owned(), false),
            ("sha-256=:?:".to_owned(), false),
            (String::new(), false),
        ];
        for (field, expected) in cases {
            assert_eq!(ContentDigest::announced(1, &field).as_ref() == Some(&digest), expected, "{field}");
        }
    }
}
