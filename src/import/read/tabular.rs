//! Tables: a header and rows of cells, from CSV or from a workbook.

use std::mem;
use std::ops::ControlFlow;
use std::rc::Rc;

use super::column_name::column_letters;
use super::columns::{ColumnMeaning, Columns, identify_rows};
use super::loose::open_date;
use super::options::{OptionEffect, ReadOptions};
use super::row_sink::{MergedCells, RowSink, TableRow};
use super::table_cell::{Container, Notation, TableCell};
use super::table_row::RowReader;
use super::words::has_word;
use crate::import::row_faults::RowFaults;
use crate::import::rows::FileRows;
use crate::model::Fields;
use crate::model::fold::{comparable, is_blank};
use crate::model::message::{Message, message};

/// The maximum number of rows above the header.
pub(in crate::import) const MAX_ROWS_ABOVE: usize = 20;

/// A row of cells that is kept.
pub(in crate::import) type OwnedRow = Vec<TableCell>;

impl MergedCells {
    /// Returns true if a column that is read lacks the value, since the first cell has it.
    fn hide_values_of(&self, columns: &Columns<'_>) -> bool {
        let read = self.columns.clone().filter(|at| columns.is_read(*at));
        read.count() > usize::from(!self.is_tall)
    }
}

/// Reads the rows of a table, including the header, or the objects of a list.
pub(in crate::import) struct TableReader<'r, 'a, F> {
    pub(super) rows: &'r mut FileRows<'a, F>,
    /// The rows so far, while no header is found: text above it, or a header that identifies no rows.
    above: Vec<OwnedRow>,
    /// The lines of these rows.
    lines_above: Vec<u64>,
    /// The columns. Those of objects are the members of the last one.
    pub(super) columns: Option<Rc<Columns<'a>>>,
    /// Whether a column cannot be read. Then missing values in rows are not reported, since that column may contain
    /// them.
    is_incomplete: bool,
    /// The number of rows after the header that are not empty, with those that cannot be read or are left out.
    pub(super) row_count: usize,
    /// The line after the last row.
    next_line: u64,
    /// Whether the last row is below an empty row, and has few cells.
    is_below: bool,
    /// Whether a row has several values.
    has_full_row: bool,
    /// The number of rows that other parts have brought.
    earlier: usize,
    /// The notation of all cells.
    pub(super) notation: Notation,
}

impl<F: Fields> RowSink for TableReader<'_, '_, F> {
    fn add_object(&mut self, line: u64, text: &[u8]) {
        self.read_object(line, text);
    }

    fn add_row(&mut self, row: TableRow<'_>) -> ControlFlow<()> {
        if row.cells.iter().all(TableCell::is_blank) {
            return ControlFlow::Continue(());
        }
        let line = row.lines.start;
        let follows_gap = line > self.next_line;
        self.next_line = row.lines.end;
        let options = self.rows.options;
        if self.columns.is_none() && options.header_rows == Some(0) {
            self.read_header(line, &[vec![TableCell::default(); row.cells.len()]])?;
        }
        let Some(columns) = self.columns.clone() else {
            return self.search_header(line, row.cells);
        };
        if self.row_count >= options.bounds.rows {
            let message = options.bounds.rows_fault("rows");
            self.rows.add_file_fault(line, message);
            return ControlFlow::Break(());
        }
        self.read_row(&columns, row, follows_gap);
        ControlFlow::Continue(())
    }

    fn add_fault(&mut self, line: u64, message: Message) {
        self.row_count += 1;
        self.rows.add_file_fault(line, message);
    }

    fn warn(&mut self, message: Message) {
        self.rows.warn(None, message);
    }
}

impl<'r, 'a, F: Fields> TableReader<'r, 'a, F> {
    /// Creates a reader. `notation` is that of all cells.
    pub fn new(rows: &'r mut FileRows<'a, F>, notation: Notation) -> TableReader<'r, 'a, F> {
        TableReader {
            earlier: rows.rows.len(),
            rows,
            above: Vec::new(),
            lines_above: Vec::new(),
            columns: None,
            is_incomplete: false,
            row_count: 0,
            next_line: 0,
            is_below: false,
            has_full_row: false,
            notation,
        }
    }

    /// Reads a row below the header.
    fn read_row(&mut self, columns: &Columns<'a>, row: TableRow<'_>, follows_gap: bool) {
        let cells = row.cells;
        let line = row.lines.start;
        let options = self.rows.options;
        let notation = self.notation;
        let filled = cells.iter().filter(|cell| !cell.is_blank()).count();
        let named = columns.named();
        let has_id = columns.has_id(cells);
        // Below an empty row, notes may have two cells.
        let is_below = self.row_count > 0 && (follows_gap || self.is_below);
        self.is_below = is_below && filled * 3 <= named.max(3) && !has_id;
        if !has_id && let Some(message) = self.reason_to_skip(columns, &row, filled) {
            return self.rows.warn(Some(line), message.into());
        }
        if let Some(message) = row.warning {
            self.rows.warn(Some(line), message.into());
        }
        self.row_count += 1;
        if !columns.pass_filters(None, cells) {
            self.rows.effects.count(OptionEffect::LeftOut);
            return;
        }
        if filled > 1 && named > 2 && !self.has_full_row && notation.is_loose && !options.replace {
            self.skip_first_headings();
        }
        let mut merged = row.merged.into_iter();
        if let Some(merged) =
            merged.find(|merged| !notation.is_loose || merged.hide_values_of(columns))
        {
            return self.rows.add_fault(line, merged.fault);
        }
        let read = self.rows.add(line, |faults| {
            if notation.container == Container::Csv {
                check_width(columns, cells, faults)?;
            }
            check_unnamed(columns, cells, options, faults);
            RowReader::new(options, notation, faults).read(columns, cells)
        });
        if let Some(read) = read {
            read.is_bad |= self.is_incomplete;
            read.may_be_note =
                (filled == 1 && named > 2 && self.has_full_row || self.is_below) && !has_id;
        }
        self.has_full_row |= filled > 1;
    }

    /// Returns why a row without an id is no record, if so: it is a note, a total, the header again, or in a list of others
    /// a heading.
    fn reason_to_skip(
        &self,
        columns: &Columns<'_>,
        row: &TableRow<'_>,
        filled: usize,
    ) -> Option<&'static str> {
        let cells = row.cells;
        let named = columns.named();
        let replaces = self.rows.options.replace;
        // In CSV, other rows have all cells.
        let is_short =
            self.notation.container == Container::Csv && cells.len() < columns.named_width;
        let is_note = filled == 1 && named > 1 || is_short;
        let mut values = (0..).zip(cells).filter(|(_, cell)| !cell.is_blank());
        let (at, first) = values.clone().next()?;
        let is_merged = || row.merged.iter().any(|merged| merged.columns.contains(&at));
        match () {
            () if self.is_below && is_note && !replaces => {
                Some("is a note below the table, so it is skipped")
            }
            () if self.row_count > 0 && named > 1 && is_total(cells) => {
                Some("is a total, so it is skipped")
            }
            () if self.row_count > 0 && columns.are_names(cells) => {
                Some("repeats the header, so it is skipped")
            }
            () if !self.notation.is_loose => None,
            () if !values.any(|(at, _)| columns.is_read(at)) => {
                Some("has no value in a column that is read, so it is skipped")
            }
            () if filled > 1 || replaces || named < 3 => None,
            () => (self.has_full_row || is_merged() || open_date(&first.text).is_some())
                .then_some(IS_HEADING),
        }
    }

    /// Skips the rows so far that have only a name. They are headings, like those below.
    fn skip_first_headings(&mut self) {
        let name = F::table().index_of("name");
        for row in self.rows.rows.split_off(self.earlier) {
            let values = &row.edit.statement;
            let has_name = name.is_some_and(|name| !values.is_null(name));
            if row.id.is_none() && !row.edit.is_removal && has_name {
                self.rows.warn(Some(row.position.line), IS_HEADING.into());
            } else {
                self.rows.rows.push(row);
            }
        }
    }

    /// Ends the part. Returns the number of rows after the header, or of objects.
    pub fn finish(mut self) -> usize {
        if !self.above.is_empty() {
            self.row_count += self.above.len() - 1;
            let _ = self.report_missing_id();
        }
        let what = self.notation.container.column();
        let lines = &self.rows.effects.header_lines;
        let header_line = lines.get(&**self.rows.file).copied();
        self.rows.warn_of_ignored(header_line, what);
        self.row_count
    }

    /// Adds a row, while no header was found.
    fn search_header(&mut self, line: u64, cells: &[TableCell]) -> ControlFlow<()> {
        let options = self.rows.options;
        self.lines_above.push(line);
        self.above.push(cells.to_vec());
        let header_rows = options.header_rows.unwrap_or(1);
        let Some(title_rows) = self.above.len().checked_sub(header_rows) else {
            return ControlFlow::Continue(());
        };
        let names = joined_header(&self.above[title_rows..]);
        if !is_header::<F>(options, &names, title_rows) {
            return match self.above.len() > MAX_ROWS_ABOVE {
                true => self.report_missing_id(),
                false => ControlFlow::Continue(()),
            };
        }
        let titles = match &self.lines_above[..title_rows] {
            [] => None,
            [only] => Some(format!("line {only}")),
            [first, .., last] => Some(format!("lines {first} to {last}")),
        };
        if let Some(lines) = titles {
            let message = message!("the rows above the header ({lines}) are ignored");
            self.rows.warn(Some(line), message);
        }
        let header = self.above.split_off(title_rows);
        self.above.clear();
        self.read_header(line, &header)
    }

    /// Reads the header, whose last row is in this line.
    fn read_header(&mut self, line: u64, header: &[OwnedRow]) -> ControlFlow<()> {
        let options = self.rows.options;
        let container = self.notation.container;
        self.rows.add(line, |faults| {
            self.columns = read_columns::<F>(header, options, container, faults).map(Rc::new);
            self.is_incomplete = faults.has_fault();
            None
        });
        if self.is_incomplete {
            self.rows.bad.mark_file();
        }
        let file = self.rows.file.to_string();
        self.rows.effects.header_lines.insert(file, line);
        if container == Container::OldSheet {
            self.rows.warn(None, NO_FORMATS.into());
        }
        match self.columns {
            Some(_) => ControlFlow::Continue(()),
            None => ControlFlow::Break(()),
        }
    }

    /// Reports a missing header, at the row that looks most like one.
    fn report_missing_id(&mut self) -> ControlFlow<()> {
        let options = self.rows.options;
        // In reverse, since `max_by_key` returns the last maximum.
        let rows = mem::take(&mut self.above).into_iter();
        let rows = rows.zip(&self.lines_above).rev();
        let best = rows.max_by_key(|(row, _)| {
            let texts = row.iter().map(|cell| &*cell.text);
            known_names::<F>(options, texts)
        });
        let best = best.map(|(row, line)| (row, *line));
        if let Some((row, line)) = best
            && self.read_header(line, &[row]).is_continue()
        {
            let mut columns = options.columns.iter();
            let message = match columns.any(|given| given.value.column.index.is_some()) {
                true => {
                    "no row has the name of a column, and letters such as `=A` fit any row; write in a recipe whether the \
                     file has a header: `header_rows = 0`, or `header_rows = 1`"
                }
                false => "is not a header; the first row must name the columns, including `id`",
            };
            self.rows.add_file_fault(line, message);
        }
        ControlFlow::Break(())
    }
}

/// Returns true if names are those of a header, below some rows of titles.
fn is_header<F: Fields>(options: &ReadOptions, names: &[String], title_rows: usize) -> bool {
    let meanings: Vec<ColumnMeaning> = (names.iter().enumerate())
        .filter_map(|(at, name)| ColumnMeaning::find(F::table(), options, name, 1, Some(at)))
        .collect();
    let filled = names.iter().filter(|name| !name.is_empty()).count();
    identify_rows::<F>(options, &meanings)
        && (meanings.len() > 1 || filled != 2 || title_rows == 0)
        && (filled > 1 && options.header_rows.is_some()
            || known_names::<F>(options, names.iter().map(String::as_str)) > 0)
}

/// Reads the columns of a header, and reports its faults. Returns `None` if it is unusable.
fn read_columns<'o, F: Fields>(
    header: &[OwnedRow],
    options: &'o ReadOptions,
    container: Container,
    faults: &mut RowFaults<'_>,
) -> Option<Columns<'o>> {
    let mut cells = header.iter().flatten();
    if let Some(fault) = cells.find_map(|cell| cell.fault.clone()) {
        faults.push_row(None, fault);
        return None;
    }
    let mut columns = Columns::new(joined_header(header), options, faults);
    columns.find_fields::<F>(options, container, faults)?;
    Some(columns)
}

/// Returns the number of names that columns have. A column that is named by its letter is in each row, so it shows no
/// header.
fn known_names<'n, F: Fields>(
    options: &ReadOptions,
    names: impl Iterator<Item = &'n str>,
) -> usize {
    names
        .filter_map(|name| ColumnMeaning::find(F::table(), options, name, 1, None))
        .count()
}

/// Joins the rows of a header by blanks. A blank cell has the text at its left, as in merged cells, if both have a text
/// below.
pub(in crate::import) fn joined_header(rows: &[OwnedRow]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in rows.iter().rev() {
        let mut group = "";
        names.resize(names.len().max(row.len()), String::new());
        for (at, below) in names.iter_mut().enumerate() {
            let cell = row.get(at);
            let text = cell.map_or("", |cell| cell.text.trim_matches(is_blank));
            let is_group = !below.is_empty();
            if !text.is_empty() {
                group = if is_group { text } else { "" };
            }
            let own = if is_group { group } else { text };
            *below = format!("{own} {below}").trim_matches(' ').to_owned();
        }
    }
    names
}

/// Reports a row of a text that has fewer or more cells than the header.
fn check_width(
    columns: &Columns<'_>,
    cells: &[TableCell],
    faults: &mut RowFaults<'_>,
) -> Option<()> {
    let named = columns.named_width;
    let filled = cells
        .iter()
        .rposition(|cell| !cell.is_blank())
        .map_or(0, |last| last + 1);
    if cells.len() >= named && filled <= columns.meanings.len() {
        return Some(());
    }
    let actual = cells.len();
    let message = match filled {
        1 => message!(
            "has one cell, but the header has {named}; if it is a note, leave an empty line above it"
        ),
        _ => message!(
            "has {actual} cells, but the header has {named}; put cells that contain commas or line ends in quotes"
        ),
    };
    faults.push_row(None, message);
    None
}

const IS_HEADING: &str = "has one value, so it is skipped as a heading or a note";

const NO_FORMATS: &str = "is an .xls or .ods file, whose number formats are not read; percentages and currencies look like \
                          plain numbers there; save it as .xlsx to have them checked";

/// Reports values in columns without a name.
fn check_unnamed(
    columns: &Columns<'_>,
    cells: &[TableCell],
    options: &ReadOptions,
    faults: &mut RowFaults<'_>,
) {
    for (at, cell) in cells.iter().enumerate() {
        let meaning = columns.meanings.get(at);
        let is_unnamed = meaning.is_none_or(|column| *column == ColumnMeaning::Unnamed);
        if !is_unnamed || cell.is_blank() {
            continue;
        }
        let letters = column_letters(at);
        if options.ignore_unknown {
            faults.push_unknown("column", "", &format!("={letters}"), &[]);
            continue;
        }
        let message = message!(
            "has a value in column {letters}, which has no name; name it, clear the cell, or read it with --map \
             '={letters}=FIELD'"
        );
        faults.push_row(Some(&cell.text), message);
    }
}

/// Returns true if a row contains totals: a word for it, and otherwise only numbers.
fn is_total(cells: &[TableCell]) -> bool {
    const WORDS: &str = "total totals grandtotal subtotal sum average mean median summe gesamt insgesamt mittelwert \
                         durchschnitt somme moyenne totale promedio suma";
    let mut filled = cells.iter().filter(|cell| !cell.is_blank());
    let is_number = |cell: &TableCell| {
        cell.text.chars().all(|sign| {
            sign.is_ascii_digit() || is_blank(sign) || matches!(sign, '.' | ',' | '%' | '$' | '€')
        })
    };
    // `Total (n=1):` is one, too.
    let word = filled
        .next()
        .map(|cell| comparable(cell.text.split(['(', ':']).next().unwrap_or_default()));
    word.is_some_and(|word| has_word(WORDS, &word)) && filled.all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_header_are_joined() {
        let cases: [(&[&[&str]], &[&str]); 5] = cases![
            &[&["Title", "ISSN"]], &["Title", "ISSN"];
            &[&["Title", "List price", ""], &["", "USD", "EUR"]], &["Title", "List price USD", "List price EUR"];
            &[&["Title", "", "Price"], &["", "ISSN", "USD"]], &["Title", "ISSN", "Price USD"];
            &[&["Title", "ISSN", "", "Price"], &["", "print", "online"]],
                &["Title", "ISSN print", "ISSN online", "Price"];
            &[&["A", ""], &["B", "C"], &["D", "E"]], &["A B D", "A C E"];
        ];
        for (rows, expected) in cases {
            let rows: Vec<OwnedRow> = rows
                .iter()
                .map(|row| row.iter().map(|text| TableCell::text(*text)).collect())
                .collect();
            assert_eq!(joined_header(&rows), expected, "{rows:?}");
        }
    }

    #[test]
    fn totals_are_known_by_their_word() {
        let cases: [(&[&str], bool); 7] = [
            (&["Total", "", "12"], true),
            (&["", "TOTAL:", "1,250.5", "3 %"], true),
            (&["Summe"], true),
            (&["Total", "0028-4793"], false),
            (&["Total Health Journal", "12"], false),
            (&["Total", "House"], false),
            (&["12", "Total"], false),
        ];
        for (texts, expected) in cases {
            let cells: Vec<TableCell> = texts.iter().map(|text| TableCell::text(*text)).collect();
            assert_eq!(is_total(&cells), expected, "{texts:?}");
        }
    }
}
