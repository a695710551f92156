//! Values of one number, date or word. JSON and CSV contain the same text.

use std::borrow::Cow;
use std::fmt;
use std::fmt::Display;
use std::str::FromStr;

use jiff::civil::Date;
use serde::Deserialize;

use super::json::{JsonType, push_display};
use super::{FieldValue, LinkTexts, ValueKind, ValueReader};
use crate::model::dataset::Id;
use crate::model::time::{NOT_A_DATE, parse_date};

/// A single number, date or word. `Display` writes its text.
pub trait Scalar: Display + FromStr + Send + Sync {
    /// The kind. If its JSON type is text, the text needs no escapes.
    const KIND: ValueKind;

    /// Advice on what to write.
    const EXPECTED: &'static str;

    /// Parses the text.
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// Returns a number from 1, in the order of the values.
    fn rank(&self) -> u64;

    /// Returns the text in CSV.
    fn to_csv(&self) -> String {
        self.to_string()
    }
}

impl<S: Scalar> FieldValue for Option<S> {
    fn kind() -> ValueKind {
        S::KIND
    }

    fn rank(&self) -> u64 {
        self.as_ref().map_or(0, S::rank)
    }

    fn rank_of(text: &str) -> u64 {
        S::parse(text).map_or(0, |value| value.rank())
    }

    fn write_json(&self, out: &mut Vec<u8>, _links: &dyn LinkTexts) {
        match self {
            Some(value) if S::KIND.json_type() == JsonType::Text => {
                push_display(out, format_args!("\"{value}\""))
            }
            Some(value) => push_display(out, value),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn to_csv<'a>(&'a self, _links: &'a dyn LinkTexts) -> Cow<'a, str> {
        self.as_ref()
            .map_or(Cow::Borrowed(""), |value| Cow::Owned(value.to_csv()))
    }

    fn read_csv(&mut self, cell: &str, reader: &mut dyn ValueReader) {
        match S::parse(cell) {
            Some(value) => *self = Some(value),
            None => reader.fault(cell, S::EXPECTED.into()),
        }
    }
}

/// A day, `YYYY-MM-DD`.
impl Scalar for Date {
    const KIND: ValueKind = ValueKind::Date;
    const EXPECTED: &'static str = NOT_A_DATE;

    fn parse(text: &str) -> Option<Date> {
        parse_date(text).ok()
    }

    fn rank(&self) -> u64 {
        let date =
            i32::from(self.year()) * 10_000 + i32::from(self.month()) * 100 + i32::from(self.day());
        u64::try_from(date).unwrap_or_default()
    }
}

/// A year, 1900 to 2100.
impl Scalar for u16 {
    const KIND: ValueKind = ValueKind::Year;
    const EXPECTED: &'static str = "write a year from 1900 to 2100";

    fn parse(text: &str) -> Option<u16> {
        parse_digits(text).filter(|year| (1900..=2100).contains(year))
    }

    fn rank(&self) -> u64 {
        u64::from(*self)
    }
}

/// A whole number from 0 to 2^53-1. Every JSON reader represents these numbers exactly.
impl Scalar for u64 {
    const KIND: ValueKind = ValueKind::Integer;
    const EXPECTED: &'static str =
        "write a whole number from 0 to 9007199254740991, without a fraction";

    fn parse(text: &str) -> Option<u64> {
        parse_digits(text).filter(|number| *number <= Id::MAX.get())
    }

    fn rank(&self) -> u64 {
        self + 1
    }
}

/// Parses digits without sign or leading zero.
fn parse_digits<N: FromStr>(text: &str) -> Option<N> {
    let is_plain =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

impl Scalar for bool {
    const KIND: ValueKind = ValueKind::Flag;
    const EXPECTED: &'static str = "write TRUE or FALSE";

    fn parse(text: &str) -> Option<bool> {
        match text {
            "TRUE" | "true" => Some(true),
            "FALSE" | "false" => Some(false),
            _ => None,
        }
    }

    fn rank(&self) -> u64 {
        u64::from(*self) + 1
    }

    fn to_csv(&self) -> String {
        self.to_string().to_uppercase()
    }
}

/// A finite number from 0. JSON and CSV always write it with a fraction and without an exponent, such as `5.0`: readers
/// that guess types see the same type in every record.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Deserialize)]
#[serde(try_from = "f64")]
pub struct Number(f64);

/// The message for a value that is not such a number.
const NOT_A_NUMBER: &str = "write a number from 0, such as 4.2";

impl Number {
    /// The value.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Number {
    type Error = &'static str;

    fn try_from(value: f64) -> Result<Self, &'static str> {
        if value.is_finite() && value >= 0.0 {
            // `+ 0.0` turns -0.0 into 0.0, which is written differently.
            Ok(Number(value + 0.0))
        } else {
            Err(NOT_A_NUMBER)
        }
    }
}

impl FromStr for Number {
    type Err = &'static str;

    /// Parses the JSON notation of a number (RFC 8259, section 6): no `+`, no blanks, no `NaN`.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        if text.starts_with(|c: char| c.is_ascii_whitespace())
            || text.ends_with(|c: char| c.is_ascii_whitespace())
        {
            return Err(NOT_A_NUMBER);
        }
        Number::try_from(serde_json::from_str::<f64>(text).map_err(|_| NOT_A_NUMBER)?)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rust writes the shortest digits that read back as the same value, without an exponent.
        let fraction = if self.0.fract() == 0.0 { ".0" } else { "" };
        write!(f, "{}{fraction}", self.0)
    }
}

impl Scalar for Number {
    const KIND: ValueKind = ValueKind::Number;
    const EXPECTED: &'static str = NOT_A_NUMBER;

    fn rank(&self) -> u64 {
        // The bits of numbers from 0 have the same order as the numbers.
        self.0.to_bits() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_up_to_their_bounds() {
        let years = [
            ("1899", None),
            ("1900", Some(1900)),
            ("2100", Some(2100)),
            ("2101", None),
            ("02026", None),
        ];
        for (text, expected) in years {
            assert_eq!(<u16 as Scalar>::parse(text), expected, "{text}");
        }
        let max = 9_007_199_254_740_991;
        let numbers = [
            ("0", Some(0)),
            ("9007199254740991", Some(max)),
            ("9007199254740992", None),
            ("00", None),
            ("-0", None),
            ("", None),
        ];
        for (text, expected) in numbers {
            assert_eq!(<u64 as Scalar>::parse(text), expected, "{text}");
        }
        assert!(<u64 as Scalar>::rank(&0) == 1 && <u64 as Scalar>::rank(&max) == max + 1);
    }

    #[test]
    fn ranks_of_dates_have_their_order() {
        let days = words![
            "0001-01-01" "1999-12-31" "2024-02-29" "2024-03-01" "2025-12-31" "2026-01-01" "2026-01-31"
            "2026-02-01"
        ];
        let ranks = days.map(<Option<Date>>::rank_of);
        assert!(ranks[0] > 0, "{ranks:?}");
        assert!(ranks.is_sorted_by(|one, other| one < other), "{ranks:?}");
        assert_eq!(
            ["2026-02-29", "2026-1-1", ""].map(<Option<Date>>::rank_of),
            [0; 3]
        );
        assert_eq!(
            [Some(false), Some(true), None].map(|flag: Option<bool>| FieldValue::rank(&flag)),
            [1, 2, 0]
        );
    }

    #[test]
    fn ranks_have_the_order_of_the_numbers() {
        let numbers = [
            0.0,
            5e-324,
            1e-7,
            0.1,
            0.30000000000000004,
            1.0,
            4.25,
            10.0,
            1e21,
            f64::MAX,
        ];
        let ranks = numbers.map(|number| Number::try_from(number).unwrap().rank());
        assert!(ranks[0] == 1, "{ranks:?}");
        assert!(ranks.is_sorted_by(|one, other| one < other), "{ranks:?}");
        assert_eq!(Number::try_from(-0.0).unwrap().rank(), 1);
        for wrong in [-5e-324, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert!(Number::try_from(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_read_and_written() {
        let cases = outcomes![
            "0" "-0" => Some("0.0");
            "12" "12.0" => Some("12.0");
            "4.25" "4.250" => Some("4.25");
            "1e3" => Some("1000.0");
            "1e21" => Some("1000000000000000000000.0");
            "1e-7" => Some("0.0000001");
            "-1" "+1" " 1" "1,5" "NaN" "inf" "1e999" "" => None;
        ];
        for (text, expected) in cases {
            let written = text.parse::<Number>().ok().map(|number| number.to_string());
            assert_eq!(written.as_deref(), expected, "{text:?}");
        }
    }
}
