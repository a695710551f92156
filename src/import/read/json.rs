//! A JSON reader. It rejects duplicate keys, and reports the path of each fault.

use std::cell::RefCell;
use std::{fmt, iter};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::map::Entry;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::model::message::{Message, message};

/// Returns the values of the object at `path` that are no objects, with their paths: their keys, joined by dots. The
/// values in a list of objects are lists. A value with a path for which `is_whole` returns true stays as it is.
pub(in crate::import) fn leaves(
    path: &str,
    members: Map<String, Value>,
    is_whole: &dyn Fn(&str) -> bool,
) -> Vec<(String, Value)> {
    let mut found = Vec::with_capacity(members.len());
    for (key, value) in members {
        let path = if path.is_empty() {
            key
        } else {
            format!("{path}.{key}")
        };
        match value {
            Value::Object(inner) if !is_whole(&path) => {
                found.extend(leaves(&path, inner, is_whole));
            }
            // A list of one object is this object.
            Value::Array(mut items) if matches!(*items, [Value::Object(_)]) && !is_whole(&path) => {
                if let Some(Value::Object(inner)) = items.pop() {
                    found.extend(leaves(&path, inner, is_whole));
                }
            }
            Value::Array(items)
                if !items.is_empty() && items.iter().all(Value::is_object) && !is_whole(&path) =>
            {
                let mut lists = Map::new();
                for item in items {
                    let Value::Object(inner) = item else { continue };
                    for (path, value) in leaves(&path, inner, is_whole) {
                        if let Value::Array(list) = lists
                            .entry(path)
                            .or_insert_with(|| Value::Array(Vec::new()))
                        {
                            match value {
                                Value::Array(inner) => list.extend(inner),
                                value => list.push(value),
                            }
                        }
                    }
                }
                found.extend(lists);
            }
            value => found.push((path, value)),
        }
    }
    found
}

/// Parses one JSON value. The error is the keys from the top level to the fault, joined by dots, and the fault with its
/// remedy.
pub fn parse(text: &str) -> Result<Value, (String, Message)> {
    let trail = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    JsonReader { trail: &trail }
        .deserialize(&mut deserializer)
        .and_then(|json| deserializer.end().map(|()| json))
        .map_err(|error| {
            let path: Vec<String> = trail.take().into_iter().rev().collect();
            (path.join("."), explain(&error, text))
        })
}

/// Returns the members of an object, also those whose key appears again. Returns none for anything else.
pub(super) fn members(text: &str) -> Vec<(String, &RawValue)> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            iter::from_fn(|| entries.next_entry().transpose()).collect()
        }
    }
    serde_json::Deserializer::from_str(text)
        .deserialize_map(Members)
        .unwrap_or_default()
}

/// Returns the message for an error. `text` is the line with the error.
pub(super) fn explain(error: &serde_json::Error, text: &str) -> Message {
    let reason = error.to_string();
    let line = error.line();
    let column = error.column();
    let reason = reason
        .strip_suffix(&format!(" at line {line} column {column}"))
        .unwrap_or(&reason);
    match error.classify() {
        Category::Data => message!("{reason}"),
        Category::Eof => {
            message!(
                "is not valid JSON: it ends too early ({reason}); the file is cut short, a bracket is missing, or an object is not on one line of a .jsonl file"
            )
        }
        Category::Io | Category::Syntax => {
            let after = text.get(column.saturating_sub(1)..).unwrap_or_default();
            if ["NaN", "Infinity", "-Infinity", "nan", "inf"]
                .iter()
                .any(|word| after.starts_with(word))
            {
                message!(
                    "is not valid JSON: JSON has no NaN and no Infinity (column {column}); write null"
                )
            } else {
                message!("is not valid JSON: {reason} (column {column})")
            }
        }
    }
}

/// Parses a value. On failure `trail` contains the keys from the fault up to the top level.
#[derive(Clone, Copy)]
struct JsonReader<'t> {
    trail: &'t RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for JsonReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonReader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = match entries.next_value_seed(self) {
                Ok(value) => value,
                Err(error) => {
                    self.trail.borrow_mut().push(key);
                    return Err(error);
                }
            };
            match members.entry(key) {
                Entry::Vacant(place) => drop(place.insert(value)),
                Entry::Occupied(first) => {
                    self.trail.borrow_mut().push(first.key().clone());
                    let fault = "appears twice in its object; give each key once";
                    return Err(A::Error::custom(fault));
                }
            }
        }
        Ok(members.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::value::json::as_text;

    #[test]
    fn values_are_read() {
        let cases = cases![
            r#"{"b":1,"a":[null,true,-1,5.0,"x"]}"#, r#"{"b":1,"a":[null,true,-1,5.0,"x"]}"#;
            "9007199254740992", "9007199254740992";
            "18446744073709551616", "1.8446744073709552e+19";
            r#" "caf\u00e9" "#, "café";
            "-0", "-0.0";
        ];
        for (text, expected) in cases {
            assert_eq!(as_text(&parse(text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn faults_name_their_member() {
        let cases = cases![
            r#"{"a":1,"a":2}"#, "a", "appears twice";
            r#"{"f":{"oral":true,"\u006fral":true}}"#, "f.oral", "appears twice";
            r#"{"o":[{"id":1,"id":1}]}"#, "o.id", "appears twice";
            r#"{"f":{"oral":NaN}}"#, "f.oral", "no NaN";
            r#"{"f":-Infinity}"#, "f", "no NaN and no Infinity";
            r#"{"sjr":1e999}"#, "sjr", "number out of range";
            r#"{"sjr":.5}"#, "sjr", "expected value (column 8)";
            r#"{"sjr":05}"#, "sjr", "invalid number";
            r#"{"name":"\ud800"}"#, "name", "is not valid JSON";
            r#"{"a":1} x"#, "", "trailing characters";
            r#"{"a":1}{"a":1}"#, "", "trailing characters";
            r#"{"a":1"#, "", "ends too early";
            r#"{"a":1,}"#, "", "trailing comma";
            r#"{'a':1}"#, "", "key must be a string";
        ];
        for (text, path, message) in cases {
            let (found, fault) = parse(text).unwrap_err();
            assert_eq!(found, path, "{text}: {fault}");
            assert!(fault.contains(message), "{text}: {fault}");
        }
        assert!(
            parse(&"[".repeat(100_000)).is_err(),
            "deep nesting must not overflow the stack"
        );
    }

    #[test]
    fn numbers_are_read_exactly() {
        // Exported numbers must be imported unchanged.
        for value in [
            0.1,
            4.35,
            1.7976931348623157e308,
            5e-324,
            0.000123456789012345,
        ] {
            assert_eq!(
                parse(&format!("{value}")).ok(),
                Some(Value::from(value)),
                "{value}"
            );
        }
        let mut bits: u64 = 0x9E37_79B9_7F4A_7C15;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let value = f64::from_bits((bits >> 12) | 0x3FF0_0000_0000_0000) * 40.0;
            assert_eq!(
                parse(&format!("{value:?}")).ok(),
                Some(Value::from(value)),
                "{value}"
            );
        }
    }
}
