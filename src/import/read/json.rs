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
pub(super) type Leaves<'t> = Vec<(Cow<'t, str>, TableCell<'t>)>;

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
        leaves.reserve(members.len());
        for (key, value) in members {
            let path = joined(path, key);
            let value = value.get();
            let mut objects = objects_in(value);
            if !objects.is_empty() && (self.is_whole)(&path) {
                objects.clear();
            }
            match &*objects {
                [] => {
                    let cell = self.cell(&path, value)?;
                    leaves.push((path, cell));
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
        let mut lists: IndexMap<String, Vec<Value>> = IndexMap::new();
        for object in objects {
            let mut found = Leaves::new();
            self.read(path, object, &mut found)?;
            for (path, cell) in found {
                let list = lists.entry(path.into()).or_default();
                match cell.json {
                    Some(Value::Array(items)) => list.extend(items),
                    Some(value) => list.push(value),
                    None => list.push(cell.text.into()),
                }
            }
        }
        let lists = lists.into_iter();
        leaves.extend(lists.map(|(path, list)| (path.into(), self.cell_of(list.into()))));
        Ok(())
    }

    /// Returns a JSON value as a cell.
    fn cell<'t>(self, path: &str, text: &'t str) -> Result<TableCell<'t>, PathAndFault> {
        if text.starts_with(QUOTE) {
            let Text(text) = parse(path, text)?;
            return Ok(TableCell::text(text));
        }
        Ok(self.cell_of(parse_unique(path, text, 0)?))
    }

    /// Returns a value that is no text as a cell. Its text for a list has the items, joined by their separator.
    fn cell_of<'t>(self, value: Value) -> TableCell<'t> {
        let text = match &value {
            Value::Null => return TableCell::default(),
            Value::Array(items) => {
                let items = items.iter().filter(|item| !is_empty(item));
                let texts: Vec<Cow<'_, str>> = items.map(as_text).collect();
                texts.join(self.separator)
            }
            other => other.to_string(),
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
    if value.starts_with('{') {
        return vec![value];
    }
    if !is_list_with(value, '{') {
        return Vec::new();
    }
    let objects: Vec<&str> = items_of(value).collect();
    let are_all = objects.iter().all(|item| item.starts_with('{'));
    if are_all { objects } else { Vec::new() }
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

/// Parses the value at `path`.
fn parse<'t, T: Deserialize<'t>>(path: &str, text: &'t str) -> Result<T, PathAndFault> {
    serde_json::from_str(text).map_err(|error| (path.to_owned(), explain(&error, text)))
}

/// Parses the value at `path`, and rejects duplicate keys in it.
fn parse_unique(path: &str, text: &str, depth: usize) -> Result<Value, PathAndFault> {
    let has_objects = text.contains('{') && depth < MAX_DEPTH;
    if text.starts_with('{') && has_objects {
        let members = checked_members(path, text)?.into_iter();
        let members = members.map(|(key, value)| {
            let path = joined(path, Cow::Borrowed(&key));
            let value = parse_unique(&path, value.get(), depth + 1)?;
            Ok((key.into_owned(), value))
        });
        members.collect()
    } else if text.starts_with('[') && has_objects {
        let items = items_of(text).map(|item| parse_unique(path, item, depth + 1));
        items.collect()
    } else {
        parse(path, text)
    }
}

/// The members of an object, in their order.
pub(super) type Members<'t> = Vec<(Cow<'t, str>, &'t RawValue)>;

/// Returns the members of an object, also those whose key appears again. Returns none for anything else.
pub(super) fn members(text: &str) -> Members<'_> {
    let (reader, read) = ObjectReader::read(text);
    read.map_or_else(|_| Vec::new(), |()| reader.members)
}

/// Returns the members of the object at `path`, or its fault.
fn checked_members<'t>(path: &str, object: &'t str) -> Result<Members<'t>, PathAndFault> {
    let (reader, read) = ObjectReader::read(object);
    if let Err(error) = read {
        let path = joined(path, reader.key.unwrap_or_default());
        return Err((path.into_owned(), explain(&error, object)));
    }
    let mut keys: Vec<&str> = reader.members.iter().map(|(key, _)| &**key).collect();
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(reader.members),
        Some(pair) => Err((
            joined(path, pair[0].into()).into_owned(),
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
    /// Reads a text that contains only an object. Returns what was read before an error, too.
    fn read(text: &'t str) -> (ObjectReader<'t>, serde_json::Result<()>) {
        let mut reader = ObjectReader::default();
        let mut json = serde_json::Deserializer::from_str(text);
        let read = json.deserialize_map(&mut reader);
        let read = read.and_then(|()| json.end());
        (reader, read)
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
        let reader = LeafReader {
            separator: "; ",
            is_whole: &|path| path == "whole",
        };
        let mut leaves = Leaves::new();
        reader.read("", text, &mut leaves)?;
        let shown: Vec<String> = leaves
            .iter()
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
                parse("", &format!("{value}")).ok(),
                Some(Value::from(value)),
                "{value}"
            );
        }
        let mut bits: u64 = 0x9E37_79B9_7F4A_7C15;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let value = f64::from_bits((bits >> 12) | 0x3FF0_0000_0000_0000) * 40.0;
            assert_eq!(
                parse("", &format!("{value:?}")).ok(),
                Some(Value::from(value)),
                "{value}"
            );
        }
    }
}
