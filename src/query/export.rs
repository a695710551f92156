//! Exports: all visible records as one gzip-compressed file (the contract, "GET /exports/{dataset}").

use crate::model::{ConferenceFields, Dataset, JournalFields, RecordFields, flat};
use crate::query::packed::{Member, Packer, Segments, Shape, cut, in_memory};
use crate::store::read::record_cache::Texts;
use crate::store::{Rope, StoreError};
use crate::view::{LiveRow, View};

/// How many records are held at once: a bound on memory, not seen in the file.
const BATCH_RECORDS: usize = 4096;

/// The two formats of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// One JSON object per line.
    Jsonl,
    /// One flat table (RFC 4180).
    Csv,
}

impl Format {
    /// The value of the parameter, and the ending of files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Csv => "csv",
        }
    }
}

/// A whole export.
#[derive(Debug)]
pub struct ExportFile {
    /// The gzip member. Its header carries no time, so the same content gives the same bytes.
    pub gzip: Rope,
    /// How many records it holds.
    pub records: usize,
}

/// Builds the file. What earlier exports of the same scope compressed is taken from the packer.
///
/// # Errors
/// When the database cannot be read.
pub fn export(view: &View<'_>, format: Format, packer: &Packer) -> Result<ExportFile, StoreError> {
    match (format, view.dataset()) {
        (Format::Jsonl, _) => write(view, packer, Shape::Lines, &[], |_, texts, place, out| {
            out.extend_from_slice(texts.text(place));
            out.push(b'\n');
            Ok(())
        }),
        (Format::Csv, Dataset::Conferences) => write_csv::<ConferenceFields>(view, packer),
        (Format::Csv, Dataset::Journals) => write_csv::<JournalFields>(view, packer),
    }
}

fn write_csv<F: RecordFields>(view: &View<'_>, packer: &Packer) -> Result<ExportFile, StoreError> {
    let mut head = flat::BYTE_ORDER_MARK.to_vec();
    push_row(&mut head, flat::record_columns::<F>())?;
    let references = view.references()?;
    write(view, packer, Shape::Csv, &head, |row, texts, place, out| {
        packer.csv_row(texts.hash(place), out, |out| {
            let (record, updated_at) = view.record::<F>(row)?;
            let cells = flat::record_cells(&record, updated_at, references);
            push_row(out, cells.iter().map(|cell| cell.as_bytes()))
        })
    })
}

fn push_row(out: &mut Vec<u8>, cells: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Result<(), StoreError> {
    let mut table = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(out);
    table.write_record(cells).map_err(|error| in_memory(std::io::Error::other(error)))?;
    table.flush().map_err(in_memory)
}

/// All visible records behind a head.
fn write(
    view: &View<'_>,
    packer: &Packer,
    shape: Shape,
    head: &[u8],
    mut write_row: impl FnMut(&LiveRow, &Texts, usize, &mut Vec<u8>) -> Result<(), StoreError>,
) -> Result<ExportFile, StoreError> {
    let rows: Vec<LiveRow> = view.list_after(0)?.collect();
    let mut member = Member::in_one_piece(rows.len());
    member.store(head);
    let segments = Segments::of(&view.license().scope, view.dataset(), packer);
    let mut first = 0;
    while first < rows.len() {
        let batch = &rows[first..rows.len().min(first + BATCH_RECORDS)];
        let texts: Texts = view.texts(batch.iter().copied())?;
        let mut ranges = cut(&texts);
        if first + batch.len() < rows.len() {
            // The last segment may go on in the next batch.
            ranges.pop();
        }
        let end = ranges.last().map_or(batch.len(), |range| range.end);
        for range in ranges {
            segments.add(&mut member, &texts, range, shape, true, |range, out| {
                range.into_iter().try_for_each(|place| write_row(&batch[place], &texts, place, out))
            })?;
        }
        first += end;
    }
    Ok(ExportFile { gzip: member.finish(), records: rows.len() })
}
