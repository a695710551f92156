//! Conversion of a workbook cell to the text that a CSV file would contain.

use calamine::{Data, ExcelDateTime, ExcelDateTimeType, Style};
use jiff::civil::Date;

use super::archive::cell_name;
use super::cells::Position;
use super::format::{CellFormat, OTHER_TEXT, PARTIAL_DATE, Refusal, UNIT};
use crate::import::read::table_cell::TableCell;
use crate::model::message::{Message, message};

/// From here on, spreadsheets round integers: they keep 15 digits.
const MIN_INEXACT: f64 = 1e15;

/// The number of digits after the first that spreadsheets keep and show.
const DIGITS_AFTER_FIRST: usize = 14;

const NO_DATE: &str =
    "is a time in the spreadsheet, not a date; write a date, or format the cell as a number";

/// How the cells of a workbook are read.
pub(super) struct CellStyles {
    formats: Vec<CellFormat>,
    /// Whether day numbers start in 1904 instead of 1900.
    is_1904: bool,
}

impl CellStyles {
    pub fn new(styles: &[Style], is_1904: bool) -> CellStyles {
        let mut formats: Vec<CellFormat> = styles.iter().map(CellFormat::of_style).collect();
        if formats.is_empty() {
            formats.push(CellFormat::new("General"));
        }
        CellStyles { formats, is_1904 }
    }

    /// Returns styles with these format codes.
    pub fn of_codes(codes: &[&str], is_1904: bool) -> CellStyles {
        let formats = codes.iter().map(|code| CellFormat::new(code)).collect();
        CellStyles { formats, is_1904 }
    }

    /// Returns the text that a CSV file would contain for the cell at this position.
    pub fn cell(&self, value: Data, style: usize, at: Position) -> TableCell {
        if value == Data::Empty {
            return TableCell::default();
        }
        let Some(format) = self.formats.get(style) else {
            let message = message!(
                "the cell {} has a format that the workbook lacks; format it again",
                cell_name(at)
            );
            return bad("", message);
        };
        match value {
            Data::Empty => TableCell::default(),
            Data::String(text) if text.is_empty() || format.shows_text => TableCell::text(text),
            Data::String(text) => refused(text, OTHER_TEXT, format, at),
            Data::Bool(is_true) => TableCell::text(if is_true { "TRUE" } else { "FALSE" }),
            Data::Int(number) => self.number_cell(number as f64, format, at),
            Data::Float(number) => self.number_cell(number, format, at),
            Data::DateTime(time) => self.number_cell(time.as_f64(), format, at),
            Data::DateTimeIso(text) | Data::DurationIso(text) => {
                match text.get(..10).and_then(|day| day.parse().ok()) {
                    Some(day) => date_cell(day, text, format, at),
                    None => bad(text, NO_DATE),
                }
            }
            Data::Error(error) => {
                let message = message!(
                    "the cell {} contains a spreadsheet error; correct or clear it",
                    cell_name(at)
                );
                bad(error.to_string(), message)
            }
        }
    }

    fn number_cell(&self, stored: f64, format: &CellFormat, at: Position) -> TableCell {
        if !stored.is_finite() {
            let message = message!(
                "the cell {} contains a value that cannot be read; enter it again",
                cell_name(at)
            );
            return bad(stored.to_string(), message);
        }
        // Spreadsheets show 15 digits, so 0.1 + 0.2 is 0.3.
        let number = format!("{stored:.DIGITS_AFTER_FIRST$e}")
            .parse()
            .unwrap_or(stored);
        let text = number.to_string();
        let section = match format.section(number) {
            Ok(section) if section.is_date() => {
                return match day_of(number, self.is_1904) {
                    Ok((day, clock)) => date_cell(day, format!("{day}{clock}"), format, at),
                    Err((shown, message)) => bad(shown, message),
                };
            }
            section => section,
        };
        let unit = match section.and_then(|section| section.unit_of(number, &text)) {
            Ok(unit) => Some(unit).filter(|unit| !unit.is_empty()),
            Err(refusal) => return refused(text, refusal, format, at),
        };
        let cell = match unit {
            Some(_) => refused(text, UNIT, format, at),
            None if number.abs() >= MIN_INEXACT => bad(
                stored.to_string(),
                "has more digits than the 15 that spreadsheets keep; format the cell as text, and enter it again",
            ),
            None => TableCell::text(text),
        };
        TableCell {
            is_number: true,
            unit,
            format: (!format.is_plain()).then(|| format.code.clone()),
            ..cell
        }
    }
}

/// Returns a cell with a date, of which the format may show a part only.
fn date_cell(day: Date, text: String, format: &CellFormat, at: Position) -> TableCell {
    let section = format.section(MIN_INEXACT).ok();
    let part = section.filter(|section| section.is_date());
    match part.and_then(|section| section.part_of(day)) {
        None => TableCell {
            is_date: true,
            ..TableCell::text(text)
        },
        part_of_date => TableCell {
            part_of_date,
            ..refused(text, PARTIAL_DATE, format, at)
        },
    }
}

fn bad(shown: impl Into<String>, message: impl Into<Message>) -> TableCell {
    TableCell {
        fault: Some(message.into()),
        ..TableCell::text(shown.into())
    }
}

/// Returns a cell that shows something else than its value.
fn refused(text: String, refusal: Refusal, format: &CellFormat, at: Position) -> TableCell {
    let Refusal { shows, remedy } = refusal;
    let message = message!(
        "the cell {} shows {shows}, in the format `{:.100}`; {remedy}",
        cell_name(at),
        format.code
    );
    bad(text, message)
}

/// Returns the date of a day number, and its time of day unless that is midnight. The error is the displayed text and
/// the reason.
fn day_of(number: f64, is_1904: bool) -> Result<(Date, String), (String, &'static str)> {
    // The day number of 9999-12-31, the last day of the calendar.
    let last_day = if is_1904 { 2_957_003.0 } else { 2_958_465.0 };
    if number < 0.0 || number.floor() > last_day {
        return Err((number.to_string(), NO_DATE));
    }
    let time = ExcelDateTime::new(number, ExcelDateTimeType::DateTime, is_1904);
    let (year, month, day, hour, minute, second, milli) = time.to_ymd_hms_milli();
    let clock = format!("{hour:02}:{minute:02}:{second:02}");
    let is_midnight = (hour, minute, second, milli) == (0, 0, 0, 0);
    if number < 1.0 && !(is_1904 && is_midnight) {
        return Err((clock, NO_DATE));
    }
    // Excel's 1900 calendar has a 29 February.
    let day = format!("{year:04}-{month:02}-{day:02}");
    let day = day.parse().map_err(|_| {
        let reason = "is not a day of the calendar; write another date";
        (number.to_string(), reason)
    })?;
    let time = if is_midnight {
        String::new()
    } else {
        format!("T{clock}")
    };
    Ok((day, time))
}

#[cfg(test)]
mod tests {
    use calamine::CellErrorType;

    use super::*;

    #[test]
    fn cells_become_texts() {
        let formats = ["General", "m/d/yyyy", "0%", "mmm\\ yy", "0.00", ";;;"].map(CellFormat::new);
        let styles = CellStyles {
            formats: formats.into(),
            is_1904: false,
        };
        let number = Data::Float;
        let text = |text: &str| Data::String(text.to_owned());
        let date = |text: &str| Data::DateTimeIso(text.to_owned());
        let cases = cases![
            number(5.0), 0, Ok("5");
            number(5.25), 0, Ok("5.25");
            number(-5.25), 4, Ok("-5.25");
            number(0.1 + 0.2), 0, Ok("0.3");
            number(0.1 + 0.2), 4, Ok("0.3");
            number(12.345_678_901_234_567), 0, Ok("12.3456789012346");
            number(1e-7), 0, Ok("0.0000001");
            number(999_999_999_999_999.0), 0, Ok("999999999999999");
            number(9_007_199_254_740_991.0), 0, Err("has more digits than the 15");
            number(1e21), 0, Err("has more digits than the 15");
            number(f64::INFINITY), 0, Err("the cell B7 contains a value that cannot be read");
            number(1.0), 9, Err("the cell B7 has a format that the workbook lacks");
            number(0.12), 2, Err("the cell B7 shows a percentage, in the format `0%`; write the right number");
            number(0.125), 4,
                Err(
                    "the cell B7 shows fewer digits than it has, in the format `0.00`; write the right number, or make the cell show",
                );
            number(46_096.0), 1, Ok("2026-03-15");
            number(46_096.5), 1, Ok("2026-03-15T12:00:00");
            number(0.25), 1, Err("not a date");
            number(60.0), 1, Err("not a day of the calendar");
            number(46_082.0), 3, Err("the cell B7 shows only a part of the date, in the format `mmm\\ yy`; write");
            number(1.0), 5, Err("the cell B7 shows no number");
            Data::Empty, 9, Ok("");
            date("2026-03-15T00:00:00"), 1, Ok("2026-03-15T00:00:00");
            date("2026-03-15"), 3, Err("only a part of the date");
            date("PT1H"), 1, Err("not a date");
            text(" a "), 0, Ok(" a ");
            text("a"), 4, Ok("a");
            text("a"), 5, Err("the cell B7 shows another text");
            text(""), 5, Ok("");
            Data::Bool(true), 0, Ok("TRUE");
            Data::Error(CellErrorType::Ref), 0, Err("the cell B7 contains a spreadsheet error; correct or clear it");
        ];
        for (value, style, expected) in cases {
            let shown = format!("{value:?}");
            let cell = styles.cell(value, style, (6, 1));
            match expected {
                Ok(text) => assert_eq!((&*cell.text, &cell.fault), (text, &None), "{shown}"),
                Err(message) => {
                    assert!(
                        cell.fault
                            .as_ref()
                            .is_some_and(|fault| fault.contains(message)),
                        "{shown}: {cell:?}"
                    )
                }
            }
        }
    }
}
