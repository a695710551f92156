//! The first rows of a file, from which a recipe is drafted.

use std::ops::ControlFlow;
use std::path::Path;

use encoding_rs::Encoding;

use super::json_rows::read_members;
use super::options::{InputError, ReadOptions, TextEncoding};
use super::parts::each_part;
use super::row_sink::{RowSink, TableRow};
use super::source::{RowKind, Source};
use super::table_cell::{Notation, TableCell};
use crate::import::findings::{FilePosition, Findings};
use crate::import::row_faults::RowFaults;
use crate::model::Message;

/// The number of rows from which a recipe is drafted.
const MAX_ROWS: usize = 1_000;

/// The first rows of a file, from which a recipe is drafted.
#[derive(Debug)]
pub struct FileSample {
    pub(super) kind: RowKind,
    /// The cells. The first row of objects has the paths of their members.
    pub(super) rows: Vec<Vec<TableCell>>,
    /// The notation of the file.
    pub(super) notation: Notation,
    /// The probable encoding, if it is not UTF-8.
    pub(super) encoding: Option<&'static Encoding>,
    /// The reasons why rows cannot be read.
    pub bad: Findings,
    position: FilePosition,
}

impl FileSample {
    /// Reads the first rows of a file.
    pub fn read(
        source: &Source,
        kind: RowKind,
        sheets: &[String],
    ) -> Result<FileSample, InputError> {
        let mut sample = FileSample {
            kind,
            rows: Vec::new(),
            notation: Notation::default(),
            encoding: None,
            bad: Findings::default(),
            position: FilePosition::new(source.name.clone(), 0),
        };
        let options = ReadOptions {
            encoding: TextEncoding::Guessed,
            sheets: sheets.to_vec(),
            ..ReadOptions::default()
        };
        let mut source = source.clone();
        source.kind = Some(kind);
        let read = each_part(&source, &options, |part| {
            sample.encoding = part.encoding;
            sample.notation = part.notation(&options);
            (part.read)(&mut sample)
        });
        read.map_err(|error| InputError::unreadable(Path::new(&*source.name), &error))?;
        Ok(sample)
    }
}

impl RowSink for FileSample {
    fn add_row(&mut self, row: TableRow<'_>) -> ControlFlow<()> {
        if row.cells.iter().any(|cell| !cell.is_blank()) {
            self.rows.push(row.cells.to_vec());
        }
        if self.rows.len() <= MAX_ROWS {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    fn add_fault(&mut self, line: u64, message: Message) {
        self.position.line = line;
        self.bad.push(&self.position, None, None, message);
    }

    fn add_object(&mut self, line: u64, text: &[u8]) {
        if self.rows.len() > MAX_ROWS {
            return;
        }
        self.position.line = line;
        let mut faults = RowFaults::new(&self.position, &mut self.bad);
        let options = ReadOptions::default();
        let Some(members) = read_members(text, &options, &|_| false, &mut faults) else {
            return;
        };
        if self.rows.is_empty() {
            self.rows.push(Vec::new());
        }
        let header = &mut self.rows[0];
        let mut row = vec![TableCell::default(); header.len()];
        for (path, cell) in members {
            let known = header.iter().position(|known| known.text == path);
            let at = known.unwrap_or(header.len());
            if known.is_none() {
                header.push(TableCell::text(path));
                row.push(TableCell::default());
            }
            row[at] = cell;
        }
        self.rows.push(row);
    }
}
