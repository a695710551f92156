//! The bad rows of a file as they are in it, each with its fault. The file is read a second time.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use csv::WriterBuilder;
use serde_json::{Map, Value};

use crate::import::findings::{Finding, Findings};
use crate::import::read::csv::CsvTable;
use crate::import::read::json_rows::{ObjectSink, read_json, read_jsonl};
use crate::import::read::options::{InputError, ReadOptions};
use crate::import::read::source::{FileFormat, RowKind, Source, SourceContent};
use crate::import::read::tabular::{TableRow, TableSink};
use crate::import::read::workbook::Workbook;
use crate::import::rows::{FAULT_COLUMN, ImportRows};
use crate::model::Message;
use crate::model::field::FieldTable;

/// The bad rows of a run.
pub struct SourceRows<'a> {
    bad: &'a Findings,
    rows: &'a ImportRows,
    options: &'a ReadOptions,
    /// The separator, the header rows and the bad rows of the first table with one.
    table: Option<BadTable>,
    /// The bad objects.
    lines: Vec<String>,
    /// The number of bad rows that do not fit under the header.
    pub left_out: usize,
}

/// A table of bad rows.
struct BadTable {
    separator: u8,
    header: Vec<Vec<String>>,
    rows: Vec<(Vec<String>, String)>,
}

impl<'a> SourceRows<'a> {
    /// Reads the bad rows of the sources again.
    pub fn read(
        sources: &[Source],
        options: &'a ReadOptions,
        rows: &'a ImportRows,
        bad: &'a Findings,
    ) -> Result<SourceRows<'a>, InputError> {
        let mut found = SourceRows {
            bad,
            rows,
            options,
            table: None,
            lines: Vec::new(),
            left_out: 0,
        };
        for source in sources.iter().filter(|source| !source.is_skipped) {
            found
                .read_source(source)
                .map_err(|error| InputError::unreadable(Path::new(&*source.name), &error))?;
        }
        if found.table.is_some() {
            // Objects do not fit into a table.
            found.left_out += found.lines.len();
        }
        Ok(found)
    }

    fn read_source(&mut self, source: &Source) -> io::Result<()> {
        let options = self.options;
        let bounds = &options.bounds;
        let kind = source.kind.unwrap_or(RowKind::Conferences);
        let mut sink = BadRowSink::new(kind, &source.name, self);
        match source.open(options)? {
            SourceContent::Text {
                format, content, ..
            } => match format {
                FileFormat::Jsonl => read_jsonl(content, bounds, &mut sink)?,
                FileFormat::Json => read_json(content, bounds, &mut sink)?,
                FileFormat::Csv | FileFormat::Xlsx => {
                    let csv = CsvTable::open(content, kind.table(), options)?;
                    sink.separator = csv.separator();
                    csv.read(&mut sink)?;
                }
            },
            SourceContent::Workbook(file) => {
                let mut workbook = Workbook::open(file, bounds)?;
                let chosen = workbook.choose(source.kind, &options.sheets)?;
                for (kind, sheet) in chosen.sheets {
                    let name = format!("{}[{}]", source.name, sheet.trim());
                    let mut sink = BadRowSink::new(kind, &name, self);
                    workbook.sheet(&sheet)?.read(bounds, &mut sink)?;
                    let table = sink.into_table();
                    self.add_table(table);
                }
                return Ok(());
            }
        }
        self.lines.append(&mut sink.lines);
        let table = sink.into_table();
        self.add_table(table);
        Ok(())
    }

    fn add_table(&mut self, table: BadTable) {
        match &mut self.table {
            _ if table.rows.is_empty() => {}
            None => self.table = Some(table),
            Some(first) if first.header == table.header => first.rows.extend(table.rows),
            Some(_) => self.left_out += table.rows.len(),
        }
    }

    /// Returns the text of a file with the rows: JSON lines, or a table with the header rows of the source.
    pub fn text(mut self) -> io::Result<Vec<u8>> {
        let Some(table) = self.table.take() else {
            return Ok(self.lines.concat().into_bytes());
        };
        let widths = table
            .header
            .iter()
            .chain(table.rows.iter().map(|(cells, _)| cells));
        let width = widths.map(Vec::len).max().unwrap_or_default();
        let mut writer = WriterBuilder::new()
            .delimiter(table.separator)
            .terminator(csv::Terminator::CRLF)
            .flexible(true)
            .from_writer(Vec::new());
        let header = table.header.into_iter().enumerate();
        let header =
            header.map(|(at, cells)| (cells, if at == 0 { FAULT_COLUMN } else { "" }.to_owned()));
        for (mut cells, fault) in header.chain(table.rows) {
            cells.resize(width, String::new());
            cells.push(fault);
            writer.write_record(&cells)?;
        }
        writer
            .into_inner()
            .map_err(|error| io::Error::other(error.to_string()))
    }
}

/// Takes the bad rows of one table or list of objects.
struct BadRowSink {
    kind: RowKind,
    separator: u8,
    header_line: Option<u64>,
    header_rows: usize,
    /// The last rows up to the header.
    header: VecDeque<Vec<String>>,
    rows: Vec<(Vec<String>, String)>,
    lines: Vec<String>,
    /// The number of objects so far.
    objects: u64,
    faults: Faults,
}

/// The faults by line and row.
struct Faults {
    by_line: HashMap<u64, Vec<String>>,
    /// By the number of the row in the file.
    by_number: HashMap<u64, Vec<String>>,
}

impl Faults {
    fn of(file: &str, bad: &Findings) -> Faults {
        let mut faults = Faults {
            by_line: HashMap::new(),
            by_number: HashMap::new(),
        };
        let of_file = bad
            .kept()
            .iter()
            .filter(|found| found.file.as_deref() == Some(file));
        for found in of_file {
            let Some(line) = found.line else { continue };
            let text = Finding {
                file: None,
                line: None,
                ..found.clone()
            };
            let text = text.to_string();
            faults
                .by_number
                .entry(found.number)
                .or_default()
                .push(text.clone());
            faults.by_line.entry(line).or_default().push(text);
        }
        faults
    }
}

impl BadRowSink {
    fn new(kind: RowKind, file: &str, of: &SourceRows<'_>) -> BadRowSink {
        let header_rows = of.options.header_rows.unwrap_or(1);
        BadRowSink {
            kind,
            separator: b',',
            header_line: of.rows.header_line(file).filter(|_| header_rows > 0),
            header_rows,
            header: VecDeque::new(),
            rows: Vec::new(),
            lines: Vec::new(),
            objects: 0,
            faults: Faults::of(file, of.bad),
        }
    }

    /// Returns the rows. A column of faults that the source has already is left out.
    fn into_table(self) -> BadTable {
        let mut header: Vec<Vec<String>> = self.header.into();
        let mut rows = self.rows;
        let first = header
            .first()
            .and_then(|cells| cells.iter().rposition(|cell| !cell.is_empty()));
        let is_fault = |at: &usize| header[0][*at].eq_ignore_ascii_case(FAULT_COLUMN);
        if let Some(at) = first.filter(is_fault) {
            header.iter_mut().for_each(|cells| cells.truncate(at));
            rows.iter_mut().for_each(|(cells, _)| cells.truncate(at));
        }
        BadTable {
            separator: self.separator,
            header,
            rows,
        }
    }
}

impl TableSink for BadRowSink {
    fn add_row(&mut self, row: TableRow<'_>) -> ControlFlow<()> {
        let texts = || row.cells.iter().map(|cell| cell.text.to_string()).collect();
        if self.header_line.is_some_and(|header| row.line <= header) {
            if row.cells.iter().any(|cell| !cell.is_blank()) {
                self.header.push_back(texts());
            }
            if self.header.len() > self.header_rows {
                self.header.pop_front();
            }
        } else if let Some(faults) = self.faults.by_line.get(&row.line) {
            self.rows.push((texts(), faults.join("; ")));
        }
        ControlFlow::Continue(())
    }

    fn add_fault(&mut self, _line: u64, _message: Message) {}
}

impl ObjectSink for BadRowSink {
    fn table(&self) -> &'static FieldTable {
        self.kind.table()
    }

    fn add_object(&mut self, _line: u64, text: &[u8]) {
        self.objects += 1;
        let Some(faults) = self.faults.by_number.get(&self.objects) else {
            return;
        };
        let line = match serde_json::from_slice::<Map<String, Value>>(text) {
            Ok(mut members) => {
                members.shift_remove(FAULT_COLUMN);
                members.insert(FAULT_COLUMN.to_owned(), faults.join("; ").into());
                Value::from(members).to_string()
            }
            // The line as it is.
            Err(_) => String::from_utf8_lossy(text).trim().to_owned(),
        };
        self.lines.push(line + "\n");
    }

    fn add_fault(&mut self, _line: u64, _message: Message) {}

    fn warn(&mut self, _message: Message) {}
}
