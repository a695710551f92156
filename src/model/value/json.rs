//! A JSON value that keeps what an import must judge: the order of keys, and the notation of numbers.

use std::borrow::Cow;
use std::fmt;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A number in integer notation, from 0.
    Whole(u64),
    /// A number in integer notation, below 0.
    Negative(i64),
    /// A number with a fraction or an exponent, or too large for an integer.
    Fraction(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Json<'a>>),
    /// An object.
    Object(Members<'a>),
}

/// The members of an object in their order; no key stands twice.
pub type Members<'a> = Vec<(Cow<'a, str>, Json<'a>)>;

/// The types of JSON values (RFC 8259, section 3), named for messages.
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
    /// The value's type.
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

    /// Whether it stands for no value: null, or an empty text.
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

impl fmt::Display for Json<'_> {
    /// A text without quotes, anything else as JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Flag(value) => value.fmt(f),
            Json::Whole(value) => value.fmt(f),
            Json::Negative(value) => value.fmt(f),
            // The debug form keeps the fraction of `5.0` and writes large numbers with an exponent.
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
