//! Exports: all visible records as one gzip-compressed file (the contract, "GET /exports/{dataset}").

use bytes::Bytes;

use crate::model::value::LinkTexts;
use crate::model::{ConferenceFields, Curated, Dataset, ExportFormat, JournalFields, RecordFields, Timestamp, flat};
use crate::query::segments::{ContentHasher, GzipMember, SegmentCache, SegmentFormat, in_memory, segment_ranges};
use crate::store::StoreError;
use crate::store::read::record_cache::RecordJson;
use crate::view::{LiveRow, View};

/// The number of records in memory at once. It has no effect on the file.
const BATCH_RECORDS: usize = 4096;

/// The approximate compressed size of a record.
const EXPECTED_RECORD_BYTES: usize = 128;

/// A finished file.
#[derive(Debug)]
pub struct ExportFile {
    /// The gzip-compressed content.
    pub gzip: Bytes,
    /// The SHA-256 of the uncompressed content.
    pub plain_sha256: [u8; 32],
    /// The number of records.
    pub records: usize,
}

/// Builds the file. Equal content gives equal bytes: the gzip header has no timestamp. Cached segments are reused.
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
    push_header::<F>(&mut head)?;
    let references = view.references()?;
    write(view, cache, SegmentFormat::Csv, &head, |row, _, out| {
        let (record, updated_at) = view.record::<F>(row)?;
        push_record(out, &record, updated_at, &**references)
    })
}

/// Appends a record as a CSV line. Fails only when memory runs out.
pub fn push_record<F: RecordFields>(
    out: &mut Vec<u8>,
    record: &Curated<F>,
    updated_at: Timestamp,
    links: &dyn LinkTexts,
) -> Result<(), StoreError> {
    flat::write_row(out, flat::record_cells(record, updated_at, links)).map_err(in_memory)
}

/// Appends a byte-order mark and the CSV header. Fails only when memory runs out.
pub fn push_header<F: RecordFields>(out: &mut Vec<u8>) -> Result<(), StoreError> {
    out.extend_from_slice(flat::BYTE_ORDER_MARK);
    flat::write_row(out, flat::record_columns::<F>()).map_err(in_memory)
}

/// Writes `head` and then all visible records.
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
    member.push_stored(head);
    let mut first = 0;
    while first < rows.len() {
        let batch = &rows[first..rows.len().min(first + BATCH_RECORDS)];
        let records = view.record_json(batch.iter().copied())?;
        let mut ranges = segment_ranges(records.iter().map(RecordJson::hash));
        if first + batch.len() < rows.len() {
            // The next batch may continue the last segment.
            ranges.pop();
        }
        first += ranges.last().map_or(batch.len(), |range| range.end);
        for range in ranges {
            let (rows, records) = (&batch[range.clone()], &records[range]);
            member.push_segment(records.iter().map(RecordJson::hash), true, || {
                let mut plain = Vec::new();
                rows.iter().zip(records).try_for_each(|(row, json)| write_row(row, json, &mut plain))?;
                Ok(plain)
            })?;
        }
    }
    Ok(ExportFile { gzip: member.finish(), plain_sha256: hash.finish(), records: rows.len() })
}
