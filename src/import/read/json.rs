//! JSON objects as cells. It rejects duplicate keys, and reports the path of each fault.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::table_cell::TableCell;
use crate::model::message::{Message, message};
use crate::model::value::json::{as_text, is_empty};

/// The values of an object that are no objects.
#[derive(Default)]
pub(super) struct Leaves<'t> {
    /// The path of each: its keys, joined by dots.
    pub paths: Vec<Cow<'t, str>>,
    pub cells: Vec<TableCell<'t>>,
}

/// The path to a fault, and the fault with its remedy.
pub(super) type PathAndFault = (String, Message);

/// The first character of a text.
const QUOTE: char = '\u{22}';

/// The maximum depth of lists and objects.
const MAX_DEPTH: usize = 100;

/// Reads objects as cells.
#[derive(Clone, Copy)]
pub(super) struct LeafReader<'r> {
    /// The separator of items in the text of a list.
    pub separator: &'r str,
    /// Returns true for the path of a value that is read as a whole, even if it is an object.
    pub is_whole: &'r dyn Fn(&str) -> bool,
}

impl LeafReader<'_> {
    /// Adds the values of the object at `path`. The values in a list of objects are lists.
    pub fn read<'t>(
        self,
        path: &str,
        object: &'t str,
        leaves: &mut Leaves<'t>,
    ) -> Result<(), PathAndFault> {
        let members = checked_members(path, object)?;
        leaves.paths.reserve(members.len());
        leaves.cells.reserve(members.len());
        for (key, value) in members {
            let path = joined(path, key);
            let value = value.get();
            let objects = match objects_in(value) {
                objects if !objects.is_empty() && (self.is_whole)(&path) => Vec::new(),
                objects => objects,
            };
            match &*objects {
                [] => {
                    leaves.cells.push(self.cell(&path, value)?);
                    leaves.paths.push(path);
                }
                // A list of one object is this object.
                [object] => self.read(&path, object, leaves)?,
                objects => self.read_all(&path, objects, leaves)?,
            }
        }
        Ok(())
    }

    /// Adds the values of a list of objects.
    fn read_all(
        self,
        path: &str,
        objects: &[&str],
        leaves: &mut Leaves<'_>,
    ) -> Result<(), PathAndFault> {
        let mut lists: Map<String, Value> = Map::new();
        for object in objects {
            let mut found = Leaves::default();
            self.read(path, object, &mut found)?;
            for (path, cell) in found.paths.into_iter().zip(found.cells) {
                let value = cell.json.unwrap_or_else(|| Value::from(cell.text));
                let items = match value {
                    Value::Array(items) => items,
                    value => vec![value],
                };
                let list = lists
                    .entry(path)
                    .or_insert_with(|| Value::Array(Vec::new()));
                if let Some(list) = list.as_array_mut() {
                    list.extend(items);
                }
            }
        }
        for (path, list) in lists {
            leaves.paths.push(path.into());
            leaves.cells.push(self.cell_of(list));
        }
        Ok(())
    }

    /// Returns a JSON value as a cell.
    fn cell<'t>(self, path: &str, text: &'t str) -> Result<TableCell<'t>, PathAndFault> {
        if !text.starts_with(QUOTE) {
            return Ok(self.cell_of(match text {
                "null" => Value::Null,
                "true" => Value::Bool(true),
                text => parse(path, text, 0)?,
            }));
        }
        match serde_json::from_str(text) {
            Ok(Text(text)) => Ok(TableCell::text(text)),
            Err(error) => Err((path.to_owned(), explain(&error, text))),
        }
    }

    /// Returns a value that is no text as a cell. Its text for a list has the items, joined by their separator.
    fn cell_of<'t>(self, value: Value) -> TableCell<'t> {
        let text: Cow<'_, str> = match &value {
            Value::Null => return TableCell::default(),
            Value::Bool(true) => "true".into(),
            Value::Array(items) => {
                let items = items.iter().filter(|item| !is_empty(item));
                let texts: Vec<Cow<'_, str>> = items.map(as_text).collect();
                texts.join(self.separator).into()
            }
            other => other.to_string().into(),
        };
        TableCell {
            is_number: value.is_number(),
            json: Some(value),
            ..TableCell::text(text)
        }
    }
}

fn joined<'t>(path: &str, key: Cow<'t, str>) -> Cow<'t, str> {
    match path {
        "" => key,
        path => [path, ".", &key].concat().into(),
    }
}

/// Returns an object as a list, or the objects of a list of objects. Returns none for anything else.
fn objects_in(value: &str) -> Vec<&str> {
    let mut objects = Vec::new();
    if value.starts_with('{') {
        objects.push(value);
    } else if is_list_with(value, '{') {
        objects.extend(items_of(value));
    }
    if !objects.iter().all(|item| item.starts_with('{')) {
        objects.clear();
    }
    objects
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

/// Parses a valid JSON value, and rejects duplicate keys in it.
fn parse(path: &str, text: &str, depth: usize) -> Result<Value, PathAndFault> {
    let has_objects = text.contains('{') && depth < MAX_DEPTH;
    if text.starts_with('{') && has_objects {
        let mut object = Map::new();
        for (key, value) in checked_members(path, text)? {
            let value = parse(&joined(path, Cow::Borrowed(&key)), value.get(), depth + 1)?;
            object.insert(key.into(), value);
        }
        Ok(Value::Object(object))
    } else if text.starts_with('[') && has_objects {
        let items = items_of(text).map(|item| parse(path, item, depth + 1));
        items.collect()
    } else {
        serde_json::from_str(text).map_err(|error| (path.to_owned(), explain(&error, text)))
    }
}

/// The members of an object, in their order.
pub(super) type Members<'t> = Vec<(Cow<'t, str>, &'t RawValue)>;

/// Returns the members of an object, also those whose key appears again. Returns none for anything else.
pub(super) fn members(text: &str) -> Members<'_> {
    let mut reader = ObjectReader::default();
    let read = serde_json::Deserializer::from_str(text).deserialize_map(&mut reader);
    read.map_or_else(|_| Vec::new(), |()| reader.members)
}

/// Returns the members of the object at `path`, or its fault.
fn checked_members<'t>(path: &str, object: &'t str) -> Result<Members<'t>, PathAndFault> {
    let mut reader = ObjectReader::default();
    let mut json = serde_json::Deserializer::from_str(object);
    let read = json.deserialize_map(&mut reader).and_then(|()| json.end());
    let (key, fault) = match read {
        Err(error) => (reader.key.unwrap_or_default(), explain(&error, object)),
        Ok(()) => {
            let mut keys: Vec<&str> = reader.members.iter().map(|(key, _)| &**key).collect();
            keys.sort_unstable();
            let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) else {
                return Ok(reader.members);
            };
            let fault = "appears twice in its object; give each key once";
            (pair[0].to_owned().into(), fault.into())
        }
    };
    Err((joined(path, key).into_owned(), fault))
}

/// Reads an object.
#[derive(Default)]
struct ObjectReader<'t> {
    members: Members<'t>,
    /// The key whose value is read.
    key: Option<Cow<'t, str>>,
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
            self.key = Some(key);
            let value = entries.next_value()?;
            let key = self.key.take();
            self.members.extend(key.map(|key| (key, value)));
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
        let reader = LeafReader {
            separator: "; ",
            is_whole: &|path| path == "whole",
        };
        let mut leaves = Leaves::default();
        reader.read("", text, &mut leaves)?;
        let leaves = leaves.paths.iter().zip(leaves.cells);
        let shown: Vec<String> = leaves
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
            let expected = Some(Value::from(value));
            assert_eq!(parse("", &format!("{value}"), 0).ok(), expected, "{value}");
        }
        let mut bits: u64 = 0x9E37_79B9_7F4A_7C15;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let value = f64::from_bits((bits >> 12) | 0x3FF0_0000_0000_0000) * 40.0;
            let found = parse("", &format!("{value:?}"), 0).ok();
            assert_eq!(found, Some(Value::from(value)), "{value}");
        }
    }
}
