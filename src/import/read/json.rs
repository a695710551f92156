//! JSON objects as cells. It rejects duplicate keys, and reports the path of each fault.

use std::borrow::Cow;
use std::fmt;

use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::table_cell::TableCell;
use crate::model::message::{Message, message};
use crate::model::value::json::{as_text, is_empty};

/// The values of an object that are no objects. Each has its path: its keys, joined by dots.
pub(super) type Leaves = Vec<(String, Value)>;

/// The path to a fault, and the fault with its remedy.
pub(super) type PathAndFault = (String, Message);

/// The maximum depth of lists and objects.
const MAX_DEPTH: usize = 100;

/// Adds the leaves of a value at `path`. The leaves of a list of objects are lists. `is_whole` returns true for the path of
/// a value that is one leaf, even if it is an object.
pub(super) fn add_leaves(
    path: String,
    value: Value,
    is_whole: &dyn Fn(&str) -> bool,
    leaves: &mut Leaves,
) {
    match value {
        Value::Object(members) if path.is_empty() || !is_whole(&path) => {
            for (key, value) in members {
                add_leaves(joined(&path, key), value, is_whole, leaves);
            }
        }
        Value::Array(mut items) if are_objects(&items) && !is_whole(&path) => {
            // A list of one object is this object.
            if items.len() == 1 {
                return add_leaves(path, items.swap_remove(0), is_whole, leaves);
            }
            let mut found = Leaves::new();
            for item in items {
                add_leaves(path.clone(), item, is_whole, &mut found);
            }
            let mut lists: IndexMap<String, Vec<Value>> = IndexMap::new();
            for (path, value) in found {
                let list = lists.entry(path).or_default();
                match value {
                    Value::Array(items) => list.extend(items),
                    value => list.push(value),
                }
            }
            leaves.extend(lists.into_iter().map(|(path, list)| (path, list.into())));
        }
        value => leaves.push((path, value)),
    }
}

fn are_objects(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().all(Value::is_object)
}

/// Returns a value as a cell. Its text for a list has the items, joined by `separator`.
pub(super) fn cell_of(value: Value, separator: &str) -> TableCell {
    let text = match value {
        Value::Null => return TableCell::default(),
        Value::String(text) => return TableCell::text(text),
        Value::Array(ref items) => {
            let items = items.iter().filter(|item| !is_empty(item));
            let texts: Vec<Cow<'_, str>> = items.map(as_text).collect();
            texts.join(separator)
        }
        ref other => other.to_string(),
    };
    TableCell {
        is_number: value.is_number(),
        json: Some(value),
        ..TableCell::text(text)
    }
}

/// Returns the path of the member `key` of the object at `path`.
fn joined(path: &str, key: String) -> String {
    match (path, &*key) {
        ("", _) => key,
        (path, "") => path.to_owned(),
        (path, key) => format!("{path}.{key}"),
    }
}

/// Returns true for a list whose first item begins with `first`.
pub(super) fn is_list_with(value: &str, first: char) -> bool {
    let items = value.strip_prefix('[');
    items.is_some_and(|items| items.trim_ascii_start().starts_with(first))
}

/// Returns the items of a list. Returns none for anything else.
pub(super) fn items_of(list: &str) -> impl Iterator<Item = &str> {
    let items: Vec<&RawValue> = serde_json::from_str(list).unwrap_or_default();
    items.into_iter().map(RawValue::get)
}

/// Parses a value, and rejects duplicate keys in it. `depth` is the number of values around it.
pub(super) fn parse(text: &str, depth: usize) -> Result<Value, PathAndFault> {
    if text.starts_with('{') && depth < MAX_DEPTH {
        let members = checked_members(text)?.into_iter();
        let members = members.map(|(key, value)| match parse(value.get(), depth + 1) {
            Ok(value) => Ok((key.into_owned(), value)),
            Err((path, message)) => Err((joined(&key, path), message)),
        });
        members.collect()
    } else if text.starts_with('[') && text.contains('{') && depth < MAX_DEPTH {
        items_of(text).map(|item| parse(item, depth + 1)).collect()
    } else {
        serde_json::from_str(text).map_err(|error| (String::new(), explain(&error, text)))
    }
}

/// The members of an object, in their order.
pub(super) type Members<'t> = Vec<(Cow<'t, str>, &'t RawValue)>;

/// Returns the members of an object, also those whose key appears again. Returns none for anything else.
pub(super) fn members(text: &str) -> Members<'_> {
    let mut reader = ObjectReader::default();
    match reader.read(text) {
        Ok(()) => reader.members,
        Err(_) => Vec::new(),
    }
}

/// Returns the members of an object, or its fault.
fn checked_members(object: &str) -> Result<Members<'_>, PathAndFault> {
    let mut reader = ObjectReader::default();
    if let Err(error) = reader.read(object) {
        let key = reader.key.unwrap_or_default();
        return Err((key.into_owned(), explain(&error, object)));
    }
    let mut keys: Vec<&str> = reader.members.iter().map(|(key, _)| &**key).collect();
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(reader.members),
        Some(pair) => Err((
            pair[0].to_owned(),
            "appears twice in its object; give each key once".into(),
        )),
    }
}

/// Reads an object.
#[derive(Default)]
struct ObjectReader<'t> {
    members: Members<'t>,
    /// The key whose value is read.
    key: Option<Cow<'t, str>>,
}

impl<'t> ObjectReader<'t> {
    /// Reads a text that contains only an object. After an error, `key` has the wrong value.
    fn read(&mut self, text: &'t str) -> serde_json::Result<()> {
        let mut json = serde_json::Deserializer::from_str(text);
        json.deserialize_map(self)?;
        json.end()
    }
}

/// A text, which is borrowed if it has no escapes.
#[derive(Deserialize)]
struct Text<'t>(#[serde(borrow)] Cow<'t, str>);

impl<'t> Visitor<'t> for &mut ObjectReader<'t> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(Text(key)) = entries.next_key()? {
            let key = self.key.insert(key).clone();
            self.members.push((key, entries.next_value()?));
            self.key = None;
        }
        Ok(())
    }
}

/// Returns the message for an error. `text` is the line with the error.
pub(super) fn explain(error: &serde_json::Error, text: &str) -> Message {
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    let column = error.column();
    match error.classify() {
        Category::Data => message!("{reason}"),
        Category::Eof => {
            message!(
                "is not valid JSON: it ends too early ({reason}); the file is cut short, a bracket is missing, or an object is not on one line of a .jsonl file"
            )
        }
        Category::Io | Category::Syntax => {
            let after = text.get(column.saturating_sub(1)..).unwrap_or_default();
            let words = ["NaN", "Infinity", "-Infinity", "nan", "inf"];
            if words.iter().any(|word| after.starts_with(word)) {
                message!(
                    "is not valid JSON: JSON has no NaN and no Infinity (column {column}); write null"
                )
            } else {
                message!("is not valid JSON: {reason} (column {column})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the leaves of an object, each with its path and its text, or its fault.
    fn read(text: &str) -> Result<String, PathAndFault> {
        let mut leaves = Leaves::new();
        let object = parse(text.trim(), 0)?;
        add_leaves(String::new(), object, &|path| path == "whole", &mut leaves);
        let leaves = leaves.into_iter();
        let cells = leaves.map(|(path, value)| (path, cell_of(value, "; ")));
        let shown: Vec<String> = cells
            .map(|(path, cell)| match cell.json_type() {
                Some(json) => format!("{path}={} ({json})", cell.text),
                None => format!("{path}={}", cell.text),
            })
            .collect();
        Ok(shown.join(" "))
    }

    #[test]
    fn values_are_read() {
        let cases = cases![
            r#"{"b":1,"a":[null,true,-1,5.0,"x"]}"#, "b=1 (a number) a=true; -1; 5.0; x (a list)";
            r#"{"a":9007199254740992,"b":18446744073709551616,"c":-0}"#,
                "a=9007199254740992 (a number) b=1.8446744073709552e+19 (a number) c=-0.0 (a number)";
            r#" {"a": "caf\u00e9", "\u0062": null, "c": false, "d": ""} "#, "a=café b= c=false (true or false) d=";
            r#"{"a":{"b":{},"c":{"d":"x"}},"e":{}}"#, "a.c.d=x";
            r#"{"a":[{"b":"x"}],"whole":{"b":"x"}}"#, "a.b=x whole={\"b\":\"x\"} (an object)";
            r#"{"a":[{"b":"x","c":1},{"b":["y","z"]}]}"#, "a.b=x; y; z (a list) a.c=1 (a list)";
            r#"{"whole":[{"b":1}],"a":[{"b":1},2]}"#, "whole={\"b\":1} (a list) a={\"b\":1}; 2 (a list)";
        ];
        for (text, expected) in cases {
            assert_eq!(read(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn faults_name_their_member() {
        let cases = cases![
            r#"{"a":1,"a":2}"#, "a", "appears twice";
            r#"{"f":{"oral":true,"\u006fral":true}}"#, "f.oral", "appears twice";
            r#"{"o":[{"id":1,"id":1}]}"#, "o.id", "appears twice";
            r#"{"f":{"oral":NaN}}"#, "f", "no NaN";
            r#"{"f":-Infinity}"#, "f", "no NaN and no Infinity";
            r#"{"sjr":1e999}"#, "sjr", "number out of range";
            r#"{"o":[{"a":1},{"a":{"b":1,"b":2}}]}"#, "o.a.b", "appears twice";
            r#"{"whole":[[{"id":1,"id":1}]]}"#, "whole.id", "appears twice";
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
            let (found, fault) = read(text).unwrap_err();
            assert_eq!(found, path, "{text}: {fault}");
            assert!(fault.contains(message), "{text}: {fault}");
        }
        for nested in ["[", "{\"a\":", "[{\"a\":"] {
            let closed = nested.chars().rev().filter_map(|sign| match sign {
                '[' => Some(']'),
                '{' => Some('}'),
                _ => None,
            });
            let closed: String = closed.collect();
            let deep = format!("{}1{}", nested.repeat(100_000), closed.repeat(100_000));
            let (_, fault) = read(&format!("{{\"whole\":{deep}}}")).unwrap_err();
            assert!(fault.contains("recursion limit"), "{nested}: {fault}");
        }
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
                parse(&format!("{value}"), 0).ok(),
                Some(Value::from(value)),
                "{value}"
            );
        }
        let mut bits: u64 = 0x9E37_79B9_7F4A_7C15;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let value = f64::from_bits((bits >> 12) | 0x3FF0_0000_0000_0000) * 40.0;
            assert_eq!(
                parse(&format!("{value:?}"), 0).ok(),
                Some(Value::from(value)),
                "{value}"
            );
        }
    }
}
