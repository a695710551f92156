//! CSV: a flat table with a header, as spreadsheets and the exports write it (RFC 4180).

use std::sync::Arc;

use csv::{ByteRecord, ReaderBuilder};

use super::cells::cell_of_text;
use super::names::did_you_mean;
use super::report::{BadRows, Place, RowFaults};
use super::rows::{Edit, Row};
use crate::model::field::Field;
use crate::model::id::NotAnId;
use crate::model::{Fields, Id};

/// What a column holds.
enum Column<F: 'static> {
    Id,
    Field(&'static Field<F>, String),
    /// Accepted without a meaning, or reported already.
    Ignored,
}

/// Reads all rows below the header; returns how many there are. Columns named in `ignored` may stand in the table
/// without a meaning.
pub fn read_csv<F: Fields>(
    file: &Arc<str>,
    content: &[u8],
    ignored: &[&str],
    rows: &mut Vec<Row<F>>,
    bad: &mut BadRows,
) -> usize {
    let mut records = Records::new(content);
    let Some((_, header)) = records.next() else {
        return 0;
    };
    let place = Place { file: file.clone(), line: 1 };
    let columns = match header {
        Ok(header) => read_header::<F>(&header, ignored, &mut RowFaults::new(&place, bad)),
        Err(message) => {
            bad.push(&place, None, None, message);
            return 0;
        }
    };
    let mut read = 0;
    for (line, record) in records {
        read += 1;
        let Some(columns) = &columns else { continue };
        let place = Place { file: file.clone(), line };
        let mut faults = RowFaults::new(&place, bad);
        match record {
            Ok(record) => {
                if let Some((id, edit)) = read_row(columns, &record, &mut faults) {
                    let is_bad = faults.found();
                    rows.push(Row { place, id, edit, is_bad });
                }
            }
            Err(message) => faults.push_row(None, message),
        }
    }
    read
}

/// The columns; `None` when rows cannot be read by them at all.
fn read_header<F: Fields>(header: &ByteRecord, ignored: &[&str], faults: &mut RowFaults<'_>) -> Option<Vec<Column<F>>> {
    let fields: Vec<(String, &Field<F>)> = F::table().iter().map(|field| (field.column(), field)).collect();
    let mut seen: Vec<&[u8]> = Vec::new();
    let mut columns = Vec::with_capacity(header.len());
    for (at, name) in header.iter().enumerate() {
        let shown = String::from_utf8_lossy(name);
        let column = if name.is_empty() {
            faults.push_row(None, format!("column {} has no name; name it, or remove it", at + 1));
            Column::Ignored
        } else if seen.contains(&name) {
            faults.push(&shown, format!("column `{shown}` stands twice; give each column once"));
            Column::Ignored
        } else if name == b"id" {
            Column::Id
        } else if let Some((name, field)) = fields.iter().find(|(column, _)| column.as_bytes() == name) {
            Column::Field(field, name.clone())
        } else {
            if !ignored.iter().any(|ignored| ignored.as_bytes() == name) {
                faults.push(&shown, unknown(&shown, header.len(), &fields));
            }
            Column::Ignored
        };
        seen.push(name);
        columns.push(column);
    }
    if columns.iter().any(|column| matches!(column, Column::Id)) {
        return Some(columns);
    }
    faults.push(&"id", "the column `id` is missing; the first line names the columns, `id` among them");
    None
}

fn unknown<F>(name: &str, columns: usize, fields: &[(String, &Field<F>)]) -> String {
    if columns == 1 && name.contains([';', '\t']) {
        return "the columns are not separated by commas; save the table as CSV with commas".to_owned();
    }
    let known: Vec<&str> = std::iter::once("id").chain(fields.iter().map(|(column, _)| column.as_str())).collect();
    format!("unknown column `{name}`; {}", did_you_mean(name, &known))
}

fn read_row<F: Fields>(
    columns: &[Column<F>],
    record: &ByteRecord,
    faults: &mut RowFaults<'_>,
) -> Option<(Id, Edit<F>)> {
    if record.len() != columns.len() {
        let (expected, actual) = (columns.len(), record.len());
        faults.push_row(
            None,
            format!("has {actual} cells, but the header has {expected}; put cells that contain commas in quotes"),
        );
        return None;
    }
    let mut id = None;
    let mut cells = Vec::with_capacity(columns.len());
    for (column, bytes) in columns.iter().zip(record) {
        let name = match column {
            Column::Id => "id",
            Column::Field(_, name) => name,
            Column::Ignored => continue,
        };
        let Ok(text) = std::str::from_utf8(bytes) else {
            faults.push_value(&name, &String::from_utf8_lossy(bytes), "is not UTF-8; save the file as CSV in UTF-8");
            continue;
        };
        match column {
            Column::Id if text.is_empty() => faults.push(&"id", "is missing; every row names its id"),
            Column::Id => match text.parse() {
                Ok(parsed) => id = Some(parsed),
                Err(error @ NotAnId) => faults.push_value(&"id", text, error.to_string()),
            },
            Column::Field(field, name) => {
                if let Some(cell) = cell_of_text(field.kind, text, name, faults) {
                    cells.push((*field, cell));
                }
            }
            Column::Ignored => {}
        }
    }
    id.map(|id| (id, Edit::Set(cells)))
}

/// The records of a table with the lines on which they begin, the header first, blank lines left out.
///
/// The csv crate reads whatever it is given. A quote that is never closed would make it take all rows that follow for
/// one cell, so the quoting of each record is judged here. And it counts a record as beginning where the one before
/// ended, before any blank lines and the `\n` of a `\r\n`, so lines are counted here too.
struct Records<'a> {
    content: &'a [u8],
    reader: csv::Reader<&'a [u8]>,
    line: u64,
}

impl<'a> Records<'a> {
    fn new(content: &'a [u8]) -> Records<'a> {
        let reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(content);
        Records { content, reader, line: 1 }
    }

    fn offset(&self) -> usize {
        usize::try_from(self.reader.position().byte()).unwrap_or(usize::MAX)
    }
}

impl Iterator for Records<'_> {
    type Item = (u64, Result<ByteRecord, &'static str>);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.offset();
        let mut record = ByteRecord::new();
        // Memory cannot fail to be read, and every sequence of bytes is a table to a flexible reader.
        if !self.reader.read_byte_record(&mut record).unwrap_or(false) {
            return None;
        }
        let raw = self.content.get(start..self.offset()).unwrap_or_default();
        let blank = raw.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let (before, own) = raw.split_at(blank);
        let line = self.line + count_lines(before);
        self.line = line + count_lines(own);
        Some((line, quoting_fault(own).map_or(Ok(record), Err)))
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).map(|_| 1).sum()
}

/// What is wrong with the quotes of a record.
fn quoting_fault(record: &[u8]) -> Option<&'static str> {
    #[derive(Clone, Copy)]
    enum State {
        CellStart,
        Plain,
        Quoted,
        QuoteInQuoted,
    }
    memchr::memchr(b'"', record)?;
    let mut state = State::CellStart;
    for byte in record {
        state = match (state, byte) {
            (State::CellStart, b'"') | (State::QuoteInQuoted, b'"') => State::Quoted,
            (State::Quoted, b'"') => State::QuoteInQuoted,
            (State::Quoted, _) => State::Quoted,
            (_, b',' | b'\r' | b'\n') => State::CellStart,
            (State::QuoteInQuoted, _) => {
                return Some("has text after a closing quote; within a quoted cell, double every quote");
            }
            (State::CellStart | State::Plain, _) => State::Plain,
        };
    }
    match state {
        State::Quoted => Some("opens a quote that is never closed; close it, or double it within a quoted cell"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConferenceFields, OrganizationFields};

    /// The rows in a short form, then the faults.
    fn read<F: Fields>(content: &[u8]) -> String {
        let (mut rows, mut bad) = (Vec::<Row<F>>::new(), BadRows::default());
        read_csv(&"f".into(), content, &["updated_at"], &mut rows, &mut bad);
        let mut shown = String::new();
        for row in &rows {
            let Edit::Set(cells) = &row.edit else { continue };
            let cells: Vec<String> = cells.iter().map(|(field, cell)| format!(" {}={cell:?}", field.name)).collect();
            shown += &format!("{}:{}{}{}\n", row.place.line, row.id, if row.is_bad { "!" } else { "" }, cells.concat());
        }
        shown + &bad.to_string()
    }

    #[test]
    fn rows_are_read_with_their_lines() {
        let cases = [
            ("", ""),
            ("id,name\n", ""),
            ("id\n5\n\n6", "2:5\n4:6\n"),
            ("id,name\r\n1,A\r\n2,\r\n", "2:1 name=Text(\"A\")\n3:2 name=Null\n"),
            ("\n\nname,id\n\nA,1\n", "5:1 name=Text(\"A\")\n"),
            (
                "id,name,url\r\n1,\"A\r\nB\",x\r\n\r\n2,\"\n\",\n3,a,b",
                concat!(
                    "2:1 name=Text(\"A\\r\\nB\") url=Text(\"x\")\n",
                    "5:2 name=Text(\"\\n\") url=Null\n",
                    "7:3 name=Text(\"a\") url=Text(\"b\")\n",
                ),
            ),
            (
                "id,type\n1,\"a \"\"b\"\", c\"\n2,5\" x\n",
                "2:1 type=Text(\"a \\\"b\\\", c\")\n3:2 type=Text(\"5\\\" x\")\n",
            ),
            (
                "id,name\n1,'=x\n2,''=x\n3,'x\n",
                "2:1 name=Text(\"=x\")\n3:2 name=Text(\"'=x\")\n4:3 name=Text(\"'x\")\n",
            ),
        ];
        for (content, expected) in cases {
            assert_eq!(read::<OrganizationFields>(content.as_bytes()), expected, "{content:?}");
        }
    }

    #[test]
    fn nested_fields_are_columns() {
        assert_eq!(
            read::<ConferenceFields>(b"id,formats_e_poster,updated_at,tags\n7,TRUE,x,A: b: c; D: e\n"),
            "2:7 formats.e_poster=Flag(true) tags=Tags([Label(\"A: b: c\"), Label(\"D: e\")])\n"
        );
    }

    #[test]
    fn faults_are_reported() {
        let cases = [
            ("id,nmae\n1,A\n", "2:1\nf:1: nmae: unknown column `nmae`; did you mean `name`?"),
            ("id,name,name\n", "f:1: name: column `name` stands twice; give each column once"),
            ("id,id\n", "f:1: id: column `id` stands twice"),
            ("id,,name\n", "f:1: column 2 has no name"),
            ("name\nA\n", "f:1: id: the column `id` is missing"),
            ("id;name\n1;A\n", "f:1: id;name: the columns are not separated by commas"),
            ("id,\u{e9}\n", "f:1: \u{fffd}: unknown column"),
            ("id,name\n1\n", "f:2: has 1 cells, but the header has 2"),
            ("id,name\n1,A,B\n2,C\n", "3:2 name=Text(\"C\")\nf:2: has 3 cells, but the header has 2"),
            ("id,name\n,A\n", "f:2: id: is missing"),
            ("id,name\n05,A\n0,B\n-1,C\n5.0,D\n9007199254740992,E\n", "f:6: id: `9007199254740992` - an id is"),
            ("id,name\n1,\"A\n2,B\n3,C\n", "f:2: opens a quote that is never closed"),
            ("id,name\n1,\"A\n2,\"B\"\n", "f:2: has text after a closing quote"),
            ("\"id,name\n1,A\n", "f:1: opens a quote that is never closed"),
        ];
        for (content, expected) in cases {
            let bytes: Vec<u8> = content.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
            let shown = read::<OrganizationFields>(&bytes);
            assert!(shown.contains(expected), "{content:?}: {shown}");
        }
        let shown = read::<ConferenceFields>(b"id,city,year,formats_oral\n1,\xff,26,maybe\n2,x,2026,\n");
        assert_eq!(
            shown,
            "2:1!\n3:2 city=Text(\"x\") year=Year(2026) formats.oral=Null\n\
             f:2: city: `\u{fffd}` - is not UTF-8; save the file as CSV in UTF-8\n\
             f:2: year: `26` - write a year from 1900 to 2100\n\
             f:2: formats_oral: `maybe` - write TRUE or FALSE"
        );
    }
}
