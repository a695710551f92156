//! The first rows of a file, from which a recipe is drafted.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use encoding_rs::Encoding;

use crate::import::findings::{FilePosition, Findings};
use crate::import::read::cells::{Container, Notation, TableCell};
use crate::import::read::csv::CsvTable;
use crate::import::read::json::leaves;
use crate::import::read::json_rows::{ObjectSink, cell, parse_object, read_json, read_jsonl};
use crate::import::read::options::{InputError, ReadOptions, TextEncoding};
use crate::import::read::source::{FileFormat, RowKind, Source, SourceContent};
use crate::import::read::tabular::{TableRow, TableSink};
use crate::import::read::workbook::Workbook;
use crate::import::row_faults::RowFaults;
use crate::model::Message;
use crate::model::field::FieldTable;

/// The number of rows from which a recipe is drafted.
const MAX_ROWS: usize = 1_000;

/// The first rows of a file, from which a recipe is drafted.
#[derive(Debug)]
pub struct FileSample {
    pub(super) kind: RowKind,
    /// The cells. The first row of objects has the paths of their members.
    pub(super) rows: Vec<Vec<TableCell<'static>>>,
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
        sample
            .read_rows(source, sheets)
            .map_err(|error| InputError::unreadable(Path::new(&*source.name), &error))?;
        Ok(sample)
    }

    fn read_rows(&mut self, source: &Source, sheets: &[String]) -> io::Result<()> {
        let options = ReadOptions {
            encoding: TextEncoding::Guessed,
            ..ReadOptions::default()
        };
        let bounds = &options.bounds;
        match source.open(&options)? {
            SourceContent::Text {
                format,
                guessed,
                content,
            } => {
                self.encoding = guessed;
                if matches!(format, FileFormat::Jsonl | FileFormat::Json) {
                    self.notation.container = Container::Json;
                }
                match format {
                    FileFormat::Jsonl => read_jsonl(content, bounds, self),
                    FileFormat::Json => read_json(content, bounds, self),
                    FileFormat::Csv | FileFormat::Xlsx => {
                        let table = CsvTable::open(content, self.kind.table(), &options)?;
                        self.notation = table.notation(&options);
                        table.read(self)
                    }
                }
            }
            SourceContent::Workbook(file) => {
                let mut workbook = Workbook::open(file, bounds)?;
                let chosen = workbook.choose(Some(self.kind), sheets)?;
                for (_, sheet) in chosen.sheets {
                    let sheet = workbook.sheet(&sheet)?;
                    self.notation.container = sheet.container();
                    sheet.read(bounds, self)?;
                }
                Ok(())
            }
        }
    }
}

impl TableSink for FileSample {
    fn add_row(&mut self, row: TableRow<'_>) -> ControlFlow<()> {
        if row.cells.iter().any(|cell| !cell.is_blank()) {
            let cells = row.cells.iter().map(TableCell::to_owned_cell);
            self.rows.push(cells.collect());
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
}

impl ObjectSink for FileSample {
    fn table(&self) -> &'static FieldTable {
        self.kind.table()
    }

    fn add_object(&mut self, line: u64, text: &[u8]) {
        if self.rows.len() > MAX_ROWS {
            return;
        }
        self.position.line = line;
        let mut faults = RowFaults::new(&self.position, &mut self.bad);
        let Some(members) = parse_object(text, &mut faults) else {
            return;
        };
        if self.rows.is_empty() {
            self.rows.push(Vec::new());
        }
        let options = ReadOptions::default();
        let header = &mut self.rows[0];
        let mut row = vec![TableCell::default(); header.len()];
        for (path, value) in leaves("", members, &|_| false) {
            let known = header.iter().position(|known| known.text == path);
            let at = known.unwrap_or(header.len());
            if known.is_none() {
                header.push(TableCell::text(path));
                row.push(TableCell::default());
            }
            row[at] = cell(value, &options);
        }
        self.rows.push(row);
    }

    fn add_fault(&mut self, line: u64, message: Message) {
        TableSink::add_fault(self, line, message);
    }

    fn warn(&mut self, _message: Message) {}
}
