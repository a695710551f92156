//! Checks of a workbook before calamine reads it: its size, its checksums, and the positions of its cells. Hidden rows
//! are found too, since calamine does not return them. The errors of unreadable workbooks are here.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};

use calamine::XlsxError;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use zip::ZipArchive;
use zip::result::ZipError;

use super::cells::Position;
use crate::disk::Bounded;
use crate::import::read::column_name::column_letters;
use crate::import::read::source::too_large;

/// The maximum size of all parts together, inflated.
const MAX_BYTES: u64 = 256 << 20;

/// The number of rows of an Excel sheet.
const MAX_ROWS: u32 = 1_048_576;

/// The parts whose tags are checked. Other programs may use other folders.
const CHECKED_PARTS: [&str; 4] = ["sheet", "sharedstrings", "styles", "workbook"];

/// The hidden rows of each sheet, from 0.
pub(super) type HiddenRows = HashMap<String, HashSet<u32>>;

/// Inflates all parts, at most `max_bytes`. Returns the hidden rows of an .xlsx file, or `None` for an .ods file.
pub(super) fn check(file: &File, max_bytes: u64) -> io::Result<Option<HiddenRows>> {
    let mut zip = ZipArchive::new(BufReader::new(file)).map_err(zip_error)?;
    if zip.index_for_name("xl/workbook.bin").is_some() {
        return Err(unusable(
            "it is a binary workbook (.xlsb), which is not read; save it as .xlsx, or as CSV in UTF-8",
        ));
    }
    // Documents of other kinds have a type, too.
    let is_ods = zip.index_for_name("mimetype").is_some();
    let max_bytes = max_bytes.min(MAX_BYTES);
    let mut left = max_bytes;
    let mut rows_of_parts = HashMap::new();
    for at in 0..zip.len() {
        let part = zip.by_index(at).map_err(zip_error)?;
        let name = part.name().map_err(zip_error)?.to_ascii_lowercase();
        let mut from = Bounded::new(part, left, || too_large(max_bytes));
        let mut kinds = CHECKED_PARTS.iter();
        let rows = match name.ends_with(".xml") && kinds.any(|kind| name.contains(kind)) {
            true => check_part(&name, &mut from),
            false => Ok(HashSet::new()),
        };
        // The size and the checksum of a part are known at its end.
        match io::copy(&mut from, &mut io::sink()) {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => return Err(error),
            Err(error) if rows.is_ok() => return Err(damaged_part(&name, error)),
            _ => left -= from.received,
        }
        rows_of_parts.insert(name, rows?);
    }
    if is_ods {
        return Ok(None);
    }
    let parts = sheet_parts(&mut zip)?.into_iter();
    let hidden = parts.filter_map(|(sheet, part)| Some((sheet, rows_of_parts.remove(&part)?)));
    Ok(Some(hidden.collect()))
}

/// Checks what calamine cannot read, or would read as something else: positions, formats and values of cells. Returns the
/// hidden rows.
fn check_part(part: &str, from: impl Read) -> io::Result<HashSet<u32>> {
    let mut hidden = HashSet::new();
    let mut next_row = 0;
    let mut cell = String::new();
    let mut kind = None;
    each_tag(part, from, |tag, content| {
        let damaged = |why: fmt::Arguments<'_>| Err(damaged_part(part, why));
        let position = attribute(tag, "r").or_else(|| attribute(tag, "ref"));
        let mut corners = position.iter().flat_map(|position| position.split(':'));
        if !corners.all(|corner| row_of(corner).is_some()) {
            let position = position.unwrap_or_default();
            return damaged(format_args!("no sheet has the cells `{position:.50}`"));
        }
        match tag.local_name().as_ref() {
            "row" => {
                let row = position.and_then(|row| row_of(&row));
                let row = row.map_or(next_row, |row| row - 1);
                next_row = row + 1;
                if matches!(attribute(tag, "hidden").as_deref(), Some("1" | "true")) {
                    hidden.insert(row);
                }
            }
            "c" => {
                kind = attribute(tag, "t");
                cell = match position {
                    Some(name) => format!("the cell {name}"),
                    None => format!("a cell of row {next_row}"),
                };
                if !has_attributes(tag) {
                    return damaged(format_args!("{cell} has a format that cannot be read"));
                }
            }
            name if !has_attributes(tag) => {
                return damaged(format_args!("its `{name}` cannot be read"));
            }
            "v" if !is_value(content, kind.as_deref()) => {
                return damaged(format_args!("{cell} has a value that cannot be read"));
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(hidden)
}

/// Returns false if a tag has an attribute that calamine would take for a default: a style, a number format, a calendar.
fn has_attributes(tag: &BytesStart<'_>) -> bool {
    // calamine does not replace entities.
    let value = |name| Some(tag.try_get_attribute(name).ok()??.value);
    let is_number = |text: &str| {
        text.parse()
            .is_ok_and(|number: u32| number.to_string() == text)
    };
    let calendars = ["", "0", "1", "false", "off", "true"];
    value("s").is_none_or(|style| is_number(&style))
        && value("numFmtId").is_none_or(|id| is_number(&id))
        && value("date1904").is_none_or(|flag| calendars.contains(&&*flag))
}

/// Returns the row of a cell, or a row itself, from 1. Returns `None` if no sheet has it.
fn row_of(cell: &str) -> Option<u32> {
    let digits = cell.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    let row = digits.parse().ok()?;
    let has_column = cell.len() - digits.len() <= 3;
    (has_column && (1..=MAX_ROWS).contains(&row)).then_some(row)
}

/// Returns true if calamine reads the value of a cell as a whole. `kind` is the type of the cell.
fn is_value(content: &str, kind: Option<&str>) -> bool {
    match kind {
        Some("s") => content.len() < 10 && content.bytes().all(|digit| digit.is_ascii_digit()),
        Some("str" | "d") => !content.contains('<'),
        Some("inlineStr") => content.is_empty(),
        _ => !content.contains(['<', '&']),
    }
}

/// Returns the part of each sheet.
fn sheet_parts(zip: &mut ZipArchive<impl Read + Seek>) -> io::Result<HashMap<String, String>> {
    let mut targets = HashMap::new();
    let mut parts = HashMap::new();
    // Other programs may use other names. Then no row counts as hidden.
    for list in ["xl/_rels/workbook.xml.rels", "xl/workbook.xml"] {
        let Ok(from) = zip.by_name(list) else {
            continue;
        };
        each_tag(list, from, |tag, _| {
            targets.extend(attribute(tag, "Id").zip(attribute(tag, "Target")));
            let target = attribute(tag, "r:id").and_then(|id| targets.get(&id));
            if let (Some(name), Some(target)) = (attribute(tag, "name"), target) {
                let part = match target.strip_prefix('/') {
                    Some(part) => part.to_owned(),
                    None => format!("xl/{target}"),
                };
                parts.insert(name, part.to_ascii_lowercase());
            }
            Ok(())
        })?;
    }
    Ok(parts)
}

/// Calls `take` with each start tag of a part, and with the content of a cell's value.
fn each_tag(
    part: &str,
    from: impl Read,
    mut take: impl FnMut(&BytesStart<'_>, &str) -> io::Result<()>,
) -> io::Result<()> {
    let mut xml = Reader::from_reader(BufReader::new(from));
    let mut buffer = Vec::new();
    let mut content = Vec::new();
    loop {
        buffer.clear();
        content.clear();
        match xml.read_event_into(&mut buffer) {
            Ok(Event::Start(tag)) if tag.local_name().as_ref() == "v" => {
                let value = xml.read_text_into(tag.name(), &mut content);
                take(&tag, &value.map_err(|error| damaged_part(part, error))?)?;
            }
            Ok(Event::Start(tag) | Event::Empty(tag)) => take(&tag, "")?,
            Ok(Event::Eof) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(damaged_part(part, error)),
        }
    }
}

/// Returns an attribute by its name.
fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = tag.try_get_attribute(name).ok()??;
    let value = attribute.normalized_value(XmlVersion::Implicit1_0);
    value.ok().map(Into::into)
}

fn zip_error(error: ZipError) -> io::Error {
    match error {
        ZipError::Io(error) if error.kind() == io::ErrorKind::Other => error,
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => {
            unusable("it has a password; save it without one, as .xlsx or as CSV in UTF-8")
        }
        error => damaged(format_args!("its zip archive is damaged: {error}")),
    }
}

fn damaged_part(part: &str, why: impl Display) -> io::Error {
    damaged(format_args!("its part `{part:.100}` is damaged: {why}"))
}

pub(super) const NO_WORKBOOK: &str =
    "it is not an Excel workbook; save it as .xlsx, or as CSV in UTF-8";

/// Returns the name of the cell at a row and column, such as `B7`.
pub(super) fn cell_name((row, column): Position) -> String {
    format!(
        "{}{}",
        column_letters(usize::try_from(column).unwrap_or(usize::MAX)),
        u64::from(row) + 1
    )
}

/// Creates an error whose message contains the remedy.
pub(super) fn unusable(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

/// Creates an error with the remedy to save the workbook again.
pub(super) fn damaged(why: impl Display) -> io::Error {
    unusable(format!("{why}; save it again as .xlsx or as CSV in UTF-8"))
}

pub(super) fn unreadable(error: impl Display) -> io::Error {
    damaged(format_args!("its content cannot be read: {error}"))
}

/// Creates the error of a sheet, after its last cell that could be read.
pub(super) fn sheet_error(sheet: &str, last: Option<Position>, error: XlsxError) -> io::Error {
    let place = last.map_or("at its first cell".to_owned(), |cell| {
        format!("after the cell {}", cell_name(cell))
    });
    match error {
        XlsxError::CellError(text) => unusable(format!(
            "its sheet `{sheet}` contains the spreadsheet error `{text}` {place}; correct or clear that cell"
        )),
        error => damaged(format_args!(
            "its sheet `{sheet}` cannot be read {place}: {error}"
        )),
    }
}
