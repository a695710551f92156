//! JSON Lines: one object per line.

use std::borrow::Cow;

use super::cells::{cell_of_json, id_of_json};
use super::json::{Json, Members, parse};
use super::names::did_you_mean;
use super::report::{BadRows, Place, RowFaults};
use super::rows::{Cell, Edit, Row};
use crate::model::Fields;
use crate::model::field::Field;

/// Reads the lines of a file.
pub struct JsonlReader<F: 'static> {
    nodes: Vec<Node<F>>,
    ignored: &'static [&'static str],
}

/// A key of the row's objects: a field, or an object of fields.
struct Node<F: 'static> {
    key: &'static str,
    inner: Inner<F>,
}

enum Inner<F: 'static> {
    Field(&'static Field<F>),
    Object(Vec<Node<F>>),
}

type Cells<F> = Vec<(&'static Field<F>, Cell)>;

impl<F: Fields> JsonlReader<F> {
    /// A reader of rows; members named in `ignored` may stand in them without a meaning.
    pub fn new(ignored: &'static [&'static str]) -> JsonlReader<F> {
        let fields: Vec<_> = F::table().iter().map(|field| (field.name, field)).collect();
        JsonlReader { nodes: nest(&fields), ignored }
    }

    /// Reads all lines; returns how many are not blank.
    pub fn read(&self, file: &std::sync::Arc<str>, content: &[u8], rows: &mut Vec<Row<F>>, bad: &mut BadRows) -> usize {
        let mut lines_filled = 0;
        for (line, text) in (1..).zip(lines(content)) {
            if text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            lines_filled += 1;
            let place = Place { file: file.clone(), line };
            let mut faults = RowFaults::new(&place, bad);
            if let Some((id, edit)) = self.read_line(text, &mut faults) {
                let is_bad = faults.found();
                rows.push(Row { place, id, edit, is_bad });
            }
        }
        lines_filled
    }

    fn read_line(&self, text: &[u8], faults: &mut RowFaults<'_>) -> Option<(crate::model::Id, Edit<F>)> {
        let text = match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(error) => {
                let at = error.valid_up_to() + 1;
                faults.push_row(None, format!("is not UTF-8 (at byte {at} of the line); save the file as UTF-8"));
                return None;
            }
        };
        let members = match parse(text) {
            Ok(Json::Object(members)) => members,
            Ok(other) => {
                let message = format!("is {}; write one object per line, such as {{\"id\": 1}}", other.type_name());
                faults.push_row(Some(&other.to_string()), message);
                return None;
            }
            Err(fault) if fault.path.is_empty() => {
                faults.push_row(None, fault.message);
                return None;
            }
            Err(fault) => {
                faults.push(&fault.path, fault.message);
                return None;
            }
        };
        let id = match members.iter().find(|(key, _)| key == "id") {
            Some((_, value)) => id_of_json(value, &"id", faults),
            None => {
                faults.push(&"id", "is missing; every row names its id");
                None
            }
        };
        // A row without a usable id is still read, so that all its faults are told at once.
        let edit = match members.iter().find(|(key, _)| key == "deleted") {
            Some((_, deleted)) => {
                read_tombstone(deleted, &members, faults);
                Edit::Remove
            }
            None => {
                let mut cells = Vec::with_capacity(F::table().len());
                self.read_members(&self.nodes, "", members, &mut cells, faults);
                Edit::Set(cells)
            }
        };
        id.map(|id| (id, edit))
    }

    /// Reads the members of the object at `path` (empty, or with a dot at its end).
    fn read_members(
        &self,
        nodes: &[Node<F>],
        path: &str,
        members: Members<'_>,
        cells: &mut Cells<F>,
        faults: &mut RowFaults<'_>,
    ) {
        // Keys mostly come in the table's order, so the search goes on where the last key was found.
        let mut next = 0;
        for (key, value) in members {
            let found = nodes[next..].iter().chain(&nodes[..next]).position(|node| node.key == key);
            match found.map(|steps| (next + steps) % nodes.len()) {
                Some(at) => {
                    next = at + 1;
                    match &nodes[at].inner {
                        Inner::Field(field) => {
                            if let Some(cell) = cell_of_json(field.kind, value, &field.name, faults) {
                                cells.push((field, cell));
                            }
                        }
                        Inner::Object(inner) => match value {
                            Json::Object(members) => {
                                self.read_members(inner, &format!("{path}{key}."), members, cells, faults);
                            }
                            Json::Null => clear_all(inner, cells),
                            Json::Text(text) if text.is_empty() => clear_all(inner, cells),
                            other => {
                                let message = format!("is {}; write an object, or null", other.type_name());
                                faults.push_value(&format_args!("{path}{key}"), &other.to_string(), message);
                            }
                        },
                    }
                }
                None if path.is_empty() && (key == "id" || self.ignored.contains(&key.as_ref())) => {}
                None => faults.push(&format_args!("{path}{key}"), unknown(nodes, path, &key)),
            }
        }
    }
}

/// A removal states nothing but itself.
fn read_tombstone(deleted: &Json<'_>, members: &[(Cow<'_, str>, Json<'_>)], faults: &mut RowFaults<'_>) {
    if *deleted != Json::Flag(true) {
        faults.push_value(&"deleted", &deleted.to_string(), "can only be true; to keep the row, leave `deleted` out");
        return;
    }
    for (key, _) in members {
        if !["id", "deleted", "changed_at"].contains(&key.as_ref()) {
            faults.push(&key, "cannot stand beside `deleted`; leave out the one or the other");
        }
    }
}

/// Names every field below as null.
fn clear_all<F>(nodes: &[Node<F>], cells: &mut Cells<F>) {
    for node in nodes {
        match &node.inner {
            Inner::Field(field) => cells.push((field, Cell::Null)),
            Inner::Object(inner) => clear_all(inner, cells),
        }
    }
}

fn unknown<F: Fields>(nodes: &[Node<F>], path: &str, key: &str) -> String {
    // Columns of the CSV are the usual mistake for members of objects.
    if path.is_empty()
        && let Some(field) = F::table().iter().find(|field| field.column() == key || field.name == key)
    {
        return format!(
            "unknown field `{key}`; in JSON, {} stand in objects: write {}",
            "such members",
            nested(field.name)
        );
    }
    let own = if path.is_empty() { Some("id") } else { None };
    let known: Vec<&str> = own.into_iter().chain(nodes.iter().map(|node| node.key)).collect();
    format!("unknown field `{key}`; {}", did_you_mean(key, &known))
}

/// `{"a": {"b": ...}}` for `a.b`.
fn nested(name: &str) -> String {
    let opened: String = name.split('.').map(|key| format!("{{\"{key}\": ")).collect();
    format!("`{opened}...{}`", "}".repeat(name.split('.').count()))
}

/// The fields by their keys; `fields` are pairs of the path that is left and the field. Members of one object stand
/// together in the table.
fn nest<F>(fields: &[(&'static str, &'static Field<F>)]) -> Vec<Node<F>> {
    let key_of = |path: &'static str| path.split_once('.').map_or(path, |(key, _)| key);
    fields
        .chunk_by(|(one, _), (other, _)| key_of(one) == key_of(other))
        .map(|group| {
            let key = key_of(group[0].0);
            let below: Vec<_> =
                group.iter().filter_map(|(path, field)| Some((path.split_once('.')?.1, *field))).collect();
            let inner = if below.is_empty() { Inner::Field(group[0].1) } else { Inner::Object(nest(&below)) };
            Node { key, inner }
        })
        .collect()
}

fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memchr::memchr_iter(b'\n', content).chain(std::iter::once(content.len()));
    let mut start = 0;
    ends.map(move |end| {
        let line = content.get(start..end).unwrap_or_default();
        start = end + 1;
        line
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConferenceFields, JournalFields, TagFields};

    /// The rows in a short form, then the faults.
    fn read<F: Fields>(content: &[u8]) -> String {
        let (mut rows, mut bad) = (Vec::new(), BadRows::default());
        JsonlReader::<F>::new(&["updated_at"]).read(&"f".into(), content, &mut rows, &mut bad);
        let mut shown = String::new();
        for row in &rows {
            let edit = match &row.edit {
                Edit::Remove => "removed".to_owned(),
                Edit::Set(cells) => {
                    cells.iter().map(|(field, cell)| format!("{}={cell:?}", field.name)).collect::<Vec<_>>().join(" ")
                }
            };
            shown += &format!("{}{} {edit}\n", row.id, if row.is_bad { "!" } else { "" });
        }
        shown + &bad.to_string()
    }

    #[test]
    fn lines_are_read() {
        let cases = [
            (r#"{"id":5,"name":"A"}"#, "5 name=Text(\"A\")\n"),
            (r#"{"name":"A","id":9007199254740991}"#, "9007199254740991 name=Text(\"A\")\n"),
            (r#"{"id":5,"updated_at":17}"#, "5 \n"),
            (r#"{"id":5,"deleted":true}"#, "5 removed\n"),
            (r#"{"id":5,"deleted":true,"changed_at":"2026-01-01T00:00:00Z"}"#, "5 removed\n"),
            (r#"{"id":5,"formats":{"poster":true,"oral":null}}"#, "5 formats.poster=Flag(true) formats.oral=Null\n"),
            (r#"{"id":5,"formats":{}}"#, "5 \n"),
            (
                r#"{"id":5,"formats":null}"#,
                "5 formats.oral=Null formats.poster=Null formats.e_poster=Null formats.published_abstract=Null \
                 formats.encore=Null\n",
            ),
            (r#"{"id":5,"city":null,"year":2026}"#, "5 city=Null year=Year(2026)\n"),
        ];
        for (line, expected) in cases {
            assert_eq!(read::<ConferenceFields>(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn members_deep_within_are_read() {
        let line = br#"{"id":5,"timelines":{"accept_to_print":{"max_weeks":4},"accept_to_online":null}}"#;
        assert_eq!(
            read::<JournalFields>(line),
            "5 timelines.accept_to_print.max_weeks=Number(Number(4.0)) timelines.accept_to_online.min_weeks=Null \
             timelines.accept_to_online.max_weeks=Null\n"
        );
        let line = br#"{"id":5,"timelines":{"accept_to_print":{"max_week":4}}}"#;
        assert!(
            read::<JournalFields>(line).ends_with(
                "f:1: timelines.accept_to_print.max_week: unknown field `max_week`; did you mean `max_weeks`?"
            )
        );
        let line = br#"{"id":5,"timelines":{"accept_to_print":4}}"#;
        assert!(
            read::<JournalFields>(line)
                .ends_with("timelines.accept_to_print: `4` - is a number; write an object, or null")
        );
    }

    #[test]
    fn bad_lines_are_reported() {
        let cases = [
            (r#"{"name":"A"}"#, "f:1: id: is missing"),
            (r#"{"id":0}"#, "f:1: id: `0` - an id is a whole number from 1 to 9007199254740991"),
            (r#"{"id":-1}"#, "id: `-1`"),
            (r#"{"id":9007199254740992}"#, "id: `9007199254740992`"),
            (r#"{"id":"5"}"#, "id: `5`"),
            (r#"{"id":5.0}"#, "id: `5.0`"),
            (r#"{"id":5e0}"#, "id: `5.0`"),
            (r#"{"id":null}"#, "id: `null`"),
            (r#"{"id":5,"start_dat":1}"#, "f:1: start_dat: unknown field `start_dat`; did you mean `start_date`?"),
            (r#"{"id":5,"formats_oral":true}"#, r#"write `{"formats": {"oral": ...}}`"#),
            (r#"{"id":5,"formats":{"orla":true}}"#, "formats.orla: unknown field `orla`; did you mean `oral`?"),
            (r#"{"id":5,"formats":{"id":5}}"#, "formats.id: unknown field `id`"),
            (r#"{"id":5,"formats":[true]}"#, "formats: `[true]` - is a list; write an object, or null"),
            (r#"{"id":5,"changed_at":"x"}"#, "changed_at: unknown field"),
            (r#"{"id":5,"deleted":false}"#, "deleted: `false` - can only be true"),
            (r#"{"id":5,"deleted":true,"name":"A"}"#, "name: cannot stand beside `deleted`"),
            (r#"{"id":5,"name":"A","name":"B"}"#, "name: stands twice"),
            (r#"{"id":5,"formats":{"oral":true,"oral":true}}"#, "formats.oral: stands twice"),
            (r#"{"id":5,"year":NaN}"#, "year: is not valid JSON: JSON has no NaN"),
            (r#"{"id":5} {"id":6}"#, "trailing characters"),
            (r#"[{"id":5}]"#, "is a list; write one object per line"),
            ("5", "`5` - is a number; write one object per line"),
            ("{\"id\":5,\"name\":\"\u{1}\"}", "name: is not valid JSON: control character"),
        ];
        for (line, expected) in cases {
            let shown = read::<ConferenceFields>(line.as_bytes());
            assert!(shown.contains(expected), "{line}: {shown}");
        }
    }

    #[test]
    fn lines_are_numbered() {
        let content = b"\n{\"id\":1}\r\n  \r\n\xff\n{\"id\":2,\"x\":1}\n{\"id\":3}";
        assert_eq!(
            read::<TagFields>(content),
            "1 \n2! \n3 \nf:4: is not UTF-8 (at byte 1 of the line); save the file as UTF-8\n\
             f:5: x: unknown field `x`; known are `id`, `type`, `name`, `category`"
        );
        assert_eq!(read::<TagFields>(b""), "");
    }

    #[test]
    fn every_fault_of_a_row_is_reported() {
        let shown = read::<ConferenceFields>(br#"{"year":1,"nam":"A","city":5}"#);
        assert_eq!(shown.lines().count(), 4, "{shown}");
    }
}
