//! Writes workbooks for spreadsheet programs and `medfeed import`: one sheet for each kind of rows.

use std::io::{Seek, Write};

use anyhow::{Context, Result, bail};
use rust_xlsxwriter::{
    ColNum, DataValidation, ExcelDateTime, Format, FormatAlign, Note, RowNum, Workbook, Worksheet,
};

use crate::model::field::FieldTable;
use crate::model::{ValueKind, parse_date};

/// The most UTF-16 units of a cell.
const MAX_CELL_UNITS: usize = 32_767;

/// The last row of a sheet, from 0.
const LAST_ROW: RowNum = 1_048_575;

struct SheetColumn {
    name: &'static str,
    note: &'static str,
    kind: ValueKind,
}

impl SheetColumn {
    /// The width in characters.
    fn width(&self) -> f64 {
        match self.kind {
            ValueKind::Date => 12.0,
            ValueKind::Integer | ValueKind::Year | ValueKind::Number | ValueKind::Flag => 10.0,
            ValueKind::Choice(_) | ValueKind::DateStatus(_) => 14.0,
            ValueKind::Text if self.name == "name" => 44.0,
            ValueKind::Text | ValueKind::Texts | ValueKind::Links(_) => 22.0,
        }
    }
}

/// Writes a workbook.
pub struct WorkbookWriter {
    workbook: Workbook,
    date: Format,
    header: Format,
    text: Format,
}

impl WorkbookWriter {
    pub fn new() -> WorkbookWriter {
        WorkbookWriter {
            workbook: Workbook::new(),
            date: Format::new().set_num_format("yyyy-mm-dd"),
            header: Format::new().set_bold().set_align(FormatAlign::Top),
            text: Format::new().set_num_format("@"),
        }
    }

    /// Begins the sheet `name` for the rows of a table. `is_dated` adds the column `updated_at`.
    pub fn begin(
        &mut self,
        name: &str,
        table: &'static FieldTable,
        is_dated: bool,
    ) -> Result<SheetWriter<'_>> {
        let note = "The row's number, from 1; it never changes";
        let mut columns = vec![SheetColumn {
            name: "id",
            note,
            kind: ValueKind::Integer,
        }];
        let fields = table.fields.iter();
        columns.extend(fields.map(|field| SheetColumn {
            name: &field.column,
            note: &field.note,
            kind: field.kind,
        }));
        if is_dated {
            let note = "When the record last changed; import ignores it";
            columns.push(SheetColumn {
                name: "updated_at",
                note,
                kind: ValueKind::Text,
            });
        }
        let sheet = self.workbook.add_worksheet();
        sheet.set_name(name)?;
        for (at, column) in (0..).zip(&columns) {
            sheet.write_string_with_format(0, at, column.name, &self.header)?;
            sheet.set_column_width(at, column.width())?;
        }
        sheet.set_freeze_panes(1, 0)?;
        Ok(SheetWriter {
            sheet,
            columns,
            date: &self.date,
            text: &self.text,
            rows: 0,
        })
    }

    /// Writes the whole workbook to `out`.
    pub fn write(mut self, out: impl Write + Seek + Send) -> Result<()> {
        Ok(self.workbook.save_to_writer(out)?)
    }
}

/// Fills one sheet.
pub struct SheetWriter<'a> {
    sheet: &'a mut Worksheet,
    columns: Vec<SheetColumn>,
    date: &'a Format,
    text: &'a Format,
    rows: RowNum,
}

impl SheetWriter<'_> {
    /// Adds a row, given as the cells of CSV. Returns an error if a text is too long for a cell, or the sheet is full.
    pub fn push(&mut self, cells: &[impl AsRef<str>]) -> Result<()> {
        self.rows += 1;
        for ((at, column), cell) in (0..).zip(0..self.columns.len()).zip(cells) {
            let SheetColumn { name, kind, .. } = self.columns[column];
            self.write(at, kind, cell.as_ref()).with_context(|| {
                let sheet = self.sheet.name();
                format!("row {} of `{sheet}`, column `{name}`", self.rows + 1)
            })?;
        }
        Ok(())
    }

    /// Writes a cell of the current row, unless it is empty.
    fn write(&mut self, at: ColNum, kind: ValueKind, cell: &str) -> Result<()> {
        let sheet = &mut *self.sheet;
        let row = self.rows;
        // A number or date that a spreadsheet would not keep exactly is written as a text. Import reads such texts too.
        match kind {
            _ if cell.is_empty() => {}
            ValueKind::Integer | ValueKind::Year | ValueKind::Number
                if let Some(number) = exact_number(cell) =>
            {
                sheet.write_number(row, at, number)?;
            }
            ValueKind::Flag => {
                sheet.write_boolean(row, at, cell == "TRUE")?;
            }
            ValueKind::Date if let Some(day) = date_of(cell) => {
                sheet.write_datetime_with_format(row, at, &day, self.date)?;
            }
            _ => {
                let units = cell.encode_utf16().count();
                if units > MAX_CELL_UNITS {
                    bail!(
                        "the text has {units} characters, and a cell of a spreadsheet holds at most {MAX_CELL_UNITS}; use --format csv or jsonl"
                    );
                }
                // The text format keeps it a text when the cell is edited.
                sheet.write_string_with_format(row, at, cell, self.text)?;
            }
        }
        Ok(())
    }

    /// Ends the sheet with a filter on all its columns.
    pub fn end(self) -> Result<()> {
        let last = ColNum::try_from(self.columns.len())?.saturating_sub(1);
        self.sheet.autofilter(0, 0, self.rows.max(1), last)?;
        Ok(())
    }

    /// Prepares the empty sheet for typing: formats that keep texts unchanged, lists of allowed words, and a note for
    /// each column.
    pub fn prepare(&mut self) -> Result<()> {
        for (at, column) in (0..).zip(&self.columns) {
            self.sheet.insert_note(
                0,
                at,
                &Note::new(column.note.replace('`', "")).add_author_prefix(false),
            )?;
            match column.kind {
                ValueKind::Integer | ValueKind::Year | ValueKind::Number | ValueKind::Flag => {}
                ValueKind::Date => drop(self.sheet.set_column_format(at, self.date)?),
                // Without a text format, a spreadsheet converts ISSNs and names to dates and numbers.
                _ => drop(self.sheet.set_column_format(at, self.text)?),
            }
            let words = match column.kind {
                ValueKind::Flag => &["TRUE", "FALSE"],
                kind => kind.words(),
            };
            if !words.is_empty() {
                let validation = DataValidation::new()
                    .allow_list_strings(words)?
                    .set_error_title("Unknown value")?
                    .set_error_message(format!("Choose one of: {}", words.join(", ")))?;
                self.sheet
                    .add_data_validation(1, at, LAST_ROW, at, &validation)?;
            }
        }
        Ok(())
    }
}

/// The number, if a spreadsheet keeps and shows it exactly. It shows 15 digits.
fn exact_number(cell: &str) -> Option<f64> {
    let number: f64 = cell.parse().ok()?;
    let digits = cell.strip_suffix(".0").unwrap_or(cell);
    let is_kept = number < 1e15 && format!("{number:.14e}").parse() == Ok(number);
    (is_kept && number.to_string() == digits).then_some(number)
}

/// The date, if a spreadsheet can store it. Their calendar begins in 1900 and has a wrong leap day that year, so 1900
/// is excluded.
fn date_of(cell: &str) -> Option<ExcelDateTime> {
    let date = parse_date(cell).ok()?;
    let day = ExcelDateTime::parse_from_str(cell).ok();
    day.filter(|_| date.year() > 1900)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Fields, TagFields};

    #[test]
    fn only_exact_numbers_and_dates_are_no_texts() {
        let numbers = outcomes![
            "0.0" "5.0" "5" "1.5" "0.1" "999999999999999.0" => true;
            "1.50" "01.0" "1000000000000000.0" "1e3" "" "x" "inf" "NaN" => false;
        ];
        for (cell, expected) in numbers {
            assert_eq!(exact_number(cell).is_some(), expected, "{cell}");
        }
        let dates = [
            ("1900-12-31", false),
            ("1901-01-01", true),
            ("2028-02-29", true),
            ("2027-02-29", false),
            ("2027-1-1", false),
            ("", false),
        ];
        for (cell, expected) in dates {
            assert_eq!(date_of(cell).is_some(), expected, "{cell}");
        }
    }

    #[test]
    fn a_text_longer_than_a_cell_is_refused() {
        let cases = [
            ("a", MAX_CELL_UNITS, true),
            ("a", MAX_CELL_UNITS + 1, false),
            ("ü", MAX_CELL_UNITS, true),
            ("🧬", MAX_CELL_UNITS / 2, true),
            ("🧬", MAX_CELL_UNITS / 2 + 1, false),
        ];
        for (letter, count, expected) in cases {
            let mut workbook = WorkbookWriter::new();
            let mut sheet = workbook.begin("tags", TagFields::table(), false).unwrap();
            let pushed = sheet.push(&["1", "Type", &letter.repeat(count)]);
            assert_eq!(pushed.is_ok(), expected, "{count} {letter}");
            if let Err(error) = pushed {
                let told = format!("{error:#}");
                assert!(
                    told.starts_with(
                        "row 2 of `tags`, column `name`: the text has 32768 characters"
                    ),
                    "{told}"
                );
            }
        }
    }
}
