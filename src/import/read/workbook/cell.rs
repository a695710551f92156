//! Conversion of a workbook cell to the text that a CSV file would contain.

use std::borrow::Cow;

use jiff::ToSpan;
use jiff::civil::{Date, date};

use super::format::NumberFormat;
use super::sheet::{RawCell, RawKind, is_hyperlink_formula};
use super::shown::{ShownNumber, UNIT, show, show_day, show_text};
use super::strings::{MAX_CELL_UNITS, SharedStrings, is_too_long};
use super::styles::Styles;
use crate::import::read::tabular::TableCell;
use crate::model::message::{Message, message};

/// From here on, spreadsheets round integers: they keep 15 digits.
const MIN_INEXACT: f64 = 1e15;

const NO_DATE: &str = "is a time in the spreadsheet, not a date; write a date, or format the cell as a number";

const MILLIS_OF_DAY: i64 = 86_400_000;

/// The number of the day after 9999-12-31, the last day of the calendar.
const MAX_DAYS: f64 = 2_958_466.0;

/// The parts of a workbook that its cells refer to.
pub(super) struct Context {
    pub shared: SharedStrings,
    pub styles: Styles,
    /// Whether day numbers start in 1904 instead of 1900.
    pub is_1904: bool,
}

impl Context {
    /// Returns the text that a CSV file would contain for the cell.
    pub fn cell(&self, raw: &RawCell<'_>) -> TableCell<'_> {
        let name = || raw.position.name();
        let value = raw.value.filter(|value| raw.kind == RawKind::Text || !value.trim().is_empty());
        let Some(value) = value else {
            return match raw.formula {
                Some(_) => bad(
                    "",
                    message!(
                        "the cell {} contains a formula without a result; open the file in a spreadsheet program, and \
                         save it again",
                        name()
                    ),
                ),
                None => TableCell::default(),
            };
        };
        let damaged =
            || bad(value, message!("the cell {} contains a value that cannot be read; enter it again", name()));
        let format = self.styles.format(raw.style);
        let cell = match raw.kind {
            RawKind::Text => text_cell(Cow::Owned(value.to_owned()), format, name),
            RawKind::Shared => match value.trim().parse().ok().and_then(|index| self.shared.get(index)) {
                Some(text) => text_cell(Cow::Borrowed(text), format, name),
                None => damaged(),
            },
            RawKind::Flag => match value.trim() {
                "1" | "true" => TableCell::text("TRUE"),
                "0" | "false" => TableCell::text("FALSE"),
                _ => damaged(),
            },
            RawKind::Error => {
                bad(value, message!("the cell {} contains a spreadsheet error; correct or clear it", name()))
            }
            RawKind::Date => match value.get(..10).and_then(|day| day.parse().ok()) {
                Some(day) => partial_date_fault(format, MIN_INEXACT, day, name)
                    .unwrap_or_else(|| TableCell { is_date: true, ..TableCell::text(value.to_owned()) }),
                None => bad(value, NO_DATE),
            },
            RawKind::Number => match number(value) {
                Some(number) => self.number_cell(number, format, name),
                None => damaged(),
            },
        };
        match raw.formula.and_then(hyperlink_in) {
            Some(link) => TableCell { link: Some(link.into()), ..cell },
            None => cell,
        }
    }

    fn number_cell(&self, number: f64, format: Option<&NumberFormat>, name: impl Fn() -> String) -> TableCell<'static> {
        // Rust formats the shortest digits that parse to the same value.
        let text = format!("{number}");
        let shown = format.map_or(ShownNumber::Number(None), |format| show(format, number));
        match shown {
            ShownNumber::Date => match day_of(number, self.is_1904) {
                Ok(day) => partial_date_fault(format, number, day, name)
                    .unwrap_or_else(|| TableCell { is_date: true, ..TableCell::text(day.to_string()) }),
                Err((shown, message)) => bad(shown, message),
            },
            ShownNumber::Unit(shown, unit) => {
                let message = shows(&name(), &shown, UNIT);
                TableCell { unit: Some(unit), shown: Some(shown), is_number: true, ..bad(text, message) }
            }
            ShownNumber::Other(shown, remedy) => bad(text, shows(&name(), &shown, remedy)),
            ShownNumber::Number(_) if number.abs() >= MIN_INEXACT && number.fract() == 0.0 => bad(
                text,
                "has more digits than the 15 that spreadsheets keep; format the cell as text, and enter it again",
            ),
            ShownNumber::Number(shown) => TableCell { shown, is_number: true, ..TableCell::text(text) },
        }
    }
}

fn bad(shown: impl Into<String>, message: impl Into<Message>) -> TableCell<'static> {
    TableCell { fault: Some(message.into()), ..TableCell::text(shown.into()) }
}

/// The message for a cell that displays something else than its value.
fn shows(name: &str, shown: &str, remedy: &'static str) -> Message {
    let shown = if shown.is_empty() { "nothing".to_owned() } else { format!("`{shown}`") };
    Message { code: remedy, ..message!("the cell {name} shows {shown}; {remedy}") }
}

fn text_cell<'s>(text: Cow<'s, str>, format: Option<&NumberFormat>, name: impl Fn() -> String) -> TableCell<'s> {
    if is_too_long(&text) {
        let message = message!("the cell {} has more than {MAX_CELL_UNITS} characters; shorten it", name());
        return bad(text.chars().take(300).collect::<String>(), message);
    }
    let shown = format.filter(|_| !text.is_empty()).and_then(|format| show_text(format, &text));
    match shown {
        Some(shown) => {
            let message = shows(&name(), &shown, "format the cell as text, and check its value");
            bad(text, message)
        }
        None => TableCell::text(text),
    }
}

/// Parses a number with decimal digits.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_plain = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    text.parse().ok().filter(|number: &f64| is_plain && number.is_finite())
}

/// Returns a fault if the format does not display the full date.
fn partial_date_fault(
    format: Option<&NumberFormat>,
    serial: f64,
    day: Date,
    name: impl Fn() -> String,
) -> Option<TableCell<'static>> {
    let shown = show_day(format?, serial, day)?;
    let remedy = "write the date in a cell that shows day, month and year, such as 2026-03-15";
    Some(bad(day.to_string(), shows(&name(), &shown, remedy)))
}

/// Returns the date of a day number. The error is the displayed text and the reason.
fn day_of(number: f64, is_1904: bool) -> Result<Date, (String, &'static str)> {
    let shown = || format!("{number}");
    if !(0.0..MAX_DAYS).contains(&number) {
        return Err((shown(), NO_DATE));
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is below MAX_DAYS")]
    let millis = (number * 86_400_000.0).round() as i64;
    let (days, time) = (millis / MILLIS_OF_DAY, millis % MILLIS_OF_DAY);
    let clock = format!("{:02}:{:02}:{:02}", time / 3_600_000, time / 60_000 % 60, time / 1_000 % 60);
    if days == 0 && (time != 0 || !is_1904) {
        return Err((clock, NO_DATE));
    }
    let base = match days {
        _ if is_1904 => date(1904, 1, 1),
        // Excel's 1900 calendar has a 29 February, which is day 60.
        60 => return Err((shown(), "is not a day of the calendar; write another date")),
        ..60 => date(1899, 12, 31),
        _ => date(1899, 12, 30),
    };
    let day = base.checked_add(days.days()).map_err(|_| (shown(), NO_DATE))?;
    if time != 0 {
        return Err((format!("{day}T{clock}"), "has a time of day in the spreadsheet; write only the date"));
    }
    Ok(day)
}

/// Returns the address in a `HYPERLINK` formula. If the formula computes the address, returns the formula itself, which
/// is not a web address.
fn hyperlink_in(formula: &str) -> Option<String> {
    if !is_hyperlink_formula(formula) {
        return None;
    }
    let formula = formula.trim();
    let literal = || {
        let mut rest = formula.get(10..)?.trim_start().strip_prefix('"')?;
        let mut address = String::new();
        loop {
            let (before, after) = rest.split_once('"')?;
            address.push_str(before);
            match after.strip_prefix('"') {
                // A doubled quote stands for one quote.
                Some(after) => {
                    address.push('"');
                    rest = after;
                }
                None => return after.trim_start().starts_with([',', ')']).then_some(address),
            }
        }
    };
    Some(literal().unwrap_or_else(|| formula.chars().take(200).collect()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::position::CellPosition;
    use super::*;

    #[test]
    fn cells_become_texts() {
        let custom = HashMap::from([(164, NumberFormat::read("mmm\\ yy")), (165, NumberFormat::read("0.00"))]);
        let shared = SharedStrings::default();
        let context = Context { shared, styles: Styles::new(&[0, 14, 9, 164, 165], &custom), is_1904: false };
        let (number, text, date) = (RawKind::Number, RawKind::Text, RawKind::Date);
        let cases = [
            (number, 0, Some("5"), Ok("5")),
            (number, 0, Some("5.25"), Ok("5.25")),
            (number, 0, Some("0.30000000000000004"), Ok("0.30000000000000004")),
            (number, 4, Some("0.30000000000000004"), Ok("0.30000000000000004")),
            (number, 0, Some("9007199254740991"), Err("15")),
            (number, 0, Some("inf"), Err("cannot be read")),
            (number, 0, Some("1e999"), Err("cannot be read")),
            (number, 2, Some("0.12"), Err("the cell B7 shows `12%`; write the right number")),
            (number, 4, Some("0.125"), Err("the cell B7 shows `0.13`; write the right number")),
            (number, 1, Some("46096"), Ok("2026-03-15")),
            (number, 1, Some("46096.5"), Err("time of day")),
            (number, 1, Some("0.25"), Err("not a date")),
            (number, 1, Some("60"), Err("not a day of the calendar")),
            (number, 1, Some("59"), Ok("1900-02-28")),
            (number, 1, Some("61"), Ok("1900-03-01")),
            (number, 1, Some("2958465"), Ok("9999-12-31")),
            (number, 1, Some("2958466"), Err("not a date")),
            (number, 3, Some("46082"), Err("the cell B7 shows `Mar 26`; write the date")),
            (number, 0, Some(""), Ok("")),
            (number, 0, None, Ok("")),
            (date, 1, Some("2026-03-15T00:00:00"), Ok("2026-03-15T00:00:00")),
            (date, 3, Some("2026-03-15"), Err("shows `Mar 26`")),
            (date, 1, Some("PT1H"), Err("not a date")),
            (text, 0, Some(" a "), Ok(" a ")),
            (RawKind::Shared, 0, Some("0"), Err("cannot be read")),
            (RawKind::Flag, 0, Some("1"), Ok("TRUE")),
            (RawKind::Flag, 0, Some("2"), Err("cannot be read")),
            (RawKind::Error, 0, Some("#REF!"), Err("B7 contains a spreadsheet error")),
        ];
        let position = CellPosition { row: 6, column: 1 };
        for (kind, style, value, expected) in cases {
            let cell = context.cell(&RawCell { position, style, kind, value, formula: None });
            match expected {
                Ok(text) => assert_eq!((&*cell.text, cell.fault), (text, None), "{value:?}"),
                Err(message) => {
                    assert!(cell.fault.as_ref().is_some_and(|fault| fault.contains(message)), "{value:?}: {cell:?}")
                }
            }
        }
        let formula =
            |kind, value| context.cell(&RawCell { position, style: 0, kind, value, formula: Some("A1") }).fault;
        assert!(formula(number, None).is_some_and(|fault| fault.contains("B7 contains a formula without a result")));
        assert!(formula(number, Some("")).is_some() && formula(text, None).is_some());
        assert!(formula(text, Some("")).is_none() && formula(number, Some("1")).is_none());
    }

    #[test]
    fn days_are_counted_from_1904_where_the_workbook_says_so() {
        for (number, expected) in
            [(0.0, Some("1904-01-01")), (60.0, Some("1904-03-01")), (44_634.0, Some("2026-03-15")), (0.5, None)]
        {
            assert_eq!(day_of(number, true).ok().map(|day| day.to_string()).as_deref(), expected, "{number}");
        }
    }

    #[test]
    fn links_are_found_in_formulas() {
        let cases = [
            ("HYPERLINK(\"https://esmo.org\",\"ESMO\")", Some("https://esmo.org")),
            (" hyperlink( \"https://esmo.org\" )", Some("https://esmo.org")),
            ("HYPERLINK(\"https://a.org/\"\"x\"\"\")", Some("https://a.org/\"x\"")),
            ("HYPERLINK(\"https://a.org/\"&A1)", Some("HYPERLINK(\"https://a.org/\"&A1)")),
            ("HYPERLINK(\"https://a.org", Some("HYPERLINK(\"https://a.org")),
            ("\"ES\"&\"MO\"", None),
        ];
        for (formula, expected) in cases {
            assert_eq!(hyperlink_in(formula).as_deref(), expected, "{formula}");
        }
    }
}
