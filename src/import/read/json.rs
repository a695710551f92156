//! A JSON reader. It rejects duplicate keys, and reports the path of each fault.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_json::error::Category;

use crate::model::message::{Message, message};
use crate::model::value::Json;
use crate::model::value::json::JsonMembers;

/// Returns the values of the object at `path` that are no objects, with their paths: their keys, joined by dots. The values
/// in a list of objects are lists, unless `is_whole` returns true for its path.
pub(in crate::import) fn leaves<'j>(
    path: &str,
    members: JsonMembers<'j>,
    is_whole: &dyn Fn(&str) -> bool,
) -> JsonMembers<'j> {
    let mut found: JsonMembers<'j> = Vec::with_capacity(members.len());
    for (key, value) in members {
        let path = if path.is_empty() { key } else { format!("{path}.{key}").into() };
        let are_objects = |items: &[Json<'_>]| items.iter().all(|item| matches!(item, Json::Object(_)));
        match value {
            Json::Object(inner) => found.extend(leaves(&path, inner, is_whole)),
            Json::List(items) if !items.is_empty() && are_objects(&items) && !is_whole(&path) => {
                let mut lists: Vec<(Cow<'_, str>, Vec<Json<'_>>)> = Vec::new();
                for item in items {
                    let Json::Object(inner) = item else { continue };
                    for (path, value) in leaves(&path, inner, is_whole) {
                        match lists.iter_mut().find(|(known, _)| *known == path) {
                            Some((_, values)) => values.push(value),
                            None => lists.push((path, vec![value])),
                        }
                    }
                }
                found.extend(lists.into_iter().map(|(path, values)| (path, Json::List(values))));
            }
            value => found.push((path, value)),
        }
    }
    found
}

/// Parses one JSON value. The error is the keys from the top level to the fault, joined by dots, and the fault with its remedy.
pub fn parse(text: &str) -> Result<Json<'_>, (String, Message)> {
    let trail = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    JsonReader { trail: &trail }
        .deserialize(&mut deserializer)
        .and_then(|json| deserializer.end().map(|()| json))
        .map_err(|error| {
            let path: Vec<Cow<'_, str>> = trail.take().into_iter().rev().collect();
            (path.join("."), explain(&error, text))
        })
}

/// Returns the message for an error. `text` is the line with the error.
pub(super) fn explain(error: &serde_json::Error, text: &str) -> Message {
    let reason = error.to_string();
    let (line, column) = (error.line(), error.column());
    let reason = reason.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&reason);
    match error.classify() {
        Category::Data => message!("{reason}"),
        Category::Eof => {
            message!("is not valid JSON: it ends too early ({reason}); in a .jsonl file, write one object per line")
        }
        Category::Io | Category::Syntax => {
            let after = text.get(column.saturating_sub(1)..).unwrap_or_default();
            if ["NaN", "Infinity", "-Infinity", "nan", "inf"].iter().any(|word| after.starts_with(word)) {
                message!("is not valid JSON: JSON has no NaN and no Infinity (column {column}); write null")
            } else {
                message!("is not valid JSON: {reason} (column {column})")
            }
        }
    }
}

/// Parses a value. On failure `trail` contains the keys from the fault up to the top level.
#[derive(Clone, Copy)]
struct JsonReader<'t, 'a> {
    trail: &'t RefCell<Vec<Cow<'a, str>>>,
}

impl<'a> DeserializeSeed<'a> for JsonReader<'_, 'a> {
    type Value = Json<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Json<'a>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for JsonReader<'_, 'a> {
    type Value = Json<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Json<'a>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json<'a>, E> {
        Ok(Json::Flag(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json<'a>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json<'a>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json<'a>, E> {
        Ok(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'a str) -> Result<Json<'a>, E> {
        Ok(Json::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Json<'a>, E> {
        Ok(Json::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<Json<'a>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'a>>(self, mut entries: A) -> Result<Json<'a>, A::Error> {
        let mut members: JsonMembers<'a> = Vec::new();
        while let Some(JsonKey(key)) = entries.next_key()? {
            match entries.next_value_seed(self) {
                Ok(value) => members.push((key, value)),
                Err(error) => {
                    self.trail.borrow_mut().push(key);
                    return Err(error);
                }
            }
        }
        if let Some(key) = find_duplicate(&members) {
            self.trail.borrow_mut().push(key);
            return Err(A::Error::custom("appears twice in its object; give each key once"));
        }
        Ok(Json::Object(members))
    }
}

/// Returns the first duplicate key in lexical order.
fn find_duplicate<'a>(members: &JsonMembers<'a>) -> Option<Cow<'a, str>> {
    let mut keys: Vec<&Cow<'a, str>> = members.iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone())
}

/// A key, borrowed from the text unless it has escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct JsonKey<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let cases = [
            (r#"{"b":1,"a":[null,true,-1,5.0,"x"]}"#, r#"{"b":1,"a":[null,true,-1,5.0,"x"]}"#),
            ("9007199254740992", "9007199254740992"),
            ("18446744073709551616", "1.8446744073709552e+19"),
            (r#" "caf\u00e9" "#, "café"),
            ("-0", "-0.0"),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn faults_tell_their_place() {
        let cases = [
            (r#"{"a":1,"a":2}"#, "a", "appears twice"),
            (r#"{"f":{"oral":true,"\u006fral":true}}"#, "f.oral", "appears twice"),
            (r#"{"o":[{"id":1,"id":1}]}"#, "o.id", "appears twice"),
            (r#"{"f":{"oral":NaN}}"#, "f.oral", "no NaN"),
            (r#"{"f":-Infinity}"#, "f", "no NaN and no Infinity"),
            (r#"{"sjr":1e999}"#, "sjr", "number out of range"),
            (r#"{"sjr":.5}"#, "sjr", "expected value (column 8)"),
            (r#"{"sjr":05}"#, "sjr", "invalid number"),
            (r#"{"name":"\ud800"}"#, "name", "is not valid JSON"),
            (r#"{"a":1} x"#, "", "trailing characters"),
            (r#"{"a":1}{"a":1}"#, "", "trailing characters"),
            (r#"{"a":1"#, "", "ends too early"),
            (r#"{"a":1,}"#, "", "trailing comma"),
            (r#"{'a':1}"#, "", "key must be a string"),
        ];
        for (text, path, message) in cases {
            let (found, fault) = parse(text).unwrap_err();
            assert_eq!(found, path, "{text}: {fault}");
            assert!(fault.contains(message), "{text}: {fault}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err(), "deep nesting must not overflow the stack");
    }

    #[test]
    fn numbers_are_read_exactly() {
        // Exported numbers must be imported unchanged.
        for value in [0.1, 4.35, 1.7976931348623157e308, 5e-324, 0.000123456789012345] {
            assert_eq!(parse(&format!("{value}")).ok(), Number::from_f64(value).map(Json::Number), "{value}");
        }
        let mut bits: u64 = 0x9E37_79B9_7F4A_7C15;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let value = f64::from_bits((bits >> 12) | 0x3FF0_0000_0000_0000) * 40.0;
            assert_eq!(parse(&format!("{value:?}")).ok(), Number::from_f64(value).map(Json::Number), "{value}");
        }
    }
}
