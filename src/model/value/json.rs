//! The types and texts of parsed JSON values. And appending values to JSON.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Serializer, Value};

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

impl JsonType {
    /// Returns the type of a value.
    pub fn of(value: &Value) -> JsonType {
        match value {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Flag,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::Text,
            Value::Array(_) => JsonType::List,
            Value::Object(_) => JsonType::Object,
        }
    }
}

/// Whether a value is null or an empty text.
pub fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

/// Returns a text without quotes, and any other value as JSON.
pub fn as_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

pub(crate) fn push_list<T>(
    out: &mut Vec<u8>,
    items: &[T],
    mut push_item: impl FnMut(&mut Vec<u8>, &T),
) {
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
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if fragment.is_ascii() {
            return out.write_all(fragment.as_bytes());
        }
        for piece in fragment.split_inclusive(is_line_end) {
            let text = piece.trim_end_matches(is_line_end);
            out.write_all(text.as_bytes())?;
            piece[text.len()..]
                .chars()
                .try_for_each(|letter| write!(out, "\\u{:04x}", u32::from(letter)))?;
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
        let cases = cases![
            "Zürich 癌 \u{84}\u{86}\u{2027}\u{202a}", "\"Zürich 癌 \u{84}\u{86}\u{2027}\u{202a}\"";
            "\u{85}a\u{2028}\u{2029}b\u{85}", r#""\u0085a\u2028\u2029b\u0085""#;
            "\u{2028}\"\\\n\u{1f}\u{7f}", "\"\\u2028\\\"\\\\\\n\\u001f\u{7f}\"";
            "", "\"\"";
        ];
        for (text, expected) in cases {
            let mut json = Vec::new();
            push_json(&mut json, text);
            assert_eq!(str::from_utf8(&json), Ok(expected), "{text:?}");
            assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text);
        }
    }
}
