//! Workbooks of Excel (.xlsx), and older ones (.xls, .ods). Each sheet is a table, and its cells are converted to the text
//! that a CSV file would contain.
//!
//! The calamine crate reads them (`cells`). The cells of an .xlsx are streamed; the shared strings and the styles stay in
//! memory. `archive` checks the file first. `annotations` holds merged cells, hyperlinks and formulas. `cell` converts a cell to text,
//! and `format` decides whether its number format shows the stored value.

mod annotations;
mod archive;
mod cell;
mod cells;
mod format;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};

use calamine::{
    Ods, OdsError, Reader, Sheet, SheetType, SheetVisible, Sheets, Xls, Xlsx, XlsxError,
};

use crate::import::read::options::Bounds;
use crate::import::read::row_sink::{RowSink, TableRow};
use crate::import::read::source::{OLE_MAGIC, RowKind, kind_from_name};
use crate::import::read::table_cell::{Container, TableCell};
use annotations::Annotations;
use archive::{HiddenRows, NO_WORKBOOK, damaged, sheet_error, unreadable, unusable};
use cell::CellStyles;
use cells::{OLD_FORMATS, Position, SheetCells, old_cells, xlsx_cells};

/// A workbook.
pub(in crate::import) struct Workbook {
    book: Sheets<BufReader<File>>,
    hidden_rows: HiddenRows,
}

/// The sheets to import, and the quoted names of the others.
#[derive(Default)]
pub(in crate::import) struct ChosenSheets {
    pub sheets: Vec<(RowKind, String)>,
    pub skipped: Vec<String>,
}

impl Workbook {
    /// Opens a workbook, within the limits.
    pub fn open(mut file: File, bounds: &Bounds) -> io::Result<Workbook> {
        let mut magic = Vec::new();
        (&file)
            .take(OLE_MAGIC.len() as u64)
            .read_to_end(&mut magic)?;
        file.rewind()?;
        let mut hidden_rows = HiddenRows::new();
        let book = if magic == OLE_MAGIC {
            let book = Xls::new(BufReader::new(file)).map_err(|error| {
                unusable(format!(
                    "it is an .xls file that cannot be read ({error}), or a workbook with a password; save it as .xlsx \
                     without a password, or as CSV in UTF-8"
                ))
            });
            Sheets::Xls(book?)
        } else {
            let hidden = archive::check(&file, bounds.file_bytes)?;
            file.rewind()?;
            let file = BufReader::new(file);
            match hidden {
                None => Sheets::Ods(Ods::new(file).map_err(|error| match error {
                    // The type of a text is shorter.
                    OdsError::InvalidMime(_) | OdsError::Io(_) => unusable(NO_WORKBOOK),
                    error => unreadable(error),
                })?),
                Some(hidden) => {
                    hidden_rows = hidden;
                    Sheets::Xlsx(Xlsx::new(file).map_err(|error| match error {
                        XlsxError::FileNotFound(part) if part == "_rels/.rels" => {
                            unusable(NO_WORKBOOK)
                        }
                        error => unreadable(error),
                    })?)
                }
            }
        };
        if book.sheets_metadata().is_empty() {
            return Err(damaged(
                "it is not a workbook: the list of its sheets is missing",
            ));
        }
        Ok(Workbook { book, hidden_rows })
    }

    /// Chooses the sheets to import: those that the options name, else those named like a kind of rows. If there is
    /// none, it is the only visible sheet. The kind of the first and the last is `default_kind`, from the file name or
    /// `--dataset`.
    pub fn choose(
        &self,
        default_kind: Option<RowKind>,
        sheets: &[String],
    ) -> io::Result<ChosenSheets> {
        let mut chosen = ChosenSheets::default();
        for wanted in sheets {
            chosen.sheets.push(self.find_sheet(default_kind, wanted)?);
        }
        if !sheets.is_empty() {
            return Ok(chosen);
        }
        let visible = self.visible_sheets();
        let named = visible.iter().cloned();
        let named = named.filter_map(|name| Some((kind_from_name(&name)?, name)));
        chosen.sheets = named.collect();
        // `default_kind` applies only if no sheet has a known name.
        if let Some(kind) = default_kind
            && chosen.sheets.is_empty()
            && let [only] = &*visible
        {
            chosen.sheets.push((kind, only.clone()));
        }
        let mut others: Vec<&Sheet> = self.book.sheets_metadata().iter().collect();
        others.retain(|other| chosen.sheets.iter().all(|(_, name)| *name != other.name));
        let skipped = others.into_iter().map(|sheet| {
            let name = sheet.name.trim();
            match kind_from_name(name) {
                Some(_) if is_table(sheet) => format!("`{name}` (hidden; unhide it to import it)"),
                _ => format!("`{name}`"),
            }
        });
        chosen.skipped = skipped.collect();
        if chosen.sheets.is_empty() {
            let remedy = match default_kind {
                Some(_) => "choose one, such as `--sheet List`",
                None => {
                    "name those to be read `conferences`, `journals`, `organizations` or `tags`, or choose one, such as \
                     `--sheet List --dataset journals`"
                }
            };
            return Err(unusable(format!(
                "its sheets are {}; {remedy}",
                chosen.skipped.join(", ")
            )));
        }
        Ok(chosen)
    }

    /// Finds a sheet by its name.
    fn find_sheet(
        &self,
        default_kind: Option<RowKind>,
        wanted: &str,
    ) -> io::Result<(RowKind, String)> {
        let names = self.names_of(is_table);
        let Some(name) = names.iter().find(|name| name.trim() == wanted.trim()) else {
            return Err(unusable(format!(
                "it has no sheet `{wanted}`; its sheets are `{}`",
                names.join("`, `")
            )));
        };
        match default_kind.or_else(|| kind_from_name(name)) {
            Some(kind) => Ok((kind, name.clone())),
            None => Err(unusable(format!(
                "the sheet `{wanted}` needs a dataset; add, for example, `--dataset conferences`"
            ))),
        }
    }

    /// Returns the names of the visible sheets with cells.
    pub fn visible_sheets(&self) -> Vec<String> {
        self.names_of(is_visible)
    }

    fn names_of(&self, is_named: fn(&Sheet) -> bool) -> Vec<String> {
        let sheets = self.book.sheets_metadata().iter();
        let named = sheets.filter(|sheet| is_named(sheet));
        named.map(|sheet| sheet.name.clone()).collect()
    }

    /// Opens a sheet.
    pub fn sheet(&mut self, name: &str) -> io::Result<SheetRows<'_>> {
        let hidden_rows = self.hidden_rows.remove(name).unwrap_or_default();
        let name = name.to_owned();
        Ok(match &mut self.book {
            Sheets::Xlsx(book) => {
                let annotations = Annotations::read(book, &name)?;
                let is_1904 = book.has_1904_epoch();
                let cells = book.worksheet_cells_reader(&name).map_err(unreadable)?;
                SheetRows {
                    container: Container::Sheet,
                    styles: CellStyles::new(cells.styles(), is_1904),
                    cells: xlsx_cells(cells),
                    annotations,
                    name,
                    hidden_rows,
                    last: None,
                }
            }
            book => {
                let range = book.worksheet_range(&name).map_err(unreadable)?;
                let is_1904 = matches!(book, Sheets::Xls(book) if book.has_1904_epoch());
                SheetRows {
                    container: Container::OldSheet,
                    styles: CellStyles::of_codes(&OLD_FORMATS, is_1904),
                    cells: old_cells(&range),
                    annotations: Annotations::default(),
                    name,
                    hidden_rows,
                    last: None,
                }
            }
        })
    }
}

/// Returns true for a sheet with cells.
fn is_table(sheet: &Sheet) -> bool {
    sheet.typ == SheetType::WorkSheet
}

fn is_visible(sheet: &Sheet) -> bool {
    is_table(sheet) && sheet.visible == SheetVisible::Visible
}

/// A sheet whose rows are read.
pub(in crate::import) struct SheetRows<'a> {
    /// The kind of the file with the cells.
    pub container: Container,
    name: String,
    cells: SheetCells<'a>,
    styles: CellStyles,
    annotations: Annotations,
    hidden_rows: HashSet<u32>,
    /// The position of the last cell so far.
    last: Option<Position>,
}

impl SheetRows<'_> {
    /// Reads the rows.
    pub fn read(mut self, bounds: &Bounds, table: &mut dyn RowSink) -> io::Result<()> {
        let mut next = self.next_cell()?;
        while let Some(((row, _), _)) = next {
            let line = u64::from(row) + 1;
            let mut cells: Vec<TableCell> = Vec::new();
            let mut bytes = 0;
            while let Some(((_, column), cell)) = next.take_if(|((other, _), _)| *other == row) {
                let at = usize::try_from(column).unwrap_or(usize::MAX);
                if at >= bounds.columns {
                    table.add_fault(line, bounds.columns_fault());
                    return Ok(());
                }
                bytes += cell.text.len();
                // A row that is too long is rejected, so do not store it.
                if bytes <= bounds.line_bytes {
                    cells.resize_with(cells.len().max(at + 1), TableCell::default);
                    cells[at] = cell;
                }
                next = self.next_cell()?;
            }
            if bytes > bounds.line_bytes {
                table.add_fault(line, bounds.line_fault());
                continue;
            }
            let is_hidden = self.hidden_rows.contains(&row);
            let row = TableRow {
                lines: line..line + 1,
                cells: &cells,
                merged: self.annotations.merged_in(row),
                warning: is_hidden.then_some(HIDDEN),
            };
            if table.add_row(row).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the next cell that is not empty, and its position.
    fn next_cell(&mut self) -> io::Result<Option<(Position, TableCell)>> {
        loop {
            let Some(next) = self.cells.next() else {
                return Ok(None);
            };
            let next = next.map_err(|error| sheet_error(&self.name, self.last, error));
            let (position, value, style) = next?;
            self.last = Some(position);
            let mut cell = self.styles.cell(value, style, position);
            if cell.fault.is_none() {
                cell.fault = self.annotations.formula_fault(position);
            }
            if cell.text.is_empty() && cell.fault.is_none() {
                continue;
            }
            cell.link = self.annotations.link(position).cloned();
            return Ok(Some((position, cell)));
        }
    }
}

const HIDDEN: &str = "the row is hidden in the sheet; unhide it to check it, or delete it";
