//! An export as a stream of records, and the digest that proves it, or compares two copies without their records.
//! And the entries of the feed and the export: records and tombstones, with the bytes of their JSON.

use std::io::{self, BufRead, BufReader, Read, Write};

use data_encoding::{BASE64, HEXLOWER};
use flate2::read::MultiGzDecoder;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::body::{ReadLimits, bounded, read_line, too_long};
use super::error::{PullError, Result};
use crate::model::Id;

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
        let base64 =
            members.find_map(|member| member.strip_prefix("sha-256=:")?.strip_suffix(':'))?;
        let hash = BASE64
            .decode(base64.as_bytes())
            .ok()
            .filter(|hash| hash.len() == Sha256::output_size())?;
        Some(ContentDigest {
            records,
            sha256: HEXLOWER.encode(&hash),
        })
    }
}

/// Computes a [`ContentDigest`]. The lines of records can be written to it.
#[derive(Clone, Default)]
pub struct Hasher {
    hash: Sha256,
    records: u64,
}

impl Hasher {
    /// Adds the next record, in the order of ids.
    pub fn add(&mut self, json: &[u8]) {
        self.add_bytes(json);
        self.add_bytes(b"\n");
    }

    /// Adds a part of the lines.
    pub fn add_bytes(&mut self, lines: &[u8]) {
        self.hash.update(lines);
        self.records += memchr::memchr_iter(b'\n', lines).count() as u64;
    }

    /// The digest of all added records.
    pub fn finish(self) -> ContentDigest {
        let sha256 = HEXLOWER.encode(&self.hash.finalize());
        ContentDigest {
            records: self.records,
            sha256,
        }
    }
}

impl Write for Hasher {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.add_bytes(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The headers of an export.
pub struct Announced {
    /// The token to continue from once all records are saved.
    pub token: String,
    /// The number of records.
    pub records: u64,
    /// The digest of the records; older services send none.
    pub digest: Option<ContentDigest>,
}

impl Announced {
    /// Parses the headers; `None` if they are not those of an export.
    pub fn read(headers: &HeaderMap) -> Result<Option<Announced>> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let records = text("x-record-count").and_then(|count| count.parse().ok());
        let (Some(token), Some(records)) = (text("x-sync-token"), records) else {
            return Ok(None);
        };
        let token = checked_token(token.to_owned())?;
        let digest =
            text("x-records-digest").and_then(|field| ContentDigest::announced(records, field));
        Ok(Some(Announced {
            token,
            records,
            digest,
        }))
    }
}

/// An export, read record by record.
pub struct Export<'a> {
    /// Its headers.
    pub announced: Announced,
    lines: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    record_bytes: usize,
    last_id: i64,
    hasher: Hasher,
}

impl<'a> Export<'a> {
    /// An export from its gzip bytes.
    pub fn new(
        announced: Announced,
        bytes: impl Read + 'a,
        limits: &ReadLimits,
    ) -> Result<Export<'a>> {
        const WHAT: &str = "the export";
        let records = announced.records;
        if records > limits.export_records {
            return Err(PullError::failed(format!(
                "the service announces an export of {records} records; at most {} are read; check the address, and report it to \
                 the service's operator",
                limits.export_records
            )));
        }
        let bytes = MultiGzDecoder::new(bounded(bytes, WHAT, limits.export_bytes));
        let lines = Box::new(BufReader::new(bounded(bytes, WHAT, limits.export_bytes)));
        Ok(Export {
            announced,
            lines,
            line: Vec::new(),
            record_bytes: limits.record_bytes,
            last_id: 0,
            hasher: Hasher::default(),
        })
    }

    /// The digest of the records read so far.
    pub fn content(&self) -> ContentDigest {
        self.hasher.clone().finish()
    }

    /// The number of records read so far.
    pub fn received(&self) -> u64 {
        self.hasher.records
    }
}

impl Export<'_> {
    /// Compares the records read with the count and the digest in the headers.
    fn check_end(&self) -> Result<()> {
        let Announced {
            records, digest, ..
        } = &self.announced;
        let received = self.received();
        if received != *records {
            return Err(PullError::failed(format!(
                "the export is incomplete: {received} of {records} records"
            )));
        }
        if digest
            .as_ref()
            .is_some_and(|digest| *digest != self.content())
        {
            return Err(PullError::failed(
                "the export was changed on its way: its records do not match `X-Records-Digest`; the copy stays as it \
                 was; check any proxy between this machine and the service",
            ));
        }
        Ok(())
    }

    /// The next record, in the order of ids; `None` at the end. Checks order, count and digest against the headers.
    pub fn next_record(&mut self) -> Result<Option<Entry>> {
        let read = read_line(
            &mut self.lines,
            &mut self.line,
            "a record of the export",
            self.record_bytes,
        );
        // Limits and downloads have their own errors.
        let read = read.map_err(|error| {
            error.downcast::<PullError>().unwrap_or_else(|error| {
                PullError::failed(format!("the export is incomplete: {error}"))
            })
        });
        let records = self.announced.records;
        if read? == 0 {
            self.check_end()?;
            return Ok(None);
        }
        if self.received() == records {
            return Err(PullError::failed(format!(
                "the export holds more than the {records} records that `X-Record-Count` announces; the copy stays as it was; check any \
                 proxy between this machine and the service"
            )));
        }
        let line = self
            .line
            .strip_suffix(b"\n")
            .and_then(|line| std::str::from_utf8(line).ok());
        let line = line.ok_or_else(|| {
            PullError::failed("the export holds a line that is cut off or not UTF-8")
        })?;
        let entry = Entry::parse(line)?;
        if entry.is_removal {
            return Err(PullError::failed(format!(
                "the export holds a tombstone, of record {}",
                entry.id
            )));
        }
        if entry.id <= self.last_id {
            return Err(PullError::failed(format!(
                "the export is not ordered by id: {} follows {}",
                entry.id, self.last_id
            )));
        }
        self.hasher.add(line.as_bytes());
        self.last_id = entry.id;
        Ok(Some(entry))
    }
}

/// The largest id.
pub const MAX_ID: i64 = Id::MAX.get().cast_signed();

/// The most entries of a page: the largest `limit` of the feed (contract, "Limits").
const MAX_ENTRIES: usize = 1000;

/// The longest sync token, in bytes. It fits into a request line.
const MAX_TOKEN_BYTES: usize = 2048;

/// A record or a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The record's id.
    pub id: i64,
    /// Whether it is a tombstone: the record was removed, or left the license.
    pub is_removal: bool,
    /// The bytes that the service sent.
    pub json: Box<str>,
}

/// A page of the change feed.
#[derive(Clone, Debug)]
pub struct FeedPage {
    /// The entries, oldest change first.
    pub entries: Vec<Entry>,
    /// Whether there are further pages.
    pub has_more: bool,
    /// The token to save with the entries, and to continue from.
    pub token: String,
}

impl Entry {
    /// Parses a record or tombstone. Rejects JSON of several lines.
    pub fn parse(json: &str) -> Result<Entry> {
        #[derive(Deserialize)]
        struct EntryHead {
            id: i64,
            #[serde(default)]
            deleted: bool,
        }
        let head: EntryHead = serde_json::from_str(json).map_err(|error| {
            PullError::failed(format!(
                "the service sent a record that cannot be read ({error})"
            ))
        })?;
        let id = head.id;
        if !(1..=MAX_ID).contains(&id) {
            return Err(PullError::failed(format!(
                "the service sent a record with the id {id}; an id is a whole number from 1 to {MAX_ID}; the copy stays as it \
                 was; report it to the service's operator"
            )));
        }
        if json.contains(['\n', '\r', '\t']) {
            return Err(PullError::failed(format!(
                "the service sent record {id} with a line break or a tab outside its texts; the lines of an export are compact \
                 JSON; the copy stays as it was; report it to the service's operator"
            )));
        }
        Ok(Entry {
            id,
            is_removal: head.deleted,
            json: json.into(),
        })
    }
}

impl FeedPage {
    /// Parses the body of a feed response. Rejects entries of more than `record_bytes`.
    pub fn parse(body: &[u8], record_bytes: usize) -> Result<FeedPage> {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            #[serde(borrow)]
            data: Vec<&'a RawValue>,
            has_more: bool,
            next_sync_token: String,
        }
        let page: Envelope<'_> = serde_json::from_slice(body).map_err(|error| {
            PullError::failed(format!(
                "the service sent a response that is not a page of the feed ({error}); check the address, and whether \
                 something in between answered, such as a proxy or a login page"
            ))
        })?;
        if page.data.len() > MAX_ENTRIES {
            return Err(PullError::failed(format!(
                "the page holds more than {MAX_ENTRIES} entries, the most that the contract allows; the copy stays as it was; \
                 report it to the service's operator"
            )));
        }
        if page.data.iter().any(|json| json.get().len() > record_bytes) {
            return Err(too_long("a record of the feed", record_bytes as u64));
        }
        let token = checked_token(page.next_sync_token)?;
        let entries = page
            .data
            .iter()
            .map(|json| Entry::parse(json.get()))
            .collect::<Result<_, _>>()?;
        Ok(FeedPage {
            entries,
            has_more: page.has_more,
            token,
        })
    }
}

/// Returns the token if it is visible ASCII of a valid length.
pub fn checked_token(token: String) -> Result<String> {
    if (1..=MAX_TOKEN_BYTES).contains(&token.len())
        && token.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Ok(token);
    }
    Err(PullError::failed(format!(
        "the service sent a sync token of {} bytes that cannot be used; a token is 1 to {MAX_TOKEN_BYTES} letters, digits and \
         signs of ASCII; the copy stays as it was; report it to the service's operator",
        token.len()
    )))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn gzip(text: &str) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    }

    /// Reads an export to its end. Returns the ids.
    fn read(announced: Announced, bytes: &[u8], limits: &ReadLimits) -> Result<Vec<i64>, String> {
        let mut export =
            Export::new(announced, bytes, limits).map_err(|error| error.to_string())?;
        let mut ids = Vec::new();
        while let Some(entry) = export.next_record().map_err(|error| error.to_string())? {
            ids.push(entry.id);
        }
        Ok(ids)
    }

    fn announced(records: u64, digest: Option<ContentDigest>) -> Announced {
        Announced {
            token: "t".to_owned(),
            records,
            digest,
        }
    }

    #[test]
    fn an_export_is_ordered_and_of_the_announced_length() {
        let line = |id: i64| format!("{{\"id\":{id}}}\n");
        let lines = |ids: &[i64]| ids.iter().map(|id| line(*id)).collect::<String>();
        type Case = (String, u64, Result<&'static [i64], &'static str>);
        let cases: [Case; 14] = cases![
            String::new(), 0, Ok(&[]);
            lines(&[1]), 1, Ok(&[1]);
            lines(&[1, 2, 9]), 3, Ok(&[1, 2, 9]);
            String::new(), 1, Err("incomplete: 0 of 1 records");
            lines(&[1, 2]), 3, Err("incomplete: 2 of 3 records");
            lines(&[1, 2]), 1, Err("more than the 1 records");
            lines(&[1]), 0, Err("more than the 0 records");
            lines(&[1, 1]), 2, Err("not ordered by id: 1 follows 1");
            lines(&[2, 1]), 2, Err("not ordered by id: 1 follows 2");
            lines(&[1, 3, 2]), 3, Err("not ordered by id: 2 follows 3");
            "{\"id\":4,\"deleted\":true}\n".to_owned(), 1, Err("holds a tombstone, of record 4");
            line(1) + "{\"id\":2}", 2, Err("cut off or not UTF-8");
            line(1) + "\n", 2, Err("cannot be read");
            line(1) + "{\"id\":2}\r\n", 2, Err("a line break or a tab");
        ];
        for (text, records, expected) in cases {
            let found = read(
                announced(records, None),
                &gzip(&text),
                &ReadLimits::default(),
            );
            match (&found, expected) {
                (Ok(ids), Ok(expected)) => assert_eq!(ids, expected),
                (Err(error), Err(part)) => assert!(error.contains(part), "{text}: {error}"),
                (found, expected) => panic!("{text}: {found:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn an_export_has_the_announced_digest() {
        let text = "{\"id\":1,\"x\":1}\n{\"id\":2}\n";
        let mut hasher = Hasher::default();
        text.lines().for_each(|line| hasher.add(line.as_bytes()));
        let digest = hasher.finish();
        let limits = ReadLimits::default();
        assert_eq!(
            read(announced(2, Some(digest.clone())), &gzip(text), &limits),
            Ok(vec![1, 2])
        );
        // Of the same length, and with the same ids.
        for other in [
            text.replace("\"x\":1", "\"x\":2"),
            text.replace("{\"id\":2}", "{\"id\":3}"),
        ] {
            let error =
                read(announced(2, Some(digest.clone())), &gzip(&other), &limits).unwrap_err();
            assert!(error.contains("was changed on its way"), "{error}");
        }
        let other = ContentDigest {
            records: 2,
            sha256: "0".repeat(64),
        };
        assert!(read(announced(2, Some(other)), &gzip(text), &limits).is_err());
    }

    #[test]
    fn exports_at_their_limits_are_read() {
        let line = |id: i64| format!("{{\"id\":{id}}}\n");
        let text: String = (1..=9).map(line).collect();
        let bytes = u64::try_from(text.len()).unwrap();
        let roomy = ReadLimits {
            export_bytes: 1 << 20,
            ..ReadLimits::default()
        };
        let cases = cases![
            ReadLimits { export_records: 9, ..roomy }, Ok(());
            ReadLimits { export_records: 8, ..roomy }, Err("announces an export of 9 records; at most 8 are read");
            ReadLimits { export_bytes: bytes, ..roomy }, Ok(());
            ReadLimits { export_bytes: bytes - 1, ..roomy }, Err("the export is longer than");
            ReadLimits { record_bytes: 8, ..roomy }, Ok(());
            ReadLimits { record_bytes: 7, ..roomy }, Err("a record of the export is longer than 7 bytes");
        ];
        for (limits, expected) in cases {
            match (read(announced(9, None), &gzip(&text), &limits), expected) {
                (Ok(ids), Ok(())) => assert_eq!(ids.len(), 9),
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (found, expected) => panic!("{found:?} instead of {expected:?}"),
            }
        }
        // The limit counts compressed bytes too: members without content.
        let empty = gzip("").repeat(100);
        let limits = ReadLimits {
            export_bytes: 1000,
            ..roomy
        };
        let told = read(announced(0, None), &empty, &limits).unwrap_err();
        assert!(told.contains("the export is longer than"));
    }

    #[test]
    fn headers_announce_an_export() {
        let sha256 = "UbxRMRNUjgYq2mKwPv6hU8riq99GsFHFUcPmKk37iM8=";
        let digest = format!("sha-256=:{sha256}:");
        let (token, count) = ("x-sync-token", "x-record-count");
        // (the headers, whether they announce one, whether with a digest)
        type Case<'a> = (&'a [(&'a str, &'a str)], bool, bool);
        let cases: [Case<'_>; 9] = cases![
            &[], false, false;
            &[(token, "t")], false, false;
            &[(count, "5")], false, false;
            &[(token, "t"), (count, "five")], false, false;
            &[(token, "t"), (count, "-5")], false, false;
            &[(token, "t"), (count, "5")], true, false;
            &[(token, "t"), (count, "5"), ("x-records-digest", &digest)], true, true;
            &[(token, "t"), (count, "5"), ("repr-digest", &digest)], true, false;
            &[(token, "t"), (count, "5"), ("x-records-digest", "sha-512=:AAAA:")], true, false;
        ];
        for (headers, is_one, has_digest) in cases {
            let header = |(name, value): &(&str, &str)| {
                (
                    HeaderName::from_bytes(name.as_bytes()).unwrap(),
                    HeaderValue::from_str(value).unwrap(),
                )
            };
            let found = Announced::read(&headers.iter().map(header).collect()).unwrap();
            let found = found.map(|found| {
                (
                    found.token,
                    found.records,
                    found.digest.map(|digest| digest.records),
                )
            });
            let expected = is_one.then(|| ("t".to_owned(), 5, has_digest.then_some(5)));
            assert_eq!(found, expected, "{headers:?}");
        }
        let long = "t".repeat(2049);
        let headers = [(token, long.as_str()), (count, "5")].map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        });
        assert!(Announced::read(&headers.into_iter().collect()).is_err());
    }

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
            assert_eq!(
                ContentDigest::announced(1, &field).as_ref() == Some(&digest),
                expected,
                "{field}"
            );
        }
    }
}

#[cfg(test)]
mod entry_tests {
    use super::*;

    const RECORD_BYTES: usize = 1000;

    #[test]
    fn a_page_keeps_the_bytes_of_its_entries() {
        let body = br#"{"data":[{"id":7,"x":1.50,"new":{"a":"\u00e9"}},{"id":8,"deleted":true,"changed_at":"x"}],"has_more":true,"next_sync_token":"t","more":1}"#;
        let page = FeedPage::parse(body, RECORD_BYTES).unwrap();
        let told: Vec<_> = page
            .entries
            .iter()
            .map(|entry| (entry.id, entry.is_removal, &*entry.json))
            .collect();
        let expected = [
            (7, false, r#"{"id":7,"x":1.50,"new":{"a":"\u00e9"}}"#),
            (8, true, r#"{"id":8,"deleted":true,"changed_at":"x"}"#),
        ];
        assert_eq!(told, expected);
        assert!(page.has_more && page.token == "t");
    }

    fn page_of(data: &str, token: &str) -> Result<FeedPage> {
        let body = format!("{{\"data\":[{data}],\"has_more\":false,\"next_sync_token\":{token}}}");
        FeedPage::parse(body.as_bytes(), RECORD_BYTES)
    }

    #[test]
    fn invalid_pages_are_refused() {
        for body in words![
            "" "<html>" "{}" r#"{"data":[{}],"has_more":false,"next_sync_token":"t"}"#
            r#"{"data":[]}"#
        ] {
            assert!(
                FeedPage::parse(body.as_bytes(), RECORD_BYTES).is_err(),
                "{body}"
            );
        }
        let long = format!("\"{}\"", "t".repeat(MAX_TOKEN_BYTES + 1));
        let [whole, longer] =
            [0, 1].map(|more| format!("{{\"id\":{}1}}", " ".repeat(RECORD_BYTES - 8 + more)));
        assert!(page_of(&whole, "\"t\"").is_ok());
        let many = vec!["{\"id\":1}"; MAX_ENTRIES + 1].join(",");
        let cases = cases![
            "{\"id\":0}", "\"t\"", "with the id 0; an id is a whole number from 1 to 9007199254740991";
            "{\"id\":-5,\"deleted\":true}", "\"t\"", "with the id -5;";
            "{\"id\":9007199254740992}", "\"t\"", "with the id 9007199254740992;";
            "{\"id\":9223372036854775808}", "\"t\"", "cannot be read";
            "{\"id\":1.5}", "\"t\"", "cannot be read";
            "{\"id\":\"1\"}", "\"t\"", "cannot be read";
            "{\"id\":1,\"id\":2}", "\"t\"", "cannot be read";
            "{\"id\":1,\"name\":\"a\nb\"}", "\"t\"", "a response that is not a page";
            &longer, "\"t\"", "a record of the feed is longer than 1000 bytes";
            &many, "\"t\"", "the page holds more than 1000 entries";
            "", "\"\"", "a sync token of 0 bytes";
            "", "\"a\\nb\"", "a sync token of 3 bytes";
            "", "\"é\"", "a sync token of 2 bytes";
            "", &long, "a sync token of 2049 bytes";
        ];
        for (data, token, message) in cases {
            let error = page_of(data, token).unwrap_err().to_string();
            assert!(error.contains(message), "{message}: {error}");
        }
        assert_eq!(
            page_of(&many[9..], &long.replacen('t', "", 1))
                .unwrap()
                .entries
                .len(),
            MAX_ENTRIES
        );
    }

    #[test]
    fn entries_are_one_line() {
        for line in ["{\"id\":\n1}", "{\"id\":1}\r", "{\"id\":\t1}"] {
            let text = Entry::parse(line).unwrap_err().to_string();
            assert!(text.contains("a line break or a tab"), "{line:?}");
        }
    }
}
