//! Cells as spreadsheets write them, brought into the form in which fields are read. What can be read in one way only
//! is read; what may mean two things, or lost something on its way, is refused with what to write instead.

use std::borrow::Cow;

use jiff::civil::Date;

use crate::model::time::parse_date;

/// Whether the character is blank, or invisible as what web pages leave in copied texts.
pub(super) fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || is_stray(letter)
}

/// Blanks that nobody types: non-breaking ones, and such without width.
fn is_stray(letter: char) -> bool {
    matches!(letter, '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{200b}' | '\u{2060}' | '\u{feff}')
}

/// Whether fields of this type hold texts as they are given.
pub(super) fn is_text(type_name: &str) -> bool {
    type_name == "string" || type_name.starts_with("list of")
}

/// The form in which a field of this type ([`FieldValue::type_name`](crate::model::value::FieldValue::type_name)) is
/// read from the cell; empty for null.
///
/// # Errors
/// What is wrong with the cell, and what to write instead.
pub(super) fn plain<'c>(type_name: &str, cell: &'c str) -> Result<Cow<'c, str>, String> {
    if is_text(type_name) {
        // Texts are stored as they are given, so that what is exported comes back.
        return Ok(Cow::Borrowed(cell));
    }
    let cell = cell.trim_matches(is_blank);
    match type_name {
        "date" => plain_date(cell),
        "integer" => plain_whole(cell),
        "number" => plain_number(cell),
        "boolean" => Ok(match cell {
            _ if cell.eq_ignore_ascii_case("true") => Cow::Borrowed("TRUE"),
            _ if cell.eq_ignore_ascii_case("false") => Cow::Borrowed("FALSE"),
            _ => Cow::Borrowed(cell),
        }),
        _ => Ok(Cow::Borrowed(cell)),
    }
}

/// Whether the text says that there is no value.
fn is_placeholder(text: &str) -> bool {
    const WORDS: [&str; 14] =
        ["-", "--", "—", "–", "?", "n/a", "na", "n.a.", "tbd", "tba", "tbc", "none", "null", "unknown"];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn plain_date(cell: &str) -> Result<Cow<'_, str>, String> {
    // Unambiguous spellings: the year first, dots, or the month's name.
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
    if is_placeholder(cell) {
        return Err("is no date; leave the cell empty, and let the date's status say why, such as `not_found`".into());
    }
    let (day, time) = match cell.split_once(['T', ' ']) {
        Some((day, time)) if parse_date(day).is_ok() => (day, Some(time)),
        _ => (cell, None),
    };
    match time {
        Some(time) if is_midnight(time) => return Ok(Cow::Borrowed(day)),
        Some(_) => return Err(format!("has a time of day; write the date alone, `{day}`")),
        None => {}
    }
    // A year of two digits would be read as one of the first century.
    let has_year = |date: &Date| (1000..=9999).contains(&date.year());
    let read = FORMATS.iter().find_map(|format| Date::strptime(format, cell).ok()).filter(has_year);
    if let Some(date) = read {
        return Ok(Cow::Owned(date.to_string()));
    }
    let parts: Vec<&str> = cell.split('/').collect();
    if parts.len() == 3 && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err("may be day/month or month/day; write a date as YYYY-MM-DD, such as 2026-03-15".into());
    }
    if cell.len() == 5 && cell.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("is a day's number in a spreadsheet; format the column as a date, or write YYYY-MM-DD".into());
    }
    Ok(Cow::Borrowed(cell))
}

/// Whether a time of day is midnight, UTC where it says so.
fn is_midnight(time: &str) -> bool {
    let clock = time.trim_end_matches("+00:00").trim_end_matches(['Z', 'z']);
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    matches!(whole, "00:00" | "00:00:00" | "0:00" | "0:00:00") && fraction.bytes().all(|byte| byte == b'0')
}

fn plain_whole(cell: &str) -> Result<Cow<'_, str>, String> {
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if cell.is_empty() || all_digits(cell) {
        return Ok(Cow::Borrowed(cell));
    }
    if is_placeholder(cell) {
        return Err("is no number; leave the cell empty".into());
    }
    if let Some((whole, fraction)) = cell.split_once('.')
        && all_digits(whole)
        && !fraction.is_empty()
        && fraction.len() != 3
        && fraction.bytes().all(|byte| byte == b'0')
    {
        return Ok(Cow::Borrowed(whole));
    }
    if cell.contains(['e', 'E']) && cell.parse::<f64>().is_ok() {
        return Err(
            "is written with an exponent, which loses digits; format the column as text, and write all digits".into()
        );
    }
    if let Some(digits) = without_separators(cell) {
        return Err(format!("has separators between its digits; write the digits alone, `{digits}`"));
    }
    Ok(Cow::Borrowed(cell))
}

/// The digits of a number that is grouped in thousands.
fn without_separators(cell: &str) -> Option<String> {
    let mut groups = cell.split(|letter: char| matches!(letter, ',' | '.' | '\'' | '’') || is_blank(letter));
    let first = groups.next()?;
    let digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let rest: Vec<&str> = groups.collect();
    let is_grouped = (1..=3).contains(&first.len())
        && digits(first)
        && !rest.is_empty()
        && rest.iter().all(|group| group.len() == 3 && digits(group));
    is_grouped.then(|| format!("{first}{}", rest.concat()))
}

fn plain_number(cell: &str) -> Result<Cow<'_, str>, String> {
    if is_placeholder(cell) {
        return Err("is no number; leave the cell empty".into());
    }
    if cell.ends_with('%') {
        return Err("is a percentage; write the number alone, without `%`".into());
    }
    if cell.contains(',') {
        let point = cell.replace(',', ".");
        let is_decimal = point.matches('.').count() == 1 && point.parse::<f64>().is_ok();
        let is_grouped = without_separators(cell).is_some();
        return Err(match (is_decimal, is_grouped) {
            (true, false) => format!("has a decimal comma; write a decimal point, `{point}`"),
            _ => "has commas, which may group digits or begin a fraction; write digits and at most one decimal point"
                .into(),
        });
    }
    if !cell.contains('.')
        && let Some(digits) = without_separators(cell)
    {
        return Err(format!("has separators between its digits; write the digits alone, `{digits}`"));
    }
    Ok(Cow::Borrowed(cell))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_brought_into_form() {
        let cases = [
            ("date", "2026-03-15", Ok("2026-03-15")),
            ("date", "\u{a0}2026-03-15 ", Ok("2026-03-15")),
            ("date", " \u{a0}", Ok("")),
            ("date", "2026/03/15", Ok("2026-03-15")),
            ("date", "2026-3-5", Ok("2026-03-05")),
            ("date", "15.03.2026", Ok("2026-03-15")),
            ("date", "5.3.2026", Ok("2026-03-05")),
            ("date", "15.03.26", Ok("15.03.26")),
            ("date", "March 15, 2026", Ok("2026-03-15")),
            ("date", "15 Mar 2026", Ok("2026-03-15")),
            ("date", "15-Mar-2026", Ok("2026-03-15")),
            ("date", "2026-03-15T00:00:00", Ok("2026-03-15")),
            ("date", "2026-03-15 00:00:00.000", Ok("2026-03-15")),
            ("date", "2026-03-15T00:00:00Z", Ok("2026-03-15")),
            ("date", "2026-03-15T09:30:00", Err("write the date alone, `2026-03-15`")),
            ("date", "2026-03-15T00:00:00+02:00", Err("write the date alone")),
            ("date", "03/15/2026", Err("may be day/month or month/day")),
            ("date", "46096", Err("is a day's number")),
            ("date", "TBD", Err("leave the cell empty")),
            ("date", "-", Err("leave the cell empty")),
            ("date", "2026-02-30", Ok("2026-02-30")),
            ("integer", "5", Ok("5")),
            ("integer", "5.0", Ok("5")),
            ("integer", "1.000", Err("`1000`")),
            ("integer", "1,234", Err("`1234`")),
            ("integer", "1 234 567", Err("`1234567`")),
            ("integer", "1\u{202f}234", Err("`1234`")),
            ("integer", "1.23E+05", Err("loses digits")),
            ("integer", "05", Ok("05")),
            ("integer", "N/A", Err("leave the cell empty")),
            ("number", "4.2", Ok("4.2")),
            ("number", "12,5", Err("`12.5`")),
            ("number", "1,234", Err("may group digits")),
            ("number", "1,234.5", Err("may group digits")),
            ("number", "1 234", Err("`1234`")),
            ("number", "45%", Err("without `%`")),
            ("number", "1e3", Ok("1e3")),
            ("boolean", "True", Ok("TRUE")),
            ("boolean", "wahr", Ok("wahr")),
            ("string", " a ", Ok(" a ")),
            ("string", "\u{a0}a b\u{a0}", Ok("\u{a0}a b\u{a0}")),
            ("string", "a\u{a0}b", Ok("a\u{a0}b")),
            ("string", "N/A", Ok("N/A")),
            ("list of tags", "a; b ", Ok("a; b ")),
            ("string, a date confidence", " check ", Ok("check")),
        ];
        for (type_name, cell, expected) in cases {
            match (plain(type_name, cell), expected) {
                (Ok(read), Ok(expected)) => assert_eq!(read, expected, "{type_name} {cell:?}"),
                (Err(told), Err(expected)) => assert!(told.contains(expected), "{type_name} {cell:?}: {told}"),
                (read, expected) => panic!("{type_name} {cell:?}: {read:?}, expected {expected:?}"),
            }
        }
    }
}
