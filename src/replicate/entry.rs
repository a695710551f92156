//! An entry of the log. It holds commits with their changes, or says that the log continues from a whole state.

use serde::{Deserialize, Serialize};

use super::frame::{self, Hash, MalformedObject, PAYLOAD_BYTES};
use crate::model::{CommitInfo, DatabaseId, Head, RowDigest, Timestamp, now};
use crate::store::replication::SCHEMA;

const FORMAT: &str = "medfeed log 2";

/// The header of an entry. A replica that applied the entry is at `seq`, `lineage` and `digest`.
#[allow(missing_docs, reason = "the names explain the other fields")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryHeader {
    pub id: DatabaseId,
    /// The entry's number in the log, from 1.
    pub slot: u64,
    /// The hash of the previous entry. Zeros in the first entry, and in a state that starts the log over after missing
    /// entries.
    pub parent: Hash,
    pub schema: u32,
    /// The publisher: user, machine and the random name of its file.
    pub who: String,
    /// The time of publishing, by the publisher's clock.
    pub at: Timestamp,
    /// The commits, each based on the one before it. If there are none, the log continues from the whole state of this
    /// slot: that of the last commit, or another one, as after a restore.
    pub commits: Vec<CommitInfo>,
    pub seq: u64,
    pub lineage: [u8; 16],
    pub digest: RowDigest,
}

/// An entry at the end of the log.
#[allow(missing_docs, reason = "the names explain the fields")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LastEntry {
    pub slot: u64,
    pub hash: Hash,
    pub head: Head,
}

impl LastEntry {
    /// Returns the entry with this header and hash.
    pub fn of(header: &EntryHeader, hash: Hash) -> LastEntry {
        LastEntry {
            slot: header.slot,
            hash,
            head: header.head(),
        }
    }
}

/// A decoded entry.
#[derive(Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its header.
    pub header: EntryHeader,
    /// Its hash. The next entry names it as its parent.
    pub hash: Hash,
    /// The encoded changes of each of its commits.
    pub changes: Vec<Vec<u8>>,
}

impl EntryHeader {
    /// Makes the header of the entry after `end`, without commits, of the present time.
    pub fn after(
        end: LastEntry,
        id: DatabaseId,
        who: &str,
        Head { seq, lineage }: Head,
        digest: RowDigest,
    ) -> EntryHeader {
        EntryHeader {
            id,
            slot: end.slot + 1,
            parent: end.hash,
            schema: SCHEMA,
            who: who.to_owned(),
            at: now(),
            commits: Vec::new(),
            seq,
            lineage,
            digest,
        }
    }

    /// Returns the last commit after the entry.
    pub fn head(&self) -> Head {
        Head {
            seq: self.seq,
            lineage: self.lineage,
        }
    }

    /// Whether the log continues from the whole state of this slot.
    pub fn is_state(&self) -> bool {
        self.commits.is_empty()
    }

    /// Whether rows of the commit `head` with this digest must be replaced by the whole state of this slot.
    pub fn replaces(&self, head: Head, digest: RowDigest) -> bool {
        self.is_state() && (self.head(), self.digest) != (head, digest)
    }

    /// Whether the entry starts the log over: a state without a parent, after missing entries.
    pub fn starts_over(&self) -> bool {
        self.slot > 1 && self.parent == Hash::default() && self.is_state()
    }

    /// Checks the header's invariants; returns the byte count of all changes.
    fn check_itself(&self) -> Result<u64, MalformedObject> {
        let follows_nothing = self.parent == Hash::default();
        if self.slot == 0 || (self.slot == 1) != follows_nothing && !self.starts_over() {
            return Err(MalformedObject::new(format!(
                "slot {} does not fit the hash of the entry before it",
                self.slot
            )));
        }
        let Some(first) = self.commits.first() else {
            return Ok(0);
        };
        let mut total = 0_u64;
        let mut base = first.base;
        for commit in &self.commits {
            let is_next = commit.base == base
                && base.seq < commit.first_seq
                && commit.first_seq <= commit.last_seq;
            if !is_next {
                return Err(MalformedObject::new(format!(
                    "its commit of seq {} does not follow",
                    commit.last_seq
                )));
            }
            base = commit.head();
            total = total.saturating_add(commit.bytes);
        }
        let digest = self.commits.last().map(|last| last.digest);
        if base != self.head() || digest != Some(self.digest) {
            return Err(MalformedObject::new(
                "its last commit is not the one that its header names",
            ));
        }
        if total > PAYLOAD_BYTES {
            return Err(MalformedObject::new(format!(
                "its changes have {total} bytes, more than an entry may hold"
            )));
        }
        Ok(total)
    }
}

/// Returns the encoded entry and its hash. `changes` has one item per commit, and none for a state.
///
/// # Errors
/// [`MalformedObject`] if [`decode`] would reject the result.
pub fn encode(header: &EntryHeader, changes: &[&[u8]]) -> Result<(Vec<u8>, Hash), MalformedObject> {
    header.check_itself()?;
    let lengths = changes.iter().map(|text| text.len() as u64);
    if !lengths.eq(header.commits.iter().map(|commit| commit.bytes)) {
        return Err(MalformedObject::new(
            "the changes are not those of the commits",
        ));
    }
    let payload = if header.is_state() {
        Vec::new()
    } else {
        frame::deflate(changes)?
    };
    frame::encode(FORMAT, header, &payload)
}

/// Decodes an entry. Only bytes that [`encode`] can produce are accepted.
pub fn decode(bytes: &[u8]) -> Result<LogEntry, MalformedObject> {
    let (header, payload, hash): (EntryHeader, _, _) = frame::decode(FORMAT, bytes)?;
    let total = header.check_itself()?;
    let inflated = match payload {
        [] if header.is_state() => Vec::new(),
        _ if header.is_state() => {
            return Err(MalformedObject::new("it holds changes without commits"));
        }
        deflated => frame::inflate(deflated, total)?,
    };
    let mut rest = inflated.as_slice();
    let mut changes = Vec::with_capacity(header.commits.len());
    for commit in &header.commits {
        let split = usize::try_from(commit.bytes)
            .ok()
            .and_then(|bytes| rest.split_at_checked(bytes));
        let (own, others) =
            split.ok_or_else(|| MalformedObject::new("its changes are cut short"))?;
        changes.push(own.to_vec());
        rest = others;
    }
    Ok(LogEntry {
        header,
        hash,
        changes,
    })
}

/// Whether bytes are an entry in an unknown format.
pub fn is_of_other_format(bytes: &[u8]) -> bool {
    frame::is_of_other_format(FORMAT, bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;

    use super::*;

    fn header(slot: u64, changes: &[Vec<u8>]) -> EntryHeader {
        let mut base = Head {
            seq: slot * 100,
            lineage: [9; 16],
        };
        let commits: Vec<CommitInfo> = (1..)
            .zip(changes)
            .map(|(number, changes)| {
                let commit = CommitInfo {
                    first_seq: base.seq + 1,
                    last_seq: base.seq + number,
                    lineage: [u8::try_from(number).unwrap(); 16],
                    time: Timestamp::from_unix_s(1_700_000_000),
                    base,
                    digest: RowDigest([number, 0, u64::MAX, slot]),
                    bytes: changes.len() as u64,
                };
                base = commit.head();
                commit
            })
            .collect();
        EntryHeader {
            id: DatabaseId([3; 16]),
            slot,
            parent: if slot == 1 { [0; 32] } else { [1; 32] },
            schema: 2,
            who: "ana@origin".to_owned(),
            at: Timestamp::from_unix_s(1_700_000_001),
            seq: base.seq,
            lineage: base.lineage,
            digest: commits.last().map_or(RowDigest([4; 4]), |last| last.digest),
            commits,
        }
    }

    fn encoded(header: &EntryHeader, changes: &[Vec<u8>]) -> (Vec<u8>, Hash) {
        encode(
            header,
            &changes.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        )
        .unwrap()
    }

    /// Changes of some commits, or none for a state.
    fn some_changes() -> impl Strategy<Value = (u64, Vec<Vec<u8>>)> {
        let text = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            Just(vec![5; 5_000])
        ];
        (1..5_u64, proptest::collection::vec(text, 0..5))
    }

    proptest! {
        #[test]
        fn entries_round_trip((slot, changes) in some_changes()) {
            let header = header(slot, &changes);
            let (bytes, hash) = encoded(&header, &changes);
            prop_assert_eq!(&encoded(&header, &changes).0, &bytes, "the same bytes each time");
            let entry = decode(&bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(&entry, &LogEntry { header, hash, changes });
        }

        #[test]
        fn other_bytes_are_rejected((slot, changes) in some_changes(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let (bytes, _) = encoded(&header(slot, &changes), &changes);
            let at = at.index(bytes.len());
            let mut flipped = bytes.clone();
            flipped[at] ^= 1_u8 << bit;
            prop_assert!(decode(&flipped).is_err(), "bit {bit} of byte {at}");
            prop_assert!(decode(&bytes[..at]).is_err(), "cut at {at}");
            prop_assert!(decode(&[&bytes[..], &[0]].concat()).is_err(), "a byte more");
        }

        /// Not even with a correct hash. Anybody with write access to the bucket can compute one.
        #[test]
        fn changed_bytes_with_a_correct_hash_cause_no_panic((slot, changes) in some_changes(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let (mut bytes, _) = encoded(&header(slot, &changes), &changes);
            let end = bytes.len() - 32;
            let at = at.index(end);
            bytes[at] = byte;
            let hash = *blake3::hash(&bytes[..end]).as_bytes();
            bytes[end..].copy_from_slice(&hash);
            if let Ok(entry) = decode(&bytes) {
                let again = encoded(&entry.header, &entry.changes).0;
                let header_end = FORMAT.len() + 5 + rmp_serde::to_vec(&entry.header).unwrap().len();
                prop_assert_eq!(&again[..header_end], &bytes[..header_end], "a header is written in one way");
            }
        }
    }

    #[test]
    fn wrong_headers_are_refused() {
        type Wrong = fn(&mut EntryHeader);
        let cases: [(&str, Wrong); 12] = cases![
            "slot 0 does not fit", |header| header.slot = 0;
            "slot 1 does not fit", |header| header.slot = 1;
            "slot 2 does not fit", |header| header.parent = [0; 32];
            "changes without commits", |header| header.commits.clear();
            "does not follow", |header| { header.commits[1].base.lineage[0] ^= 1 };
            "does not follow", |header| { header.commits[0].first_seq = 200 };
            "does not follow", |header| { header.commits[1].first_seq = header.commits[1].last_seq + 1 };
            "is not the one", |header| header.seq += 1;
            "is not the one", |header| header.lineage[0] ^= 1;
            "is not the one", |header| header.digest.0[0] ^= 1;
            "more than an entry may hold", |header| { header.commits[0].bytes = u64::MAX };
            "that it announces", |header| { header.commits[0].bytes = PAYLOAD_BYTES - 100 };
        ];
        let changes = [b"first".to_vec(), b"second".to_vec()];
        for (expected, make_wrong) in cases {
            let mut wrong = header(2, &changes);
            make_wrong(&mut wrong);
            let payload = frame::deflate(&[b"firstsecond"]).unwrap();
            let (bytes, _) = frame::encode(FORMAT, &wrong, &payload).unwrap();
            let refused = decode(&bytes).unwrap_err().to_string();
            assert!(refused.contains(expected), "{expected}: {refused}");
            assert!(
                encode(&wrong, &[b"first", b"second"]).is_err(),
                "{expected}"
            );
        }
        for (expected, length, payload) in cases![
            "as many bytes as it announces", 11, frame::deflate(&[b"firstsecon"]).unwrap();
            "as many bytes as it announces", 11, frame::deflate(&[b"firstsecond!"]).unwrap();
            "as many bytes as it announces", 11, [frame::deflate(&[b"firstsecond"]).unwrap(), vec![0]].concat();
            "cannot be inflated", 11, b"firstsecond".to_vec();
            "that it announces", 11, Vec::new();
        ] {
            let sound = header(2, &changes);
            assert_eq!(
                sound.commits.iter().map(|commit| commit.bytes).sum::<u64>(),
                length
            );
            let refused = decode(&frame::encode(FORMAT, &sound, &payload).unwrap().0)
                .unwrap_err()
                .to_string();
            assert!(refused.contains(expected), "{expected}: {refused}");
        }
        // Format 20 begins like format 2.
        for format in ["medfeed log 1", "medfeed log 20"] {
            let (other, _) = frame::encode(format, &header(2, &changes), b"").unwrap();
            let refused = decode(&other).unwrap_err().to_string();
            assert!(is_of_other_format(&other), "{format}: {refused}");
            assert!(refused.contains("a newer one"), "{format}: {refused}");
        }
        let text = decode(b"<html>").unwrap_err().to_string();
        assert!(text.contains("not an object of this kind"));
    }
}
