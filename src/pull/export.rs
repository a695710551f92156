//! An export as a stream of records.

use std::fmt;
use std::io::{self, BufReader, Read};

use flate2::read::MultiGzDecoder;
use http::HeaderMap;

use super::digest::{ContentDigest, Hasher};
use super::entry::{Entry, checked_token};
use super::error::PullError;
use super::limits::{Bounded, ReadLimits, TooLong, read_line};

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
    pub fn read(headers: &HeaderMap) -> Result<Option<Announced>, PullError> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let records = text("x-record-count").and_then(|count| count.parse().ok());
        let (Some(token), Some(records)) = (text("x-sync-token"), records) else { return Ok(None) };
        let token = checked_token(token.to_owned())?;
        let digest = text("x-records-digest").and_then(|field| ContentDigest::announced(records, field));
        Ok(Some(Announced { token, records, digest }))
    }
}

/// An export, read record by record.
pub struct Export<'a> {
    /// The token to continue from once all records are saved.
    pub token: String,
    /// The number of records according to the headers.
    pub records: u64,
    digest: Option<ContentDigest>,
    lines: BufReader<Bounded<MultiGzDecoder<Box<dyn Read + 'a>>>>,
    line: Vec<u8>,
    record_bytes: usize,
    received: u64,
    last_id: i64,
    hasher: Hasher,
}

impl<'a> Export<'a> {
    /// An export from its gzip bytes.
    pub fn new(announced: Announced, bytes: impl Read + 'a, limits: &ReadLimits) -> Result<Export<'a>, PullError> {
        const WHAT: &str = "the export";
        let Announced { token, records, digest } = announced;
        if records > limits.export_records {
            return Err(PullError::failed(format!(
                "the service announces an export of {records} records; at most {} are read; check the address, and report it to \
                 the service's operator",
                limits.export_records
            )));
        }
        let bytes: Box<dyn Read + 'a> = Box::new(Bounded::new(bytes, WHAT, limits.export_bytes));
        let lines = BufReader::new(Bounded::new(MultiGzDecoder::new(bytes), WHAT, limits.export_bytes));
        let (line, record_bytes, hasher) = (Vec::new(), limits.record_bytes, Hasher::default());
        Ok(Export { token, records, digest, lines, line, record_bytes, received: 0, last_id: 0, hasher })
    }

    /// The digest of the records read so far.
    pub fn content(&self) -> ContentDigest {
        self.hasher.clone().finish()
    }
}

impl fmt::Debug for Export<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Export({} of {} records)", self.received, self.records)
    }
}

impl Export<'_> {
    /// The next record, in the order of ids; `None` at the end. Checks order, count and digest against the headers.
    pub fn next_record(&mut self) -> Result<Option<Entry>, PullError> {
        let read = read_line(&mut self.lines, &mut self.line, "a record of the export", self.record_bytes);
        let length = read.map_err(broken_error)?;
        if length == 0 {
            if self.received != self.records {
                return Err(PullError::failed(format!(
                    "the export is incomplete: {} of {} records",
                    self.received, self.records
                )));
            }
            if self.digest.as_ref().is_some_and(|digest| *digest != self.content()) {
                return Err(PullError::failed(
                    "the export was changed on its way: its records do not match `X-Records-Digest`; the copy stays as it \
                     was; check any proxy between this machine and the service",
                ));
            }
            return Ok(None);
        }
        if self.received == self.records {
            return Err(PullError::failed(format!(
                "the export holds more than the {} records that `X-Record-Count` announces; the copy stays as it was; check any \
                 proxy between this machine and the service",
                self.records
            )));
        }
        let line = self.line.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
        let line = line.ok_or_else(|| PullError::failed("the export holds a line that is cut off or not UTF-8"))?;
        let entry = Entry::read(line)?;
        if entry.is_removal {
            return Err(PullError::failed(format!("the export holds a tombstone, of record {}", entry.id)));
        }
        if entry.id <= self.last_id {
            return Err(PullError::failed(format!(
                "the export is not ordered by id: {} follows {}",
                entry.id, self.last_id
            )));
        }
        self.hasher.add(line.as_bytes());
        self.last_id = entry.id;
        self.received += 1;
        Ok(Some(entry))
    }
}

/// Returns the error of a broken export. Size limits and downloads have their own errors.
fn broken_error(error: io::Error) -> PullError {
    if TooLong::is(&error) {
        return PullError::failed(error.to_string());
    }
    let own = error.downcast::<PullError>();
    own.unwrap_or_else(|error| PullError::failed(format!("the export is incomplete: {error}")))
}
