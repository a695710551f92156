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
use std::ops::ControlFlow;

use calamine::{
    Ods, OdsError, Reader, Sheet, SheetType, SheetVisible, Sheets, Xls, Xlsx, XlsxError,
};

use crate::import::read::options::Bounds;
use crate::import::read::row_sink::{RowSink, TableRow};
use crate::import::read::source::{OLE_MAGIC, RowKind, kind_from_name};
use crate::import::read::table_cell::{Container, TableCell};
use annotations::Annotations;
use archive::{
    HiddenRows, NO_WORKBOOK, Parts, cell_name, damaged, sheet_error, unreadable, unusable,
};
use cell::CellStyles;
use cells::{OLD_FORMATS, Position, SheetCells};

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
        let mut magic = [0; OLE_MAGIC.len()];
        let magic_len = file.read(&mut magic)?;
        file.rewind()?;
        let mut hidden_rows = HiddenRows::new();
        let book = if magic[..magic_len] == *OLE_MAGIC {
            Sheets::Xls(Xls::new(BufReader::new(file)).map_err(|error| {
                unusable(format!(
                    "it is an .xls file that cannot be read ({error}), or a workbook with a password; save it as .xlsx \
                     without a password, or as CSV in UTF-8"
                ))
            })?)
        } else {
            let parts = archive::check(&file, bounds.file_bytes)?;
            file.rewind()?;
            let file = BufReader::new(file);
            match parts {
                Parts::Ods => Sheets::Ods(Ods::new(file).map_err(|error| match error {
                    // The type of a text is shorter.
                    OdsError::InvalidMime(_) | OdsError::Io(_) => unusable(NO_WORKBOOK),
                    error => unreadable(error),
                })?),
                Parts::Xlsx(hidden) => {
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
        let mut others = Vec::new();
        for sheet in self.book.sheets_metadata() {
            match kind_from_name(&sheet.name) {
                Some(kind) if is_visible(sheet) => chosen.sheets.push((kind, sheet.name.clone())),
                _ => others.push(sheet),
            }
        }
        let mut visible = others.iter().filter(|sheet| is_visible(sheet));
        // `default_kind` applies only if no sheet has a known name.
        if let (Some(only), None) = (visible.next(), visible.next())
            && let Some(kind) = default_kind
            && chosen.sheets.is_empty()
        {
            let name = only.name.clone();
            others.retain(|other| other.name != name);
            chosen.sheets.push((kind, name));
        }
        let skipped = others.iter().map(|sheet| {
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
        let sheets = self.book.sheets_metadata().iter();
        let tables = sheets.filter(|sheet| is_table(sheet));
        let names: Vec<&str> = tables.map(|sheet| sheet.name.as_str()).collect();
        let found = names.iter().find(|name| name.trim() == wanted.trim());
        let name = found.ok_or_else(|| {
            unusable(format!(
                "it has no sheet `{wanted}`; its sheets are `{}`",
                names.join("`, `")
            ))
        })?;
        let kind = default_kind.or_else(|| kind_from_name(name));
        let kind = kind.ok_or_else(|| {
            unusable(format!(
                "the sheet `{wanted}` needs a dataset; add, for example, `--dataset conferences`"
            ))
        })?;
        Ok((kind, (*name).to_owned()))
    }

    /// Returns the names of the visible sheets with cells.
    pub fn visible_sheets(&self) -> Vec<String> {
        let sheets = self.book.sheets_metadata().iter();
        let shown = sheets.filter(|sheet| is_visible(sheet));
        shown.map(|sheet| sheet.name.clone()).collect()
    }

    /// Opens a sheet.
    pub fn sheet(&mut self, name: &str) -> io::Result<SheetRows<'_>> {
        let mut annotations = Annotations::default();
        let (cells, styles) = match &mut self.book {
            Sheets::Xlsx(book) => {
                annotations = Annotations::read(book, name)?;
                let is_1904 = book.has_1904_epoch();
                let cells = book.worksheet_cells_reader(name).map_err(unreadable)?;
                let styles = CellStyles::new(cells.styles(), is_1904);
                (SheetCells::Xlsx(Box::new(cells)), styles)
            }
            book => {
                let range = book.worksheet_range(name).map_err(unreadable)?;
                let is_1904 = matches!(book, Sheets::Xls(book) if book.has_1904_epoch());
                let styles = CellStyles::of_codes(&OLD_FORMATS, is_1904);
                (SheetCells::old(&range), styles)
            }
        };
        Ok(SheetRows {
            name: name.to_owned(),
            cells,
            styles,
            annotations,
            hidden_rows: self.hidden_rows.remove(name).unwrap_or_default(),
            last: None,
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
    name: String,
    cells: SheetCells<'a>,
    styles: CellStyles,
    annotations: Annotations,
    hidden_rows: HashSet<u32>,
    /// The position of the last cell so far.
    last: Option<Position>,
}

impl SheetRows<'_> {
    /// Returns what contains the cells.
    pub fn container(&self) -> Container {
        match self.cells {
            SheetCells::Xlsx(_) => Container::Sheet,
            SheetCells::Old(_) => Container::OldSheet,
        }
    }

    /// Reads the rows.
    pub fn read(mut self, bounds: &Bounds, table: &mut dyn RowSink) -> io::Result<()> {
        let mut row = SheetRow::default();
        while let Some((position, cell)) = self.next_cell()? {
            if position.0 != row.at {
                if self.end_row(&row, bounds, table).is_break() {
                    return Ok(());
                }
                row = SheetRow {
                    at: position.0,
                    ..SheetRow::default()
                };
            }
            let at = usize::try_from(position.1).unwrap_or(usize::MAX);
            if at >= bounds.columns {
                table.add_fault(u64::from(row.at) + 1, bounds.columns_fault());
                return Ok(());
            }
            row.bytes += cell.text.len();
            // A row that is too long is rejected, so do not store it.
            if row.bytes <= bounds.line_bytes {
                let width = row.cells.len().max(at + 1);
                row.cells.resize_with(width, TableCell::default);
                row.cells[at] = cell;
            }
        }
        let _ = self.end_row(&row, bounds, table);
        Ok(())
    }

    /// Returns the next cell that is not empty, and its position.
    fn next_cell(&mut self) -> io::Result<Option<(Position, TableCell<'static>)>> {
        loop {
            let next = self
                .cells
                .next()
                .map_err(|error| sheet_error(&self.name, self.last, error))?;
            let Some((position, value, style)) = next else {
                return Ok(None);
            };
            self.last = Some(position);
            let mut cell = self.styles.cell(value, style, || cell_name(position));
            cell.fault = cell
                .fault
                .or_else(|| self.annotations.formula_fault(position));
            if cell.text.is_empty() && cell.fault.is_none() {
                continue;
            }
            cell.link = self.annotations.link(position).map(str::to_owned);
            return Ok(Some((position, cell)));
        }
    }

    /// Passes a row to the table.
    fn end_row(
        &mut self,
        row: &SheetRow,
        bounds: &Bounds,
        table: &mut dyn RowSink,
    ) -> ControlFlow<()> {
        let line = u64::from(row.at) + 1;
        if row.cells.is_empty() {
            return ControlFlow::Continue(());
        }
        if row.bytes > bounds.line_bytes {
            table.add_fault(line, bounds.line_fault());
            return ControlFlow::Continue(());
        }
        let is_hidden = self.hidden_rows.contains(&row.at);
        table.add_row(TableRow {
            lines: line..line + 1,
            cells: &row.cells,
            merged: self.annotations.merged_in(row.at),
            warning: is_hidden.then_some(HIDDEN),
        })
    }
}

/// A row of a sheet, so far.
#[derive(Default)]
struct SheetRow {
    /// Its index, from 0.
    at: u32,
    cells: Vec<TableCell<'static>>,
    /// The length of its texts.
    bytes: usize,
}

const HIDDEN: &str = "the row is hidden in the sheet; unhide it to check it, or delete it";
