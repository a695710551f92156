//! Exports: all visible records as one gzip-compressed file (the contract, "GET /exports/{dataset}").

use std::io::Write;

use flate2::{Compression, GzBuilder};

use crate::model::{ConferenceFields, Dataset, JournalFields, RecordFields, flat};
use crate::store::StoreError;
use crate::view::{LiveRow, View};

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
    pub gzip: Vec<u8>,
    /// How many records it holds.
    pub records: u64,
}

/// Builds the file.
///
/// # Errors
/// When the database cannot be read.
pub fn export(view: &View<'_>, format: Format) -> Result<ExportFile, StoreError> {
    let gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    match (format, view.dataset()) {
        (Format::Jsonl, _) => write_jsonl(view, gzip),
        (Format::Csv, Dataset::Conferences) => write_csv::<ConferenceFields>(view, gzip),
        (Format::Csv, Dataset::Journals) => write_csv::<JournalFields>(view, gzip),
    }
}

type Gzip = flate2::write::GzEncoder<Vec<u8>>;

fn write_jsonl(view: &View<'_>, mut gzip: Gzip) -> Result<ExportFile, StoreError> {
    let mut records = 0;
    let mut line = Vec::new();
    for row in view.list_after(0)? {
        line.clear();
        view.push_body(&row?, &mut line)?;
        line.push(b'\n');
        gzip.write_all(&line).map_err(in_memory)?;
        records += 1;
    }
    Ok(ExportFile { gzip: gzip.finish().map_err(in_memory)?, records })
}

fn write_csv<F: RecordFields>(view: &View<'_>, mut gzip: Gzip) -> Result<ExportFile, StoreError> {
    gzip.write_all(flat::BYTE_ORDER_MARK).map_err(in_memory)?;
    let references = view.references()?;
    let mut table = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(gzip);
    table.write_record(flat::record_columns::<F>()).map_err(csv_in_memory)?;
    let mut records = 0;
    for row in view.list_after(0)? {
        let row: LiveRow = row?;
        let (record, updated_at) = view.record::<F>(&row)?;
        let cells = flat::record_cells(&record, updated_at, references);
        table.write_record(cells.iter().map(|cell| cell.as_bytes())).map_err(csv_in_memory)?;
        records += 1;
    }
    let gzip = table.into_inner().map_err(|error| in_memory(error.into_error()))?;
    Ok(ExportFile { gzip: gzip.finish().map_err(in_memory)?, records })
}

/// Writing to memory fails only when memory does.
fn in_memory(source: std::io::Error) -> StoreError {
    StoreError::Io { path: "(export in memory)".into(), source }
}

fn csv_in_memory(error: csv::Error) -> StoreError {
    in_memory(std::io::Error::other(error))
}
