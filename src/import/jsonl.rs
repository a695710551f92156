//! JSON Lines: one object per line.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use super::bounds::{Bounds, TooLarge};
use super::cells::{cell_of_json, id_of_json};
use super::json::{Json, Members, parse};
use super::names::did_you_mean;
use super::report::{BadRows, Place, RowFaults, shortened};
use super::rows::{Cell, Edit, Row};
use crate::model::field::Field;
use crate::model::{Fields, Id};

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

    /// Reads all lines; returns how many are not blank. Lines are taken in one by one, and of one that is too long no
    /// more than the bound.
    ///
    /// # Errors
    /// When the content cannot be read.
    pub fn read(
        &self,
        file: &Arc<str>,
        content: impl Read,
        bounds: &Bounds,
        rows: &mut Vec<Row<F>>,
        bad: &mut BadRows,
    ) -> io::Result<usize> {
        let mut content = BufReader::with_capacity(1 << 16, content);
        let mut text = Vec::new();
        let mut lines_filled = 0;
        for (lines, line) in (0..).zip(1..) {
            let place = Place { file: file.clone(), line };
            let mut faults = RowFaults::new(&place, bad);
            let end = match take_line(&mut content, bounds.line_bytes, &mut text) {
                Ok(end) => end,
                Err(error) => {
                    let message = TooLarge::message_in(&error).ok_or(error)?;
                    faults.push_row(None, message);
                    return Ok(lines_filled.max(1));
                }
            };
            match end {
                LineEnd::NoMore => break,
                LineEnd::TooLong => faults.push_row(None, bounds.line_fault()),
                _ if lines >= bounds.rows => {
                    faults.push_row(None, bounds.rows_fault("lines"));
                    return Ok(lines_filled.max(1));
                }
                LineEnd::Here if text.iter().all(u8::is_ascii_whitespace) => continue,
                LineEnd::Here => {
                    if let Some((id, edit)) = self.read_line(&text, bounds, &mut faults) {
                        let is_bad = faults.found();
                        rows.push(Row { place, id, edit, is_bad });
                    }
                }
            }
            lines_filled += 1;
        }
        Ok(lines_filled)
    }

    fn read_line(&self, text: &[u8], bounds: &Bounds, faults: &mut RowFaults<'_>) -> Option<(Id, Edit<F>)> {
        let text = match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(error) => {
                let at = error.valid_up_to() + 1;
                faults.push_row(None, format!("is not UTF-8 (at byte {at} of the line); save the file as UTF-8"));
                return None;
            }
        };
        let members = match parse(text, bounds) {
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
                // Rows wait for the whole run; a short one takes no more room than its cells.
                cells.shrink_to_fit();
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
                None => {
                    let message = unknown(nodes, path, &key, faults);
                    faults.push(&format_args!("{path}{key}"), message);
                }
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

fn unknown<F: Fields>(nodes: &[Node<F>], path: &str, key: &str, faults: &RowFaults<'_>) -> String {
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
    format!("unknown field `{}`; {}", shortened(key), did_you_mean(key, &known, faults))
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

/// What a line ends with.
enum LineEnd {
    /// Its end, or that of the content.
    Here,
    /// What is beyond the bound, which is passed over.
    TooLong,
    /// There was no line any more.
    NoMore,
}

/// Takes a line in, without its end.
fn take_line(content: &mut impl BufRead, most: usize, line: &mut Vec<u8>) -> io::Result<LineEnd> {
    line.clear();
    let room = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    if content.by_ref().take(room).read_until(b'\n', line)? == 0 {
        return Ok(LineEnd::NoMore);
    }
    if line.pop_if(|last| *last == b'\n').is_some() || line.len() <= most {
        return Ok(LineEnd::Here);
    }
    content.skip_until(b'\n')?;
    Ok(LineEnd::TooLong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConferenceFields, JournalFields, TagFields};

    /// The rows in a short form, then the faults.
    fn read<F: Fields>(content: &[u8]) -> String {
        read_within::<F>(content, Bounds::default())
    }

    fn read_within<F: Fields>(content: &[u8], bounds: Bounds) -> String {
        let (mut rows, mut bad) = (Vec::new(), BadRows::default());
        let reader = JsonlReader::<F>::new(&["updated_at"]);
        reader.read(&"f".into(), content, &bounds, &mut rows, &mut bad).unwrap();
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

    #[test]
    fn bounds_are_kept() {
        let lines = Bounds { line_bytes: 10, ..Bounds::default() };
        let rows = Bounds { rows: 2, ..Bounds::default() };
        let names = Bounds { name_bytes: 4, ..Bounds::default() };
        let members = Bounds { columns: 2, ..Bounds::default() };
        let too_long = "f:2: the line is longer than 10 bytes; correct it, or raise --max-line-bytes";
        let cases = [
            (lines, "{\"id\":123}\n\n{\"id\":124}", "123 \n124 \n".to_owned()),
            (lines, "{\"id\":123}\n{\"id\":1234}\n{\"id\":5}", format!("123 \n5 \n{too_long}")),
            (lines, "\n{\"id\":1234}", too_long.to_owned()),
            (lines, &format!("\n{}", "x".repeat(1 << 20)), too_long.to_owned()),
            (rows, "\n{\"id\":2}\n", "2 \n".to_owned()),
            (
                rows,
                "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":4}",
                "1 \n2 \nf:3: the file has more than 2 lines; split it, or raise --max-rows".to_owned(),
            ),
            (
                names,
                "{\"id\":1,\"names\":5}",
                "f:1: names: the name is 5 bytes long, and at most 4 are read; correct it, or raise --max-name-bytes"
                    .to_owned(),
            ),
            (
                members,
                "{\"id\":1,\"name\":\"A\",\"abbv\":\"B\"}",
                "f:1: has more than 2 members; take out those that are no fields, or raise --max-columns".to_owned(),
            ),
        ];
        for (bounds, content, expected) in cases {
            assert_eq!(read_within::<TagFields>(content.as_bytes(), bounds), expected, "{content:.60}");
        }
    }

    #[test]
    fn every_unknown_name_is_cut_and_few_are_looked_up() {
        let bounds = Bounds { name_bytes: usize::MAX, columns: usize::MAX, ..Bounds::default() };
        let long = "n".repeat(100_000);
        let shown = read_within::<ConferenceFields>(format!("{{\"id\":1,\"{long}\":1}}").as_bytes(), bounds);
        assert!(shown.contains("unknown field `nnn") && shown.len() < 1_500, "{shown}");
        let keys: String = (0..100_000).map(|at| format!(",\"nam{at}\":1")).collect();
        let shown = read_within::<ConferenceFields>(format!("{{\"id\":1{keys}}}").as_bytes(), bounds);
        let looked_up = shown.matches("did you mean `name`").count();
        assert!((1..100_000).contains(&looked_up) && shown.contains("and 99000 more"), "{looked_up} looked up");
    }
}
