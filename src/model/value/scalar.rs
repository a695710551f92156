//! Values of one number, date or word. JSON and CSV contain the same text.

use std::borrow::Cow;
use std::fmt::Display;

use jiff::civil::Date;

use super::json::{Json, JsonType, push_display};
use super::kind::{FieldValue, LinkTexts, ValueKind, ValueReader};
use crate::model::id::Id;
use crate::model::time::parse_date;

/// A single number, date or word. `Display` writes its text.
pub trait Scalar: Display + Send + Sync + Sized {
    /// The kind. If its JSON type is text, the text needs no escapes.
    const KIND: ValueKind;

    /// Advice on what to write in JSON.
    const EXPECTED: &'static str;

    /// Parses the text.
    ///
    /// # Errors
    /// A remedy: what to write instead.
    fn parse(text: &str) -> Result<Self, String>;

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
            Some(value) if S::KIND.json_type() == JsonType::Text => push_display(out, format_args!("\"{value}\"")),
            Some(value) => push_display(out, value),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn to_csv<'a>(&'a self, _links: &'a dyn LinkTexts) -> Cow<'a, str> {
        self.as_ref().map_or(Cow::Borrowed(""), |value| Cow::Owned(value.to_csv()))
    }

    fn read_json(&mut self, json: Json<'_>, reader: &mut dyn ValueReader) {
        let json_type = json.json_type();
        let text = match json {
            Json::Text(text) => text,
            other => Cow::Owned(other.to_string()),
        };
        if json_type == S::KIND.json_type() {
            return self.read_csv(&text, reader);
        }
        let quotes = if json_type == JsonType::Text { ", without quotes" } else { "" };
        reader.fault(&text, format!("is {json_type}; {}{quotes}", S::EXPECTED));
    }

    fn read_csv(&mut self, cell: &str, reader: &mut dyn ValueReader) {
        match S::parse(cell) {
            Ok(value) => *self = Some(value),
            Err(message) => reader.fault(cell, message),
        }
    }
}

/// A day, `YYYY-MM-DD`.
impl Scalar for Date {
    const KIND: ValueKind = ValueKind::Date;
    const EXPECTED: &'static str = "write a date as a text, such as \"2026-03-15\"";

    fn parse(text: &str) -> Result<Date, String> {
        parse_date(text).map_err(|error| error.to_string())
    }

    fn rank(&self) -> u64 {
        let date = i32::from(self.year()) * 10_000 + i32::from(self.month()) * 100 + i32::from(self.day());
        u64::try_from(date).unwrap_or_default()
    }
}

/// A year, 1900 to 2100.
impl Scalar for u16 {
    const KIND: ValueKind = ValueKind::Year;
    const EXPECTED: &'static str = "write a year from 1900 to 2100";

    fn parse(text: &str) -> Result<u16, String> {
        parse_digits(text).filter(|year| (1900..=2100).contains(year)).ok_or_else(|| Self::EXPECTED.to_owned())
    }

    fn rank(&self) -> u64 {
        u64::from(*self)
    }
}

/// A whole number from 0 to 2^53-1. Every JSON reader represents these numbers exactly.
impl Scalar for u64 {
    const KIND: ValueKind = ValueKind::Integer;
    const EXPECTED: &'static str = "write a whole number from 0 to 9007199254740991, without a fraction";

    fn parse(text: &str) -> Result<u64, String> {
        parse_digits(text).filter(|number| *number <= Id::MAX.get()).ok_or_else(|| Self::EXPECTED.to_owned())
    }

    fn rank(&self) -> u64 {
        self + 1
    }
}

/// Parses digits without sign or leading zero.
fn parse_digits<N: std::str::FromStr>(text: &str) -> Option<N> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

impl Scalar for bool {
    const KIND: ValueKind = ValueKind::Flag;
    const EXPECTED: &'static str = "write true or false";

    fn parse(text: &str) -> Result<bool, String> {
        match text {
            "TRUE" | "true" => Ok(true),
            "FALSE" | "false" => Ok(false),
            _ => Err("write TRUE or FALSE".to_owned()),
        }
    }

    fn rank(&self) -> u64 {
        u64::from(*self) + 1
    }

    fn to_csv(&self) -> String {
        self.to_string().to_uppercase()
    }
}
