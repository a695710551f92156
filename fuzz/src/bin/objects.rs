//! Objects of a bucket, as replicas read them. The target completes format, lengths and hash, as anybody with access to
//! the bucket could. A decoded object has one encoding, and a changed object is refused.
#![no_main]

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use libfuzzer_sys::fuzz_target;
use medfeed::bucket::{Bucket, SealKey};
use medfeed::model::{CommitInfo, DatabaseId, Head, RowDigest, Timestamp};
use medfeed::replicate::entry::{self, EntryHeader};
use medfeed::replicate::heartbeat::Heartbeat;
use medfeed::replicate::layout;
use medfeed::replicate::state::{Manifest, PartRef, decode_part, encode_part};
use medfeed::store::format::changes::{ChangeDecoder, ChangeEncoder, EncodedChange};
use medfeed_fuzz::seeds;
use tempfile::TempDir;

const FORMATS: [&str; 4] = [
    "medfeed log 2",
    "medfeed state 1",
    "medfeed part 1",
    "medfeed alive 1",
];

/// The kind of inputs that are the stored bytes of a sealed object.
const SEALED: u8 = 6;
/// The kind of inputs that are whole objects.
const WHOLE: u8 = 7;

const HASH_BYTES: usize = 32;

/// The longest inflated payload that the target compresses again.
const MAX_INFLATED: u64 = 1 << 20;

struct Sealed {
    bucket: Bucket,
    folder: TempDir,
}

thread_local! {
    static SEALED_BUCKET: Sealed = Sealed::new();
}

// The first byte is the kind, the second one says whether the payload is compressed here. Two bytes are the length of
// the header, and the last two a position for a damage.
fuzz_target!(init: seeds::write_and_exit(seeds_of_objects), |input: &[u8]| {
    let Some((&[kind, storage], rest)) = input.split_first_chunk::<2>() else { return };
    let Some((rest, &damage)) = rest.split_last_chunk::<2>() else { return };
    match kind {
        SEALED => SEALED_BUCKET.with(|sealed| sealed.refuses(rest, damage)),
        WHOLE => read_all(rest, damage),
        _ => {
            let format = FORMATS[usize::from(kind) % FORMATS.len()];
            let Some((length, rest)) = rest.split_first_chunk::<2>() else { return };
            let (header, payload) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
            let payload = if storage & 1 == 0 { payload.to_vec() } else { deflated(payload) };
            read_all(&framed(format, header, &payload), damage);
        }
    }
});

fn framed(format: &str, header: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(header.len())
        .expect("a short header")
        .to_be_bytes();
    let mut bytes = [format.as_bytes(), b"\n", &length, header, payload].concat();
    let hash = *blake3::hash(&bytes).as_bytes();
    bytes.extend_from_slice(&hash);
    bytes
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("the bytes are compressed");
    encoder.finish().expect("the bytes are compressed")
}

/// Decodes an object as each kind. It is at most one of them.
fn read_all(bytes: &[u8], damage: [u8; 2]) {
    let mut kinds = 0;
    if let Ok(read) = entry::decode(bytes) {
        kinds += 1;
        assert!(!entry::is_of_other_format(bytes), "a known format");
        let changes: Vec<&[u8]> = read.changes.iter().map(Vec::as_slice).collect();
        let (again, hash) =
            entry::encode(&read.header, &changes).expect("a decoded entry is encoded");
        // Compressed bytes have several forms. The header has one.
        let header = entry::decode(&again).expect("an encoded entry is decoded");
        assert_eq!(
            (&header.header, &header.changes),
            (&read.header, &read.changes)
        );
        assert_eq!(header.hash, hash);
        let prefix =
            FORMATS[0].len() + 5 + rmp_serde::to_vec(&read.header).expect("a header").len();
        assert_eq!(
            bytes[..prefix],
            again[..prefix],
            "a header has one encoding"
        );
        changes.iter().for_each(|changes| read_changes(changes));
    }
    if let Ok(manifest) = Manifest::decode(bytes) {
        kinds += 1;
        assert_eq!(
            manifest.encode().expect("a decoded manifest is encoded"),
            bytes,
            "a manifest has one encoding"
        );
    }
    if let Ok(alive) = Heartbeat::decode(bytes) {
        kinds += 1;
        assert_eq!(
            alive.encode().expect("a decoded heartbeat is encoded"),
            bytes
        );
    }
    if let Some(hash) = bytes.last_chunk::<HASH_BYTES>() {
        let part = |bytes| PartRef {
            name: layout::part(1, "0123456789abcdef", 0),
            hash: *hash,
            bytes,
        };
        // The announced length must be the right one, so find that first.
        let lengths = [
            0,
            u64::from(u16::from_be_bytes(damage)),
            inflated_length(bytes),
        ];
        for length in lengths {
            if let Ok(changes) = decode_part(&part(length), bytes) {
                kinds = 1;
                assert_eq!(
                    changes.len() as u64,
                    length,
                    "a part has the announced length"
                );
                read_changes(&changes);
                let (again, part) =
                    encode_part(part(length).name, &changes).expect("a decoded part is encoded");
                assert_eq!(decode_part(&part, &again).as_ref(), Ok(&changes));
                let other = PartRef {
                    bytes: length + 1,
                    ..part
                };
                assert!(
                    decode_part(&other, &again).is_err(),
                    "a part of another length is refused"
                );
            }
        }
    }
    assert!(kinds <= 1, "an object is of one kind");
    if kinds == 1 {
        refuses_damaged(bytes, damage);
    }
}

/// The length of a part's payload, inflated.
fn inflated_length(object: &[u8]) -> u64 {
    use std::io::Read;
    // Format, line feed, length of the header, header: one byte for `()`.
    let begin = FORMATS[2].len() + 1 + 4 + 1;
    let payload = object
        .get(begin..object.len().saturating_sub(HASH_BYTES))
        .unwrap_or_default();
    let mut inflated = Vec::new();
    let _ = flate2::read::ZlibDecoder::new(payload)
        .take(MAX_INFLATED)
        .read_to_end(&mut inflated);
    inflated.len() as u64
}

fn is_readable(bytes: &[u8]) -> bool {
    entry::decode(bytes).is_ok()
        || Manifest::decode(bytes).is_ok()
        || Heartbeat::decode(bytes).is_ok()
}

/// A bit flipped, a byte less, a byte more: each is refused.
fn refuses_damaged(bytes: &[u8], damage: [u8; 2]) {
    let at = usize::from(u16::from_be_bytes(damage));
    let mut flipped = bytes.to_vec();
    flipped[at / 8 % bytes.len()] ^= 1 << (at % 8);
    for changed in [
        &flipped[..],
        &bytes[..at % bytes.len()],
        &[bytes, &[damage[1]]].concat(),
    ] {
        assert!(!is_readable(changed), "a damaged object is read");
    }
}

/// Changes have one encoding.
fn read_changes(bytes: &[u8]) {
    let mut encoder = ChangeEncoder::default();
    for change in ChangeDecoder::new(bytes) {
        let Ok((table, change)) = change else { return };
        match change {
            EncodedChange::Put { key, value } => encoder.put(table, key, value),
            EncodedChange::Remove { key } => encoder.remove(table, key),
            EncodedChange::RemoveRange { first, last } => encoder.remove_range(table, first, last),
            EncodedChange::Run { rows } => {
                rows.into_iter()
                    .for_each(|(key, value)| encoder.run_row(table, key, value));
                encoder.end_run();
            }
        }
    }
    assert_eq!(encoder.finish(), bytes, "changes have one encoding");
}

impl Sealed {
    fn new() -> Sealed {
        let folder = tempfile::tempdir().expect("a folder");
        let key = folder.path().join("key");
        fs::write(
            &key,
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        )
        .expect("a key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a key");
        let url = format!("file://{}/bucket", folder.path().display())
            .parse()
            .expect("a URL");
        let bucket = Bucket::open_with(&url, Some(SealKey::load(&key).expect("a key")), &[])
            .expect("a bucket");
        bucket.prepare().expect("a folder");
        Sealed { bucket, folder }
    }

    /// Reads stored bytes that were not sealed by the key, and sealed bytes with a damage.
    fn refuses(&self, stored: &[u8], damage: [u8; 2]) {
        let name = layout::log(1);
        let path = self.folder.path().join("bucket").join(&name);
        self.bucket
            .put(&name, stored)
            .expect("the object is written");
        assert_eq!(
            self.bucket
                .get(&name)
                .expect("it is read")
                .expect("an object")
                .bytes,
            stored
        );
        let mut sealed = fs::read(&path).expect("the file is read");
        let at = usize::from(u16::from_be_bytes(damage));
        let length = sealed.len();
        sealed[at / 8 % length] ^= 1 << (at % 8);
        for wrong in [stored, &sealed, &sealed[..at % length]] {
            fs::write(&path, wrong).expect("the file is written");
            assert!(
                self.bucket.get(&name).is_err(),
                "an object that the key did not seal is read"
            );
        }
    }
}

fn seeds_of_objects() -> Vec<Vec<u8>> {
    let base = Head {
        seq: 20,
        lineage: [9; 16],
    };
    let texts: [&[u8]; 2] = [&[0, 1, 2, 7, 7, 1, 8], &[3, 2, 1, 1, 5, 1, 6, 0, 1, 3, 0]];
    let commit = |base: Head, bytes: &[u8]| CommitInfo {
        first_seq: base.seq + 1,
        last_seq: base.seq + 3,
        lineage: [3; 16],
        time: Timestamp::from_unix_s(1_780_000_000),
        base,
        digest: RowDigest([base.seq; 4]),
        bytes: bytes.len() as u64,
    };
    let first = commit(base, texts[0]);
    let second = commit(first.head(), texts[1]);
    let part = |index| PartRef {
        name: layout::part(2, "0123456789abcdef", index),
        hash: [7; 32],
        bytes: 5,
    };
    let id = DatabaseId([3; 16]);
    let who = || "ana@origin".to_owned();
    let header = EntryHeader {
        id,
        slot: 2,
        parent: [1; 32],
        schema: 3,
        who: who(),
        at: first.time,
        seq: second.last_seq,
        lineage: second.lineage,
        digest: second.digest,
        commits: vec![first, second],
    };
    let state = EntryHeader {
        commits: Vec::new(),
        ..header.clone()
    };
    let manifest = Manifest {
        id,
        slot: 2,
        entry_hash: [4; 32],
        schema: 3,
        seq: 26,
        lineage: [3; 16],
        digest: RowDigest([1; 4]),
        at: first.time,
        parts: vec![part(0), part(1)],
    };
    let alive = Heartbeat {
        id,
        slot: 2,
        hash: [2; 32],
        seq: 26,
        at: first.time,
        who: who(),
    };
    let seed = |kind: u8, header: Vec<u8>, payload: &[u8]| {
        let length = u16::try_from(header.len())
            .expect("a short header")
            .to_be_bytes();
        [
            &[kind, u8::from(!payload.is_empty())],
            &length[..],
            &header,
            payload,
            &[0, 9],
        ]
        .concat()
    };
    let encoded = |header: &EntryHeader| rmp_serde::to_vec(header).expect("a header");
    let whole = entry::encode(&header, &texts).expect("an entry").0;
    let changes = texts.concat();
    vec![
        seed(0, encoded(&header), &changes),
        seed(0, encoded(&state), &[]),
        seed(1, rmp_serde::to_vec(&manifest).expect("a header"), &[]),
        seed(2, rmp_serde::to_vec(&()).expect("a header"), &changes),
        seed(3, rmp_serde::to_vec(&alive).expect("a header"), &[]),
        [
            &[SEALED, 0],
            b"medfeed sealed 1\n".as_slice(),
            &changes,
            &[0, 200],
        ]
        .concat(),
        [&[WHOLE, 0], whole.as_slice(), &[1, 0]].concat(),
    ]
}
