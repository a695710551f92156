//! Parsers of arguments: durations, times, years, texts.

use std::time::Duration;

use crate::model::Timestamp;
use crate::model::printable::steers;
use crate::model::time::parse_time;

/// `500ms`, `90s`, `5m`, `24h`, `7d`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: Option<u64> = number.parse().ok();
    let duration = match (number, unit) {
        (Some(number), "ms") => Some(Duration::from_millis(number)),
        (Some(number), "s") => Some(Duration::from_secs(number)),
        (Some(number), "m") => number.checked_mul(60).map(Duration::from_secs),
        (Some(number), "h") => number.checked_mul(3600).map(Duration::from_secs),
        (Some(number), "d") => number.checked_mul(86_400).map(Duration::from_secs),
        _ => None,
    };
    duration.ok_or_else(|| "write a number and a unit: 90s, 5m, 24h, 7d".to_owned())
}

/// RFC 3339 or a date.
pub(super) fn parse_timestamp(text: &str) -> Result<Timestamp, String> {
    parse_time(text).map_err(|rule| rule.to_string())
}

/// A year, or a range of years that includes its end.
pub(super) fn parse_years(text: &str) -> Result<std::ops::RangeInclusive<u16>, String> {
    let rule = || "write a year from 1900 to 2100, or a range such as 2024..2027".to_owned();
    let year = |text: &str| {
        let shaped = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
        let year: Option<u16> = if shaped { text.parse().ok() } else { None };
        year.filter(|year| (1900..=2100).contains(year)).ok_or_else(rule)
    };
    match text.split_once("..") {
        None => year(text).map(|year| year..=year),
        Some((first, last)) => {
            let (first, last) = (year(first)?, year(last)?);
            if first <= last { Ok(first..=last) } else { Err(format!("the range ends before it begins; {}", rule())) }
        }
    }
}

/// A text that is not empty.
pub(super) fn parse_text(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("it is empty; give a text, or leave the option out".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// A text that is not empty, and that listings can print unchanged.
pub(super) fn parse_plain_text(text: &str) -> Result<String, String> {
    if text.contains(steers) {
        return Err("it holds a line break, a tab, or another character that steers a terminal; write one line of \
                    plain text"
            .to_owned());
    }
    parse_text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_texts_are_read() {
        let cases = [
            ("Ann's key, 日本", true),
            ("", false),
            ("a\nb", false),
            ("a\tb", false),
            ("\x1b[2J", false),
            ("\u{9b}2J", false),
            ("\u{202e}x", false),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_plain_text(text).is_ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn durations_are_read() {
        let cases = [
            ("90s", Some(90_000)),
            ("250ms", Some(250)),
            ("5m", Some(300_000)),
            ("24h", Some(86_400_000)),
            ("7d", Some(604_800_000)),
            ("0s", Some(0)),
            ("90", None),
            ("s", None),
            ("", None),
            ("-1s", None),
            ("1.5h", None),
            ("99999999999999999999d", None),
        ];
        for (text, expected) in cases {
            let read = parse_duration(text).ok().map(|read| read.as_millis());
            assert_eq!(read, expected, "{text:?}");
        }
    }

    #[test]
    fn years_are_read() {
        let cases = [
            ("2026", Some(2026..=2026)),
            ("2024..2027", Some(2024..=2027)),
            ("2024..2024", Some(2024..=2024)),
            ("1899", None),
            ("2101", None),
            ("2027..2024", None),
            ("2024..", None),
            ("20260", None),
            ("x", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_years(text).ok(), expected, "{text:?}");
        }
    }
}
