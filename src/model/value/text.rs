//! Texts and lists of texts, as JSON and as CSV cells with a guard against formulas.

use std::borrow::Cow;

use serde_json::Value;

use super::json::{push_json, push_list};
use super::{FieldValue, JsonType, LinkTexts, ValueKind, ValueReader};
use crate::model::message::{Joined, Message, message};

/// Any text. An empty text is stored as null.
impl FieldValue for Option<String> {
    fn kind() -> ValueKind {
        ValueKind::Text
    }

    fn texts(&self) -> &[String] {
        self.as_slice()
    }

    fn replace_texts(&mut self, replacement: &mut dyn FnMut(&str) -> Option<String>) {
        if let Some(replaced) = self.as_deref().and_then(replacement) {
            *self = Some(replaced).filter(|text| !text.is_empty());
        }
    }

    fn write_json(&self, out: &mut Vec<u8>, _links: &dyn LinkTexts) {
        match self {
            Some(text) => push_json(out, text),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn to_csv<'a>(&'a self, _links: &'a dyn LinkTexts) -> Cow<'a, str> {
        guard_formula(Cow::Borrowed(self.as_deref().unwrap_or_default()))
    }

    fn read_json(&mut self, json: Value, reader: &mut dyn ValueReader) {
        match json {
            Value::String(text) => *self = Some(text),
            other => reader.fault(
                &other.to_string(),
                message!("is {}; write a text in quotes", JsonType::of(&other)),
            ),
        }
    }

    fn read_csv(&mut self, cell: &str, _reader: &mut dyn ValueReader) {
        *self = Some(unguard_formula(cell).to_owned());
    }

    fn normalize(&mut self) {
        self.take_if(|text| text.is_empty());
    }
}

/// A list of texts, ordered by code point, without duplicates.
impl FieldValue for Vec<String> {
    fn kind() -> ValueKind {
        ValueKind::Texts
    }

    fn texts(&self) -> &[String] {
        self
    }

    fn add_texts(&mut self, texts: Vec<String>) {
        self.extend(texts);
    }

    fn replace_texts(&mut self, replacement: &mut dyn FnMut(&str) -> Option<String>) {
        for text in self.iter_mut() {
            if let Some(replaced) = replacement(text) {
                *text = replaced;
            }
        }
        self.retain(|text| !text.is_empty());
    }

    fn write_json(&self, out: &mut Vec<u8>, _links: &dyn LinkTexts) {
        push_list(out, self, push_json);
    }

    fn to_csv<'a>(&'a self, _links: &'a dyn LinkTexts) -> Cow<'a, str> {
        join_items(self)
    }

    fn read_json(&mut self, json: Value, reader: &mut dyn ValueReader) {
        match json {
            Value::Array(items) => self.extend(items.into_iter().filter_map(|item| match item {
                Value::String(text) if bracketed_items(&text).is_some() => {
                    reader.fault(
                        &text,
                        "an item is a list within a text; write its items as texts".into(),
                    );
                    None
                }
                Value::String(text) => Some(text),
                other => {
                    let message = message!(
                        "an item is {}; write a text in quotes",
                        JsonType::of(&other)
                    );
                    reader.fault(&other.to_string(), message);
                    None
                }
            })),
            other => reader.fault(
                &other.to_string(),
                message!(
                    "is {}; write a list of texts, such as [\"Oncology\"]",
                    JsonType::of(&other)
                ),
            ),
        }
    }

    fn read_csv(&mut self, cell: &str, reader: &mut dyn ValueReader) {
        match split_items(cell) {
            Ok(items) => self.extend(items.map(str::to_owned)),
            Err(message) => reader.fault(cell, message),
        }
    }

    fn normalize(&mut self) {
        self.sort_unstable();
        self.dedup();
    }
}

/// The separator of list items within a cell.
pub const ITEM_SEPARATOR: &str = "; ";

pub(crate) fn join_items<'a>(items: &[impl AsRef<str>]) -> Cow<'a, str> {
    let items = items.iter().map(AsRef::as_ref).joined(ITEM_SEPARATOR);
    guard_formula(Cow::Owned(items))
}

pub(crate) fn split_items(cell: &str) -> Result<std::str::Split<'_, &'static str>, Message> {
    let items = split_at(cell, ITEM_SEPARATOR)?;
    if items.clone().any(str::is_empty) {
        return Err(
            "an item is empty; separate items by one `; `, with none at the beginning or end"
                .into(),
        );
    }
    Ok(items)
}

/// Splits a list at another separator than that of exports. Fails for a list that a program wrote.
pub fn split_at<'c, 's>(
    cell: &'c str,
    separator: &'s str,
) -> Result<std::str::Split<'c, &'s str>, Message> {
    match bracketed_items(cell) {
        Some(items) => Err(message!(
            "is a list of a program; write its items without brackets and quotes: `{items}`"
        )),
        None => Ok(unguard_formula(cell).split(separator)),
    }
}

/// Returns the items of a list that a program wrote, such as `['a', 'b']` or `["a","b"]`, as a cell.
pub(super) fn bracketed_items(text: &str) -> Option<String> {
    const QUOTES: [char; 2] = ['\'', '"'];
    let items = text.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
    if !items.starts_with(QUOTES) || !items.ends_with(QUOTES) {
        return None;
    }
    let mut items = items.trim_matches(QUOTES).to_owned();
    for separator in ["', '", "','", "\", \"", "\",\"", "', \"", "\", '"] {
        items = items.replace(separator, ITEM_SEPARATOR);
    }
    Some(items)
}

/// Whether a spreadsheet may evaluate the text as a formula: `^'*[=+\-@\t\r]`.
pub fn looks_like_formula(text: &str) -> bool {
    text.trim_start_matches('\'')
        .starts_with(['=', '+', '-', '@', '\t', '\r'])
}

/// Adds a `'` before a text that a spreadsheet may evaluate as a formula.
pub(super) fn guard_formula(text: Cow<'_, str>) -> Cow<'_, str> {
    if looks_like_formula(&text) {
        Cow::Owned(format!("'{text}"))
    } else {
        text
    }
}

pub(super) fn unguard_formula(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(rest) if looks_like_formula(rest) => rest,
        _ => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_guarded_and_read_back() {
        let cases = [
            ("Oncology", "Oncology"),
            ("=1+1", "'=1+1"),
            ("'=1+1", "''=1+1"),
            ("-aminobutyric", "'-aminobutyric"),
            ("@home", "'@home"),
            ("\tx", "'\tx"),
            ("'Iraq", "'Iraq"),
            ("a=b", "a=b"),
            ("", ""),
            ("'", "'"),
        ];
        for (text, cell) in cases {
            assert_eq!(guard_formula(Cow::Borrowed(text)), cell, "{text:?}");
            assert_eq!(unguard_formula(cell), text, "{cell:?}");
        }
    }
}
