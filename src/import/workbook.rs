//! Workbooks of Excel (.xlsx): a sheet is a table, its cells are brought into the texts that CSV would hold.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};

use calamine::{DataRef, ExcelDateTime, Reader, SheetType, SheetVisible, Xlsx, XlsxCellReader, XlsxError};
use jiff::civil::Date;
use zip::ZipArchive;

use super::bounds::{Bounds, TooLarge};
use super::rows::{FileRows, ReadRows};
use super::source::{RowKind, kind_of};
use super::tabular::{Cell, Table, letters};
use crate::model::Fields;

/// The most bytes of a workbook's shared texts, which are held in memory.
const MAX_TEXTS_BYTES: u64 = 256 << 20;

/// The most bytes of each other part that is held in memory, such as styles.
const MAX_PART_BYTES: u64 = 16 << 20;

/// How many times its stored size a large part may have. Real sheets stay far below; bombs reach a thousand.
const MAX_RATIO: u64 = 250;

/// Whole numbers from here on are not told apart by spreadsheets, which keep 15 digits.
const INEXACT: f64 = 1e15;

/// An opened workbook.
pub(super) struct Workbook {
    xlsx: Xlsx<BufReader<File>>,
}

/// The sheets that are read, and those that are not, quoted.
pub(super) struct Chosen {
    pub sheets: Vec<(RowKind, String)>,
    pub passed_over: Vec<String>,
}

fn unusable(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

fn damaged(error: XlsxError) -> io::Error {
    match error {
        XlsxError::Io(error) => error,
        XlsxError::Password => unusable("it has a password; save it without one"),
        other => {
            unusable(format!("it is no workbook that can be read ({other}); save it anew as .xlsx or as CSV in UTF-8"))
        }
    }
}

/// Checks how much a workbook holds before anything of it is held in memory.
fn check_size(file: &File, bounds: &Bounds) -> io::Result<()> {
    let damaged = |error| unusable(format!("it is damaged: {error}; save it anew as .xlsx or as CSV in UTF-8"));
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(damaged)?;
    let too_large = || io::Error::other(TooLarge { max_bytes: bounds.file_bytes });
    let bomb = |part: &str| {
        unusable(format!("its part `{part}` is implausibly large; save it anew as .xlsx or as CSV in UTF-8"))
    };
    let mut left = bounds.file_bytes;
    for index in 0..archive.len() {
        let mut part = archive.by_index(index).map_err(damaged)?;
        let name = part.name().map(|name| name.to_string()).unwrap_or_default();
        let (lower, stored) = (name.to_lowercase(), part.compressed_size());
        if lower == "mimetype" {
            return Err(unusable("it is no Excel workbook; save it as .xlsx, or as CSV in UTF-8"));
        }
        let is_sheet = lower.contains("/worksheets/");
        let is_texts = lower.ends_with("sharedstrings.xml");
        let is_held = lower.ends_with(".xml") || lower.ends_with(".rels");
        let most = match (is_texts, is_sheet || !is_held) {
            (true, _) => MAX_TEXTS_BYTES,
            (_, true) => u64::MAX,
            _ => MAX_PART_BYTES,
        };
        let mut beginning = Vec::new();
        part.by_ref().take(4096).read_to_end(&mut beginning)?;
        // What a header says of its size may be a lie, so it is counted.
        let read = beginning.len() as u64 + io::copy(&mut part.by_ref().take(left.saturating_add(1)), &mut io::sink())?;
        left = left.checked_sub(read).ok_or_else(too_large)?;
        if read > most || (read > MAX_PART_BYTES && read / MAX_RATIO > stored) {
            return Err(bomb(&name));
        }
        // Room for so many texts is made at once.
        if is_texts && announced_texts(&beginning).is_some_and(|count| count > read) {
            return Err(bomb(&name));
        }
    }
    Ok(())
}

/// How many texts the beginning of the shared texts announces.
fn announced_texts(beginning: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(beginning);
    let (_, rest) = text.split_once("uniqueCount")?;
    let digits: String =
        rest.chars().skip_while(|letter| !letter.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    // A number that is too large for any integer is too large for any file.
    Some(digits.parse().unwrap_or(u64::MAX))
}

impl Workbook {
    /// Opens a workbook within the bounds.
    ///
    /// # Errors
    /// When it is none, is damaged, or is larger than the bounds allow.
    pub fn open(mut file: File, bounds: &Bounds) -> io::Result<Workbook> {
        check_size(&file, bounds)?;
        file.rewind()?;
        Ok(Workbook { xlsx: Xlsx::new(BufReader::new(file)).map_err(damaged)? })
    }

    /// Which sheets are read: those whose names are kinds of rows, or the only one that is not empty, if what it holds
    /// was `told` by the file's name or the caller.
    ///
    /// # Errors
    /// When there is none.
    pub fn choose(&mut self, told: Option<RowKind>) -> io::Result<Chosen> {
        let all = self.xlsx.sheets_metadata().to_vec();
        let mut chosen = Chosen { sheets: Vec::new(), passed_over: Vec::new() };
        let mut others = Vec::new();
        for sheet in all {
            let quoted = format!("`{}`", sheet.name.trim());
            let (is_visible, is_table) = (sheet.visible == SheetVisible::Visible, sheet.typ == SheetType::WorkSheet);
            match kind_of(&sheet.name) {
                Some(kind) if is_visible && is_table => chosen.sheets.push((kind, sheet.name)),
                Some(_) if is_table => chosen.passed_over.push(format!("{quoted} (hidden; unhide it to have it read)")),
                _ => others.push((sheet.name, quoted, is_visible && is_table)),
            }
        }
        // A kind that the caller tells means that sheet alone, if there is one of its name.
        if chosen.sheets.is_empty()
            && let Some(kind) = told
        {
            let mut filled = Vec::new();
            for (at, (name, _, is_usable)) in others.iter().enumerate() {
                if *is_usable && !self.is_empty(name)? {
                    filled.push(at);
                }
            }
            if let [only] = *filled {
                chosen.sheets.push((kind, others.remove(only).0));
                // Empty sheets, which every new workbook has, are no news.
                others.retain(|(_, _, is_usable)| !is_usable);
            }
        }
        chosen.passed_over.extend(others.into_iter().map(|(_, quoted, _)| quoted));
        if chosen.sheets.is_empty() {
            let names = if chosen.passed_over.is_empty() { "none".to_owned() } else { chosen.passed_over.join(", ") };
            return Err(unusable(format!(
                "its sheets are {names}; name those to be read `conferences`, `journals`, `organizations` or `tags`, or keep \
                 one sheet and say what it holds, such as `--dataset conferences`"
            )));
        }
        Ok(chosen)
    }

    fn is_empty(&mut self, sheet: &str) -> io::Result<bool> {
        let mut cells = self.xlsx.worksheet_cells_reader(sheet).map_err(damaged)?;
        while let Some(cell) = cells.next_cell().map_err(damaged)? {
            if *cell.get_value() != DataRef::Empty {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The rows of a sheet.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn sheet(&mut self, name: &str) -> io::Result<Sheet<'_>> {
        // Merged cells stand behind the cells.
        let mut merged = Vec::new();
        for region in self.xlsx.merge_cells_by_sheet_name(name).map_err(damaged)? {
            merged.push(Merged { first: region.start, last: region.end });
        }
        Ok(Sheet { cells: self.xlsx.worksheet_cells_reader(name).map_err(damaged)?, merged })
    }
}

/// Merged cells, from their first row and column to their last, each from 0.
#[derive(Clone, Copy)]
struct Merged {
    first: (u32, u32),
    last: (u32, u32),
}

/// A sheet whose rows are read.
pub(super) struct Sheet<'a> {
    cells: XlsxCellReader<'a, BufReader<File>>,
    merged: Vec<Merged>,
}

impl ReadRows for Sheet<'_> {
    fn read<F: Fields>(mut self, rows: &mut FileRows<'_, F>) -> io::Result<usize> {
        let bounds = &rows.reading.bounds;
        let mut table = Table::new(rows, false);
        let mut row: Vec<Cell<'_>> = Vec::new();
        let (mut row_at, mut bytes) = (0, 0);
        loop {
            let next = self.cells.next_cell_with_formula_metadata().map_err(damaged)?;
            let ends_row = next.as_ref().is_none_or(|cell| cell.pos.0 != row_at);
            if ends_row && !row.is_empty() {
                let line = u64::from(row_at) + 1;
                // A title above the header may be merged as it likes.
                if table.has_header()
                    && let Some(region) =
                        self.merged.iter().find(|region| (region.first.0..=region.last.0).contains(&row_at))
                {
                    table.take_fault(line, merged_message(*region));
                } else if bytes > bounds.line_bytes {
                    table.take_fault(line, bounds.line_fault());
                } else if table.take(line, &row).is_break() {
                    return Ok(table.end());
                }
                row.clear();
                bytes = 0;
            }
            let Some(found) = next else { return Ok(table.end()) };
            let (at_row, at) = found.pos;
            if at_row < row_at {
                return Err(unusable("its rows are not in their order; save it anew as .xlsx or as CSV in UTF-8"));
            }
            row_at = at_row;
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            let cell = cell(found.value, found.formula.is_some(), || format!("{}{}", letters(at), at_row + 1));
            if cell.text.is_empty() && cell.fault.is_none() {
                continue;
            }
            if at >= bounds.columns {
                table.take_fault(u64::from(at_row) + 1, bounds.columns_fault("columns"));
                return Ok(table.end());
            }
            bytes += cell.text.len();
            if row.len() <= at {
                row.resize_with(at + 1, Cell::default);
            }
            row[at] = cell;
        }
    }
}

fn merged_message(region: Merged) -> String {
    let name = |(row, column): (u32, u32)| format!("{}{}", letters(usize::try_from(column).unwrap_or(0)), row + 1);
    format!(
        "the cells {}:{} are merged, so that only the first has a value; unmerge them, and fill in each",
        name(region.first),
        name(region.last)
    )
}

/// A cell's text as CSV would hold it; `name` names the cell.
fn cell(value: DataRef<'_>, is_formula: bool, name: impl Fn() -> String) -> Cell<'_> {
    let bad = |shown: String, message: String| Cell { fault: Some(message.into()), ..Cell::text(shown) };
    match value {
        DataRef::Empty if is_formula => bad(
            String::new(),
            format!(
                "the cell {} holds a formula without a result; open the file in a spreadsheet program, and save it anew",
                name()
            ),
        ),
        DataRef::Empty => Cell::default(),
        DataRef::String(text) => Cell::text(text),
        DataRef::SharedString(text) => Cell::text(text),
        DataRef::Bool(value) => Cell::text(if value { "TRUE" } else { "FALSE" }),
        DataRef::Int(value) => Cell::text(value.to_string()),
        DataRef::Float(value) if value.abs() >= INEXACT && value.fract() == 0.0 => bad(
            format!("{value}"),
            "has more digits than the 15 that spreadsheets keep; format the cell as text, and write it anew".to_owned(),
        ),
        // Rust writes the shortest digits that read back as the same value.
        DataRef::Float(value) => Cell::text(format!("{value}")),
        DataRef::DateTime(value) => match day_of(value) {
            Ok(day) => Cell { is_date: true, ..Cell::text(day.to_string()) },
            Err(message) => bad(shown_time(value), message.to_owned()),
        },
        DataRef::DateTimeIso(text) => Cell { is_date: true, ..Cell::text(text) },
        DataRef::DurationIso(text) => bad(text, NO_DATE.to_owned()),
        DataRef::Error(error) => bad(
            error.to_string(),
            format!("the cell {} holds an error of the spreadsheet; correct or clear it", name()),
        ),
    }
}

const NO_DATE: &str = "is a time in the spreadsheet, and no day; write a date, or format the cell as a number";

/// The day that a cell holds.
fn day_of(value: ExcelDateTime) -> Result<Date, &'static str> {
    let (year, month, day, hour, minute, second, milli) = value.to_ymd_hms_milli();
    if value.is_duration() || value.as_f64() < 1.0 {
        return Err(NO_DATE);
    }
    if (hour, minute, second, milli) != (0, 0, 0, 0) {
        return Err("has a time of day in the spreadsheet; write the date alone");
    }
    let parts = (i16::try_from(year), i8::try_from(month), i8::try_from(day));
    match parts {
        (Ok(year), Ok(month), Ok(day)) => {
            Date::new(year, month, day).map_err(|_| "is no day of the calendar; write another date")
        }
        _ => Err(NO_DATE),
    }
}

fn shown_time(value: ExcelDateTime) -> String {
    let (year, month, day, hour, minute, second, _) = value.to_ymd_hms_milli();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use calamine::{CellErrorType, ExcelDateTimeType};

    use super::*;

    #[test]
    fn cells_become_texts() {
        let day = |serial| DataRef::DateTime(ExcelDateTime::new(serial, ExcelDateTimeType::DateTime, false));
        let cases = [
            (DataRef::Float(5.0), false, Ok("5")),
            (DataRef::Float(5.25), false, Ok("5.25")),
            (DataRef::Float(0.1 + 0.2), false, Ok("0.30000000000000004")),
            (DataRef::Float(9_007_199_254_740_991.0), false, Err("15")),
            (DataRef::Bool(true), false, Ok("TRUE")),
            (DataRef::String(" a ".into()), false, Ok(" a ")),
            (DataRef::String(String::new()), true, Ok("")),
            (DataRef::Empty, false, Ok("")),
            (DataRef::Empty, true, Err("B7 holds a formula without a result")),
            (DataRef::Error(CellErrorType::Ref), false, Err("B7 holds an error")),
            (day(46_096.0), false, Ok("2026-03-15")),
            (day(46_096.5), false, Err("time of day")),
            (day(0.25), false, Err("no day")),
            (day(60.0), false, Err("no day of the calendar")),
        ];
        for (value, is_formula, expected) in cases {
            let told = format!("{value:?}");
            let cell = cell(value, is_formula, || "B7".to_owned());
            match expected {
                Ok(text) => assert_eq!((&*cell.text, cell.fault), (text, None), "{told}"),
                Err(message) => assert!(cell.fault.is_some_and(|fault| fault.contains(message)), "{told}"),
            }
        }
    }

    #[test]
    fn announced_texts_are_read() {
        let cases: [(&str, Option<u64>); 3] = [
            ("<sst count=\"3\" uniqueCount=\"2\">", Some(2)),
            ("<sst>", None),
            ("<sst uniqueCount='99999999999999999999999'>", Some(u64::MAX)),
        ];
        for (text, expected) in cases {
            assert_eq!(announced_texts(text.as_bytes()), expected, "{text}");
        }
    }
}
