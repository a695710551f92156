//! JSON objects, read like the rows of a table: one per line (JSON Lines), or a list of them in a document.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use serde_json::value::RawValue;
use serde_json::{Deserializer, Value};

use super::column_name::is_within;
use super::columns::Columns;
use super::json::{
    Leaves, Members, add_leaves, cell_of, explain, is_list_with, items_of, members, parse,
};
use super::options::{Bounds, ReadOptions};
use super::row_sink::RowSink;
use super::table_cell::TableCell;
use super::table_row::RowReader;
use super::tabular::TableReader;
use crate::import::row_faults::RowFaults;
use crate::model::Fields;
use crate::model::field::Field;
use crate::model::fold::comparable;
use crate::model::message::message;
use crate::model::value::JsonType;
use crate::model::value::json::as_text;
use crate::model::value::text::ITEM_SEPARATOR;

/// Reads all lines that are not blank. Memory use is bounded by the length limit.
pub(in crate::import) fn read_jsonl(
    content: impl Read,
    bounds: &Bounds,
    objects: &mut dyn RowSink,
) -> io::Result<()> {
    let mut content = BufReader::with_capacity(1 << 16, content);
    let mut text = Vec::new();
    // A line of the maximum length, and its end.
    let room = u64::try_from(bounds.line_bytes)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    for (lines, line) in (0..).zip(1..) {
        text.clear();
        if content.by_ref().take(room).read_until(b'\n', &mut text)? == 0 {
            break;
        }
        if text.pop_if(|last| *last == b'\n').is_none() && text.len() > bounds.line_bytes {
            content.skip_until(b'\n')?;
            objects.add_fault(line, bounds.line_fault());
        } else if lines >= bounds.rows {
            objects.add_fault(line, bounds.rows_fault("lines"));
            break;
        } else if !text.iter().all(u8::is_ascii_whitespace) {
            objects.add_object(line, &text);
        }
    }
    Ok(())
}

impl<F: Fields> TableReader<'_, '_, F> {
    /// Reads an object like the row of a table. Its columns are the paths of its members.
    pub(super) fn read_object(&mut self, line: u64, text: &[u8]) {
        self.row_count += 1;
        let options = self.rows.options;
        let notation = self.notation;
        let header = &mut self.columns;
        self.rows.add(line, |faults| {
            let members =
                read_members(text, options, &|path| is_whole::<F>(path, options), faults)?;
            let (names, cells): (Vec<String>, Vec<TableCell>) = members.into_iter().unzip();
            // The names of the object before were checked.
            if let Some(columns) = header.as_deref()
                && columns.names == names
            {
                columns.select(&cells, faults)?;
                return RowReader::new(options, notation, faults).read(columns, &cells);
            }
            let mut columns = Columns::new(names, options, faults);
            columns.select(&cells, faults)?;
            columns.find_fields::<F>(options, notation.container, faults)?;
            let has_fault = faults.has_fault();
            let read = RowReader::new(options, notation, faults).read(&columns, &cells);
            // The faults of a header are reported at each object.
            if !has_fault {
                *header = Some(Rc::new(columns));
            }
            read
        });
    }
}

/// Reads the members of an object, each with its path, or reports its fault. A value with a path for which `is_whole`
/// returns true is read as it is.
pub(super) fn read_members(
    text: &[u8],
    options: &ReadOptions,
    is_whole: &dyn Fn(&str) -> bool,
    faults: &mut RowFaults<'_>,
) -> Option<Vec<(String, TableCell)>> {
    let text = match str::from_utf8(text) {
        Ok(text) => text.trim_ascii_start(),
        Err(error) => {
            let position = error.valid_up_to() + 1;
            let message =
                message!("is not UTF-8 (at byte {position} of the line); save the file as UTF-8");
            faults.push_row(None, message);
            return None;
        }
    };
    let mut leaves = Leaves::new();
    match parse(text, 0) {
        Ok(object @ Value::Object(_)) => add_leaves(String::new(), object, is_whole, &mut leaves),
        Ok(other) => {
            let message = message!(
                "is {}; write one object per line, such as {{\"id\": 1}}, or a list of objects in a .json file",
                JsonType::of(&other)
            );
            faults.push_row(Some(&as_text(&other)), message);
            return None;
        }
        Err((path, message)) => {
            match &*path {
                "" => faults.push_row(None, message),
                path => faults.push(&path, message),
            }
            return None;
        }
    }
    let separator = options.list_separator.as_deref().unwrap_or(ITEM_SEPARATOR);
    let leaves = leaves.into_iter();
    let members = leaves.map(|(path, value)| (path, cell_of(value, separator)));
    Some(members.collect())
}

/// Returns true for the value of a field, which is read as a whole unless an option names a member of it.
fn is_whole<F: Fields>(path: &str, options: &ReadOptions) -> bool {
    let mut names = F::table().fields.iter().map(|field| &*field.name);
    let is_field = names.any(|name| name == path) || ["id", "deleted"].contains(&path);
    let mut columns = options.columns.iter().map(|given| &given.value.column);
    let mapping = options.find_column(&comparable(path), 1, None);
    (is_field || mapping.is_some_and(|(_, fields)| !fields.is_empty()))
        && !columns.any(|column| is_within(&column.text, path))
}

/// Reads the objects of a document. A file of JSON lines is read, too.
pub(in crate::import) fn read_json(
    mut content: impl Read,
    fields: &[Field],
    bounds: &Bounds,
    objects: &mut dyn RowSink,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    content.read_to_end(&mut bytes)?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = 1 + line_ends(&bytes[..error.valid_up_to()]);
            objects.add_fault(line, "is not UTF-8; save the file as UTF-8".into());
            return Ok(());
        }
    };
    let document = match serde_json::from_str::<&RawValue>(text) {
        Ok(document) => document.get(),
        Err(_) if are_lines(text) => return read_jsonl(bytes.as_slice(), bounds, objects),
        Err(error) => {
            let at = error.line().saturating_sub(1);
            let line = text.lines().nth(at).unwrap_or_default();
            objects.add_fault(at as u64 + 1, explain(&error, line));
            return Ok(());
        }
    };
    let Some(items) = rows_of(document, fields, objects) else {
        return Ok(());
    };
    let mut line = 1;
    let mut line_of = 0;
    for (at, item) in items.iter().enumerate() {
        let begins_at = item.as_ptr().addr() - text.as_ptr().addr();
        line += line_ends(&bytes[line_of..begins_at]);
        line_of = begins_at;
        if at == bounds.rows {
            objects.add_fault(line, bounds.rows_fault("objects"));
            break;
        } else if item.len() > bounds.line_bytes {
            objects.add_fault(line, bounds.line_fault());
        } else {
            objects.add_object(line, item.as_bytes());
        }
    }
    Ok(())
}

/// Returns true if the text contains JSON lines, or nothing.
fn are_lines(text: &str) -> bool {
    let first = Deserializer::from_str(text).into_iter::<&RawValue>().next();
    first.is_none_or(|first| first.is_ok_and(|first| first.get().starts_with('{')))
}

/// Returns the rows of a document: the items of the list that it is or contains at any depth, or of an object of objects.
/// Another object is a row, which may have lists of links. Warns of the members next to the list. Reports several lists,
/// and returns `None`.
fn rows_of<'t>(
    document: &'t str,
    fields: &[Field],
    objects: &mut dyn RowSink,
) -> Option<Vec<&'t str>> {
    if document.starts_with('[') {
        return Some(items_of(document).collect());
    }
    let members = members(document);
    let is_field = |name: &str| {
        let mut keys = fields.iter().map(|field| field.name.split('.').next());
        keys.any(|key| key == Some(name))
    };
    let is_row = members
        .iter()
        .any(|(name, _)| name == "id" || is_field(name));
    let lists_with = |first: char| {
        let lists = members
            .iter()
            .filter(move |(name, value)| !is_field(name) && is_list_with(value.get(), first));
        lists.collect::<Vec<_>>()
    };
    let mut lists = lists_with('{');
    // A page may be empty.
    if lists.is_empty() && !is_row {
        lists = lists_with(']');
    }
    if lists.is_empty() && !is_row {
        lists.extend(members.iter().filter(|(_, value)| has_list(value.get())));
        lists.truncate(if lists.len() == 1 { 1 } else { 0 });
    }
    match *lists {
        [] => Some(keyed_objects(&members).unwrap_or_else(|| vec![document])),
        [(name, list)] => {
            let others = members.iter().map(|(other, _)| &**other);
            let names: Vec<&str> = others.filter(|other| other != name).collect();
            if !names.is_empty() {
                let message = message!(
                    "only the list `{name}` is read; ignored next to it: `{}`",
                    names.join("`, `")
                );
                objects.warn(message);
            }
            rows_of(list.get(), fields, objects)
        }
        [(one, _), (other, _), ..] => {
            let message = message!(
                "contains the lists `{one}` and `{other}`; write each list to a file of its own"
            );
            objects.add_fault(1, message);
            None
        }
    }
}

/// Returns true if an object contains a list of objects, at any depth.
fn has_list(object: &str) -> bool {
    members(object)
        .iter()
        .any(|(_, value)| is_list_with(value.get(), '{') || has_list(value.get()))
}

/// Returns the values of several members, if they are objects that begin with one key.
fn keyed_objects<'t>(members: &Members<'t>) -> Option<Vec<&'t str>> {
    let mut keys = members.iter().map(|(_, value)| first_key(value.get()));
    let first = keys.next()??;
    let are_rows = members.len() > 1 && keys.all(|key| key.as_ref() == Some(&first));
    are_rows.then(|| members.iter().map(|(_, value)| value.get()).collect())
}

fn first_key(object: &str) -> Option<Cow<'_, str>> {
    Some(members(object).into_iter().next()?.0)
}

fn line_ends(text: &[u8]) -> u64 {
    text.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::findings::Findings;
    use crate::import::read::options::OptionEffects;
    use crate::import::read::options::samples::sample_options;
    use crate::import::read::table_cell::{Container, Notation};
    use crate::import::row_faults::UnknownNames;
    use crate::import::rows::{FileRows, ImportRow};
    use crate::model::{ConferenceFields, JournalFields, OrganizationFields, TagFields};

    /// Returns the rows in a short form, and then the faults.
    fn read<F: Fields>(content: &[u8]) -> String {
        read_within::<F>(content, Bounds::default())
    }

    fn read_within<F: Fields>(content: &[u8], bounds: Bounds) -> String {
        read_as::<F>(
            content,
            &ReadOptions {
                bounds,
                ..ReadOptions::default()
            },
        )
    }

    fn read_as<F: Fields>(content: &[u8], options: &ReadOptions) -> String {
        shown(options, |objects: &mut TableReader<'_, '_, F>| {
            read_jsonl(content, &options.bounds, objects)
        })
    }

    /// Returns the rows in a short form, then the faults, and then the warnings.
    fn shown<F: Fields>(
        options: &ReadOptions,
        read: impl FnOnce(&mut TableReader<'_, '_, F>) -> io::Result<()>,
    ) -> String {
        let (mut rows, mut bad) = (Vec::<ImportRow<F>>::new(), Findings::default());
        let (file, mut warnings) = ("f".into(), Findings::default());
        let unknown = UnknownNames::new(options.ignore_unknown);
        let warned = &mut warnings;
        let mut effects = OptionEffects::default();
        let mut read_rows = FileRows {
            file: &file,
            options,
            rows: &mut rows,
            bad: &mut bad,
            unknown,
            warnings: warned,
            effects: &mut effects,
        };
        let mut objects = TableReader::new(
            &mut read_rows,
            Notation {
                container: Container::Json,
                ..options.notation()
            },
        );
        read(&mut objects).unwrap();
        objects.finish();
        let mut shown = String::new();
        for row in &rows {
            let edit = match row.edit.is_removal {
                true => "removed".to_owned(),
                false => row.edit.statement.to_string(),
            };
            shown += &format!(
                "{}{} {edit}\n",
                row.id.map_or("?".to_owned(), |id| id.to_string()),
                if row.is_bad { "!" } else { "" }
            );
        }
        shown
            + &bad.to_string()
            + &warnings
                .kept()
                .iter()
                .map(|warning| format!("\n{warning}"))
                .collect::<String>()
    }

    #[test]
    fn lines_are_read() {
        let cases = cases![
            r#"{"id":5,"name":"A"}"#, "5 name=\"A\"\n";
            r#"{"name":"A","id":9007199254740991}"#, "9007199254740991 name=\"A\"\n";
            r#"{"id":5,"updated_at":17}"#, "5 \n";
            r#"{"id":5,"deleted":true}"#, "5 removed\n";
            r#"{"id":5,"deleted":true,"changed_at":"2026-01-01T00:00:00Z"}"#, "5 removed\n";
            r#"{"id":5,"formats":{"poster":true,"oral":null}}"#, "5 formats.oral=null formats.poster=true\n";
            r#"{"id":5,"formats":{}}"#, "5 \n";
            r#"{"id":5,"formats":null}"#,
                "5 formats.oral=null formats.poster=null formats.e_poster=null formats.published_abstract=null \
             formats.encore=null\n";
            r#"{"id":5,"city":null,"year":2026}"#, "5 year=2026 city=null\n";
            r#"{"id":"5","year":"2026","formats_oral":"yes"}"#, "5 year=2026 formats.oral=true\n";
            r#"{"id":5.0,"year":2026.0,"formats":{"oral":1}}"#, "5 year=2026 formats.oral=true\n";
            r#"{"id":5,"deleted":false,"name":"A"}"#, "5 name=\"A\"\n";
            r#"{"id":5,"deleted":null,"name":"A"}"#, "5 name=\"A\"\n";
            r#"{"id":5,"name":"'=A","therapy_areas":["'=B","C; D",""]}"#,
                "5 name=\"'=A\" therapy_areas=[\"'=B\",\"C; D\"]\n";
        ];
        for (line, expected) in cases {
            let found = read::<ConferenceFields>(line.as_bytes());
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn json_values_are_read() {
        let cases = cases![
            "city", "null", "null";
            "city", r#""""#, "null";
            "city", r#""'=1""#, r#""'=1""#;
            "city", "5", "city: `5` - is a number; write a text in quotation marks";
            "city", "2.5", "is a number; write a text";
            "city", "true", "`true` - is true or false; write a text";
            "city", r#"["A","B"]"#, "`A; B` - is a list; write one value";
            "city", r#"["A"]"#, "`A` - is a list; write one value";
            "city", "[]", "city: `` - is a list; write one value";
            "city", "[null]", "is a list; write one value";
            "city", "{}", "city: `{}` - is an object; write one value";
            "city", r#"{"name":"A"}"#, "is an object; write one value";
            "city", r#"[{"name":"A"}]"#, "is a list; write one value";
            "year", "[2026]", "year: `2026` - is a list; write one value";
            "year", r#"{"is":2026}"#, "is an object; write one value";
            "year", "true", "`true` - write a year";
            "start_date", r#"["2026-02-28"]"#, "is a list; write one value";
            "start_date", "2026", "is a number; write a text";
            "start_date_status", "true", "is true or false; write a text";
            "publishing.access", "1", "is a number; write a text";
            "formats.oral", "[true]", "is a list; write one value";
            "sjr", r#"["4"]"#, "is a list; write one value";
            "therapy_areas", "5", "`5` - an item is a number";
            "therapy_areas", "true", "`true` - an item is true or false";
            "therapy_areas", "{}", "`{}` - an item is an object";
            "therapy_areas", r#"[["a"]]"#, "an item is a list";
            "tags", "7", "Tags([Id(Id(7))])";
            "tags", r#""7""#, r#"Tags([Label("7")])"#;
            "tags", "true", "`true` - is not a valid tag";
            "tags", "[[7]]", "`[7]` - is not a valid tag";
            "tags", r#"{"id":5,"type":"T","name":"N","category":null}"#, "Object(Curated";
            "organizations", r#"[{"id":5,"name":["A"],"abbv":5,"type":null,"url":null}]"#,
                "organizations.name: `[\"A\"]` - is a list; write a text in quotes";
            "organizations", r#"[{"id":5,"name":"A","abbv":5,"type":null,"url":null}]"#,
                "organizations.abbv: `5` - is a number; write a text in quotes";
            "start_date", r#""2026-02-28""#, r#""2026-02-28""#;
            "start_date", r#""2026-13-01""#, "`2026-13-01` - write a date as YYYY-MM-DD";
            "start_date", r#""""#, "null";
            "start_date", r#""5 mars 2026""#, r#""2026-03-05""#;
            "start_date", r#""2026-03-15T00:00:00Z""#, r#""2026-03-15""#;
            "start_date", r#""3/4/2026""#, "may be day/month or month/day";
            "publishing.access", r#""Hybrid (Open Choice)""#, r#""hybrid""#;
            "publishing.access", r#""x""#, "write one of `subscription`";
            "issn_print", r#""3785955""#, r#""0378-5955""#;
            "issn_print", "3785955", "is a number; write a text";
            "start_date", "20260228", "is a number; write a text";
            "start_date_status", r#""check""#, r#""check""#;
            "start_date_status", r#""Not found""#, r#""not_found""#;
            "year", "2026", "2026";
            "year", "2026.0", "2026";
            "year", "2026.5", "`2026.5` - write a year";
            "year", r#""2026""#, "year=2026";
            "year", "1899", "write a year";
            "h_index", "9007199254740991", "9007199254740991";
            "h_index", "9007199254740992", "write a whole number";
            "h_index", "-1", "`-1` - write a whole number";
            "h_index", "1e2", "100";
            "h_index", "9007199254740992.0", "`9007199254740992` - write a whole number";
            "h_index", "-1.0", "`-1.0` - write a whole number";
            "publishing.embargo_months", "12.0", "12";
            "impact_factor_year", "2024.0", "2024";
            "sjr", "4", "4.0";
            "sjr", "4.25", "4.25";
            "sjr", "1e3", "1000.0";
            "sjr", "-0.0", "0.0";
            "sjr", "-4", "`-4` - write a number from 0";
            "sjr", r#""4""#, "sjr=4.0";
            "formats.oral", "true", "true";
            "formats.oral", r#""TRUE""#, "true";
            "formats.oral", "1", "true";
            "formats.oral", "5", "`5` - write TRUE or FALSE";
            "therapy_areas", r#"["a","a"]"#, r#"["a","a"]"#;
            "therapy_areas", "[]", r#"[]"#;
            "therapy_areas", "null", "[]";
            "therapy_areas", r#""a; b""#, r#"["a","b"]"#;
            "therapy_areas", r#"["a",5,null]"#, "`5` - an item is a number";
            "therapy_areas", r#"["a","['b']"]"#, "`['b']` - an item is a list within a text";
            "tags", r#"[5,"T: A: B"]"#, "Tags([Id(Id(5)), Label(\"T: A: B\")])";
            "tags", "[0]", "`0` - is not a valid tag";
            "tags", "[5.0]", "`5.0` - is not a valid tag";
            "tags", r#"[""]"#, "tags=[]";
            "tags", "[null]", "tags=[]";
            "tags", r#"[{"id":5,"type":"T","name":"N","category":null}]"#, "Object(Curated";
            "tags", r#"[{"id":5,"type":"T","name":"N","category":""}]"#, "category: None";
            "tags", r#"[{"id":5,"type":"T","name":"N"}]"#, "tags.category: is missing";
            "tags", r#"[{"id":5,"type":"T: U","name":"N","category":null}]"#, "tags.type: `T: U` - must not contain";
            "tags", r#"[{"id":5,"type":null,"name":"N","category":null}]"#, "tags.type: is required";
            "tags", r#"[{"id":5,"type":"T","nam":"N","category":1}]"#, "tags.nam: unknown member; did you mean `name`?";
            "tags", r#"[{"id":"5","type":"T","name":"N","category":null}]"#, "tags.id: `5` - an id is a whole number";
            "organizations", r#"[{"id":5,"name":"; ","abbv":null,"type":"T","url":null}]"#, "organizations.name: `; `";
            "organizations", r#"{"id":5}"#, "organizations.name: is missing; a full object needs all members";
        ];
        for (field, text, expected) in cases {
            let line = format!(r#"{{"id":1,"{field}":{text}}}"#);
            let mut fields = ConferenceFields::table().fields.iter();
            let is_of_conferences = fields.any(|known| known.name == field);
            let read = match is_of_conferences {
                true => read::<ConferenceFields>(line.as_bytes()),
                false => read::<JournalFields>(line.as_bytes()),
            };
            assert!(read.contains(expected), "{field} {text}: {read}");
        }
    }

    #[test]
    fn members_deep_within_are_read() {
        let line =
            br#"{"id":5,"timelines":{"accept_to_print":{"max_weeks":4},"accept_to_online":null}}"#;
        assert_eq!(
            read::<JournalFields>(line),
            "5 timelines.accept_to_online.min_weeks=null timelines.accept_to_online.max_weeks=null \
         timelines.accept_to_print.max_weeks=4.0\n"
        );
        let shown = read::<JournalFields>(br#"{"id":5,"timelines":null}"#);
        let (all, null) = (
            shown.matches("timelines.").count(),
            shown.matches("_weeks=null").count(),
        );
        assert!(all >= 4 && null == all, "{shown}");
        let line = br#"{"id":5,"timelines":{"accept_to_print":{"max_week":4}}}"#;
        let expected = "f:1: timelines.accept_to_print.max_week: unknown field; did you mean \
                    `timelines_accept_to_print_max_weeks`?";
        assert!(read::<JournalFields>(line).contains(expected));
        let line = br#"{"id":5,"timelines":{"accept_to_print":4}}"#;
        let expected = "timelines.accept_to_print: `4` - is a number; write an object";
        assert!(read::<JournalFields>(line).contains(expected));
    }

    #[test]
    fn bad_lines_are_reported() {
        let cases = cases![
            r#"{"name":"A"}"#, "f:1: id: is missing";
            r#"{"id":0}"#, "f:1: id: `0` - an id is a whole number from 1 to 9007199254740991";
            r#"{"id":-1}"#, "id: `-1`";
            r#"{"id":9007199254740992}"#, "id: `9007199254740992`";
            r#"{"id":5.5}"#, "id: `5.5`";
            r#"{"id":null}"#, "?";
            r#"{"id":5,"start_dat":1}"#, "f:1: start_dat: unknown field; did you mean `start_date`?";
            r#"{"id":5,"formats":{"orla":true}}"#, "formats.orla: unknown field; did you mean `formats_oral`?";
            r#"{"id":5,"formats":{"id":5}}"#, "formats.id: unknown field";
            r#"{"id":5,"formats":[true]}"#, "formats: `true` - is a list; write an object";
            r#"{"id":5,"formats":{"oral":true},"formats_oral":false}"#, "have one header, and differ here";
            r#"{"id":5,"deleted":"gone"}"#, "deleted: `gone` - write TRUE to remove the row";
            r#"{"id":5,"formats":"oral"}"#, "formats: `oral` - is a text; write an object";
            r#"{"id":5,"formats":[]}"#, "formats: `` - is a list; write an object";
            r#"{"id":5,"deleted":"yes"}"#, "deleted: `yes` - write TRUE";
            r#"{"id":5,"deleted":"true"}"#, "deleted: `true` - write TRUE";
            r#"{"id":5,"deleted":1}"#, "deleted: `1` - write TRUE";
            r#"{"id":5,"deleted":0}"#, "deleted: `0` - write TRUE";
            r#"{"id":5,"deleted":[]}"#, "deleted: `` - write TRUE";
            r#"{"id":5,"deleted":[true]}"#, "deleted: `true` - write TRUE";
            r#"{"id":5,"deleted":{}}"#, "deleted: `{}` - write TRUE";
            r#"{"id":[5]}"#, "id: `5` - is a list; write one value";
            r#"{"id":{"id":5}}"#, "id: `{\"id\":5}` - is an object";
            r#"{"id":true}"#, "id: `true` - an id is a whole number";
            r#"{"id":5,"name":["A",["B"]]}"#, "name: `A; [\"B\"]` - is a list; write one value";
            r#"{"id":5,"name":"A","name":"B"}"#, "name: appears twice";
            r#"{"id":5,"formats":{"oral":true,"oral":true}}"#, "formats.oral: appears twice";
            r#"{"id":5,"year":NaN}"#, "year: is not valid JSON: JSON has no NaN";
            r#"{"id":5} {"id":6}"#, "trailing characters";
            r#"[{"id":5}]"#, "is a list; write one object per line";
            "5", "`5` - is a number; write one object per line";
            "{\"id\":5,\"name\":\"\u{1}\"}", "name: is not valid JSON: control character";
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
        let cases = cases![
            "Website=url", r#"{"id":1,"name":"N","Website":"a"}"#, "1 name=\"N\" url=\"a\"\n".to_owned();
            "Website=url", r#"{"id":1,"name":"N","Website":"b","url":"a"}"#, twice("b", "Website", "url");
            "Website=url", r#"{"id":1,"name":"N","url":"a","Website":"b"}"#, twice("a", "url", "Website");
            "Website=url Web=url", r#"{"id":1,"name":"N","Website":"a","Web":"b"}"#, twice("a", "Website", "Web");
            "name=abbv", r#"{"id":1,"name":"N"}"#, "1 abbv=\"N\"\n".to_owned();
            "name=abbv Title=name", r#"{"id":1,"name":"A","Title":"N"}"#, "1 name=\"N\" abbv=\"A\"\n".to_owned();
            "name=abbv Title=name", r#"{"id":1,"Title":"N","name":"A"}"#, "1 name=\"N\" abbv=\"A\"\n".to_owned();
            "Nr=id", r#"{"Nr":1,"name":"N"}"#, "1 name=\"N\"\n".to_owned();
            "Nr=id", r#"{"id":1,"Nr":2}"#, "1! \nf:1: Nr: the columns `id` and `Nr` are both read as `id`".to_owned();
            "Nr=id No=id", r#"{"Nr":1,"No":2}"#,
                "1! \nf:1: No: the columns `Nr` and `No` are both read as `id`".to_owned();
            "id=name Nr=id", r#"{"id":"N","Nr":1}"#, "1 name=\"N\"\n".to_owned();
            "id=name", r#"{"id":"N"}"#, "? name=\"N\"\n".to_owned();
            "Gone=deleted", r#"{"id":1,"Gone":true}"#, "1 removed\n".to_owned();
            "Gone=deleted Title=name", r#"{"id":1,"Gone":true,"Title":"N"}"#, "1 removed\n".to_owned();
            // A field that organizations do not have.
            "name=sjr", r#"{"id":1,"name":"N"}"#, "1 name=\"N\"\n".to_owned();
        ];
        for (renames, line, expected) in cases {
            let renames: Vec<&str> = renames.split(' ').collect();
            let shown =
                read_as::<OrganizationFields>(line.as_bytes(), &sample_options(&renames, &[]));
            assert!(
                shown.starts_with(&expected) && shown.contains("f:1:") == expected.contains("f:1:"),
                "{line}: {shown}"
            );
        }
        // A member may mean a nested field, and a nested member any field.
        let options = sample_options(&["oral=formats_oral", "place.name=city"], &[]);
        let cases = cases![
            r#"{"id":1,"oral":true}"#, "1 formats.oral=true\n";
            r#"{"id":1,"place":{"name":"Rome"}}"#, "1 city=\"Rome\"\n";
            r#"{"id":1,"oral":true,"formats":{"poster":true}}"#, "1 formats.oral=true formats.poster=true\n";
            r#"{"id":1,"oral":true,"formats":{"oral":false}}"#,
                "1! formats.oral=true\nf:1: formats.oral: the columns `oral` and `formats.oral` are both read as `formats_oral`; map or \
             ignore one of them";
        ];
        for (line, expected) in cases {
            let read_as = read_as::<ConferenceFields>(line.as_bytes(), &options);
            assert_eq!(read_as, expected, "{line}");
        }
    }

    #[test]
    fn lines_are_numbered() {
        let content = b"\n{\"id\":1}\r\n  \r\n\xff\n{\"id\":2,\"x\":1}\n{\"id\":3}";
        let shown = read::<TagFields>(content);
        let expected = "1 \n2! \n3 \nf:4: is not UTF-8 (at byte 1 of the line); save the file as UTF-8\n\
         f:5: x: unknown field; known names are `id`, `type`, `name`, `category`; use --map";
        assert!(shown.starts_with(expected), "{shown}");
        assert_eq!(read::<TagFields>(b""), "");
    }

    #[test]
    fn every_fault_of_a_row_is_reported() {
        let shown = read::<ConferenceFields>(br#"{"id":0,"year":1,"nam":"A","city":[["Rome"]]}"#);
        assert_eq!(shown.lines().count(), 4, "{shown}");
    }

    #[test]
    fn lines_beyond_a_bound_are_refused() {
        let lines = Bounds {
            line_bytes: 10,
            ..Bounds::default()
        };
        let rows = Bounds {
            rows: 2,
            ..Bounds::default()
        };
        let too_long = "f:2: the line is longer than 10 bytes; correct it";
        let cases = cases![
            lines, "{\"id\":123}\n\n{\"id\":124}", "123 \n124 \n".to_owned();
            lines, "{\"id\":123}\n{\"id\":1234}\n{\"id\":5}", format!("123 \n5 \n{too_long}");
            lines, "\n{\"id\":1234}", too_long.to_owned();
            lines, &format!("\n{}", "x".repeat(1 << 20)), too_long.to_owned();
            rows, "\n{\"id\":2}\n", "2 \n".to_owned();
            rows, "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":4}",
                "1 \n2 \nf:3: the file has more than 2 lines; split it".to_owned();
        ];
        for (bounds, content, expected) in cases {
            let found = read_within::<TagFields>(content.as_bytes(), bounds);
            assert_eq!(found, expected, "{content:.60}");
        }
    }

    #[test]
    fn unknown_names_are_cut_and_bounded() {
        let long = "n".repeat(100_000);
        let shown = read::<ConferenceFields>(format!("{{\"id\":1,\"{long}\":1}}").as_bytes());
        assert!(shown.contains("nnn…: unknown field; "), "{shown}");
        assert!(shown.len() < 1_500, "{shown}");
        let keys: String = (0..100_000).map(|at| format!(",\"nam{at}\":1")).collect();
        let shown = read::<ConferenceFields>(format!("{{\"id\":1{keys}}}").as_bytes());
        assert!(
            shown.ends_with("has more than 1000 columns; remove those that are not fields"),
            "{shown}"
        );
    }

    fn read_list<F: Fields>(text: &str, bounds: Bounds) -> String {
        let options = ReadOptions {
            bounds,
            ..ReadOptions::default()
        };
        shown(&options, |objects: &mut TableReader<'_, '_, F>| {
            read_json(
                text.as_bytes(),
                &F::table().fields,
                &options.bounds,
                objects,
            )
        })
    }

    #[test]
    fn lists_of_objects_are_read() {
        let cases = cases![
            "", "";
            " [ ] \n", "";
            r#"[{"id":1,"name":"A"},{"id":2}]"#, "1 name=\"A\"\n2 \n";
            "[\n {\"id\":1,\n\"name\":\"[{\\\"\"}\n,\n{\"id\":2}]\n", "1 name=\"[{\\\"\"\n2 \n";
            r#"{"data":[{"id":1}]}"#, "1 \n";
            r#"{"count":1,"next":null,"data":[{"id":1}],"none":[]}"#,
                "1 \n\nf: only the list `data` is read; ignored next to it: `count`, `next`, `none`";
            r#"{"head":{"vars":["id"]},"results":{"bindings":[{"id":1}]}}"#,
                "1 \n\nf: only the list `results` is read; ignored next to it: `head`";
            "{\"id\":1}\n{\"id\":2}\n", "1 \n2 \n";
            "{\n\"id\":\n1}\n", "1 \n";
            "[{\"id\":1},\n{\"id\":0},\n\n[],{\"id\":1,\n\"id\":2}]", "1 \nf:2: id: `0` - an id is";
            "[{\"id\":1},\n\n[]]", "f:3: `[]` - is a list; write one object per line";
            "[{\"id\":1},\n{\n\"nam\":1,\"id\":2}]", "f:2: nam: unknown field";
            "{\"x\":1,\n\"a\":[\n{\"id\":1},{\"id\":0}]}", "f:3: id: `0`";
            "[{\"id\":1},\n{\"id\":2,\"id\":3}]", "f:2: id: appears twice";
            "[{\"id\":1},\n{\"id\":NaN}]", "f:2: is not valid JSON: JSON has no NaN and no Infinity (column 7)";
            "[{\"id\":1},\n{\"id\":2}", "f:2: is not valid JSON: it ends too early";
            "[{\"id\":1},]", "f:1: is not valid JSON: expected value (column 11)";
            "[{\"id\":1}]\n[{\"id\":2}]", "f:2: is not valid JSON: trailing characters (column 1)";
            "[{\"id\":1}]\n  x", "f:2: is not valid JSON: trailing characters (column 3)";
            "{\"id\":1}\nx", "f:2: is not valid JSON";
            "5", "f:1: `5` - is a number; write one object per line";
            r#"{"data":[{"id":1}],"data":[{"id":2}]}"#, "f:1: contains the lists `data` and `data`; write each list";
            r#"{"data":[],"next_cursor":null}"#, "\nf: only the list `data` is read; ignored next to it: `next_cursor`";
            r#"{"id":1,"unknown":[]}"#, "f:1: unknown: unknown field";
            r#"{"a":[{"id":1}],"b":[{"id":2}]}"#, "f:1: contains the lists `a` and `b`; write each list to a file";
            r#"{"data":{"items":[{"id":1}]}}"#, "1 \n";
            r#"{"a":{"name":"A","id":1},"b":{"name":"B","id":2}}"#, "1 name=\"A\"\n2 name=\"B\"\n";
            r#"{"page":1,"data":{"items":[{"id":1}],"more":false}}"#,
                "1 \n\nf: only the list `data` is read; ignored next to it: `page`\nf: only the list `items` is read";
        ];
        for (text, expected) in cases {
            let read = read_list::<OrganizationFields>(text, Bounds::default());
            assert!(read.contains(expected), "{text}: {read}");
            assert!(read.is_empty() == expected.is_empty(), "{text}: {read}");
        }
        // A list of links is no list of rows.
        let row =
            r#"{"id":1,"organizations":[{"id":5,"name":"A","abbv":null,"type":null,"url":null}]}"#;
        for (text, rows) in [
            (row, 1),
            (&*format!("{row}\n{row}"), 2),
            (&*format!("[{row},{row}]"), 2),
        ] {
            let read = read_list::<ConferenceFields>(text, Bounds::default());
            assert_eq!(
                read.matches("1 organizations=[] Organizations([Object")
                    .count(),
                rows,
                "{text}: {read}"
            );
        }
        let not_utf8 = shown(
            &ReadOptions::default(),
            |objects: &mut TableReader<'_, '_, OrganizationFields>| {
                let text = &b"[{\"id\":1},\n{\"name\":\"\xff\"}]"[..];
                read_json(
                    text,
                    &OrganizationFields::table().fields,
                    &Bounds::default(),
                    objects,
                )
            },
        );
        assert_eq!(not_utf8, "f:2: is not UTF-8; save the file as UTF-8");
    }

    #[test]
    fn objects_of_a_list_beyond_a_bound_are_refused() {
        let objects = Bounds {
            line_bytes: 10,
            ..Bounds::default()
        };
        let rows = Bounds {
            rows: 2,
            ..Bounds::default()
        };
        let cases = cases![
            objects, "[{\"id\":123},\n{\"id\":1234},{\"id\":5}]",
                "123 \n5 \nf:2: the line is longer than 10 bytes; correct it";
            rows, "[{\"id\":1},{\"id\":2},\n{\"id\":3},{\"id\":4}]",
                "1 \n2 \nf:2: the file has more than 2 objects; split it";
        ];
        for (bounds, text, expected) in cases {
            assert_eq!(read_list::<OrganizationFields>(text, bounds), expected);
        }
        let deep = "[".repeat(1_000_000);
        assert!(
            read_list::<OrganizationFields>(&deep, Bounds::default()).contains("ends too early")
        );
        let closed = format!("{deep}{}", "]".repeat(1_000_000));
        assert!(
            read_list::<OrganizationFields>(&closed, Bounds::default()).contains("recursion limit")
        );
    }
}
