//! Workbooks: of Excel (.xlsx), and older ones (.xls, .ods) in `old`. Each sheet is a table, and its cells are converted to the text that a CSV file would
//! contain.
//!
//! The calamine crate reads them. Its cells are streamed; the shared strings and the styles stay in memory. `archive`
//! checks the file first. `annotations` holds merged cells, hyperlinks and formulas. `cell` converts a cell to text,
//! and `format` decides whether its number format shows the stored value.

mod annotations;
mod archive;
mod cell;
mod format;
mod old;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::ops::ControlFlow;

use calamine::{Reader, Sheet, SheetType, SheetVisible, Xlsx, XlsxCellReader};

use crate::import::read::options::Bounds;
use crate::import::read::row_sink::{RowSink, TableRow};
use crate::import::read::source::{RowKind, kind_from_name};
use crate::import::read::table_cell::{Container, TableCell};
use annotations::Annotations;
use archive::{HiddenRows, Parts, cell_name, damaged, sheet_error, unreadable, unusable};
use cell::CellStyles;
use old::{OldBook, OldSheet};

/// A workbook, by its format.
pub(in crate::import) enum Workbook {
    Xlsx(Box<Xlsx<BufReader<File>>>, HiddenRows),
    Old(OldBook),
}

/// The sheets to import, and the quoted names of the others.
pub(in crate::import) struct ChosenSheets {
    pub sheets: Vec<(RowKind, String)>,
    pub skipped: Vec<String>,
}

impl Workbook {
    /// Opens a workbook, within the limits.
    pub fn open(mut file: File, bounds: &Bounds) -> io::Result<Workbook> {
        if old::is_xls(&mut file)? {
            return Ok(Workbook::Old(OldBook::open_xls(file)?));
        }
        let parts = archive::check(&file, bounds.file_bytes)?;
        file.rewind()?;
        let Parts::Xlsx(hidden_rows) = parts else {
            return Ok(Workbook::Old(OldBook::open_ods(file)?));
        };
        let book = Xlsx::new(BufReader::new(file)).map_err(unreadable)?;
        if book.sheets_metadata().is_empty() {
            return Err(damaged(
                "it is not a workbook: the list of its sheets is missing",
            ));
        }
        Ok(Workbook::Xlsx(Box::new(book), hidden_rows))
    }

    fn sheets(&self) -> &[Sheet] {
        match self {
            Workbook::Xlsx(book, _) => book.sheets_metadata(),
            Workbook::Old(book) => book.sheets(),
        }
    }

    /// Chooses the sheets to import: those that the options name, else those named like a kind of rows. If there is
    /// none, it is the only visible sheet. The kind of the first and the last is `default_kind`, from the file name or
    /// `--dataset`.
    pub fn choose(
        &self,
        default_kind: Option<RowKind>,
        sheets: &[String],
    ) -> io::Result<ChosenSheets> {
        let mut chosen = ChosenSheets {
            sheets: Vec::new(),
            skipped: Vec::new(),
        };
        for wanted in sheets {
            chosen.sheets.push(self.find_sheet(default_kind, wanted)?);
        }
        if !sheets.is_empty() {
            return Ok(chosen);
        }
        let mut others = Vec::new();
        for sheet in self.sheets() {
            let name = sheet.name.clone();
            let is_table = sheet.typ == SheetType::WorkSheet;
            let is_visible = is_table && sheet.visible == SheetVisible::Visible;
            match kind_from_name(&name) {
                Some(kind) if is_visible => chosen.sheets.push((kind, name)),
                Some(_) if is_table => {
                    chosen.skipped.push(format!(
                        "`{}` (hidden; unhide it to import it)",
                        name.trim()
                    ));
                }
                _ => others.push((name, is_visible)),
            }
        }
        let visible: Vec<usize> = (0..others.len()).filter(|at| others[*at].1).collect();
        // `default_kind` applies only if no sheet has a known name.
        if let ([only], Some(kind), true) = (&*visible, default_kind, chosen.sheets.is_empty()) {
            chosen.sheets.push((kind, others.remove(*only).0));
        }
        chosen
            .skipped
            .extend(others.iter().map(|(name, _)| format!("`{}`", name.trim())));
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
        let tables = self
            .sheets()
            .iter()
            .filter(|sheet| sheet.typ == SheetType::WorkSheet);
        let names: Vec<&str> = tables.map(|sheet| sheet.name.as_str()).collect();
        let found = names.iter().find(|name| name.trim() == wanted.trim());
        let kind = found.and_then(|name| default_kind.or_else(|| kind_from_name(name)));
        match (found, kind) {
            (Some(name), Some(kind)) => Ok((kind, (*name).to_owned())),
            (Some(_), None) => Err(unusable(format!(
                "the sheet `{wanted}` needs a dataset; add, for example, `--dataset conferences`"
            ))),
            (None, _) => Err(unusable(format!(
                "it has no sheet `{wanted}`; its sheets are `{}`",
                names.join("`, `")
            ))),
        }
    }

    /// Returns the names of the visible sheets with cells.
    pub fn visible_sheets(&self) -> Vec<String> {
        let is_shown = |sheet: &&Sheet| {
            sheet.typ == SheetType::WorkSheet && sheet.visible == SheetVisible::Visible
        };
        let shown = self.sheets().iter().filter(is_shown);
        shown.map(|sheet| sheet.name.clone()).collect()
    }

    /// Opens a sheet.
    pub fn sheet(&mut self, name: &str) -> io::Result<OpenSheet<'_>> {
        let (book, hidden_rows) = match self {
            Workbook::Old(book) => return Ok(OpenSheet::Old(book.sheet(name)?)),
            Workbook::Xlsx(book, hidden_rows) => (book, hidden_rows),
        };
        let annotations = Annotations::read(book, name)?;
        let is_1904 = book.has_1904_epoch();
        let cells = book.worksheet_cells_reader(name).map_err(unreadable)?;
        let styles = CellStyles::new(cells.styles(), is_1904);
        let hidden_rows = hidden_rows.remove(name).unwrap_or_default();
        Ok(OpenSheet::Xlsx(Box::new(SheetRows {
            name: name.to_owned(),
            cells,
            styles,
            annotations,
            hidden_rows,
            last: None,
        })))
    }
}

/// A sheet that is read.
pub(in crate::import) enum OpenSheet<'a> {
    Xlsx(Box<SheetRows<'a>>),
    Old(OldSheet),
}

impl OpenSheet<'_> {
    /// Returns what contains the cells.
    pub fn container(&self) -> Container {
        match self {
            OpenSheet::Xlsx(_) => Container::Sheet,
            OpenSheet::Old(_) => Container::OldSheet,
        }
    }

    /// Reads the rows.
    pub fn read(self, bounds: &Bounds, table: &mut impl RowSink) -> io::Result<()> {
        match self {
            OpenSheet::Xlsx(sheet) => sheet.read(bounds, table),
            OpenSheet::Old(sheet) => {
                sheet.read(bounds, table);
                Ok(())
            }
        }
    }
}

/// A sheet whose rows are read.
pub(in crate::import) struct SheetRows<'a> {
    name: String,
    cells: XlsxCellReader<'a, BufReader<File>>,
    styles: CellStyles,
    annotations: Annotations,
    hidden_rows: HashSet<u32>,
    /// The position of the last cell so far.
    last: Option<(u32, u32)>,
}

impl<'a> SheetRows<'a> {
    /// Reads the rows.
    fn read(mut self, bounds: &Bounds, table: &mut impl RowSink) -> io::Result<()> {
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
                row.put(at, cell)?;
            }
        }
        let _ = self.end_row(&row, bounds, table);
        Ok(())
    }

    /// Returns the next cell that is not empty, and its position.
    fn next_cell(&mut self) -> io::Result<Option<((u32, u32), TableCell<'a>)>> {
        loop {
            let next = self
                .cells
                .next_cell_with_style_id()
                .map_err(|error| sheet_error(&self.name, self.last, error))?;
            let Some((found, style)) = next else {
                return Ok(None);
            };
            let position = found.get_position();
            if self.last.is_some_and(|last| position.0 < last.0) {
                return Err(damaged("its rows are not in order"));
            }
            self.last = Some(position);
            let mut cell = self
                .styles
                .cell(found.get_value(), style, || cell_name(position));
            cell.fault = cell
                .fault
                .or_else(|| self.annotations.formula_fault(position));
            if cell.text.is_empty() && cell.fault.is_none() {
                continue;
            }
            let link = self.annotations.link(position);
            cell.link = link.map(|link| Cow::Owned(link.to_owned()));
            return Ok(Some((position, cell)));
        }
    }

    /// Passes a row to the table.
    fn end_row(
        &mut self,
        row: &SheetRow<'_>,
        bounds: &Bounds,
        table: &mut impl RowSink,
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
            line,
            cells: &row.cells,
            merged: self.annotations.merged_in(row.at),
            warning: is_hidden.then_some(HIDDEN),
        })
    }
}

/// A row of a sheet, so far.
#[derive(Default)]
struct SheetRow<'a> {
    /// Its index, from 0.
    at: u32,
    cells: Vec<TableCell<'a>>,
    /// The length of its texts.
    bytes: usize,
}

impl<'a> SheetRow<'a> {
    /// Adds a cell at a column.
    fn put(&mut self, at: usize, cell: TableCell<'a>) -> io::Result<()> {
        if self.cells.len() <= at {
            self.cells.resize_with(at + 1, TableCell::default);
        }
        if !self.cells[at].text.is_empty() {
            let column = u32::try_from(at).unwrap_or(u32::MAX);
            let name = cell_name((self.at, column));
            return Err(damaged(format_args!("it has the cell {name} twice")));
        }
        self.cells[at] = cell;
        Ok(())
    }
}

const HIDDEN: &str = "the row is hidden in the sheet; unhide it to check it, or delete it";
