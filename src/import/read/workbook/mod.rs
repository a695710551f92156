//! Excel workbooks (.xlsx). Each sheet is a table, and its cells are converted to the text that a CSV file would
//! contain.
//!
//! Sheets are streamed. Limits apply to the inflated bytes and to the memory. In reading order: `archive` and `part`
//! read the zip archive, `xml` the XML of its parts, and `relations` the links between parts. `strings`, `styles` and
//! `ranges` stay in memory. `sheet` reads the cells, and `cell` converts each to text. `format` and `shown` compute how
//! a spreadsheet displays a number.

mod archive;
mod cell;
mod decimal;
mod fault;
mod format;
mod part;
mod position;
mod ranges;
mod relations;
mod sheet;
mod shown;
mod strings;
mod styles;
#[cfg(test)]
mod tests;
mod xml;

use std::borrow::Cow;
use std::fs::File;
use std::io;

use crate::import::read::bounds::Bounds;
use crate::import::read::source::{RowKind, kind_from_name};
use crate::import::read::tabular::{TableCell, TableReader};
use crate::import::rows::{FileRows, ReadRows};
use crate::model::Fields;
use crate::model::message::{Message, message};
use archive::Archive;
use cell::Context;
use fault::{damaged, unusable};
use position::CellRange;
use ranges::{Hyperlinks, MergedCells, read_ranges};
use relations::Relations;
use sheet::CellReader;
use strings::SharedStrings;
use styles::Styles;
use xml::{Xml, XmlEvent};

/// The maximum inflated size of the part with the list of sheets.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// The maximum number of sheets.
const MAX_SHEETS: usize = 1_000;

/// The maximum size of a sheet's name or id. Excel allows 31 characters.
const MAX_NAME_BYTES: usize = 1_000;

pub(in crate::import) struct Workbook {
    archive: Archive,
    context: Context,
    sheets: Vec<SheetEntry>,
}

/// A sheet in the list of sheets.
struct SheetEntry {
    name: String,
    is_visible: bool,
    /// The part with the cells, or `None` for a chart.
    part: Option<String>,
}

/// The sheets to import, and the quoted names of the others.
pub(in crate::import) struct ChosenSheets {
    pub sheets: Vec<(RowKind, ChosenSheet)>,
    pub skipped: Vec<String>,
}

/// A sheet to import.
pub(in crate::import) struct ChosenSheet {
    pub name: String,
    part: String,
}

impl Workbook {
    /// Opens a workbook, within the limits.
    pub fn open(file: File, bounds: &Bounds) -> io::Result<Workbook> {
        let archive = Archive::open(file, bounds.file_bytes)?;
        if archive.has("mimetype") {
            return Err(unusable("it is not an Excel workbook; save it as .xlsx, or as CSV in UTF-8"));
        }
        let relations = Relations::read(&archive, "")?;
        let Some(list) = relations.part("officeDocument") else {
            return Err(damaged("it is not a workbook: the part that lists its sheets is missing"));
        };
        if list.to_ascii_lowercase().ends_with(".bin") {
            return Err(unusable("it is a binary workbook (.xlsb); save it as .xlsx, or as CSV in UTF-8"));
        }
        let relations = Relations::read(&archive, list)?;
        let (sheets, is_1904) = read_list(&archive, list, &relations)?;
        let styles = relations.part("styles").map_or(Ok(Styles::default()), |part| Styles::read(&archive, part))?;
        let shared = relations.part("sharedStrings");
        let shared = shared.map_or(Ok(SharedStrings::default()), |part| SharedStrings::read(&archive, part))?;
        Ok(Workbook { archive, context: Context { shared, styles, is_1904 }, sheets })
    }

    /// Chooses the sheets to import: those named like a kind of rows. If there is none, it is the only sheet that is
    /// not empty; its kind is `default_kind`, from the file name or `--dataset`.
    pub fn choose(&mut self, default_kind: Option<RowKind>) -> io::Result<ChosenSheets> {
        let mut chosen = ChosenSheets { sheets: Vec::new(), skipped: Vec::new() };
        let mut others = Vec::new();
        for SheetEntry { name, is_visible, part } in std::mem::take(&mut self.sheets) {
            let quoted = format!("`{}`", name.trim());
            match (kind_from_name(&name), part) {
                (Some(kind), Some(part)) if is_visible => chosen.sheets.push((kind, ChosenSheet { name, part })),
                (Some(_), Some(_)) => chosen.skipped.push(format!("{quoted} (hidden; unhide it to import it)")),
                (_, part) => others.push((part.filter(|_| is_visible).map(|part| ChosenSheet { name, part }), quoted)),
            }
        }
        // `default_kind` applies only if no sheet has a known name.
        if chosen.sheets.is_empty()
            && let Some(kind) = default_kind
        {
            let mut filled = Vec::new();
            for (at, (sheet, _)) in others.iter().enumerate() {
                if let Some(sheet) = sheet
                    && !self.is_empty(sheet)?
                {
                    filled.push(at);
                }
            }
            if let [only] = *filled {
                chosen.sheets.extend(others.remove(only).0.map(|sheet| (kind, sheet)));
                // Every new workbook has empty sheets, so they are not reported.
                others.retain(|(sheet, _)| sheet.is_none());
            }
        }
        chosen.skipped.extend(others.into_iter().map(|(_, quoted)| quoted));
        if chosen.sheets.is_empty() {
            let names = if chosen.skipped.is_empty() { "none".to_owned() } else { chosen.skipped.join(", ") };
            return Err(unusable(format!(
                "its sheets are {names}; name those to be read `conferences`, `journals`, `organizations` or `tags`, \
                 or keep one sheet and add, for example, `--dataset conferences`"
            )));
        }
        Ok(chosen)
    }

    fn is_empty(&self, sheet: &ChosenSheet) -> io::Result<bool> {
        // Count the bytes: many sheet names may refer to one large part.
        let mut cells = CellReader::new(Xml::new(self.archive.part(&sheet.part, u64::MAX)?))?;
        while let Some(cell) = cells.next()? {
            if cell.value.is_some_and(|value| !value.is_empty()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn cells<'a>(&'a self, sheet: &'a ChosenSheet) -> io::Result<CellReader<'a>> {
        CellReader::new(Xml::new(self.archive.reopen_part(&sheet.part)?))
    }

    /// Opens the rows of a sheet.
    pub fn sheet<'a>(&'a self, sheet: &'a ChosenSheet) -> io::Result<SheetRows<'a>> {
        let relations = Relations::read(&self.archive, &sheet.part)?;
        let mut xml = Xml::new(self.archive.part(&sheet.part, u64::MAX)?);
        match read_ranges(&mut xml, &sheet.part, &relations) {
            Ok((merged, links)) => Ok(SheetRows { cells: self.cells(sheet)?, context: &self.context, merged, links }),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                // If a cell causes the error, reading the cells returns an error that names it.
                let mut cells = self.cells(sheet)?;
                while cells.next()?.is_some() {}
                Err(error)
            }
            Err(error) => Err(error),
        }
    }
}

/// Reads the list of sheets, and whether day numbers start in 1904.
fn read_list(archive: &Archive, part: &str, relations: &Relations) -> io::Result<(Vec<SheetEntry>, bool)> {
    let mut xml = Xml::new(archive.part(part, MAX_LIST_BYTES)?);
    xml.root("workbook")?;
    let (mut sheets, mut is_1904) = (Vec::new(), false);
    loop {
        let depth = xml.depth();
        match xml.next()? {
            XmlEvent::Start(tag) if depth == 1 && tag.is("workbookPr") => tag.attributes(|name, value| {
                is_1904 |= name == "date1904" && matches!(&*value, "1" | "true" | "on");
            })?,
            XmlEvent::Start(tag) if depth == 2 && tag.is("sheet") => {
                let (mut name, mut id, mut is_visible) = (String::new(), String::new(), true);
                tag.attributes(|attribute, value| match attribute {
                    "name" => name = value.into_owned(),
                    ":id" => id = value.into_owned(),
                    "state" => is_visible = value == "visible",
                    _ => {}
                })?;
                if sheets.len() == MAX_SHEETS || name.len() > MAX_NAME_BYTES {
                    return Err(damaged(format_args!(
                        "it has more than {MAX_SHEETS} sheets, or a sheet's name has more than {MAX_NAME_BYTES} bytes"
                    )));
                }
                let Some(relation) = relations.get(&id).filter(|relation| !relation.is_external) else {
                    return Err(damaged(format_args!("the part of its sheet `{name:.100}` is missing")));
                };
                let part = (relation.kind == "worksheet").then(|| relation.target.clone());
                sheets.push(SheetEntry { name, is_visible, part });
            }
            XmlEvent::EndOfPart => return Ok((sheets, is_1904)),
            _ => {}
        }
    }
}

/// A sheet whose rows are read.
pub(in crate::import) struct SheetRows<'a> {
    cells: CellReader<'a>,
    context: &'a Context,
    merged: MergedCells,
    links: Hyperlinks,
}

impl ReadRows for SheetRows<'_> {
    fn read<F: Fields>(self, rows: &mut FileRows<'_, F>) -> io::Result<usize> {
        let SheetRows { mut cells, context, mut merged, links } = self;
        let bounds = &rows.options.bounds;
        let mut table = TableReader::new(rows, false);
        let mut row: Vec<TableCell<'_>> = Vec::new();
        let (mut row_at, mut bytes) = (0, 0);
        loop {
            let next = cells.next()?;
            let ends_row = next.as_ref().is_none_or(|cell| cell.position.row != row_at);
            if ends_row && !row.is_empty() {
                let line = u64::from(row_at) + 1;
                // A title above the header may have merged cells.
                if table.has_header()
                    && let Some(range) = merged.range_in(row_at)
                {
                    table.add_fault(line, merged_message(range));
                } else if bytes > bounds.line_bytes {
                    table.add_fault(line, bounds.line_fault());
                } else if table.add_row(line, &row).is_break() {
                    return Ok(table.finish());
                }
                row.clear();
                bytes = 0;
            }
            let Some(found) = next else { return Ok(table.finish()) };
            let position = found.position;
            row_at = position.row;
            let mut cell = context.cell(&found);
            if cell.text.is_empty() && cell.fault.is_none() {
                continue;
            }
            bytes += cell.text.len() + cell.link.as_ref().map_or(0, |link| link.len());
            if cell.link.is_none() {
                cell.link = links.get(position).map(Cow::Borrowed);
            }
            let at = usize::try_from(position.column).unwrap_or(usize::MAX);
            if at >= bounds.columns {
                table.add_fault(u64::from(row_at) + 1, bounds.columns_fault());
                return Ok(table.finish());
            }
            if row.len() <= at {
                row.resize_with(at + 1, TableCell::default);
            }
            if !row[at].text.is_empty() {
                return Err(damaged(format_args!("it has the cell {} twice", position.name())));
            }
            // A row that is too long is rejected, so do not store it.
            if bytes <= bounds.line_bytes {
                row[at] = cell;
            }
        }
    }
}

fn merged_message(range: CellRange) -> Message {
    message!(
        "the cells {}:{} are merged, so that only the first has a value; unmerge them, and fill in each",
        range.first.name(),
        range.last.name()
    )
}
