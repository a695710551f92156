//! Tables: a header and rows of cells, from CSV or from a workbook.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use super::column_name::column_letters;
use super::columns::{ColumnMeaning, Columns, identify_rows};
use super::loose::open_date;
use super::options::ReadOptions;
use super::row_sink::{MergedCells, RowSink, TableRow};
use super::table_cell::{Container, Notation, TableCell};
use super::table_row::RowReader;
use super::words::has_word;
use crate::import::row_faults::RowFaults;
use crate::import::rows::{FileRows, ImportRow};
use crate::model::Fields;
use crate::model::fold::{comparable, is_blank};
use crate::model::message::{Message, message};

/// The maximum number of rows above the header.
pub(in crate::import) const MAX_ROWS_ABOVE: usize = 20;

/// A row of cells that is kept.
pub(in crate::import) type OwnedRow = Vec<TableCell<'static>>;

impl MergedCells {
    /// Returns true if a column that is read lacks the value, since the first cell has it.
    fn hide_values_of(&self, columns: &Columns<'_>) -> bool {
        let read = self.columns.clone().filter(|at| columns.is_read(*at));
        read.count() > usize::from(!self.is_tall)
    }

    /// Returns true if they are one column, whose rows all have the value of the first.
    fn is_one_column(&self) -> bool {
        self.is_tall && self.columns.start() == self.columns.end()
    }
}

/// Reads the rows of a table, including the header, or the objects of a list.
pub(in crate::import) struct TableReader<'r, 'a, F> {
    pub(super) rows: &'r mut FileRows<'a, F>,
    pub(super) header: HeaderState<'a>,
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
    /// The values of merged cells of one column, by the column and the line of their first row.
    merged: HashMap<(usize, u64), TableCell<'static>>,
    /// The notation of all cells.
    pub(super) notation: Notation,
}

pub(super) enum HeaderState<'a> {
    /// The lines and cells of the rows so far: text above the header, or a header that identifies no rows.
    Searching {
        lines: Vec<u64>,
        rows: Vec<OwnedRow>,
    },
    /// The columns, or `None` if the header is unusable. Those of objects are the members of the last one.
    Found(Option<Rc<Columns<'a>>>),
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
        if options.header_rows == Some(0) && matches!(self.header, HeaderState::Searching { .. }) {
            self.read_header(line, &[vec![TableCell::default(); row.cells.len()]])?;
        }
        match &self.header {
            HeaderState::Searching { .. } => self.search_header(line, row.cells),
            HeaderState::Found(Some(columns)) if self.row_count < options.bounds.rows => {
                let columns = Rc::clone(columns);
                let cells = self.with_merged(&columns, &row);
                let row = TableRow {
                    cells: &cells,
                    ..row
                };
                self.read_row(&columns, row, follows_gap);
                ControlFlow::Continue(())
            }
            // No row follows an unusable header.
            HeaderState::Found(_) => {
                let message = options.bounds.rows_fault("rows");
                self.rows.add_file_fault(line, message);
                ControlFlow::Break(())
            }
        }
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
            header: HeaderState::Searching {
                lines: Vec::new(),
                rows: Vec::new(),
            },
            is_incomplete: false,
            row_count: 0,
            next_line: 0,
            is_below: false,
            has_full_row: false,
            merged: HashMap::new(),
            notation,
        }
    }

    /// Returns the cells of a row, in a list of others with the values of the merged cells above.
    fn with_merged<'c>(
        &mut self,
        columns: &Columns<'_>,
        row: &TableRow<'c>,
    ) -> Cow<'c, [TableCell<'c>]> {
        let mut filled = Cow::Borrowed(row.cells);
        let line = row.lines.start;
        for merged in &row.merged {
            if !self.notation.is_loose || !merged.is_one_column() {
                continue;
            }
            let at = *merged.columns.start();
            let key = (at, merged.first_line);
            if merged.first_line == line {
                let cell = row.cells.get(at).filter(|cell| !cell.is_blank());
                let value = cell.filter(|_| columns.is_read(at));
                self.merged
                    .extend(value.map(|cell| (key, cell.to_owned_cell())));
            } else if let Some(cell) = self.merged.get(&key) {
                let filled = filled.to_mut();
                filled.resize_with(filled.len().max(at + 1), TableCell::default);
                filled[at] = cell.clone();
                let message = "has the value of the merged cells above";
                self.rows.warn(Some(line), message.into());
            }
        }
        filled
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
        if let Some(message) = self.reason_to_skip(columns, &row, filled) {
            return self.rows.warn(Some(line), message.into());
        }
        if let Some(message) = row.warning {
            self.rows.warn(Some(line), message.into());
        }
        self.row_count += 1;
        if !columns.pass_filters(None, cells) {
            self.rows.effects.left_out += 1;
            return;
        }
        if filled > 1 && named > 2 && !self.has_full_row && notation.is_loose && !options.replace {
            self.skip_first_headings();
        }
        let hides = |merged: &MergedCells| {
            !notation.is_loose || !merged.is_one_column() && merged.hide_values_of(columns)
        };
        if let Some(merged) = row.merged.into_iter().find(hides) {
            return self.rows.add_fault(line, merged.fault);
        }
        self.rows.add(line, |faults| {
            if notation.container == Container::Csv {
                check_width(columns, cells, faults)?;
            }
            check_unnamed(columns, cells, options, faults);
            RowReader::new(options, notation, faults).read(columns, cells)
        });
        let may_be_note =
            (filled == 1 && named > 2 && self.has_full_row || self.is_below) && !has_id;
        self.has_full_row |= filled > 1;
        let read = self.rows.rows.last_mut();
        if let Some(row) = read.filter(|row| row.position.line == line) {
            row.is_bad |= self.is_incomplete;
            row.may_be_note = may_be_note;
        }
    }

    /// Returns why a row is no record, if so: it is a note, a total, the header again, or in a list of others a heading.
    fn reason_to_skip(
        &self,
        columns: &Columns<'_>,
        row: &TableRow<'_>,
        filled: usize,
    ) -> Option<&'static str> {
        let cells = row.cells;
        let named = columns.named();
        let has_id = columns.has_id(cells);
        let replaces = self.rows.options.replace;
        // In CSV, other rows have all cells.
        let is_short =
            self.notation.container == Container::Csv && cells.len() < columns.named_width;
        let is_note = (filled == 1 && named > 1 && !has_id || is_short) && !replaces;
        let mut values = (0..).zip(cells).filter(|(_, cell)| !cell.is_blank());
        let (at, first) = values.clone().next()?;
        let is_merged = || row.merged.iter().any(|merged| merged.columns.contains(&at));
        match () {
            () if self.row_count > 0 && self.is_below && is_note => {
                Some("is a note below the table, so it is skipped")
            }
            () if self.row_count > 0 && named > 1 && !has_id && is_total(cells) => {
                Some("is a total, so it is skipped")
            }
            () if self.row_count > 0 && columns.are_names(cells) => {
                Some("repeats the header, so it is skipped")
            }
            () if !self.notation.is_loose || has_id => None,
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
        let has_name = |row: &ImportRow<F>| {
            let values = &row.edit.statement;
            !row.edit.is_removal && name.is_some_and(|name| !values.is_null(name))
        };
        for row in self.rows.rows.split_off(self.earlier) {
            if row.id.is_none() && has_name(&row) {
                self.rows.warn(Some(row.position.line), IS_HEADING.into());
            } else {
                self.rows.rows.push(row);
            }
        }
    }

    /// Ends the part. Returns the number of rows after the header, or of objects.
    pub fn finish(mut self) -> usize {
        if let HeaderState::Searching { lines, .. } = &self.header
            && !lines.is_empty()
        {
            self.row_count += lines.len() - 1;
            let _ = self.report_missing_id();
        }
        let what = self.notation.container.column();
        let lines = &self.rows.effects.header_lines;
        let header_line = lines.get(&**self.rows.file).copied();
        self.rows.warn_of_ignored(header_line, what);
        self.row_count
    }

    /// Adds a row, while no header was found.
    fn search_header(&mut self, line: u64, cells: &[TableCell<'_>]) -> ControlFlow<()> {
        let HeaderState::Searching { lines, rows } = &mut self.header else {
            return ControlFlow::Continue(());
        };
        let options = self.rows.options;
        lines.push(line);
        rows.push(cells.iter().map(TableCell::to_owned_cell).collect());
        let Some(title_rows) = rows.len().checked_sub(options.header_rows.unwrap_or(1)) else {
            return ControlFlow::Continue(());
        };
        let names = joined_header(&rows[title_rows..]);
        let meanings: Vec<ColumnMeaning> = (names.iter().enumerate())
            .filter_map(|(at, name)| ColumnMeaning::find(F::table(), options, name, 1, Some(at)))
            .collect();
        let filled = names.iter().filter(|name| !name.is_empty()).count();
        let is_header = identify_rows::<F>(options, &meanings)
            && (meanings.len() > 1 || filled != 2 || title_rows == 0)
            && (filled > 1 && options.header_rows.is_some()
                || known_names::<F>(options, names.iter().map(String::as_str)) > 0);
        if !is_header && rows.len() > MAX_ROWS_ABOVE {
            return self.report_missing_id();
        }
        if !is_header {
            return ControlFlow::Continue(());
        }
        let titles = match &lines[..title_rows] {
            [] => None,
            [only] => Some(format!("line {only}")),
            [first, .., last] => Some(format!("lines {first} to {last}")),
        };
        let header = rows.split_off(title_rows);
        if let Some(lines) = titles {
            let message = message!("the rows above the header ({lines}) are ignored");
            self.rows.warn(Some(line), message);
        }
        self.read_header(line, &header)
    }

    /// Reads the header, whose last row is in this line.
    fn read_header(&mut self, line: u64, header: &[OwnedRow]) -> ControlFlow<()> {
        let options = self.rows.options;
        let container = self.notation.container;
        let mut columns = None;
        self.rows.add(line, |faults| {
            match header.iter().flatten().find_map(|cell| cell.fault.clone()) {
                Some(fault) => faults.push_row(None, fault),
                None => {
                    let names = joined_header(header);
                    let mut found = Columns::new(names, options, faults);
                    if found.find_fields::<F>(options, container, faults).is_some() {
                        columns = Some(found);
                    }
                }
            }
            if let (Some(columns), Container::OldSheet) = (&columns, container) {
                refuse_prices::<F>(columns, faults);
            }
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
        let is_readable = columns.is_some();
        self.header = HeaderState::Found(columns.map(Rc::new));
        if is_readable {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    /// Reports a missing header, at the row that looks most like one.
    fn report_missing_id(&mut self) -> ControlFlow<()> {
        let HeaderState::Searching { lines, rows } =
            std::mem::replace(&mut self.header, HeaderState::Found(None))
        else {
            return ControlFlow::Break(());
        };
        let options = self.rows.options;
        // In reverse, since `max_by_key` returns the last maximum.
        let rows = lines.into_iter().zip(rows).rev();
        let best = rows.max_by_key(|(_, row)| {
            let texts = row.iter().map(|cell| &*cell.text);
            known_names::<F>(options, texts)
        });
        if let Some((line, row)) = best
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
        self.header = HeaderState::Found(None);
        ControlFlow::Break(())
    }
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
    cells: &[TableCell<'_>],
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

/// Reports prices in a file whose currencies are not known.
fn refuse_prices<F: Fields>(columns: &Columns<'_>, faults: &mut RowFaults<'_>) {
    let fields = columns.meanings.iter().flat_map(ColumnMeaning::fields);
    let names = fields.map(|at| &F::table().fields[*at].column);
    for name in names.filter(|name| name.ends_with("_usd")) {
        let message =
            "the currency of a price in an .xls or .ods file is not known; save the file as .xlsx";
        faults.push(name, message);
    }
}

/// Reports values in columns without a name.
fn check_unnamed(
    columns: &Columns<'_>,
    cells: &[TableCell<'_>],
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
fn is_total(cells: &[TableCell<'_>]) -> bool {
    const WORDS: &str = "total totals grandtotal subtotal sum average mean median summe gesamt insgesamt mittelwert \
                         durchschnitt somme moyenne totale promedio suma";
    let mut filled = cells.iter().filter(|cell| !cell.is_blank());
    let is_number = |cell: &TableCell<'_>| {
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
            let cells: Vec<TableCell<'_>> =
                texts.iter().map(|text| TableCell::text(*text)).collect();
            assert_eq!(is_total(&cells), expected, "{texts:?}");
        }
    }
}
