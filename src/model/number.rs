//! Numbers for metrics, prices and weeks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::value::{Scalar, ValueKind};

/// A finite number from 0. JSON and CSV always write it with a fraction and without an exponent, such as `5.0`: readers
/// that guess types see the same type in every record.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Number(f64);

/// The error of a value that is not a number from 0.
#[derive(Debug, thiserror::Error)]
#[error("write a number from 0, such as 4.2")]
pub struct NotANumber;

impl Number {
    /// The value.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Number {
    type Error = NotANumber;

    fn try_from(value: f64) -> Result<Self, NotANumber> {
        if value.is_finite() && value >= 0.0 {
            // `+ 0.0` turns -0.0 into 0.0, which is written differently.
            Ok(Number(value + 0.0))
        } else {
            Err(NotANumber)
        }
    }
}

impl FromStr for Number {
    type Err = NotANumber;

    /// Parses the JSON notation of a number (RFC 8259, section 6): no `+`, no blanks, no `NaN`.
    fn from_str(text: &str) -> Result<Self, NotANumber> {
        if text.starts_with(|c: char| c.is_ascii_whitespace()) || text.ends_with(|c: char| c.is_ascii_whitespace()) {
            return Err(NotANumber);
        }
        Number::try_from(serde_json::from_str::<f64>(text).map_err(|_| NotANumber)?)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rust writes the shortest digits that read back as the same value, without an exponent.
        let fraction = if self.0.fract() == 0.0 { ".0" } else { "" };
        write!(f, "{}{fraction}", self.0)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Number::try_from(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Scalar for Number {
    const KIND: ValueKind = ValueKind::Number;
    const EXPECTED: &'static str = "write a number from 0, such as 4.2";

    fn parse(text: &str) -> Option<Number> {
        text.parse().ok()
    }

    fn rank(&self) -> u64 {
        // The bits of numbers from 0 have the same order as the numbers.
        self.0.to_bits() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_the_order_of_the_numbers() {
        let numbers = [0.0, 5e-324, 1e-7, 0.1, 0.30000000000000004, 1.0, 4.25, 10.0, 1e21, f64::MAX];
        let ranks = numbers.map(|number| Number::try_from(number).unwrap().rank());
        assert!(ranks[0] == 1 && ranks.is_sorted_by(|one, other| one < other), "{ranks:?}");
        assert_eq!(Number::try_from(-0.0).unwrap().rank(), 1);
        for wrong in [-5e-324, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert!(Number::try_from(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_read_and_written() {
        let cases = [
            ("0", Some("0.0")),
            ("-0", Some("0.0")),
            ("12", Some("12.0")),
            ("12.0", Some("12.0")),
            ("4.25", Some("4.25")),
            ("4.250", Some("4.25")),
            ("1e3", Some("1000.0")),
            ("1e21", Some("1000000000000000000000.0")),
            ("1e-7", Some("0.0000001")),
            ("-1", None),
            ("+1", None),
            (" 1", None),
            ("1,5", None),
            ("NaN", None),
            ("inf", None),
            ("1e999", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let written = text.parse::<Number>().ok().map(|number| number.to_string());
            assert_eq!(written.as_deref(), expected, "{text:?}");
        }
    }
}
