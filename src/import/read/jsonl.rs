//! JSON Lines: one object per line.

use std::io::{self, BufRead, BufReader, Read};

use crate::import::read::columns::Columns;
use crate::import::read::json::{leaves, parse};
use crate::import::read::notation::Notation;
use crate::import::read::options::ReadOptions;
use crate::import::read::statement::{Statement, StatementReader, read_id};
use crate::import::read::table_cell::TableCell;
use crate::import::read::table_row::read_row;
use crate::import::report::faults::RowFaults;
use crate::import::rows::{ADDED_TO_RECORDS, FileRows, RowEdit, RowId};
use crate::model::field::{FieldTable, JsonNode, NodeContent};
use crate::model::message::{Remedy, message};
use crate::model::value::Json;
use crate::model::value::cell::ITEM_SEPARATOR;
use crate::model::value::json::{JsonMembers, JsonType};
use crate::model::{Fields, Id};

/// Reads all lines, and returns the number of lines that are not blank. Memory use is bounded by the length limit.
pub(in crate::import) fn read_jsonl<F: Fields>(content: impl Read, rows: &mut FileRows<'_, F>) -> io::Result<usize> {
    let mut content = BufReader::with_capacity(1 << 16, content);
    let mut text = Vec::new();
    let options = rows.options;
    let bounds = &options.bounds;
    // A line of the maximum length, and its end.
    let room = u64::try_from(bounds.line_bytes).unwrap_or(u64::MAX).saturating_add(1);
    let (mut filled_lines, mut objects) = (0, ObjectReader::new(options));
    for (lines, line) in (0..).zip(1..) {
        text.clear();
        if content.by_ref().take(room).read_until(b'\n', &mut text)? == 0 {
            break;
        }
        if text.pop_if(|last| *last == b'\n').is_none() && text.len() > bounds.line_bytes {
            content.skip_until(b'\n')?;
            rows.add_fault(line, bounds.line_fault());
            filled_lines += 1;
        } else if lines >= bounds.rows {
            rows.add_fault(line, bounds.rows_fault("lines"));
            return Ok(filled_lines.max(1));
        } else if !text.iter().all(u8::is_ascii_whitespace) {
            rows.add(line, |faults| objects.read(&text, faults));
            filled_lines += 1;
        }
    }
    rows.warn_of_ignored(None, "field");
    Ok(filled_lines)
}

/// Reads JSON objects as rows.
pub(super) struct ObjectReader<'o> {
    options: &'o ReadOptions,
    /// The paths of the last object that was read like a row of a table, and their columns.
    last: Option<(Vec<String>, Columns<'o>)>,
}

impl<'o> ObjectReader<'o> {
    /// Creates a reader.
    pub fn new(options: &'o ReadOptions) -> ObjectReader<'o> {
        ObjectReader { options, last: None }
    }

    /// Reads the text of an object.
    pub fn read<F: Fields>(&mut self, text: &[u8], faults: &mut RowFaults<'_>) -> Option<(Option<Id>, RowEdit<F>)> {
        let members = match std::str::from_utf8(text).map(parse) {
            Ok(Ok(Json::Object(members))) => members,
            Ok(Ok(other)) => {
                let message = message!(
                    "is {}; write one object per line, such as {{\"id\": 1}}, or a list of objects in a .json file",
                    other.json_type()
                );
                faults.push_row(Some(&other.to_string()), message);
                return None;
            }
            Ok(Err(fault)) if fault.path.is_empty() => {
                faults.push_row(None, fault.message);
                return None;
            }
            Ok(Err(fault)) => {
                faults.push(&fault.path, fault.message);
                return None;
            }
            Err(error) => {
                let position = error.valid_up_to() + 1;
                faults
                    .push_row(None, message!("is not UTF-8 (at byte {position} of the line); save the file as UTF-8"));
                return None;
            }
        };
        if let Some(sample) = &self.options.sample {
            sample.add_object(members);
            return None;
        }
        if self.options.map_texts() {
            return self.read_cells(leaves(members), faults);
        }
        read_object(members, self.options, faults)
    }

    /// Reads the members of a foreign object like the cells of a row. Its columns are the paths of the members.
    fn read_cells<F: Fields>(
        &mut self,
        members: Vec<(String, Json<'_>)>,
        faults: &mut RowFaults<'_>,
    ) -> Option<(Option<Id>, RowEdit<F>)> {
        let options = self.options;
        // An option that ignores an object ignores its members.
        let is_read =
            |(path, _): &(String, Json<'_>)| !path.match_indices('.').any(|(at, _)| options.ignores(&path[..at]));
        let (paths, values): (Vec<String>, Vec<Json<'_>>) = members.into_iter().filter(is_read).unzip();
        let cells: Vec<TableCell<'_>> = values.into_iter().map(|value| cell(value, options)).collect();
        let (paths, columns) = match self.last.take() {
            Some((last, columns)) if last == paths => (last, columns),
            _ => {
                let header: Vec<TableCell<'_>> = paths.iter().map(|path| TableCell::text(path.as_str())).collect();
                let columns = Columns::read(&header, F::table(), options, &options.match_sets(F::STEM), true, faults)?;
                (paths, columns)
            }
        };
        let is_usable = !faults.has_fault();
        let row = if columns.pass_filters(&cells) {
            read_row(&columns, &cells, false, &options.notation(), options, faults)
        } else {
            options.leave_out();
            None
        };
        // The faults of a header are reported at each object.
        self.last = is_usable.then_some((paths, columns));
        row
    }
}

/// Returns a JSON value as a cell. The texts of a list are joined by its separator.
fn cell<'j>(value: Json<'j>, options: &ReadOptions) -> TableCell<'j> {
    let is_number = value.json_type() == JsonType::Number;
    match value {
        Json::Null => TableCell::default(),
        Json::Text(text) => TableCell::text(text),
        Json::List(items) => {
            let texts: Vec<String> = items.iter().filter(|item| !item.is_empty()).map(ToString::to_string).collect();
            let is_flat = items.iter().all(|item| !matches!(item, Json::List(_) | Json::Object(_)));
            let fault = "is a list of lists or objects; ignore it, or map a list of texts".into();
            let text = texts.join(options.list_separator.as_deref().unwrap_or(ITEM_SEPARATOR));
            TableCell { fault: (!is_flat).then_some(fault), ..TableCell::text(text) }
        }
        other => TableCell { is_number, ..TableCell::text(other.to_string()) },
    }
}

/// Reads an object in the shape of the exports.
fn read_object<F: Fields>(
    mut members: JsonMembers<'_>,
    options: &ReadOptions,
    faults: &mut RowFaults<'_>,
) -> Option<(Option<Id>, RowEdit<F>)> {
    let id = match members.iter().find(|(key, _)| key == "id") {
        Some((_, value)) => RowId::from(read_id(value, &"id", faults)),
        None if !options.match_sets(F::STEM).is_empty() => RowId::Absent,
        None => {
            faults.push(&"id", "is missing; give each row an id, or use --match to find records by other fields");
            RowId::Invalid
        }
    };
    // Read a row without a valid id too, to report all of its faults.
    let edit = match members.iter().find(|(key, _)| key == "deleted") {
        Some((_, deleted)) => {
            check_removal(deleted, members.iter().map(|(key, _)| &**key), faults);
            RowEdit::Remove
        }
        None => {
            members.retain(|(key, _)| key != "id" && key != ADDED_TO_RECORDS);
            let mut statement = Box::new(Statement::new());
            let mut reader = statement.reader(faults);
            read_members(F::table(), &F::table().nodes, "", members, &options.notation(), &mut reader);
            RowEdit::Set(statement)
        }
    };
    id.with(edit)
}

/// Reads the members of the object at `path`, which is empty or ends with a dot. `nodes` are the allowed keys.
fn read_members(
    table: &FieldTable,
    nodes: &[JsonNode],
    path: &str,
    members: JsonMembers<'_>,
    notation: &Notation,
    reader: &mut StatementReader<'_, '_>,
) {
    for (key, value) in members {
        let Some(node) = nodes.iter().find(|node| node.key == key) else {
            read_unknown(table, nodes, path, &key, reader.faults);
            continue;
        };
        match (&node.content, value) {
            (NodeContent::Field(index), value) => {
                reader.read_json(*index, value, notation, &table.fields[*index].name);
            }
            (NodeContent::Object(inner), Json::Object(members)) => {
                read_members(table, inner, &format!("{path}{key}."), members, notation, reader);
            }
            (NodeContent::Object(inner), value) if value.is_empty() => set_null(inner, reader),
            (NodeContent::Object(_), other) => {
                let message = message!("is {}; write an object, or null", other.json_type());
                reader.faults.push_value(&format_args!("{path}{key}"), &other.to_string(), message);
            }
        }
    }
}

/// Sets all fields of an object to null.
fn set_null(nodes: &[JsonNode], reader: &mut StatementReader<'_, '_>) {
    for node in nodes {
        match &node.content {
            NodeContent::Field(index) => reader.set_null(*index),
            NodeContent::Object(inner) => set_null(inner, reader),
        }
    }
}

/// Checks that a row with `deleted` has no other values.
fn check_removal<'k>(deleted: &Json<'_>, keys: impl Iterator<Item = &'k str>, faults: &mut RowFaults<'_>) {
    if *deleted != Json::Flag(true) {
        faults.push_value(&"deleted", &deleted.to_string(), "can only be true; to keep the row, leave `deleted` out");
        return;
    }
    for key in keys {
        if !["id", "deleted", "changed_at"].contains(&key) {
            faults.push(&key, "is not allowed together with `deleted`; remove one of them");
        }
    }
}

/// Handles an unknown member: ignores it, or reports it.
fn read_unknown(table: &FieldTable, nodes: &[JsonNode], path: &str, key: &str, faults: &mut RowFaults<'_>) {
    // Often the key is the name of a CSV column, for a member of a nested object.
    if path.is_empty()
        && let Some(field) = table.fields.iter().find(|field| field.column == key || field.name == key)
        && !faults.ignores_unknown()
    {
        let keys = field.name.split('.');
        let (opened, closed) = (keys.clone().collect::<Vec<_>>().join("\": {\""), "}".repeat(keys.count()));
        let message =
            message!("unknown field `{key}`; in JSON it is a member of an object: write `{{\"{opened}\": ...{closed}`");
        return faults.push(&key, message.with(Remedy::OfValue));
    }
    let own = path.is_empty().then_some("id");
    let known: Vec<&str> = own.into_iter().chain(nodes.iter().map(|node| node.key)).collect();
    faults.push_unknown("field", path, key, &known);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::import::read::bounds::Bounds;
    use crate::import::read::options::sample_options;
    use crate::import::report::faults::{BadRows, UnknownNames};
    use crate::import::rows::ImportRow;
    use crate::model::{ConferenceFields, JournalFields, OrganizationFields, TagFields};

    /// Returns the rows in a short form, and then the faults.
    fn read<F: Fields>(content: &[u8]) -> String {
        read_within::<F>(content, Bounds::default())
    }

    fn read_within<F: Fields>(content: &[u8], bounds: Bounds) -> String {
        read_as::<F>(content, &ReadOptions { bounds, ..ReadOptions::default() })
    }

    fn read_as<F: Fields>(content: &[u8], options: &ReadOptions) -> String {
        shown(options, |rows: &mut FileRows<'_, F>| read_jsonl(content, rows))
    }

    /// Returns the rows in a short form, then the faults, and then the warnings.
    pub fn shown<F: Fields>(
        options: &ReadOptions,
        read: impl FnOnce(&mut FileRows<'_, F>) -> io::Result<usize>,
    ) -> String {
        let (mut rows, mut bad) = (Vec::<ImportRow<F>>::new(), BadRows::default());
        let (file, mut warnings) = ("f".into(), Vec::new());
        let unknown = UnknownNames::new(options.ignore_unknown);
        let warned = &mut warnings;
        read(&mut FileRows { file: &file, options, rows: &mut rows, bad: &mut bad, unknown, warnings: warned })
            .unwrap();
        let mut shown = String::new();
        for row in &rows {
            let edit = match &row.edit {
                RowEdit::Remove => "removed".to_owned(),
                RowEdit::Set(statement) => statement.to_string(),
            };
            shown += &format!(
                "{}{} {edit}\n",
                row.id.map_or("?".to_owned(), |id| id.to_string()),
                if row.is_bad { "!" } else { "" }
            );
        }
        shown + &bad.to_string() + &warnings.iter().map(|warning| format!("\n{warning}")).collect::<String>()
    }

    #[test]
    fn lines_are_read() {
        let cases = [
            (r#"{"id":5,"name":"A"}"#, "5 name=\"A\"\n"),
            (r#"{"name":"A","id":9007199254740991}"#, "9007199254740991 name=\"A\"\n"),
            (r#"{"id":5,"updated_at":17}"#, "5 \n"),
            (r#"{"id":5,"deleted":true}"#, "5 removed\n"),
            (r#"{"id":5,"deleted":true,"changed_at":"2026-01-01T00:00:00Z"}"#, "5 removed\n"),
            (r#"{"id":5,"formats":{"poster":true,"oral":null}}"#, "5 formats.oral=null formats.poster=true\n"),
            (r#"{"id":5,"formats":{}}"#, "5 \n"),
            (
                r#"{"id":5,"formats":null}"#,
                "5 formats.oral=null formats.poster=null formats.e_poster=null formats.published_abstract=null \
                 formats.encore=null\n",
            ),
            (r#"{"id":5,"city":null,"year":2026}"#, "5 year=2026 city=null\n"),
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
            "5 timelines.accept_to_online.min_weeks=null timelines.accept_to_online.max_weeks=null \
             timelines.accept_to_print.max_weeks=4.0\n"
        );
        let shown = read::<JournalFields>(br#"{"id":5,"timelines":null}"#);
        let (all, null) = (shown.matches("timelines.").count(), shown.matches("_weeks=null").count());
        assert!(all >= 4 && null == all, "{shown}");
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
            (r#"{"id":5,"deleted":true,"name":"A"}"#, "name: is not allowed together with `deleted`"),
            (r#"{"id":5,"name":"A","name":"B"}"#, "name: appears twice"),
            (r#"{"id":5,"formats":{"oral":true,"oral":true}}"#, "formats.oral: appears twice"),
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
    fn members_are_renamed_before_they_mean_a_field() {
        let twice = |url: &str, first: &str, second: &str| {
            format!(
                "1! name=\"N\" url=\"{url}\"\nf:1: {second}: the columns `{first}` and `{second}` are both read as `url`; map or \
                 ignore one of them"
            )
        };
        let cases = [
            ("Website=url", r#"{"id":1,"name":"N","Website":"a"}"#, "1 name=\"N\" url=\"a\"\n".to_owned()),
            ("Website=url", r#"{"id":1,"name":"N","Website":"b","url":"a"}"#, twice("b", "Website", "url")),
            ("Website=url", r#"{"id":1,"name":"N","url":"a","Website":"b"}"#, twice("a", "url", "Website")),
            ("Website=url Web=url", r#"{"id":1,"name":"N","Website":"a","Web":"b"}"#, twice("a", "Website", "Web")),
            ("name=abbv", r#"{"id":1,"name":"N"}"#, "1 abbv=\"N\"\n".to_owned()),
            ("name=abbv Title=name", r#"{"id":1,"name":"A","Title":"N"}"#, "1 name=\"N\" abbv=\"A\"\n".to_owned()),
            ("name=abbv Title=name", r#"{"id":1,"Title":"N","name":"A"}"#, "1 name=\"N\" abbv=\"A\"\n".to_owned()),
            ("Nr=id", r#"{"Nr":1,"name":"N"}"#, "1 name=\"N\"\n".to_owned()),
            ("Nr=id", r#"{"id":1,"Nr":2}"#, "1! \nf:1: Nr: the columns `id` and `Nr` are both read as `id`".to_owned()),
            (
                "Nr=id No=id",
                r#"{"Nr":1,"No":2}"#,
                "1! \nf:1: No: the columns `Nr` and `No` are both read as `id`".to_owned(),
            ),
            ("id=name Nr=id", r#"{"id":"N","Nr":1}"#, "1 name=\"N\"\n".to_owned()),
            ("id=name", r#"{"id":"N"}"#, "? name=\"N\"\n".to_owned()),
            ("Gone=deleted", r#"{"id":1,"Gone":true}"#, "1 removed\n".to_owned()),
            ("Gone=deleted Title=name", r#"{"id":1,"Gone":true,"Title":"N"}"#, "1 removed\n".to_owned()),
            // A field that organizations do not have.
            ("name=sjr", r#"{"id":1,"name":"N"}"#, "1 name=\"N\"\n".to_owned()),
        ];
        for (renames, line, expected) in cases {
            let renames: Vec<&str> = renames.split(' ').collect();
            let shown = read_as::<OrganizationFields>(line.as_bytes(), &sample_options(&renames, &[]));
            assert!(
                shown.starts_with(&expected) && shown.contains("f:1:") == expected.contains("f:1:"),
                "{line}: {shown}"
            );
        }
        // A member may mean a nested field, and a nested member any field.
        let options = sample_options(&["oral=formats_oral", "place.name=city"], &[]);
        let cases = [
            (r#"{"id":1,"oral":true}"#, "1 formats.oral=true\n"),
            (r#"{"id":1,"place":{"name":"Rome"}}"#, "1 city=\"Rome\"\n"),
            (r#"{"id":1,"oral":true,"formats":{"poster":true}}"#, "1 formats.oral=true formats.poster=true\n"),
            (
                r#"{"id":1,"oral":true,"formats":{"oral":false}}"#,
                "1! formats.oral=true\nf:1: formats.oral: the columns `oral` and `formats.oral` are both read as `formats_oral`; map or \
                 ignore one of them",
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(read_as::<ConferenceFields>(line.as_bytes(), &options), expected, "{line}");
        }
    }

    #[test]
    fn lines_are_numbered() {
        let content = b"\n{\"id\":1}\r\n  \r\n\xff\n{\"id\":2,\"x\":1}\n{\"id\":3}";
        let shown = read::<TagFields>(content);
        let expected = "1 \n2! \n3 \nf:4: is not UTF-8 (at byte 1 of the line); save the file as UTF-8\n\
             f:5: x: unknown field `x`; known names are `id`, `type`, `name`, `category`; use --map";
        assert!(shown.starts_with(expected), "{shown}");
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
        let too_long = "f:2: the line is longer than 10 bytes; correct it";
        let cases = [
            (lines, "{\"id\":123}\n\n{\"id\":124}", "123 \n124 \n".to_owned()),
            (lines, "{\"id\":123}\n{\"id\":1234}\n{\"id\":5}", format!("123 \n5 \n{too_long}")),
            (lines, "\n{\"id\":1234}", too_long.to_owned()),
            (lines, &format!("\n{}", "x".repeat(1 << 20)), too_long.to_owned()),
            (rows, "\n{\"id\":2}\n", "2 \n".to_owned()),
            (
                rows,
                "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":4}",
                "1 \n2 \nf:3: the file has more than 2 lines; split it".to_owned(),
            ),
        ];
        for (bounds, content, expected) in cases {
            assert_eq!(read_within::<TagFields>(content.as_bytes(), bounds), expected, "{content:.60}");
        }
    }

    #[test]
    fn every_unknown_name_is_cut_and_few_are_looked_up() {
        let long = "n".repeat(100_000);
        let shown = read::<ConferenceFields>(format!("{{\"id\":1,\"{long}\":1}}").as_bytes());
        assert!(shown.contains("unknown field `nnn") && shown.len() < 1_500, "{shown}");
        let keys: String = (0..100_000).map(|at| format!(",\"nam{at}\":1")).collect();
        let shown = read::<ConferenceFields>(format!("{{\"id\":1{keys}}}").as_bytes());
        let looked_up = shown.matches("did you mean `name`").count();
        assert!((1..100_000).contains(&looked_up) && shown.contains("and 99000 more"), "{looked_up} looked up");
    }
}
