//! Sheets of .xls and .ods files. calamine does not return the formats of their numbers.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};

use calamine::{Data, DataRef, ExcelDateTime, Ods, Range, Reader, Sheet, Xls};

use super::archive::{cell_name, unusable};
use super::cell::CellStyles;
use crate::import::read::cells::TableCell;
use crate::import::read::options::Bounds;
use crate::import::read::row_sink::{RowSink, TableRow};
use crate::import::read::source::OLE_MAGIC;

pub(in crate::import) enum OldBook {
    Xls(Box<Xls<BufReader<File>>>),
    Ods(Ods<BufReader<File>>),
}

/// Returns true for a compound file: an .xls file, or a workbook with a password.
pub(super) fn is_xls(file: &mut File) -> io::Result<bool> {
    let mut first = Vec::new();
    file.take(OLE_MAGIC.len() as u64).read_to_end(&mut first)?;
    file.rewind()?;
    Ok(first == OLE_MAGIC)
}

impl OldBook {
    pub fn open_xls(file: File) -> io::Result<OldBook> {
        Xls::new(BufReader::new(file)).map(|book| OldBook::Xls(Box::new(book))).map_err(|error| {
            unusable(format!(
                "it is an .xls file that cannot be read ({error}), or a workbook with a password; save it as .xlsx without a \
                 password, or as CSV in UTF-8"
            ))
        })
    }

    pub fn open_ods(file: File) -> io::Result<OldBook> {
        Ods::new(BufReader::new(file))
            .map(OldBook::Ods)
            .map_err(unreadable)
    }

    pub fn sheets(&self) -> &[Sheet] {
        match self {
            OldBook::Xls(book) => book.sheets_metadata(),
            OldBook::Ods(book) => book.sheets_metadata(),
        }
    }

    /// Reads a sheet.
    pub fn sheet(&mut self, name: &str) -> io::Result<OldSheet> {
        let range = match self {
            OldBook::Xls(book) => book.worksheet_range(name).map_err(unreadable)?,
            OldBook::Ods(book) => book.worksheet_range(name).map_err(unreadable)?,
        };
        let styles = CellStyles::of_codes(&["General", "yyyy-mm-dd"]);
        Ok(OldSheet { range, styles })
    }
}

fn unreadable(error: impl std::fmt::Display) -> io::Error {
    unusable(format!(
        "its content cannot be read: {error}; save it as .xlsx, or as CSV in UTF-8"
    ))
}

/// A sheet in memory.
pub(in crate::import) struct OldSheet {
    range: Range<Data>,
    /// The general format, and that of dates.
    styles: CellStyles,
}

impl OldSheet {
    /// Reads the rows.
    pub fn read(&self, bounds: &Bounds, table: &mut impl RowSink) {
        let Some((first_row, first_column)) = self.range.start() else {
            return;
        };
        let before = usize::try_from(first_column).unwrap_or(usize::MAX);
        if before.saturating_add(self.range.width()) > bounds.columns {
            return table.add_fault(u64::from(first_row) + 1, bounds.columns_fault());
        }
        for (row, values) in (first_row..).zip(self.range.rows()) {
            let mut cells = vec![TableCell::default(); before];
            let values = (first_column..).zip(values);
            cells.extend(values.map(|(column, value)| self.cell(value, (row, column))));
            let line = u64::from(row) + 1;
            if cells.iter().map(|cell| cell.text.len()).sum::<usize>() > bounds.line_bytes {
                table.add_fault(line, bounds.line_fault());
                continue;
            }
            let row = TableRow {
                line,
                cells: &cells,
                merged: Vec::new(),
                warning: None,
            };
            if table.add_row(row).is_break() {
                return;
            }
        }
    }

    fn cell(&self, value: &Data, position: (u32, u32)) -> TableCell<'static> {
        let (value, style) = match value {
            Data::Int(number) => (DataRef::Int(*number), 0),
            Data::Float(number) => (DataRef::Float(*number), 0),
            Data::String(text) => (DataRef::String(text.clone()), 0),
            Data::Bool(is_true) => (DataRef::Bool(*is_true), 0),
            Data::DateTime(time) => (iso_time(*time), 1),
            Data::DateTimeIso(text) => (DataRef::DateTimeIso(text.clone()), 1),
            Data::DurationIso(text) => (DataRef::DurationIso(text.clone()), 1),
            Data::Error(error) => (DataRef::Error(error.clone()), 0),
            Data::Empty => (DataRef::Empty, 0),
        };
        self.styles.cell(&value, style, || cell_name(position))
    }
}

/// Returns a date with its time. Smaller numbers than 1 are times.
fn iso_time(time: ExcelDateTime) -> DataRef<'static> {
    let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
    let clock = format!("{hour:02}:{minute:02}:{second:02}");
    if !time.is_datetime() || time.as_f64() < 1.0 {
        return DataRef::DurationIso(clock);
    }
    let day = format!("{year:04}-{month:02}-{day:02}");
    DataRef::DateTimeIso(if clock == "00:00:00" {
        day
    } else {
        format!("{day}T{clock}")
    })
}
