//! Exports: all visible records as one gzip-compressed file (the contract, "GET /exports/{dataset}").

use bytes::Bytes;

use crate::model::value::LinkTexts;
use crate::model::{ConferenceFields, Curated, Dataset, ExportFormat, JournalFields, RecordFields, Timestamp, flat};
use crate::query::segments::{ContentHasher, GzipMember, SegmentCache, SegmentFormat, cut, in_memory};
use crate::store::StoreError;
use crate::store::read::record_cache::RecordJson;
use crate::view::{LiveRow, View};

/// How many records are held at once: a bound on memory, not seen in the file.
const BATCH_RECORDS: usize = 4096;

/// What a record comes to, about, when it is compressed among others.
const EXPECTED_RECORD_BYTES: usize = 128;

/// A finished file.
#[derive(Debug)]
pub struct ExportFile {
    /// The file: one gzip member.
    pub gzip: Bytes,
    /// The SHA-256 of what it holds.
    pub plain_sha256: [u8; 32],
    /// How many records it holds.
    pub records: usize,
}

/// Builds the file. The member's header carries no time, so the same content gives the same bytes. What the cache has of it
/// is not compressed again.
pub fn export(view: &View<'_>, format: ExportFormat, cache: &SegmentCache) -> Result<ExportFile, StoreError> {
    match (format, view.dataset()) {
        (ExportFormat::Jsonl, _) => write(view, cache, SegmentFormat::Lines, &[], |_, json, out| {
            out.extend_from_slice(json.bytes());
            out.push(b'\n');
            Ok(())
        }),
        (ExportFormat::Csv, Dataset::Conferences) => write_csv::<ConferenceFields>(view, cache),
        (ExportFormat::Csv, Dataset::Journals) => write_csv::<JournalFields>(view, cache),
    }
}

fn write_csv<F: RecordFields>(view: &View<'_>, cache: &SegmentCache) -> Result<ExportFile, StoreError> {
    let mut head = Vec::new();
    push_head::<F>(&mut head)?;
    let references = view.references()?;
    write(view, cache, SegmentFormat::Csv, &head, |row, _, out| {
        let (record, updated_at) = view.record::<F>(row)?;
        push_record(out, &record, updated_at, &**references)
    })
}

/// Appends a record as a line of the CSV.
///
/// # Errors
/// Never, as long as there is memory.
pub fn push_record<F: RecordFields>(
    out: &mut Vec<u8>,
    record: &Curated<F>,
    updated_at: Timestamp,
    links: &dyn LinkTexts,
) -> Result<(), StoreError> {
    push_row(out, flat::record_cells(record, updated_at, links).iter().map(|cell| cell.as_bytes()))
}

/// Appends the first line of a dataset's CSV, behind the byte-order mark.
///
/// # Errors
/// Never, as long as there is memory.
pub fn push_head<F: RecordFields>(out: &mut Vec<u8>) -> Result<(), StoreError> {
    out.extend_from_slice(flat::BYTE_ORDER_MARK);
    push_row(out, flat::record_columns::<F>())
}

fn push_row(out: &mut Vec<u8>, cells: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Result<(), StoreError> {
    let mut table = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(out);
    table.write_record(cells).map_err(|error| in_memory(std::io::Error::other(error)))?;
    table.flush().map_err(in_memory)
}

/// All visible records behind a head.
fn write(
    view: &View<'_>,
    cache: &SegmentCache,
    form: SegmentFormat,
    head: &[u8],
    mut write_row: impl FnMut(&LiveRow, &RecordJson, &mut Vec<u8>) -> Result<(), StoreError>,
) -> Result<ExportFile, StoreError> {
    let rows: Vec<LiveRow> = view.list_after(0)?.collect();
    let mut hash = ContentHasher::default();
    let mut member = GzipMember::new(cache, view.feed()?, form, rows.len() * EXPECTED_RECORD_BYTES, Some(&mut hash));
    member.store(head);
    let mut first = 0;
    while first < rows.len() {
        let batch = &rows[first..rows.len().min(first + BATCH_RECORDS)];
        let records = view.record_json(batch.iter().copied())?;
        let mut ranges = cut(records.iter().map(RecordJson::hash));
        if first + batch.len() < rows.len() {
            // The last segment may go on in the next batch.
            ranges.pop();
        }
        first += ranges.last().map_or(batch.len(), |range| range.end);
        for range in ranges {
            let (rows, records) = (&batch[range.clone()], &records[range]);
            member.add(records.iter().map(RecordJson::hash), true, || {
                let mut plain = Vec::new();
                rows.iter().zip(records).try_for_each(|(row, json)| write_row(row, json, &mut plain))?;
                Ok(plain)
            })?;
        }
    }
    Ok(ExportFile { gzip: member.finish(), plain_sha256: hash.finish(), records: rows.len() })
}
