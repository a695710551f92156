//! Texts, and lists of texts.

use std::borrow::Cow;

use super::cell::{bracketed_items, guard_formula, join_items, split_items, unguard_formula};
use super::json::{Json, push_list, push_str};
use super::kind::{FieldValue, LinkTexts, ValueKind, ValueReader};
use crate::model::message::message;

/// Any text. An empty text is stored as null.
impl FieldValue for Option<String> {
    fn kind() -> ValueKind {
        ValueKind::Text
    }

    fn texts(&self) -> &[String] {
        self.as_slice()
    }

    fn replace_texts(&mut self, replacement: &mut dyn FnMut(&str) -> Option<Option<String>>) {
        if let Some(replaced) = self.as_deref().and_then(replacement) {
            *self = replaced;
        }
    }

    fn write_json(&self, out: &mut Vec<u8>, _links: &dyn LinkTexts) {
        match self {
            Some(text) => push_str(out, text),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn to_csv<'a>(&'a self, _links: &'a dyn LinkTexts) -> Cow<'a, str> {
        guard_formula(Cow::Borrowed(self.as_deref().unwrap_or_default()))
    }

    fn read_json(&mut self, json: Json<'_>, reader: &mut dyn ValueReader) {
        match json {
            Json::Text(text) => *self = Some(text.into_owned()),
            other => reader.fault(&other.to_string(), message!("is {}; write a text in quotes", other.json_type())),
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

    fn replace_texts(&mut self, replacement: &mut dyn FnMut(&str) -> Option<Option<String>>) {
        *self = std::mem::take(self).into_iter().filter_map(|text| replacement(&text).unwrap_or(Some(text))).collect();
    }

    fn write_json(&self, out: &mut Vec<u8>, _links: &dyn LinkTexts) {
        push_list(out, self, |out, item| push_str(out, item));
    }

    fn to_csv<'a>(&'a self, _links: &'a dyn LinkTexts) -> Cow<'a, str> {
        join_items(self)
    }

    fn read_json(&mut self, json: Json<'_>, reader: &mut dyn ValueReader) {
        match json {
            Json::List(items) => self.extend(items.into_iter().filter_map(|item| match item {
                Json::Text(text) if bracketed_items(&text).is_some() => {
                    reader.fault(&text, "an item is a list within a text; write its items as texts".into());
                    None
                }
                Json::Text(text) => Some(text.into_owned()),
                other => {
                    let message = message!("an item is {}; write a text in quotes", other.json_type());
                    reader.fault(&other.to_string(), message);
                    None
                }
            })),
            other => reader.fault(
                &other.to_string(),
                message!("is {}; write a list of texts, such as [\"Oncology\"]", other.json_type()),
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
