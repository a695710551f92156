//! Phase 1: files to rows. It needs no state and holds no lock.

use std::io;
use std::sync::Arc;

use super::bounds::Bounds;
use super::csv::read_csv;
use super::jsonl::read_jsonl;
use super::report::{BadRows, Finding};
use super::rows::{FileRows, Row, Rows};
use super::source::{Format, RowKind, Source};
use crate::model::Fields;

/// A source could not be read completely.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {file}: {error}")]
pub struct ReadError {
    /// The source, as the caller named it.
    pub file: Arc<str>,
    /// Why; the message holds it.
    pub error: io::Error,
}

/// Members of records that the service adds; a record that it gave out can be read back.
const ADDED_TO_RECORDS: &[&str] = &["updated_at"];

/// Reads all sources within the bounds. `progress` hears of each piece read, in bytes ([`Source::size_bytes`]).
///
/// # Errors
/// When a source cannot be read. What is wrong with its rows is no error here: [`merge`](super::merge::merge) reports
/// it together with all else.
pub fn read_sources(sources: &[Source], bounds: &Bounds, progress: &mut dyn FnMut(u64)) -> Result<Rows, ReadError> {
    let mut rows = Rows::default();
    for source in sources {
        let bad = &mut rows.bad;
        let read = match source.kind() {
            RowKind::Organizations => read_rows(source, bounds, progress, &[], &mut rows.organizations, bad),
            RowKind::Tags => read_rows(source, bounds, progress, &[], &mut rows.tags, bad),
            RowKind::Conferences => read_rows(source, bounds, progress, ADDED_TO_RECORDS, &mut rows.conferences, bad),
            RowKind::Journals => read_rows(source, bounds, progress, ADDED_TO_RECORDS, &mut rows.journals, bad),
        };
        let row_count = read.map_err(|error| ReadError { file: source.name().clone(), error })?;
        if row_count == 0 {
            rows.warnings.push(
                Finding {
                    file: Some(source.name().to_string()),
                    message: format!("holds no rows; nothing of {} is changed by it", source.kind()),
                    ..Finding::default()
                }
                .of_rule("no_rows"),
            );
        }
    }
    Ok(rows)
}

/// Reads the rows of a source; returns how many there are, bad ones included.
fn read_rows<F: Fields>(
    source: &Source,
    bounds: &Bounds,
    progress: &mut dyn FnMut(u64),
    ignored: &'static [&'static str],
    rows: &mut Vec<Row<F>>,
    bad: &mut BadRows,
) -> io::Result<usize> {
    let content = source.open(bounds.file_bytes, progress)?;
    let mut rows = FileRows { file: source.name(), bounds, ignored, rows, bad };
    match source.format() {
        Format::Jsonl => read_jsonl(content, &mut rows),
        Format::Csv => read_csv(content, &mut rows),
    }
}
