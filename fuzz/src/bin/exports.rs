//! Exports as `medfeed pull` reads them. Reading stays within the limits, and a whole export has the announced records.
//!
//! The input is headers, an empty line, and the content. `{count}` and `{digest}` in a header stand for the right
//! values.
#![no_main]

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use medfeed::pull::body::ReadLimits;
use medfeed::pull::export::{Announced, Export, Hasher};
use medfeed_fuzz::seeds;

const RECORD_BYTES: usize = 600;
const EXPORT_BYTES: u64 = 2000;
const EXPORT_RECORDS: u64 = 12;

fuzz_target!(init: seeds::write_and_exit(seeds_of_exports), |input: &[u8]| {
    let Some((&[storage], input)) = input.split_first_chunk::<1>() else { return };
    let Some(end) = input.windows(2).position(|pair| pair == b"\n\n") else { return };
    let (head, content) = (&input[..end], &input[end + 2..]);
    let announced = Announced::read(&headers(head, content));
    let Ok(Some(announced)) = announced else { return };
    assert!((1..=2048).contains(&announced.token.len()), "a usable token");
    // Either any bytes, or the content in several members.
    let is_raw = storage == 0;
    let bytes = if is_raw { content.to_vec() } else { members(content, storage) };
    let limits = ReadLimits {
        record_bytes: RECORD_BYTES,
        export_bytes: EXPORT_BYTES,
        export_records: EXPORT_RECORDS,
        ..ReadLimits::default()
    };
    let (records, digest) = (announced.records, announced.digest.clone());
    let Ok(mut export) = Export::new(announced, Cursor::new(&bytes), &limits) else {
        assert!(records > EXPORT_RECORDS, "an announced number within the limit is not refused");
        return;
    };
    let (mut read, mut last_id) = (Vec::new(), 0);
    let is_whole = loop {
        match export.next_record() {
            Ok(Some(entry)) => {
                assert!(entry.id > last_id && !entry.is_removal && entry.json.len() <= RECORD_BYTES, "{entry:?}");
                assert!(!entry.json.contains(['\n', '\r', '\t']), "a record is one line");
                last_id = entry.id;
                read.push(entry.json);
                assert!(read.len() as u64 <= records, "more records than announced");
            }
            Ok(None) => break true,
            Err(error) => {
                assert!(!error.to_string().is_empty(), "an error has a message");
                break false;
            }
        }
    };
    let text: String = read.iter().map(|json| format!("{json}\n")).collect();
    assert!(text.len() as u64 <= EXPORT_BYTES, "more bytes than the limit");
    let mut hasher = Hasher::default();
    read.iter().for_each(|json| hasher.add(json.as_bytes()));
    let content_read = hasher.finish();
    assert_eq!(export.content(), content_read, "the digest is that of the records");
    if is_whole {
        assert_eq!(read.len() as u64, records, "the announced number");
        assert!(digest.is_none_or(|digest| digest == content_read), "the announced digest");
        assert!(is_raw || text.as_bytes() == content, "the records are the content");
    }
});

/// Parses the headers. Lines that are none are skipped.
fn headers(head: &[u8], content: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
    let mut hasher = Hasher::default();
    lines
        .iter()
        .for_each(|line| hasher.add(line.strip_suffix(b"\n").unwrap_or(line)));
    let sha256 = data_encoding::HEXLOWER
        .decode(hasher.finish().sha256.as_bytes())
        .expect("a digest");
    let digest = data_encoding::BASE64.encode(&sha256);
    for line in head.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let value = String::from_utf8_lossy(&line[colon + 1..])
            .trim()
            .to_owned();
        let value = value
            .replace("{count}", &lines.len().to_string())
            .replace("{digest}", &digest);
        let name = HeaderName::from_bytes(&line[..colon]);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
            headers.append(name, value);
        }
    }
    headers
}

/// The content as a number of gzip members.
fn members(content: &[u8], count: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in content.chunks(content.len().div_ceil(usize::from(count % 8) + 1).max(1)) {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(part).expect("the part is compressed");
        bytes.extend(gzip.finish().expect("the part is compressed"));
    }
    bytes
}

fn seeds_of_exports() -> Vec<Vec<u8>> {
    let fixture = seeds::fixture("journals.jsonl");
    let lines: String = fixture
        .lines()
        .skip(1)
        .take(4)
        .map(|line| format!("{line}\n"))
        .collect();
    let head =
        "x-sync-token: t0\nx-record-count: {count}\nx-records-digest: sha-256=:{digest}:\n\n";
    let small = "{\"id\":1}\n{\"id\":2,\"deleted\":false,\"a\":[1.5,null]}\n";
    let plain = "x-sync-token: t0\nx-record-count: 2\n\n";
    vec![
        format!("\x01{head}{lines}").into_bytes(),
        format!("\x03{plain}{small}").into_bytes(),
        format!(
            "\x02{plain}{}{{\"id\":2,\"deleted\":true}}\n",
            "{\"id\":1}\n"
        )
        .into_bytes(),
        [b"\0", plain.as_bytes(), &members(small.as_bytes(), 1)].concat(),
        [b"\0", plain.as_bytes(), &members(small.as_bytes(), 4)].concat(),
        format!(
            "\x01x-sync-token: t\nx-record-count: 99\nx-records-digest: sha-512=:x:\n\n{small}"
        )
        .into_bytes(),
    ]
}
