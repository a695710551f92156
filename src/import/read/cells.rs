//! Conversion of spreadsheet cells to the form that fields are parsed from. Unambiguous spellings are converted.
//! Ambiguous or damaged cells are rejected, with a message that shows the right spelling.

use std::borrow::Cow;

use jiff::civil::Date;
use serde::Deserialize;

use crate::import::lint::is_placeholder;
use crate::model::fold::comparable;
use crate::model::fold::fold;
use crate::model::fold::is_blank;
use crate::model::message::{Message, message};
use crate::model::time::parse_date;
use crate::model::value::ValueKind;

/// The known facts about how a table writes its values.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::import) struct Notation {
    /// Whether semicolons separate the cells. In such files a comma usually is the decimal sign, and points group
    /// digits.
    pub has_semicolons: bool,
    /// Whether the column contains prices. Prices rarely have three decimals.
    pub is_price: bool,
    /// Whether the table is a sheet of a workbook. Its numbers are number cells, not text.
    pub is_sheet: bool,
    /// Whether the cell is a number cell of a workbook.
    pub is_number: bool,
    /// The decimal sign, if set by an option.
    pub decimal: Option<DecimalSign>,
    /// The order of day and month, if set by an option.
    pub dates: Option<DateOrder>,
}

impl Notation {
    /// Returns true if a comma may be the decimal sign.
    fn may_have_comma(&self) -> bool {
        self.has_semicolons || self.decimal == Some(DecimalSign::Comma)
    }
}

/// A decimal sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, strum::EnumString, strum::VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DecimalSign {
    /// `2.5`; commas group digits.
    Point,
    /// `2,5`; points group digits.
    Comma,
}

/// The order of day, month and year in a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, strum::EnumString, strum::VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DateOrder {
    /// Day, month, year.
    Dmy,
    /// Month, day, year.
    Mdy,
}

/// Returns the cell in the form that a field of this kind is parsed from; empty for null. The error says what to write
/// instead.
pub(in crate::import) fn normalize<'c>(
    kind: ValueKind,
    cell: &'c str,
    notation: &Notation,
) -> Result<Cow<'c, str>, Message> {
    let trimmed = cell.trim_matches(is_blank);
    match kind {
        // Text stays unchanged, so that an export can be imported again.
        ValueKind::Text | ValueKind::Texts | ValueKind::Links(_) => Ok(Cow::Borrowed(cell)),
        ValueKind::Choice(words) | ValueKind::DateStatus(words) => Ok(normalize_word(words, trimmed)),
        ValueKind::Date => normalize_date(trimmed, notation.dates),
        ValueKind::Integer | ValueKind::Year => normalize_integer(trimmed, notation),
        ValueKind::Number if notation.is_number => Ok(Cow::Borrowed(trimmed)),
        ValueKind::Number => normalize_number(trimmed, notation),
        ValueKind::Flag => Ok(match parse_flag(trimmed) {
            Some(true) => Cow::Borrowed("TRUE"),
            Some(false) => Cow::Borrowed("FALSE"),
            None => Cow::Borrowed(trimmed),
        }),
    }
}

/// Returns the word that equals the cell except for case, blanks, `-` and `_`; otherwise the cell itself.
pub(in crate::import) fn normalize_word<'c>(words: &[&'static str], cell: &'c str) -> Cow<'c, str> {
    let meant = comparable(cell);
    words.iter().find(|word| comparable(word) == meant).map_or(Cow::Borrowed(cell), |word| Cow::Borrowed(*word))
}

/// Parses a flag: TRUE and FALSE in the languages of spreadsheet programs, yes and no, or an `x`.
pub(in crate::import) fn parse_flag(cell: &str) -> Option<bool> {
    #[rustfmt::skip]
    const YES: &[&str] = &[
        "1", "true", "yes", "y", "x", "\u{2713}", "\u{2714}", "ja", "j", "oui", "si", "sim", "tak", "ano", "igen", "kylla",
        "evet", "да", "wahr", "vrai", "vero", "verdadero", "verdadeiro", "waar", "prawda", "sand", "sant", "sann", "tosi",
        "pravda", "igaz", "dogru", "истина",
    ];
    #[rustfmt::skip]
    const NO: &[&str] = &[
        "0", "false", "no", "n", "nein", "non", "nao", "nie", "ne", "nem", "ei", "nej", "nee", "nei", "hayir", "нет", "falsch",
        "faux", "falso", "onwaar", "falsz", "falsk", "falskt", "usann", "epatosi", "nepravda", "hamis", "yanlis", "ложь",
    ];
    // No word is longer, so skip the folding.
    if cell.len() > 24 {
        return None;
    }
    let folded = fold(cell.trim_matches(is_blank)).replace('ı', "i");
    match folded.as_str() {
        yes if YES.contains(&yes) => Some(true),
        no if NO.contains(&no) => Some(false),
        _ => None,
    }
}

fn normalize_date(cell: &str, order: Option<DateOrder>) -> Result<Cow<'_, str>, Message> {
    // The unambiguous formats: year first, dots, or the name of the month.
    const FORMATS: [&str; 10] = [
        "%Y-%m-%d",
        "%Y/%m/%d",
        "%Y.%m.%d",
        "%d.%m.%Y",
        "%d %B %Y",
        "%d %b %Y",
        "%B %d, %Y",
        "%b %d, %Y",
        "%d-%b-%Y",
        "%d. %B %Y",
    ];
    if cell.is_empty() || parse_date(cell).is_ok() {
        return Ok(Cow::Borrowed(cell));
    }
    if is_placeholder("", cell) {
        return Err(
            "is not a date; leave the cell empty, and use the date's status to say why, such as `not_found`".into()
        );
    }
    let (day, time) = match cell.split_once(['T', ' ']) {
        Some((day, time)) if parse_date(day).is_ok() => (day, Some(time)),
        _ => (cell, None),
    };
    match time {
        Some(time) if is_midnight(time) => return Ok(Cow::Borrowed(day)),
        Some(_) => return Err(message!("has a time of day; write only the date, `{day}`")),
        None => {}
    }
    // Otherwise `26` would be a year of the first century.
    let has_year = |date: &Date| (1000..=9999).contains(&date.year());
    let read = FORMATS.iter().find_map(|format| Date::strptime(format, cell).ok()).filter(has_year);
    if let Some(date) = read {
        return Ok(Cow::Owned(date.to_string()));
    }
    if let Some(date) = date_of_parts(cell, order)? {
        return Ok(Cow::Owned(date.to_string()));
    }
    if cell.len() == 5 && cell.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("is the number of a day in a spreadsheet; format the column as a date, or write YYYY-MM-DD".into());
    }
    Ok(Cow::Borrowed(cell))
}

/// Parses a date such as `15/3/2026`, in which the day or the month is first. Returns `None` for other texts.
fn date_of_parts(cell: &str, order: Option<DateOrder>) -> Result<Option<Date>, Message> {
    let parts: Vec<&str> = if cell.contains('/') { cell.split('/') } else { cell.split('-') }.collect();
    let is_digits = |part: &&str| !part.is_empty() && part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit());
    let [first, second, year] = *parts else { return Ok(None) };
    if !parts.iter().all(is_digits) || first.len() > 2 || second.len() > 2 {
        return Ok(None);
    }
    if year.len() != 4 {
        return Err("has a year of two digits; write a date as YYYY-MM-DD, such as 2026-03-15".into());
    }
    let date = |day: &str, month: &str| {
        Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok().filter(|date| date.year() >= 1000)
    };
    let (dmy, mdy) = (date(first, second), date(second, first));
    let chosen = match order {
        Some(DateOrder::Dmy) => Some((dmy, "dmy")),
        Some(DateOrder::Mdy) => Some((mdy, "mdy")),
        None => None,
    };
    match (chosen, dmy, mdy) {
        (Some((Some(date), _)), ..) => Ok(Some(date)),
        (Some((None, name)), ..) => {
            Err(message!("is not a date in the order --dates {name}; write a date as YYYY-MM-DD"))
        }
        (None, Some(date), None) | (None, None, Some(date)) => Ok(Some(date)),
        (None, Some(one), Some(other)) if one == other => Ok(Some(one)),
        (None, Some(_), Some(_)) => {
            Err("may be day/month or month/day; write a date as YYYY-MM-DD, such as 2026-03-15, or set the order with \
             --dates dmy or --dates mdy"
                .into())
        }
        (None, None, None) => Ok(None),
    }
}

/// Returns true if a time of day is midnight, with no time zone or UTC.
fn is_midnight(time: &str) -> bool {
    let clock = time.trim_end_matches("+00:00").trim_end_matches(['Z', 'z']);
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    matches!(whole, "00:00" | "00:00:00" | "0:00" | "0:00:00") && fraction.bytes().all(|byte| byte == b'0')
}

fn normalize_integer<'c>(cell: &'c str, notation: &Notation) -> Result<Cow<'c, str>, Message> {
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if cell.is_empty() || all_digits(cell) {
        return Ok(Cow::Borrowed(cell));
    }
    if is_placeholder("", cell) {
        return Err("is not a number; leave the cell empty".into());
    }
    let sign = if cell.contains(',') { DecimalSign::Comma } else { DecimalSign::Point };
    if let Some((whole, fraction)) = cell.split_once(['.', ','])
        && all_digits(whole)
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte == b'0')
        && (notation.decimal == Some(sign) || !may_be_grouped(cell))
    {
        return if sign == DecimalSign::Point || notation.may_have_comma() {
            Ok(Cow::Borrowed(whole))
        } else {
            Err(message!("has a decimal comma; write only the digits, `{whole}`, or add --decimal comma"))
        };
    }
    if cell.contains(['e', 'E']) && cell.parse::<f64>().is_ok() {
        return Err(
            "is written with an exponent, which loses digits; format the column as text, and write all digits".into()
        );
    }
    // The point of a number cell always begins a fraction.
    if let Some(digits) = without_separators(cell).filter(|_| !notation.is_number) {
        return Err(message!("has separators between its digits; write only the digits, `{digits}`"));
    }
    Ok(Cow::Borrowed(cell))
}

/// Returns true if a sign may group digits.
fn is_separator(sign: char) -> bool {
    matches!(sign, ',' | '.' | '\'' | '’') || is_blank(sign)
}

/// Returns the digits of a number whose thousands are grouped by one sign; a second sign may begin a fraction.
fn without_separators(cell: &str) -> Option<String> {
    let mut groups = cell.split(cell.chars().find(|sign| is_separator(*sign))?);
    let first = groups.next()?;
    let digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let rest: Vec<&str> = groups.collect();
    let is_grouped = (1..=3).contains(&first.len())
        && digits(first)
        && !rest.is_empty()
        && rest.iter().all(|group| group.len() == 3 && digits(group));
    is_grouped.then(|| format!("{first}{}", rest.concat()))
}

fn normalize_number<'c>(cell: &'c str, notation: &Notation) -> Result<Cow<'c, str>, Message> {
    if !cell.is_empty() && is_placeholder("", cell) {
        return Err("is not a number; leave the cell empty".into());
    }
    if cell.ends_with('%') {
        return Err("is a percentage; write only the number, without `%`".into());
    }
    let is_plain = |sign: char| sign.is_ascii_digit() || matches!(sign, '.' | ',');
    if !cell.chars().all(is_plain) {
        return match without_separators(cell) {
            Some(digits) => Err(message!("has separators between its digits; write only the digits, `{digits}`")),
            None if cell.chars().all(|sign| sign.is_ascii_digit() || is_separator(sign)) => {
                Err("has several separators; write digits and at most one decimal point".into())
            }
            None => Ok(Cow::Borrowed(cell)),
        };
    }
    let Some(last) = cell.rfind(['.', ',']) else { return Ok(Cow::Borrowed(cell)) };
    let (whole, fraction) = (&cell[..last], &cell[last + 1..]);
    let sign = if cell[last..].starts_with(',') { DecimalSign::Comma } else { DecimalSign::Point };
    let as_decimal = || Cow::Owned(format!("{whole}.{fraction}"));
    if whole.contains(['.', ',']) {
        // Several separators have one meaning: groups and a fraction, such as `1.234,5`, or several groups.
        let groups_by = if whole.contains(',') { DecimalSign::Comma } else { DecimalSign::Point };
        let (number, expected) = match (without_separators(whole), without_separators(cell)) {
            (Some(digits), _) if sign != groups_by => (format!("{digits}.{fraction}"), "has a decimal comma"),
            (_, Some(digits)) => (digits, "groups digits by points"),
            _ => return Err("has several commas or points; write digits and at most one decimal point".into()),
        };
        // In other tables `3.125` is read with a decimal point.
        return if groups_by == DecimalSign::Comma || notation.may_have_comma() {
            Ok(Cow::Owned(number))
        } else {
            Err(message!("{expected}; write `{number}`, or add --decimal comma"))
        };
    }
    let may_group = may_be_grouped(cell);
    let is_likely = is_grouping_likely(cell, notation);
    match (sign, notation.decimal) {
        (_, Some(decimal)) if decimal == sign => Ok(as_decimal()),
        (_, Some(_)) if may_group => Ok(Cow::Owned(format!("{whole}{fraction}"))),
        (DecimalSign::Point, _) if !may_group || !is_likely => Ok(Cow::Borrowed(cell)),
        (DecimalSign::Comma, _) if !may_group && notation.may_have_comma() => Ok(as_decimal()),
        (DecimalSign::Comma, _) if !may_group => {
            Err(message!("has a decimal comma; write a decimal point, `{whole}.{fraction}`, or add --decimal comma"))
        }
        _ => Err(ambiguous_number_message(cell)),
    }
}

/// Returns true if a comma or point that may group digits probably does. Exports never write three decimals that end with
/// a zero, so exported numbers are read back unchanged.
fn is_grouping_likely(cell: &str, notation: &Notation) -> bool {
    notation.has_semicolons || notation.is_price && (notation.is_sheet || cell.ends_with('0'))
}

/// Returns true if the text has one comma or point, with exactly three digits after it. The sign may group digits or
/// start a fraction.
fn may_be_grouped(cell: &str) -> bool {
    let Some((whole, fraction)) = cell.split_once(['.', ',']) else { return false };
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (1..=3).contains(&whole.len())
        && fraction.len() == 3
        && all_digits(whole)
        && all_digits(fraction)
        && !whole.starts_with('0')
}

/// The message for a number for which [`may_be_grouped`] returns true.
fn ambiguous_number_message(cell: &str) -> Message {
    let sign = if cell.contains(',') { ',' } else { '.' };
    let (digits, number) = (cell.replace(sign, ""), cell.replace(sign, "."));
    let number = number.trim_end_matches('0').trim_end_matches('.');
    message!(
        "may be {digits} or {number}, since a `{sign}` before three digits may group them; write `{digits}` or \
         `{number}`, or set the decimal sign with --decimal point or --decimal comma"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ReferenceKind;

    #[test]
    fn cells_are_brought_into_form() {
        let cases = [
            (ValueKind::Date, "2026-03-15", Ok("2026-03-15")),
            (ValueKind::Date, "\u{a0}2026-03-15 ", Ok("2026-03-15")),
            (ValueKind::Date, " \u{a0}", Ok("")),
            (ValueKind::Date, "2026/03/15", Ok("2026-03-15")),
            (ValueKind::Date, "2026-3-5", Ok("2026-03-05")),
            (ValueKind::Date, "15.03.2026", Ok("2026-03-15")),
            (ValueKind::Date, "5.3.2026", Ok("2026-03-05")),
            (ValueKind::Date, "15.03.26", Ok("15.03.26")),
            (ValueKind::Date, "March 15, 2026", Ok("2026-03-15")),
            (ValueKind::Date, "15 Mar 2026", Ok("2026-03-15")),
            (ValueKind::Date, "15-Mar-2026", Ok("2026-03-15")),
            (ValueKind::Date, "2026-03-15T00:00:00", Ok("2026-03-15")),
            (ValueKind::Date, "2026-03-15 00:00:00.000", Ok("2026-03-15")),
            (ValueKind::Date, "2026-03-15T00:00:00Z", Ok("2026-03-15")),
            (ValueKind::Date, "2026-03-15T09:30:00", Err("write only the date, `2026-03-15`")),
            (ValueKind::Date, "2026-03-15T00:00:00+02:00", Err("write only the date")),
            (ValueKind::Date, "03/15/2026", Ok("2026-03-15")),
            (ValueKind::Date, "15/3/2026", Ok("2026-03-15")),
            (ValueKind::Date, "15-3-2026", Ok("2026-03-15")),
            (ValueKind::Date, "5/5/2026", Ok("2026-05-05")),
            (ValueKind::Date, "03/04/2026", Err("may be day/month or month/day")),
            (ValueKind::Date, "3/4/26", Err("year of two digits")),
            (ValueKind::Date, "31/31/2026", Ok("31/31/2026")),
            (ValueKind::Date, "46096", Err("is the number of a day")),
            (ValueKind::Date, "TBD", Err("leave the cell empty")),
            (ValueKind::Date, "-", Err("leave the cell empty")),
            (ValueKind::Date, "2026-02-30", Ok("2026-02-30")),
            (ValueKind::Date, "29.02.2024", Ok("2024-02-29")),
            (ValueKind::Date, "29.02.2026", Ok("29.02.2026")),
            (ValueKind::Date, "29/02/2024", Ok("2024-02-29")),
            (ValueKind::Date, "02/29/2026", Ok("02/29/2026")),
            (ValueKind::Date, "29.02.2000", Ok("2000-02-29")),
            (ValueKind::Date, "29.02.1900", Ok("29.02.1900")),
            (ValueKind::Date, "31.12.2025", Ok("2025-12-31")),
            (ValueKind::Date, "31.11.2025", Ok("31.11.2025")),
            (ValueKind::Date, "12/31/2025", Ok("2025-12-31")),
            (ValueKind::Date, "31/12/2025", Ok("2025-12-31")),
            (ValueKind::Date, "12/13/2025", Ok("2025-12-13")),
            (ValueKind::Date, "13/12/2025", Ok("2025-12-13")),
            (ValueKind::Date, "12/12/2025", Ok("2025-12-12")),
            (ValueKind::Date, "12/11/2025", Err("may be day/month or month/day")),
            (ValueKind::Date, "15/3/0999", Ok("15/3/0999")),
            (ValueKind::Date, "15.3.999", Ok("15.3.999")),
            (ValueKind::Date, "2026-W11-7", Ok("2026-W11-7")),
            (ValueKind::Date, "2026-03-15T00:00:00.5", Err("write only the date, `2026-03-15`")),
            (ValueKind::Date, "2026-03-15T00:00:00+00:00", Ok("2026-03-15")),
            (ValueKind::Date, "2026-03-15T00:00:00-00:30", Err("write only the date")),
            (ValueKind::Date, "2026-03-15 0:00", Ok("2026-03-15")),
            (ValueKind::Date, "2026-03-15T24:00:00", Err("write only the date")),
            (ValueKind::Date, "2026-03-15T23:59:59Z", Err("write only the date, `2026-03-15`")),
            (ValueKind::Date, "4609", Ok("4609")),
            (ValueKind::Date, "460960", Ok("460960")),
            (ValueKind::Integer, "1'234", Err("`1234`")),
            (ValueKind::Integer, "1’234’567", Err("`1234567`")),
            (ValueKind::Integer, "1'23", Ok("1'23")),
            (ValueKind::Integer, "1234'567", Ok("1234'567")),
            (ValueKind::Integer, "5.00", Ok("5")),
            (ValueKind::Integer, "5.0000", Ok("5")),
            (ValueKind::Integer, "5.5", Ok("5.5")),
            (ValueKind::Integer, "5.", Ok("5.")),
            (ValueKind::Integer, "1,234.567", Ok("1,234.567")),
            (ValueKind::Number, "1'234", Err("`1234`")),
            (ValueKind::Number, "1 234 567", Err("`1234567`")),
            (ValueKind::Number, "1 234,567", Err("has several separators; write digits and at most one decimal point")),
            (ValueKind::Number, "1'234.567", Err("has several separators")),
            (ValueKind::Number, "1 234.5", Err("has several separators")),
            (ValueKind::Number, "1,234.567,890", Err("several commas or points")),
            (ValueKind::Number, "1,234.567", Ok("1234.567")),
            (ValueKind::Number, "1’234", Err("`1234`")),
            (ValueKind::Number, "123,456", Err("may be 123456 or 123.456")),
            (ValueKind::Number, "1234,567", Err("has a decimal comma; write a decimal point, `1234.567`")),
            (ValueKind::Number, "1234.567", Ok("1234.567")),
            (ValueKind::Number, "1.234.567,8", Err("has a decimal comma; write `1234567.8`")),
            (ValueKind::Number, "1.234.567", Err("groups digits by points; write `1234567`")),
            (ValueKind::Number, "1,234,567.89", Ok("1234567.89")),
            (ValueKind::Number, "1234.567,8", Err("several commas or points")),
            (ValueKind::Number, "1,2345,678", Err("several commas or points")),
            (ValueKind::Number, ",5", Err("`.5`")),
            (ValueKind::Flag, "verdadeiro", Ok("TRUE")),
            (ValueKind::Flag, "HAYIR", Ok("FALSE")),
            (ValueKind::Flag, "'x", Ok("'x")),
            (ValueKind::Integer, "5", Ok("5")),
            (ValueKind::Integer, "5.0", Ok("5")),
            (ValueKind::Integer, "2024.000", Ok("2024")),
            (ValueKind::Integer, "0.000", Ok("0")),
            (ValueKind::Integer, "5.0.0", Ok("5.0.0")),
            (
                ValueKind::Integer,
                "2024,0",
                Err("has a decimal comma; write only the digits, `2024`, or add --decimal comma"),
            ),
            (ValueKind::Integer, "2024,5", Ok("2024,5")),
            (ValueKind::Integer, "1,000", Err("`1000`")),
            (ValueKind::Integer, "1.000", Err("`1000`")),
            (ValueKind::Integer, "1,234", Err("`1234`")),
            (ValueKind::Integer, "1 234 567", Err("`1234567`")),
            (ValueKind::Integer, "1\u{202f}234", Err("`1234`")),
            (ValueKind::Integer, "1.23E+05", Err("loses digits")),
            (ValueKind::Integer, "05", Ok("05")),
            (ValueKind::Integer, "twelve", Ok("twelve")),
            (ValueKind::Integer, "N/A", Err("leave the cell empty")),
            (ValueKind::Number, "4.2", Ok("4.2")),
            (ValueKind::Number, "12,5", Err("`12.5`")),
            (ValueKind::Number, "1,234", Err("may be 1234 or 1.234")),
            (ValueKind::Number, "1,234.5", Ok("1234.5")),
            (ValueKind::Number, "1.234,50", Err("has a decimal comma; write `1234.50`, or add --decimal comma")),
            (ValueKind::Number, "1,234,567", Ok("1234567")),
            (ValueKind::Number, "1,23,4", Err("several commas or points")),
            (ValueKind::Number, "1,234,5", Err("several commas or points")),
            (ValueKind::Number, "4.125", Ok("4.125")),
            (ValueKind::Number, "0.125", Ok("0.125")),
            (ValueKind::Number, "1 234", Err("`1234`")),
            (ValueKind::Number, "45%", Err("without `%`")),
            (ValueKind::Number, "1e3", Ok("1e3")),
            (ValueKind::Flag, "True", Ok("TRUE")),
            (ValueKind::Flag, "wahr", Ok("TRUE")),
            (ValueKind::Flag, "VRAI", Ok("TRUE")),
            (ValueKind::Flag, "FAŁSZ", Ok("FALSE")),
            (ValueKind::Flag, "Nein", Ok("FALSE")),
            (ValueKind::Flag, " x ", Ok("TRUE")),
            (ValueKind::Flag, "o", Ok("o")),
            (ValueKind::Text, " a ", Ok(" a ")),
            (ValueKind::Text, "\u{a0}a b\u{a0}", Ok("\u{a0}a b\u{a0}")),
            (ValueKind::Text, "a\u{a0}b", Ok("a\u{a0}b")),
            (ValueKind::Text, "N/A", Ok("N/A")),
            (ValueKind::Links(ReferenceKind::Tag), "a; b ", Ok("a; b ")),
            (ValueKind::DateStatus(&["check"]), " check ", Ok("check")),
        ];
        for (kind, cell, expected) in cases {
            match (normalize(kind, cell, &Notation::default()), expected) {
                (Ok(read), Ok(expected)) => assert_eq!(read, expected, "{kind:?} {cell:?}"),
                (Err(message), Err(expected)) => assert!(message.contains(expected), "{kind:?} {cell:?}: {message}"),
                (read, expected) => panic!("{kind:?} {cell:?}: {read:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn notation_decides_what_may_mean_two_things() {
        let semicolons = Notation { has_semicolons: true, ..Notation::default() };
        let comma = Notation { decimal: Some(DecimalSign::Comma), ..Notation::default() };
        let price = Notation { is_price: true, ..Notation::default() };
        let sheet = Notation { is_sheet: true, is_price: true, ..Notation::default() };
        let number = Notation { is_number: true, is_price: true, ..Notation::default() };
        let decimal = |sign| Notation { decimal: Some(sign), has_semicolons: true, ..Notation::default() };
        let dates = |order| Notation { dates: Some(order), ..Notation::default() };
        let cases = [
            (ValueKind::Number, "3.000", semicolons, Err("may be 3000 or 3,")),
            (ValueKind::Number, "3,000", semicolons, Err("may be 3000 or 3,")),
            (ValueKind::Number, "2,5", semicolons, Ok("2.5")),
            (ValueKind::Number, "0,125", semicolons, Ok("0.125")),
            (ValueKind::Number, "3.5", semicolons, Ok("3.5")),
            (ValueKind::Number, "3000", semicolons, Ok("3000")),
            (ValueKind::Number, "1.234.567", semicolons, Ok("1234567")),
            (ValueKind::Number, "1.234.567,8", semicolons, Ok("1234567.8")),
            (ValueKind::Number, "1.234,50", comma, Ok("1234.50")),
            (ValueKind::Number, "2.500", price, Err("may be 2500 or 2.5")),
            (ValueKind::Number, "2.50", price, Ok("2.50")),
            (ValueKind::Number, "71.917", price, Ok("71.917")),
            (ValueKind::Number, "71.917", sheet, Err("may be 71917 or 71.917")),
            (ValueKind::Number, "2.125", number, Ok("2.125")),
            (ValueKind::Integer, "1.234", number, Ok("1.234")),
            (ValueKind::Integer, "5.0", number, Ok("5")),
            (ValueKind::Year, "2024,0", semicolons, Ok("2024")),
            (ValueKind::Year, "2024.0", semicolons, Ok("2024")),
            (ValueKind::Integer, "5,000", semicolons, Err("`5000`")),
            (ValueKind::Integer, "2024,5", semicolons, Ok("2024,5")),
            (ValueKind::Year, "2024,00", decimal(DecimalSign::Comma), Ok("2024")),
            (ValueKind::Integer, "5,000", decimal(DecimalSign::Comma), Ok("5")),
            (ValueKind::Integer, "5.000", decimal(DecimalSign::Comma), Err("`5000`")),
            (ValueKind::Year, "2024.0", decimal(DecimalSign::Comma), Ok("2024")),
            (ValueKind::Year, "2024,0", decimal(DecimalSign::Point), Ok("2024")),
            (ValueKind::Integer, "5.000", decimal(DecimalSign::Point), Ok("5")),
            (ValueKind::Number, "3.000", decimal(DecimalSign::Comma), Ok("3000")),
            (ValueKind::Number, "145,004", decimal(DecimalSign::Comma), Ok("145.004")),
            (ValueKind::Number, "3.000", decimal(DecimalSign::Point), Ok("3.000")),
            (ValueKind::Number, "3,000", decimal(DecimalSign::Point), Ok("3000")),
            (ValueKind::Number, "3,00", decimal(DecimalSign::Point), Ok("3.00")),
            (ValueKind::Date, "03/04/2026", dates(DateOrder::Dmy), Ok("2026-04-03")),
            (ValueKind::Date, "03/04/2026", dates(DateOrder::Mdy), Ok("2026-03-04")),
            (ValueKind::Date, "15/03/2026", dates(DateOrder::Mdy), Err("not a date in the order --dates mdy")),
            (ValueKind::Date, "15.03.2026", dates(DateOrder::Mdy), Ok("2026-03-15")),
        ];
        for (kind, cell, notation, expected) in cases {
            match (normalize(kind, cell, &notation), expected) {
                (Ok(read), Ok(expected)) => assert_eq!(read, expected, "{kind:?} {cell:?}"),
                (Err(message), Err(expected)) => assert!(message.contains(expected), "{kind:?} {cell:?}: {message}"),
                (read, expected) => panic!("{kind:?} {cell:?}: {read:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn words_are_read_in_any_case() {
        let kind = ValueKind::Choice(&["not_found", "check"]);
        let cases = [("Not Found", "not_found"), ("NOT-FOUND", "not_found"), ("Check ", "check"), ("cheque", "cheque")];
        for (cell, expected) in cases {
            assert_eq!(normalize(kind, cell, &Notation::default()).as_deref(), Ok(expected), "{cell:?}");
        }
    }
}
