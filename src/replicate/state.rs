//! A whole state: a manifest and the parts that it names. Together the parts hold all rows.

use serde::{Deserialize, Serialize};

use super::frame::{self, Hash, MalformedObject, PAYLOAD_BYTES};
use super::layout::parse_part;
use crate::model::{DatabaseId, Head, RowDigest, Timestamp};

const FORMAT: &str = "medfeed state 1";
const PART_FORMAT: &str = "medfeed part 1";

/// A reference to a part of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRef {
    /// Its name in the bucket.
    pub name: String,
    /// The hash of the part before sealing.
    pub hash: Hash,
    /// The size of its encoded changes, inflated.
    pub bytes: u64,
}

/// The manifest of a state: it names the parts.
#[allow(missing_docs, reason = "the names explain the other fields")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub id: DatabaseId,
    /// The slot after which the state is.
    pub slot: u64,
    /// The hash of the log entry in that slot.
    pub entry_hash: Hash,
    pub schema: u32,
    pub seq: u64,
    pub lineage: [u8; 16],
    pub digest: RowDigest,
    /// The time of writing, by the publisher's clock.
    pub at: Timestamp,
    pub parts: Vec<PartRef>,
}

impl Manifest {
    /// Returns the last commit of the state.
    pub fn head(&self) -> Head {
        Head {
            seq: self.seq,
            lineage: self.lineage,
        }
    }

    /// Returns the encoded manifest.
    pub fn encode(&self) -> Result<Vec<u8>, MalformedObject> {
        check_parts(self.slot, &self.parts)?;
        Ok(frame::encode(FORMAT, self, &[])?.0)
    }

    /// Decodes a manifest. Only bytes that [`Manifest::encode`] can produce are accepted.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, MalformedObject> {
        let manifest: Manifest = frame::decode_header(FORMAT, bytes)?;
        check_parts(manifest.slot, &manifest.parts)?;
        Ok(manifest)
    }
}

/// Fails unless the parts are complete, in order, and of one attempt to write the state after `slot`.
fn check_parts(slot: u64, parts: &[PartRef]) -> Result<(), MalformedObject> {
    let first = parts.first().and_then(|part| parse_part(&part.name));
    for (at, part) in parts.iter().enumerate() {
        let expected = first.map(|(_, random, _)| (slot, random, at));
        if parse_part(&part.name) != expected || part.bytes > PAYLOAD_BYTES {
            return Err(MalformedObject::new(format!(
                "{:?} cannot be part {at} of the state after slot {slot}",
                part.name
            )));
        }
    }
    Ok(())
}

/// Returns an encoded part and the reference to it. `changes` are encoded changes.
pub fn encode_part(name: String, changes: &[u8]) -> Result<(Vec<u8>, PartRef), MalformedObject> {
    let bytes = changes.len() as u64;
    if bytes > PAYLOAD_BYTES {
        return Err(MalformedObject::new(format!(
            "{bytes} bytes are too many for a part"
        )));
    }
    let (encoded, hash) = frame::encode(PART_FORMAT, &(), &frame::deflate(&[changes])?)?;
    Ok((encoded, PartRef { name, hash, bytes }))
}

/// Returns the encoded changes of a part, after a check of hash and size.
pub fn decode_part(part: &PartRef, bytes: &[u8]) -> Result<Vec<u8>, MalformedObject> {
    let ((), payload, hash) = frame::decode(PART_FORMAT, bytes)?;
    if hash != part.hash {
        return Err(MalformedObject::new(
            "it is another part than the manifest names",
        ));
    }
    frame::inflate(payload, part.bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;

    use super::*;
    use crate::replicate::layout;

    const RANDOM: &str = "0123456789abcdef";

    fn manifest(slot: u64, texts: &[Vec<u8>]) -> (Manifest, Vec<Vec<u8>>) {
        let encode = |(at, text): (usize, &Vec<u8>)| {
            encode_part(layout::part(slot, RANDOM, at), text).unwrap()
        };
        let (stored, parts) = texts.iter().enumerate().map(encode).unzip();
        let manifest = Manifest {
            id: DatabaseId([3; 16]),
            slot,
            entry_hash: [4; 32],
            schema: 2,
            seq: 17,
            lineage: [5; 16],
            digest: RowDigest([1, 2, 3, u64::MAX]),
            at: Timestamp::from_unix_s(1_700_000_000),
            parts,
        };
        (manifest, stored)
    }

    fn some_texts() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let text = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            Just(vec![5; 5_000])
        ];
        proptest::collection::vec(text, 0..4)
    }

    proptest! {
        #[test]
        fn states_round_trip(texts in some_texts(), slot in 1..5_u64) {
            let (manifest, stored) = manifest(slot, &texts);
            let bytes = manifest.encode().unwrap();
            let read = Manifest::decode(&bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(&read, &manifest);
            for ((part, stored), text) in manifest.parts.iter().zip(&stored).zip(&texts) {
                prop_assert_eq!(&decode_part(part, stored), &Ok(text.clone()));
            }
        }
    }

    #[test]
    fn wrong_parts_are_refused() {
        type Wrong = fn(&mut Vec<PartRef>);
        let cases: [(&str, Wrong); 7] = cases![
            "one is missing", |parts| drop(parts.remove(0));
            "swapped", |parts| parts.swap(0, 1);
            "of another slot", |parts| { parts[1].name = layout::part(3, RANDOM, 1) };
            "of another try", |parts| { parts[1].name = layout::part(2, "f123456789abcdef", 1) };
            "another object", |parts| parts[0].name = layout::log(2);
            "a way out", |parts| { parts[0].name = "../../etc/passwd".to_owned() };
            "too large", |parts| parts[0].bytes = PAYLOAD_BYTES + 1;
        ];
        let texts = [b"first".to_vec(), b"second".to_vec()];
        for (what, make_wrong) in cases {
            let (mut wrong, _) = manifest(2, &texts);
            make_wrong(&mut wrong.parts);
            assert!(wrong.encode().is_err(), "{what}");
            let (bytes, _) = frame::encode(FORMAT, &wrong, &[]).unwrap();
            assert!(Manifest::decode(&bytes).is_err(), "{what}");
        }
        let (sound, stored) = manifest(2, &texts);
        assert!(
            decode_part(&sound.parts[0], &stored[1]).is_err(),
            "another part"
        );
        for bytes in [0, 4, 6, PAYLOAD_BYTES] {
            let part = PartRef {
                bytes,
                ..sound.parts[0].clone()
            };
            assert!(decode_part(&part, &stored[0]).is_err(), "{bytes} bytes");
        }
        // The largest part, and the densest one, are sound.
        let mut largest = sound.clone();
        largest.parts[0].bytes = PAYLOAD_BYTES;
        assert!(Manifest::decode(&largest.encode().unwrap()).is_ok());
        let zeros = vec![0; 4 << 20];
        let (encoded, part) = encode_part(layout::part(2, RANDOM, 0), &zeros).unwrap();
        assert!(encoded.len() < zeros.len() / 1000 && decode_part(&part, &encoded) == Ok(zeros));
        let (bytes, _) = frame::encode(FORMAT, &sound, b"x").unwrap();
        assert!(Manifest::decode(&bytes).is_err(), "more than a manifest");
    }
}
