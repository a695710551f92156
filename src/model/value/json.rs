//! Parsed JSON values that keep the order of keys and the notation of numbers. And appending values to JSON.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::io::Write;

/// A JSON value.
#[allow(missing_docs, reason = "the names explain the other variants")]
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    Null,
    Flag(bool),
    /// A nonnegative number without fraction and exponent.
    Whole(u64),
    /// A negative number without fraction and exponent.
    Negative(i64),
    /// A number with a fraction or an exponent, or too large for an integer.
    Fraction(f64),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object(JsonMembers<'a>),
}

/// The members of an object, in order. No key occurs twice.
pub type JsonMembers<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

/// The types of JSON values (RFC 8259, section 3), as messages name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[allow(missing_docs, reason = "named as the values")]
pub enum JsonType {
    #[strum(to_string = "null")]
    Null,
    #[strum(to_string = "true or false")]
    Flag,
    #[strum(to_string = "a number")]
    Number,
    #[strum(to_string = "a text")]
    Text,
    #[strum(to_string = "a list")]
    List,
    #[strum(to_string = "an object")]
    Object,
}

impl Json<'_> {
    /// Returns the value's type.
    pub fn json_type(&self) -> JsonType {
        match self {
            Json::Null => JsonType::Null,
            Json::Flag(_) => JsonType::Flag,
            Json::Whole(_) | Json::Negative(_) | Json::Fraction(_) => JsonType::Number,
            Json::Text(_) => JsonType::Text,
            Json::List(_) => JsonType::List,
            Json::Object(_) => JsonType::Object,
        }
    }

    /// Whether the value is null or an empty text.
    pub fn is_empty(&self) -> bool {
        matches!(self, Json::Null) || matches!(self, Json::Text(text) if text.is_empty())
    }

    fn write_nested(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Text(value) => write!(f, "{value:?}"),
            other => write!(f, "{other}"),
        }
    }
}

impl Display for Json<'_> {
    /// Writes a text without quotes, and anything else as JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Flag(value) => value.fmt(f),
            Json::Whole(value) => value.fmt(f),
            Json::Negative(value) => value.fmt(f),
            // `Debug` keeps the fraction of `5.0`, and writes large numbers with an exponent.
            Json::Fraction(value) => write!(f, "{value:?}"),
            Json::Text(value) => f.write_str(value),
            Json::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    f.write_str(if index > 0 { "," } else { "[" })?;
                    item.write_nested(f)?;
                }
                f.write_str(if items.is_empty() { "[]" } else { "]" })
            }
            Json::Object(members) => {
                for (index, (key, value)) in members.iter().enumerate() {
                    write!(f, "{}{key:?}:", if index > 0 { "," } else { "{" })?;
                    value.write_nested(f)?;
                }
                f.write_str(if members.is_empty() { "{}" } else { "}" })
            }
        }
    }
}

pub(super) fn push_list<T>(out: &mut Vec<u8>, items: &[T], mut push_item: impl FnMut(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_item(out, item);
    }
    out.push(b']');
}

/// Appends a JSON string.
pub fn push_str(out: &mut Vec<u8>, text: &str) {
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Appends a value whose `Display` is valid JSON, such as a number.
pub fn push_display(out: &mut Vec<u8>, value: impl Display) {
    let _ = write!(out, "{value}");
}
