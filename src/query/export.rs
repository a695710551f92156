//! Exports: all visible records as one gzip-compressed file (the contract, "GET /exports/{dataset}").

use bytes::Bytes;

use crate::model::{
    ConferenceFields, Curated, Dataset, ExportFormat, Filter, JournalFields, LinkTexts,
    RecordFields, Timestamp, flat,
};
use crate::query::segments::{
    ContentHasher, GzipMember, SegmentCache, SegmentFormat, in_memory, segment_ranges,
};
use crate::store::Result;
use crate::store::read::records::StoredRecord;
use crate::view::View;

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
pub fn export(view: &View<'_>, format: ExportFormat, cache: &SegmentCache) -> Result<ExportFile> {
    match (format, view.dataset()) {
        (ExportFormat::Jsonl, _) => write(view, cache, SegmentFormat::Lines, &[], |record, out| {
            out.extend_from_slice(record.json());
            out.push(b'\n');
            Ok(())
        }),
        (ExportFormat::Csv, Dataset::Conferences) => write_csv::<ConferenceFields>(view, cache),
        (ExportFormat::Csv, Dataset::Journals) => write_csv::<JournalFields>(view, cache),
    }
}

fn write_csv<F: RecordFields>(view: &View<'_>, cache: &SegmentCache) -> Result<ExportFile> {
    let mut head = Vec::new();
    push_header::<F>(&mut head)?;
    let references = view.references()?;
    write(view, cache, SegmentFormat::Csv, &head, |record, out| {
        let (record, updated_at) = record.decode::<F>()?;
        push_record(out, &record, updated_at, &**references)
    })
}

/// Appends a record as a CSV line. Fails only when memory runs out.
pub fn push_record<F: RecordFields>(
    out: &mut Vec<u8>,
    record: &Curated<F>,
    updated_at: Timestamp,
    links: &dyn LinkTexts,
) -> Result<()> {
    flat::write_row(out, flat::cells(record, Some(updated_at), links)).map_err(in_memory)
}

/// Appends a byte-order mark and the CSV header. Fails only when memory runs out.
pub fn push_header<F: RecordFields>(out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(flat::BYTE_ORDER_MARK);
    flat::write_row(out, flat::columns(F::table(), true)).map_err(in_memory)
}

/// Writes `head` and then all visible records.
fn write(
    view: &View<'_>,
    cache: &SegmentCache,
    form: SegmentFormat,
    head: &[u8],
    mut write_row: impl FnMut(&StoredRecord, &mut Vec<u8>) -> Result<()>,
) -> Result<ExportFile> {
    let records = view.list(0, &Filter::default(), usize::MAX)?;
    let mut hash = ContentHasher::default();
    let mut member = GzipMember::new(
        cache,
        view.feed()?,
        form,
        records.len() * EXPECTED_RECORD_BYTES,
        Some(&mut hash),
    );
    member.push_stored(head);
    for range in segment_ranges(records.iter().map(|record| record.hash())) {
        let records = &records[range];
        member.push_segment(records.iter().map(|record| record.hash()), true, || {
            let mut plain = Vec::new();
            records
                .iter()
                .try_for_each(|record| write_row(record, &mut plain))?;
            Ok(plain)
        })?;
    }
    Ok(ExportFile {
        gzip: member.finish(),
        plain_sha256: hash.finish(),
        records: records.len(),
    })
}
