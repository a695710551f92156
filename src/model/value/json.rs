//! Parsed JSON values that keep the order of keys and the notation of numbers. And appending values to JSON.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Number, Serializer};

/// A JSON value.
#[allow(missing_docs, reason = "the names explain the other variants")]
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    Null,
    Flag(bool),
    Number(Number),
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
            Json::Number(_) => JsonType::Number,
            Json::Text(_) => JsonType::Text,
            Json::List(_) => JsonType::List,
            Json::Object(_) => JsonType::Object,
        }
    }

    /// Whether the value is null or an empty text.
    pub fn is_empty(&self) -> bool {
        matches!(self, Json::Null) || matches!(self, Json::Text(text) if text.is_empty())
    }

    /// Returns the text of the value within a list or an object.
    fn nested(&self) -> String {
        match self {
            Json::Text(value) => format!("{value:?}"),
            other => other.to_string(),
        }
    }
}

impl Display for Json<'_> {
    /// Writes a text without quotes, and anything else as JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Flag(value) => value.fmt(f),
            Json::Number(value) => value.fmt(f),
            Json::Text(value) => f.write_str(value),
            Json::List(items) => {
                let items: Vec<String> = items.iter().map(Json::nested).collect();
                write!(f, "[{}]", items.join(","))
            }
            Json::Object(members) => {
                let members = members.iter().map(|(key, value)| format!("{key:?}:{}", value.nested()));
                write!(f, "{{{}}}", members.collect::<Vec<_>>().join(","))
            }
        }
    }
}

pub(in crate::model) fn push_list<T>(out: &mut Vec<u8>, items: &[T], mut push_item: impl FnMut(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_item(out, item);
    }
    out.push(b']');
}

/// Appends a value as JSON. Appends nothing or a part if it cannot be serialized.
pub fn push_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Writing to memory cannot fail.
    let _ = value.serialize(&mut Serializer::with_formatter(out, OneLine));
}

/// Whether some readers take a character for the end of a line, although RFC 8259 allows it in JSON strings.
pub fn is_line_end(letter: char) -> bool {
    matches!(letter, '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Compact JSON that is one line for every reader: the characters of [`is_line_end`] are escaped.
struct OneLine;

impl Formatter for OneLine {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        if fragment.is_ascii() {
            return out.write_all(fragment.as_bytes());
        }
        for piece in fragment.split_inclusive(is_line_end) {
            let text = piece.trim_end_matches(is_line_end);
            out.write_all(text.as_bytes())?;
            piece[text.len()..].chars().try_for_each(|letter| write!(out, "\\u{:04x}", u32::from(letter)))?;
        }
        Ok(())
    }
}

/// Appends a value whose `Display` is valid JSON, such as a number.
pub fn push_display(out: &mut Vec<u8>, value: impl Display) {
    let _ = write!(out, "{value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_one_line_for_every_reader() {
        let cases = [
            ("Zürich 癌 \u{84}\u{86}\u{2027}\u{202a}", "\"Zürich 癌 \u{84}\u{86}\u{2027}\u{202a}\""),
            ("\u{85}a\u{2028}\u{2029}b\u{85}", r#""\u0085a\u2028\u2029b\u0085""#),
            ("\u{2028}\"\\\n\u{1f}\u{7f}", "\"\\u2028\\\"\\\\\\n\\u001f\u{7f}\""),
            ("", "\"\""),
        ];
        for (text, expected) in cases {
            let mut json = Vec::new();
            push_json(&mut json, text);
            assert_eq!(str::from_utf8(&json), Ok(expected), "{text:?}");
            assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text);
        }
    }
}
