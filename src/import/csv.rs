//! CSV: a flat table with a header, as spreadsheets and the exports write it (RFC 4180).

use std::collections::HashSet;
use std::io::{self, Read};

use csv::ByteRecord;

use super::bounds::{Bounds, TooLarge};
use super::names::did_you_mean;
use super::report::{RowFaults, shortened};
use super::rows::{Edit, FileRows};
use super::statement::Statement;
use super::table::CsvReader;
use crate::model::id::NotAnId;
use crate::model::{Fields, Id};

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Id,
    /// The field of this index in its table.
    Field(usize),
    /// Accepted without a meaning, or reported already.
    Ignored,
}

/// Reads all rows below the header; returns how many there are.
///
/// # Errors
/// When the content cannot be read.
pub(super) fn read_csv<F: Fields>(content: impl Read, rows: &mut FileRows<'_, F>) -> io::Result<usize> {
    let (bounds, ignored) = (rows.bounds, rows.ignored);
    let mut reader = CsvReader::new(content, bounds.line_bytes);
    let mut columns = None;
    // The header is the first, and no row.
    let mut read: usize = 0;
    loop {
        let (line, record) = match reader.next() {
            Ok(None) => return Ok(read.saturating_sub(1)),
            Ok(Some(next)) => next,
            Err(error) => {
                let message = TooLarge::message_in(&error).ok_or(error)?;
                rows.add_fault(reader.line(), message);
                return Ok(read);
            }
        };
        let line = if read == 0 { 1 } else { line };
        match record {
            Err(fault) => rows.add_fault(line, fault.message(bounds)),
            Ok(header) if read == 0 => rows.add(line, |faults| {
                columns = read_header::<F>(header, bounds, ignored, faults);
                None
            }),
            Ok(_) if read > bounds.rows => {
                rows.add_fault(line, bounds.rows_fault("rows"));
                return Ok(read);
            }
            Ok(record) => {
                if let Some(columns) = &columns {
                    rows.add(line, |faults| read_row(columns, record, faults));
                }
            }
        }
        read += 1;
    }
}

/// Reads the columns; `None` when rows cannot be read by them at all.
fn read_header<F: Fields>(
    header: &ByteRecord,
    bounds: &Bounds,
    ignored: &[&str],
    faults: &mut RowFaults<'_>,
) -> Option<Vec<Column>> {
    if header.len() > bounds.columns {
        faults.push_row(None, bounds.columns_fault("columns"));
        return None;
    }
    let known: Vec<&str> = std::iter::once("id").chain(F::table().fields.iter().map(|field| &*field.column)).collect();
    let mut seen: HashSet<&[u8]> = HashSet::new();
    let mut columns = Vec::with_capacity(header.len());
    for (index, name) in header.iter().enumerate() {
        let shown = shortened(&String::from_utf8_lossy(name));
        let mut column = Column::Ignored;
        if name.is_empty() {
            faults.push_row(None, format!("column {} has no name; name it, or remove it", index + 1));
        } else if name.len() > bounds.name_bytes {
            faults.push(&shown, bounds.name_fault(name.len()));
        } else if !seen.insert(name) {
            faults.push(&shown, format!("column `{shown}` stands twice; give each column once"));
        } else if let Some(found) = known.iter().position(|known| known.as_bytes() == name) {
            column = found.checked_sub(1).map_or(Column::Id, Column::Field);
        } else if header.len() == 1 && shown.contains([';', '\t']) {
            faults.push(&shown, "the columns are not separated by commas; save the table as CSV with commas");
        } else if !ignored.iter().any(|ignored| ignored.as_bytes() == name) {
            let remedy = did_you_mean(&shown, &known, faults);
            faults.push(&shown, format!("unknown column `{shown}`; {remedy}"));
        }
        columns.push(column);
    }
    if columns.contains(&Column::Id) {
        return Some(columns);
    }
    faults.push(&"id", "the column `id` is missing; the first line names the columns, `id` among them");
    None
}

fn read_row<F: Fields>(columns: &[Column], record: &ByteRecord, faults: &mut RowFaults<'_>) -> Option<(Id, Edit<F>)> {
    if record.len() != columns.len() {
        let (expected, actual) = (columns.len(), record.len());
        faults.push_row(
            None,
            format!("has {actual} cells, but the header has {expected}; put cells that contain commas in quotes"),
        );
        return None;
    }
    let mut id = None;
    let mut statement = Box::new(Statement::new());
    let mut reader = statement.reader(faults);
    for (column, bytes) in columns.iter().zip(record) {
        let name = match column {
            Column::Id => "id",
            Column::Field(index) => &F::table().fields[*index].column,
            Column::Ignored => continue,
        };
        let Ok(text) = std::str::from_utf8(bytes) else {
            let shown = String::from_utf8_lossy(bytes);
            reader.faults.push_value(&name, &shown, "is not UTF-8; save the file as CSV in UTF-8");
            continue;
        };
        match column {
            Column::Field(index) => reader.read_csv(*index, text, &name),
            _ if text.is_empty() => reader.faults.push(&name, "is missing; every row names its id"),
            _ => match text.parse() {
                Ok(parsed) => id = Some(parsed),
                Err(error @ NotAnId) => reader.faults.push_value(&name, text, error.to_string()),
            },
        }
    }
    id.map(|id| (id, Edit::Set(statement)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::report::BadRows;
    use crate::import::rows::Row;
    use crate::model::{ConferenceFields, OrganizationFields};

    /// The rows in a short form, then the faults.
    fn read<F: Fields>(content: &[u8]) -> String {
        read_within::<F>(content, Bounds::default())
    }

    fn read_within<F: Fields>(content: &[u8], bounds: Bounds) -> String {
        let (mut rows, mut bad) = (Vec::<Row<F>>::new(), BadRows::default());
        let (file, ignored) = ("f".into(), &["updated_at"]);
        let mut read = FileRows { file: &file, bounds: &bounds, ignored, rows: &mut rows, bad: &mut bad };
        read_csv(content, &mut read).unwrap();
        let mut shown = String::new();
        for Row { position, id, edit, is_bad } in &rows {
            let Edit::Set(statement) = edit else { continue };
            let line = format!("{}:{id}{} {statement}", position.line, if *is_bad { "!" } else { "" });
            shown += &format!("{}\n", line.trim_end());
        }
        shown + &bad.to_string()
    }

    #[test]
    fn rows_are_read_with_their_lines() {
        let cases = [
            ("", ""),
            ("id,name\n", ""),
            ("id\n5\n\n6", "2:5\n4:6\n"),
            ("id,name\r\n1,A\r\n2,\r\n", "2:1 name=\"A\"\n3:2 name=null\n"),
            ("\n\nname,id\n\nA,1\n", "5:1 name=\"A\"\n"),
            (
                "id,name,url\r\n1,\"A\r\nB\",x\r\n\r\n2,\"\n\",\n3,a,b",
                concat!(
                    "2:1 name=\"A\\r\\nB\" url=\"x\"\n",
                    "5:2 name=\"\\n\" url=null\n",
                    "7:3 name=\"a\" url=\"b\"\n",
                ),
            ),
            ("id,type\n1,\"a \"\"b\"\", c\"\n2,5\" x\n", "2:1 type=\"a \\\"b\\\", c\"\n3:2 type=\"5\\\" x\"\n"),
            ("id,name\n1,'=x\n2,''=x\n3,'x\n", "2:1 name=\"=x\"\n3:2 name=\"'=x\"\n4:3 name=\"'x\"\n"),
        ];
        for (content, expected) in cases {
            assert_eq!(read::<OrganizationFields>(content.as_bytes()), expected, "{content:?}");
        }
    }

    #[test]
    fn nested_fields_are_columns() {
        assert_eq!(
            read::<ConferenceFields>(b"id,formats_e_poster,updated_at,tags\n7,TRUE,x,A: b: c; D: e\n"),
            "2:7 tags=[] formats.e_poster=true Tags([Label(\"A: b: c\"), Label(\"D: e\")])\n"
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
            ("id,name\n1,A,B\n2,C\n", "3:2 name=\"C\"\nf:2: has 3 cells, but the header has 2"),
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
            "2:1!\n3:2 year=2026 city=\"x\" formats.oral=null\n\
             f:2: city: `\u{fffd}` - is not UTF-8; save the file as CSV in UTF-8\n\
             f:2: year: `26` - write a year from 1900 to 2100\n\
             f:2: formats_oral: `maybe` - write TRUE or FALSE"
        );
    }

    #[test]
    fn bounds_are_kept() {
        let lines = Bounds { line_bytes: 8, ..Bounds::default() };
        let rows = Bounds { rows: 2, ..Bounds::default() };
        let names = Bounds { name_bytes: 4, ..Bounds::default() };
        let columns = Bounds { columns: 2, ..Bounds::default() };
        let unread = "the row is longer than 8 bytes, and the rest of the table is not read;";
        let cases = [
            (lines, "id,name\n1,123456\n", "2:1 name=\"123456\"\n".to_owned()),
            (
                lines,
                "id,name\n1,2\n1,1234567\n2,x\n",
                format!("2:1 name=\"2\"\nf:3: {unread} correct it, or raise --max-line-bytes"),
            ),
            (
                lines,
                &format!("id,name\n\n1,\"A{}", "\n2,B".repeat(100_000)),
                format!("f:3: {unread} close the quote that it opens, or raise --max-line-bytes"),
            ),
            (lines, "id,name12\n1,x\n", format!("f:1: {unread} correct it, or raise --max-line-bytes")),
            (rows, "id\n1\n2\n\n", "2:1\n3:2\n".to_owned()),
            (
                rows,
                "id\n1\n2\n3\n4\n",
                "2:1\n3:2\nf:4: the file has more than 2 rows; split it, or raise --max-rows".to_owned(),
            ),
            (
                names,
                "id,names\n1,A\n",
                "2:1\nf:1: names: the name is 5 bytes long, and at most 4 are read; correct it, or raise \
                 --max-name-bytes"
                    .to_owned(),
            ),
            (
                columns,
                "id,name,abbv\n1,A,B\n",
                "f:1: has more than 2 columns; take out those that are no fields, or raise --max-columns".to_owned(),
            ),
        ];
        for (bounds, content, expected) in cases {
            assert_eq!(read_within::<OrganizationFields>(content.as_bytes(), bounds), expected, "{content:.60}");
        }
    }

    #[test]
    fn many_columns_take_no_square_of_their_number() {
        let bounds = Bounds { columns: usize::MAX, ..Bounds::default() };
        let header: String = (0..200_000).map(|at| format!(",nam{at}")).collect();
        let shown = read_within::<OrganizationFields>(format!("id{header}\n").as_bytes(), bounds);
        let looked_up = shown.matches("did you mean `name`").count();
        assert!((1..100_000).contains(&looked_up) && shown.contains("and 199000 more"), "{looked_up} looked up");
    }
}
