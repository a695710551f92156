//! The bad rows of a file as they are in it, each with its fault. The file is read a second time.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use csv::WriterBuilder;
use serde_json::{Map, Value};

use super::options::{InputError, ReadOptions};
use super::parts::each_part;
use super::row_sink::{RowSink, TableRow};
use super::source::Source;
use super::table_cell::Container;
use crate::import::findings::{Finding, Findings};
use crate::import::rows::{FAULT_COLUMN, ImportRows};

/// The bad rows of a run.
#[derive(Default)]
pub struct SourceRows {
    /// The first table with bad rows.
    table: Option<BadPart>,
    /// The bad objects.
    lines: Vec<String>,
    /// The number of bad rows that do not fit under the header.
    pub left_out: usize,
}

impl SourceRows {
    /// Reads the bad rows of the sources again.
    pub fn read(
        sources: &[Source],
        options: &ReadOptions,
        rows: &ImportRows,
        bad: &Findings,
    ) -> Result<SourceRows, InputError> {
        let mut found = SourceRows::default();
        let header_rows = options.header_rows.unwrap_or(1);
        for source in sources.iter().filter(|source| !source.is_skipped) {
            let read = each_part(source, options, |part| {
                let is_list = part.container == Container::Json;
                let mut sink = BadPart {
                    faults: faults_of(&part.name, bad, is_list),
                    separator: part.separator,
                    header_line: rows.header_line(&part.name).filter(|_| header_rows > 0),
                    header_rows,
                    header: Vec::new(),
                    rows: Vec::new(),
                    lines: Vec::new(),
                    objects: 0,
                };
                (part.read)(&mut sink)?;
                found.lines.append(&mut sink.lines);
                found.add_table(sink);
                Ok(())
            });
            read.map_err(|error| InputError::unreadable(Path::new(&*source.name), &error))?;
        }
        if found.table.is_some() {
            // Objects do not fit into a table.
            found.left_out += found.lines.len();
        }
        Ok(found)
    }

    fn add_table(&mut self, table: BadPart) {
        match &mut self.table {
            _ if table.rows.is_empty() => {}
            None => self.table = Some(table),
            Some(first) if first.header == table.header => first.rows.extend(table.rows),
            Some(_) => self.left_out += table.rows.len(),
        }
    }

    /// Returns the text of a file with the rows: JSON lines, or a table with the header rows of the source.
    pub fn text(self) -> io::Result<Vec<u8>> {
        let Some(mut table) = self.table else {
            return Ok(self.lines.concat().into_bytes());
        };
        let mut writer = WriterBuilder::new()
            .delimiter(table.separator)
            .terminator(csv::Terminator::CRLF)
            .flexible(true)
            .from_writer(Vec::new());
        if let Some((_, fault)) = table.header.first_mut() {
            *fault = FAULT_COLUMN.to_owned();
        }
        let rows: Vec<_> = table.header.into_iter().chain(table.rows).collect();
        // A column of faults that the source has already is replaced.
        let first = rows.first().map_or(&[][..], |(cells, _)| cells);
        let last = first.iter().rposition(|cell| !cell.is_empty());
        let faults = last.filter(|at| first[*at].eq_ignore_ascii_case(FAULT_COLUMN));
        let width = rows.iter().map(|(cells, _)| cells.len()).max();
        let width = faults.or(width).unwrap_or_default();
        for (mut cells, fault) in rows {
            cells.resize(width, String::new());
            cells.push(fault);
            writer.write_record(&cells)?;
        }
        writer.into_inner().map_err(csv::IntoInnerError::into_error)
    }
}

/// Returns the faults of the rows of a file: by the numbers of objects in a list, or by the lines of rows.
fn faults_of(file: &str, bad: &Findings, is_list: bool) -> HashMap<u64, String> {
    let mut faults: HashMap<u64, String> = HashMap::new();
    for found in bad.kept() {
        let Some(line) = found.line.filter(|_| found.file.as_deref() == Some(file)) else {
            continue;
        };
        let text = Finding {
            file: None,
            line: None,
            ..found.clone()
        };
        let key = if is_list { found.number } else { line };
        faults
            .entry(key)
            .and_modify(|texts| *texts += &format!("; {text}"))
            .or_insert_with(|| text.to_string());
    }
    faults
}

/// The bad rows of one table or list of objects, so far.
struct BadPart {
    faults: HashMap<u64, String>,
    separator: u8,
    header_line: Option<u64>,
    header_rows: usize,
    /// The cells of each row of the header, and an empty text.
    header: Vec<(Vec<String>, String)>,
    /// The cells of each row, and its faults.
    rows: Vec<(Vec<String>, String)>,
    /// The bad objects.
    lines: Vec<String>,
    /// The number of objects so far.
    objects: u64,
}

impl RowSink for BadPart {
    fn add_row(&mut self, row: TableRow<'_>) -> ControlFlow<()> {
        let texts = || row.cells.iter().map(|cell| cell.text.to_string()).collect();
        if self.header_line.is_some_and(|line| row.lines.start <= line) {
            if row.cells.iter().any(|cell| !cell.is_blank()) {
                self.header.push((texts(), String::new()));
            }
            // The last rows are the header.
            let above = self.header.len().saturating_sub(self.header_rows);
            self.header.drain(..above);
        } else if let Some(faults) = self.faults.get(&row.lines.start) {
            self.rows.push((texts(), faults.clone()));
        }
        ControlFlow::Continue(())
    }

    fn add_object(&mut self, _line: u64, text: &[u8]) {
        self.objects += 1;
        let Some(faults) = self.faults.get(&self.objects) else {
            return;
        };
        let line = match serde_json::from_slice::<Map<String, Value>>(text) {
            Ok(mut members) => {
                members.shift_remove(FAULT_COLUMN);
                members.insert(FAULT_COLUMN.to_owned(), faults.as_str().into());
                Value::from(members).to_string()
            }
            // The line as it is.
            Err(_) => String::from_utf8_lossy(text).trim().to_owned(),
        };
        self.lines.push(line + "\n");
    }
}
