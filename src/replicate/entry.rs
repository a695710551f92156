//! An entry of the log: commits with their changes, or the parts of a whole state in their place.

use serde::{Deserialize, Serialize};

use super::frame::{self, Hash, Malformed, Misplaced, PAYLOAD_BYTES};
use super::state::{PartRef, check_parts};
use crate::model::{CommitInfo, DatabaseId, Head, RowDigest, Timestamp};

const MARK: &str = "medfeed log 1";

/// What an entry says of itself. After it, a replica stands at `seq`, `lineage` and `digest`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The database.
    pub id: DatabaseId,
    /// The entry's number in the log, from 1.
    pub slot: u64,
    /// The hash of the previous entry; zeros in the first, and in a state that starts the log over where entries are missing.
    pub parent: Hash,
    /// The schema of the database's rows.
    pub schema: u32,
    /// Who published it: user and machine.
    pub who: String,
    /// When it was published, by the publisher's clock.
    pub at: Timestamp,
    /// The commits, each based on the one before it; none when a state takes their place.
    pub commits: Vec<CommitInfo>,
    /// The last seq after it.
    pub seq: u64,
    /// The lineage of the last commit after it.
    pub lineage: [u8; 16],
    /// The digest of all rows after it.
    pub digest: RowDigest,
    /// The parts of the whole state after it, instead of commits.
    pub state: Option<Vec<PartRef>>,
}

/// An entry as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it says of itself.
    pub header: Header,
    /// Its hash, which the next entry names as its parent.
    pub hash: Hash,
    /// The encoded changes of each of its commits.
    pub changes: Vec<Vec<u8>>,
}

impl Header {
    /// The last commit after the entry.
    pub fn head(&self) -> Head {
        Head { seq: self.seq, lineage: self.lineage }
    }

    /// Whether the entry starts the log over: a state without a parent, after missing entries.
    pub fn starts_over(&self) -> bool {
        self.slot > 1 && self.parent == Hash::default() && self.state.is_some()
    }

    /// Fails unless the entry is of this slot and database.
    ///
    /// # Errors
    /// [`Misplaced`].
    pub fn check(&self, slot: u64, id: DatabaseId) -> Result<(), Misplaced> {
        frame::check_place((self.slot, self.id), slot, id)
    }

    /// Checks what must hold within a header; returns how many bytes all changes have.
    fn check_itself(&self) -> Result<u64, Malformed> {
        let follows_nothing = self.parent == Hash::default();
        if self.slot == 0 || (self.slot == 1) != follows_nothing && !self.starts_over() {
            return Err(Malformed::new(format!("slot {} does not fit the hash of the entry before it", self.slot)));
        }
        let mut commits = self.commits.iter();
        let (Some(first), None) = (commits.next(), &self.state) else {
            return match &self.state {
                Some(parts) if self.commits.is_empty() => check_parts(self.slot, parts).map(|()| 0),
                Some(_) => Err(Malformed::new("it holds commits and a state")),
                None => Err(Malformed::new("it holds neither commits nor a state")),
            };
        };
        let mut total = 0_u64;
        let mut base = first.base;
        for commit in &self.commits {
            let is_next = commit.base == base && base.seq < commit.first_seq && commit.first_seq <= commit.last_seq;
            if !is_next {
                return Err(Malformed::new(format!("its commit of seq {} does not follow", commit.last_seq)));
            }
            base = Head { seq: commit.last_seq, lineage: commit.lineage };
            total = total.saturating_add(commit.bytes);
        }
        let digest = self.commits.last().map(|last| last.digest);
        if base != self.head() || digest != Some(self.digest) {
            return Err(Malformed::new("its last commit is not the one that it says it ends with"));
        }
        if total > PAYLOAD_BYTES {
            return Err(Malformed::new(format!("its changes have {total} bytes, more than an entry may hold")));
        }
        Ok(total)
    }
}

/// The bytes of an entry and their hash. `changes` are those of each commit, in order; none for a state.
///
/// # Errors
/// [`Malformed`] when they are not as [`decode`] would take them.
pub fn encode(header: &Header, changes: &[&[u8]]) -> Result<(Vec<u8>, Hash), Malformed> {
    header.check_itself()?;
    let lengths = changes.iter().map(|text| u64::try_from(text.len()).unwrap_or(u64::MAX));
    if !lengths.eq(header.commits.iter().map(|commit| commit.bytes)) {
        return Err(Malformed::new("the changes are not those of the commits"));
    }
    let payload = if header.state.is_some() { Vec::new() } else { frame::deflate(changes)? };
    frame::encode(MARK, header, &payload)
}

/// Reads an entry.
///
/// # Errors
/// [`Malformed`] for what [`encode`] does not make.
pub fn decode(bytes: &[u8]) -> Result<Entry, Malformed> {
    let (header, payload, hash): (Header, _, _) = frame::decode(MARK, bytes)?;
    let total = header.check_itself()?;
    if header.state.is_some() {
        return match payload {
            [] => Ok(Entry { header, hash, changes: Vec::new() }),
            _ => Err(Malformed::new("it holds changes and a state")),
        };
    }
    let inflated = frame::inflate(payload, total)?;
    let mut rest = inflated.as_slice();
    let mut changes = Vec::with_capacity(header.commits.len());
    for commit in &header.commits {
        let split = usize::try_from(commit.bytes).ok().and_then(|bytes| rest.split_at_checked(bytes));
        let (own, others) = split.ok_or_else(|| Malformed::new("its changes are cut short"))?;
        changes.push(own.to_vec());
        rest = others;
    }
    Ok(Entry { header, hash, changes })
}

/// Whether bytes are an entry in a format that this program does not know.
pub fn is_of_other_format(bytes: &[u8]) -> bool {
    frame::is_of_other_format(MARK, bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;

    use super::*;
    use crate::replicate::layout;

    /// An entry of some commits with these changes.
    fn header(slot: u64, changes: &[Vec<u8>]) -> Header {
        let mut base = Head { seq: slot * 100, lineage: [9; 16] };
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
                base = Head { seq: commit.last_seq, lineage: commit.lineage };
                commit
            })
            .collect();
        Header {
            id: DatabaseId([3; 16]),
            slot,
            parent: if slot == 1 { [0; 32] } else { [1; 32] },
            schema: 2,
            who: "ana@origin".to_owned(),
            at: Timestamp::from_unix_s(1_700_000_001),
            seq: base.seq,
            lineage: base.lineage,
            digest: commits.last().map_or(RowDigest([4; 4]), |last| last.digest),
            state: changes.is_empty().then(|| parts(slot)),
            commits,
        }
    }

    fn parts(slot: u64) -> Vec<PartRef> {
        let part = |index| PartRef { name: layout::part(slot, "0123456789abcdef", index), hash: [7; 32], bytes: 5 };
        (0..3).map(part).collect()
    }

    fn encoded(header: &Header, changes: &[Vec<u8>]) -> (Vec<u8>, Hash) {
        encode(header, &changes.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap()
    }

    /// Some commits, or none for a state.
    fn some_changes() -> impl Strategy<Value = (u64, Vec<Vec<u8>>)> {
        let text = prop_oneof![proptest::collection::vec(any::<u8>(), 0..200), Just(vec![5; 5_000])];
        (1..5_u64, proptest::collection::vec(text, 0..5))
    }

    proptest! {
        #[test]
        fn entries_come_back((slot, changes) in some_changes()) {
            let header = header(slot, &changes);
            let (bytes, hash) = encoded(&header, &changes);
            prop_assert_eq!(&encoded(&header, &changes).0, &bytes, "the same bytes each time");
            let id = header.id;
            let entry = decode(&bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(&entry, &Entry { header, hash, changes });
            prop_assert_eq!(entry.header.check(slot, id), Ok(()));
            prop_assert_eq!(entry.header.check(slot + 1, id), Err(Misplaced::Slot(slot)));
            prop_assert_eq!(entry.header.check(slot, DatabaseId([8; 16])), Err(Misplaced::Database(id)));
        }

        #[test]
        fn nothing_else_is_taken((slot, changes) in some_changes(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let (bytes, _) = encoded(&header(slot, &changes), &changes);
            let at = at.index(bytes.len());
            let mut flipped = bytes.clone();
            flipped[at] ^= 1_u8 << bit;
            prop_assert!(decode(&flipped).is_err(), "bit {bit} of byte {at}");
            prop_assert!(decode(&bytes[..at]).is_err(), "cut at {at}");
            prop_assert!(decode(&[&bytes[..], &[0]].concat()).is_err(), "a byte more");
        }

        /// Also behind a right hash, which whoever may write to the bucket can make.
        #[test]
        fn nothing_panics((slot, changes) in some_changes(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let (mut bytes, _) = encoded(&header(slot, &changes), &changes);
            let end = bytes.len() - 32;
            let at = at.index(end);
            bytes[at] = byte;
            let hash = *blake3::hash(&bytes[..end]).as_bytes();
            bytes[end..].copy_from_slice(&hash);
            if let Ok(entry) = decode(&bytes) {
                let again = encoded(&entry.header, &entry.changes).0;
                let mark = MARK.len() + 5;
                let header_end = mark + rmp_serde::to_vec(&entry.header).unwrap().len();
                prop_assert_eq!(&again[..header_end], &bytes[..header_end], "a header is written in one way");
            }
        }
    }

    #[test]
    fn wrong_headers_are_refused() {
        type Wrong = fn(&mut Header);
        let cases: [(&str, Wrong); 13] = [
            ("slot 0 does not fit", |header| header.slot = 0),
            ("slot 1 does not fit", |header| header.slot = 1),
            ("slot 2 does not fit", |header| header.parent = [0; 32]),
            ("neither commits nor a state", |header| header.commits.clear()),
            ("commits and a state", |header| header.state = Some(parts(2))),
            ("does not follow", |header| header.commits[1].base.lineage[0] ^= 1),
            ("does not follow", |header| header.commits[0].first_seq = 200),
            ("does not follow", |header| header.commits[1].first_seq = header.commits[1].last_seq + 1),
            ("is not the one", |header| header.seq += 1),
            ("is not the one", |header| header.lineage[0] ^= 1),
            ("is not the one", |header| header.digest.0[0] ^= 1),
            ("more than an entry may hold", |header| header.commits[0].bytes = u64::MAX),
            ("which it cannot", |header| header.commits[0].bytes = PAYLOAD_BYTES - 100),
        ];
        let changes = [b"first".to_vec(), b"second".to_vec()];
        for (expected, make_wrong) in cases {
            let mut wrong = header(2, &changes);
            make_wrong(&mut wrong);
            let payload = frame::deflate(&[b"firstsecond"]).unwrap();
            let (bytes, _) = frame::encode(MARK, &wrong, &payload).unwrap();
            let refused = decode(&bytes).unwrap_err().to_string();
            assert!(refused.contains(expected), "{expected}: {refused}");
            assert!(encode(&wrong, &[b"first", b"second"]).is_err(), "{expected}");
        }
        for (expected, length, payload) in [
            ("as many bytes as it says", 11, frame::deflate(&[b"firstsecon"]).unwrap()),
            ("as many bytes as it says", 11, frame::deflate(&[b"firstsecond!"]).unwrap()),
            ("as many bytes as it says", 11, [frame::deflate(&[b"firstsecond"]).unwrap(), vec![0]].concat()),
            ("cannot be inflated", 11, b"firstsecond".to_vec()),
            ("which it cannot", 11, Vec::new()),
        ] {
            let sound = header(2, &changes);
            assert_eq!(sound.commits.iter().map(|commit| commit.bytes).sum::<u64>(), length);
            let refused = decode(&frame::encode(MARK, &sound, &payload).unwrap().0).unwrap_err().to_string();
            assert!(refused.contains(expected), "{expected}: {refused}");
        }
        let refused = decode(&frame::encode("medfeed log 2", &header(2, &changes), b"").unwrap().0).unwrap_err();
        assert!(refused.to_string().contains("a newer one"), "{refused}");
        assert!(decode(b"<html>").unwrap_err().to_string().contains("no object of this kind"));
    }
}
