//! JSON files: a list of objects, or an object that contains one list of objects. Their rows are read like JSON lines.

use std::collections::BTreeMap;
use std::io::{self, Read};

use serde_json::Deserializer;
use serde_json::value::RawValue;

use crate::import::read::json::explain;
use crate::import::read::jsonl::{ObjectReader, read_jsonl};
use crate::import::rows::FileRows;
use crate::model::Fields;
use crate::model::message::message;

/// Reads all rows, and returns their number. A file of JSON lines is read, too.
pub(in crate::import) fn read_json<F: Fields>(mut content: impl Read, rows: &mut FileRows<'_, F>) -> io::Result<usize> {
    let mut bytes = Vec::new();
    content.read_to_end(&mut bytes)?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => {
            rows.add_fault(1 + line_ends(&bytes[..error.valid_up_to()]), "is not UTF-8; save the file as UTF-8");
            return Ok(1);
        }
    };
    let document = match serde_json::from_str::<&RawValue>(text) {
        Ok(document) => document.get(),
        Err(_) if are_lines(text) => return read_jsonl(bytes.as_slice(), rows),
        Err(error) => {
            let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
            rows.add_fault(u64::try_from(error.line()).unwrap_or(1), explain(&error, line));
            return Ok(1);
        }
    };
    let Some(list) = list_within(document, rows) else { return Ok(1) };
    // A document that is no list is one row.
    let items: Vec<&str> = serde_json::from_str::<Vec<&RawValue>>(list)
        .map_or_else(|_| vec![list], |items| items.into_iter().map(RawValue::get).collect());
    let (mut line, mut line_of) = (1, 0);
    let options = rows.options;
    let mut objects = ObjectReader::new(options);
    for (at, item) in items.iter().enumerate() {
        let begins_at = item.as_ptr().addr() - text.as_ptr().addr();
        line += line_ends(&bytes[line_of..begins_at]);
        line_of = begins_at;
        if at == options.bounds.rows {
            rows.add_fault(line, options.bounds.rows_fault("objects"));
            break;
        } else if item.len() > options.bounds.line_bytes {
            rows.add_fault(line, options.bounds.line_fault());
        } else {
            rows.add(line, |faults| objects.read(item.as_bytes(), faults));
        }
    }
    rows.warn_of_ignored(None, "field");
    Ok(items.len().min(options.bounds.rows))
}

/// Returns true if the text contains JSON lines, or nothing.
fn are_lines(text: &str) -> bool {
    let first = Deserializer::from_str(text).into_iter::<&RawValue>().next();
    first.is_none_or(|first| first.is_ok_and(|first| first.get().starts_with('{')))
}

/// Returns the list of objects that a document contains, or the document itself if it is a list or a row. A row may have
/// lists of links. Warns of the members next to the list. Reports several lists, and returns `None`.
fn list_within<'t, F: Fields>(document: &'t str, rows: &mut FileRows<'_, F>) -> Option<&'t str> {
    let is_list = |value: &str| value.strip_prefix('[').is_some_and(|items| items.trim_start().starts_with('{'));
    let is_field = |name: &str| F::table().nodes.iter().any(|node| node.key == name);
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(document).unwrap_or_default();
    let (lists, others): (Vec<_>, Vec<_>) =
        members.iter().partition(|(name, value)| is_list(value.get()) && !is_field(name));
    match *lists {
        [] => Some(document),
        [(name, list)] => {
            if !others.is_empty() {
                let names: Vec<&str> = others.iter().map(|(name, _)| name.as_str()).collect();
                let message = message!("only the list `{name}` is read; ignored next to it: `{}`", names.join("`, `"));
                rows.warn(None, message);
            }
            Some(list.get())
        }
        [(one, _), (other, _), ..] => {
            let message = message!("contains the lists `{one}` and `{other}`; write each list to a file of its own");
            rows.add_fault(1, message);
            None
        }
    }
}

fn line_ends(text: &[u8]) -> u64 {
    text.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::read::bounds::Bounds;
    use crate::import::read::jsonl::tests::shown;
    use crate::import::read::options::ReadOptions;
    use crate::model::{ConferenceFields, OrganizationFields};

    fn read<F: Fields>(text: &str, bounds: Bounds) -> String {
        let options = ReadOptions { bounds, ..ReadOptions::default() };
        shown(&options, |rows: &mut FileRows<'_, F>| read_json(text.as_bytes(), rows))
    }

    #[test]
    fn lists_of_objects_are_read() {
        let cases = [
            ("", ""),
            (" [ ] \n", ""),
            (r#"[{"id":1,"name":"A"},{"id":2}]"#, "1 name=\"A\"\n2 \n"),
            ("[\n {\"id\":1,\n\"name\":\"[{\\\"\"}\n,\n{\"id\":2}]\n", "1 name=\"[{\\\"\"\n2 \n"),
            (r#"{"data":[{"id":1}]}"#, "1 \n"),
            (
                r#"{"count":1,"next":null,"data":[{"id":1}],"none":[]}"#,
                "1 \n\nf: only the list `data` is read; ignored next to it: `count`, `next`, `none`",
            ),
            ("{\"id\":1}\n{\"id\":2}\n", "1 \n2 \n"),
            ("{\n\"id\":\n1}\n", "1 \n"),
            ("[{\"id\":1},\n{\"id\":0},\n\n[],{\"id\":1,\n\"id\":2}]", "1 \nf:2: id: `0` - an id is"),
            ("[{\"id\":1},\n\n[]]", "f:3: `[]` - is a list; write one object per line"),
            ("[{\"id\":1},\n{\n\"nam\":1,\"id\":2}]", "f:2: nam: unknown field `nam`"),
            ("{\"x\":1,\n\"a\":[\n{\"id\":1},{\"id\":0}]}", "f:3: id: `0`"),
            ("[{\"id\":1},\n{\"id\":2,\"id\":3}]", "f:2: id: appears twice"),
            ("[{\"id\":1},\n{\"id\":NaN}]", "f:2: is not valid JSON: JSON has no NaN and no Infinity (column 7)"),
            ("[{\"id\":1},\n{\"id\":2}", "f:2: is not valid JSON: it ends too early"),
            ("[{\"id\":1},]", "f:1: is not valid JSON: expected value (column 11)"),
            ("[{\"id\":1}]\n[{\"id\":2}]", "f:2: is not valid JSON: trailing characters (column 1)"),
            ("[{\"id\":1}]\n  x", "f:2: is not valid JSON: trailing characters (column 3)"),
            ("{\"id\":1}\nx", "f:2: is not valid JSON"),
            ("5", "f:1: `5` - is a number; write one object per line"),
            (r#"{"a":[{"id":1}],"b":[{"id":2}]}"#, "f:1: contains the lists `a` and `b`; write each list to a file"),
            (r#"{"data":{"items":[{"id":1}]}}"#, "f:1: data.items.id: unknown field `data.items.id`"),
        ];
        for (text, expected) in cases {
            let read = read::<OrganizationFields>(text, Bounds::default());
            assert!(read.contains(expected) && read.is_empty() == expected.is_empty(), "{text}: {read}");
        }
        // A list of links is no list of rows.
        let row = r#"{"id":1,"organizations":[{"id":5,"name":"A","abbv":null,"type":null,"url":null}]}"#;
        for (text, rows) in [(row, 1), (&*format!("{row}\n{row}"), 2), (&*format!("[{row},{row}]"), 2)] {
            let read = read::<ConferenceFields>(text, Bounds::default());
            assert_eq!(read.matches("1 organizations=[] Organizations([Object").count(), rows, "{text}: {read}");
        }
        let not_utf8 = shown(&ReadOptions::default(), |rows: &mut FileRows<'_, OrganizationFields>| {
            read_json(&b"[{\"id\":1},\n{\"name\":\"\xff\"}]"[..], rows)
        });
        assert_eq!(not_utf8, "f:2: is not UTF-8; save the file as UTF-8");
    }

    #[test]
    fn bounds_are_kept() {
        let objects = Bounds { line_bytes: 10, ..Bounds::default() };
        let rows = Bounds { rows: 2, ..Bounds::default() };
        let cases = [
            (
                objects,
                "[{\"id\":123},\n{\"id\":1234},{\"id\":5}]",
                "123 \n5 \nf:2: the line is longer than 10 bytes; correct it",
            ),
            (
                rows,
                "[{\"id\":1},{\"id\":2},\n{\"id\":3},{\"id\":4}]",
                "1 \n2 \nf:2: the file has more than 2 objects; split it",
            ),
        ];
        for (bounds, text, expected) in cases {
            assert_eq!(read::<OrganizationFields>(text, bounds), expected);
        }
        let deep = "[".repeat(1_000_000);
        assert!(read::<OrganizationFields>(&deep, Bounds::default()).contains("ends too early"));
        let closed = format!("{deep}{}", "]".repeat(1_000_000));
        assert!(read::<OrganizationFields>(&closed, Bounds::default()).contains("recursion limit"));
    }
}
