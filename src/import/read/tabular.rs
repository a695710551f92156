//! Tables: a header and rows of cells, from CSV or from a workbook.

use std::ops::ControlFlow;

use crate::import::read::cells::{Notation, TableCell};
use crate::import::read::columns::{ColumnMeaning, Columns, identify_rows};
use crate::import::read::table_row::read_row;
use crate::import::rows::FileRows;
use crate::model::Fields;
use crate::model::fold::{comparable, is_blank};
use crate::model::message::{Message, message};

/// The maximum number of rows above the header.
pub(in crate::import) const MAX_ROWS_ABOVE: usize = 20;

/// Reads the rows of a table, including the header.
pub(in crate::import) struct TableReader<'r, 'a, F> {
    rows: &'r mut FileRows<'a, F>,
    header: HeaderState<'a>,
    /// Whether each row must have a cell for each column, even an empty one.
    is_rectangular: bool,
    /// Whether a column cannot be read. Then missing values in rows are not reported, since that column may contain
    /// them.
    is_incomplete: bool,
    /// The number of rows after the header that are not empty, with those that cannot be read or are left out.
    row_count: usize,
    /// The line of the header.
    header_line: u64,
    /// The line at which the last row ends.
    last_line: u64,
    /// Whether the last row is below an empty row, and has few cells.
    is_below: bool,
    /// Whether a row has several values.
    has_full_row: bool,
    /// The notation of all cells.
    notation: Notation,
}

enum HeaderState<'a> {
    /// The lines and cells of the rows so far: text above the header, or a header that identifies no rows.
    Searching(Vec<(u64, Vec<String>)>),
    /// The columns, or `None` if the header is unusable.
    Found(Option<Columns<'a>>),
}

impl<'r, 'a, F: Fields> TableReader<'r, 'a, F> {
    /// Creates a reader. `notation` is that of all cells. If `is_rectangular`, a row with fewer cells than the header
    /// is bad.
    pub fn new(
        rows: &'r mut FileRows<'a, F>,
        notation: Notation,
        is_rectangular: bool,
    ) -> TableReader<'r, 'a, F> {
        TableReader {
            rows,
            header: HeaderState::Searching(Vec::new()),
            is_rectangular,
            is_incomplete: false,
            row_count: 0,
            header_line: 0,
            last_line: 0,
            is_below: false,
            has_full_row: false,
            notation,
        }
    }

    /// Adds the row that starts at `line`. `fault` says why it cannot be read. Returns `Break` if no more rows should
    /// be read.
    pub fn add_row(
        &mut self,
        line: u64,
        cells: &[TableCell<'_>],
        fault: Option<Message>,
    ) -> ControlFlow<()> {
        let filled = cells.iter().filter(|cell| !cell.is_blank()).count();
        if filled == 0 {
            return ControlFlow::Continue(());
        }
        let options = self.rows.options;
        if let Some(sample) = &options.sample {
            return sample.add_row(self.notation, cells);
        }
        if options.header_rows == Some(0) && !self.has_header() {
            let names = vec![TableCell::default(); cells.len()];
            if self.read_header(line, &names).is_break() {
                return ControlFlow::Break(());
            }
        }
        let follows_gap = line > self.last_line + 1;
        let line_ends_of = |cell: &TableCell<'_>| {
            cell.text.matches(['\r', '\n']).count() - cell.text.matches("\r\n").count()
        };
        let line_ends = if self.is_rectangular {
            cells.iter().map(line_ends_of).sum()
        } else {
            0
        };
        self.last_line = line + u64::try_from(line_ends).unwrap_or_default();
        let columns = match &self.header {
            HeaderState::Searching(_) => return self.search_header(line, cells),
            HeaderState::Found(Some(columns)) if self.row_count < options.bounds.rows => columns,
            // No row follows an unusable header.
            HeaderState::Found(_) => {
                self.rows.add_fault(line, options.bounds.rows_fault("rows"));
                return ControlFlow::Break(());
            }
        };
        let (named, has_id) = (columns.named(), columns.has_id(cells));
        let has_one_value = filled == 1 && named > 1 && !has_id;
        // Below an empty row, notes may have two cells.
        let is_below = self.row_count > 0 && (follows_gap || self.is_below);
        self.is_below = is_below && filled * 3 <= named.max(3) && !has_id;
        let skipped = match () {
            () if self.row_count == 0 => None,
            () if self.is_below && has_one_value && !options.replace => {
                Some("is a note below the table, so it is skipped")
            }
            () if named > 1 && !has_id && is_total(cells) => Some("is a total, so it is skipped"),
            () if columns.are_names(cells) => Some("repeats the header, so it is skipped"),
            () => None,
        };
        if let Some(message) = skipped {
            self.rows.warn(Some(line), message.into());
            return ControlFlow::Continue(());
        }
        self.row_count += 1;
        if !columns.pass_filters(cells) {
            options.effects.borrow_mut().left_out += 1;
            return ControlFlow::Continue(());
        }
        if let Some(fault) = fault {
            self.rows.add_fault(line, fault);
            return ControlFlow::Continue(());
        }
        let (is_rectangular, notation) = (self.is_rectangular, self.notation);
        self.rows.add(line, |faults| {
            read_row(columns, cells, is_rectangular, &notation, options, faults)
        });
        let may_be_note =
            (filled == 1 && named > 2 && self.has_full_row || self.is_below) && !has_id;
        self.has_full_row |= filled > 1;
        if let Some(row) = self
            .rows
            .rows
            .last_mut()
            .filter(|row| row.position.line == line)
        {
            row.is_bad |= self.is_incomplete;
            row.may_be_note = may_be_note;
        }
        ControlFlow::Continue(())
    }

    /// Returns true if the header was found.
    pub fn has_header(&self) -> bool {
        matches!(self.header, HeaderState::Found(_))
    }

    /// Counts and reports a row that cannot be read.
    pub fn add_fault(&mut self, line: u64, message: impl Into<Message>) {
        self.row_count += 1;
        self.rows.add_fault(line, message);
    }

    /// Ends the table. Returns the number of rows after the header.
    pub fn finish(mut self) -> usize {
        if let HeaderState::Searching(above) = &self.header
            && !above.is_empty()
        {
            self.row_count += above.len() - 1;
            let _ = self.report_missing_id();
        }
        self.rows.warn_of_ignored(Some(self.header_line), "column");
        self.row_count
    }

    /// Adds a row, while no header was found.
    fn search_header(&mut self, line: u64, cells: &[TableCell<'_>]) -> ControlFlow<()> {
        let HeaderState::Searching(above) = &mut self.header else {
            return ControlFlow::Continue(());
        };
        let options = self.rows.options;
        above.push((
            line,
            cells
                .iter()
                .map(|cell| cell.text.chars().take(300).collect())
                .collect(),
        ));
        let Some(title_rows) = above.len().checked_sub(options.header_rows.unwrap_or(1)) else {
            return ControlFlow::Continue(());
        };
        let names = joined_header(
            above[title_rows..]
                .iter()
                .map(|(_, names)| names.as_slice()),
        );
        let (sets, table) = (options.match_sets(F::STEM), F::table());
        let meanings: Vec<ColumnMeaning> = (names.iter().enumerate())
            .filter_map(|(at, name)| ColumnMeaning::find(table, options, name, 1, Some(at)))
            .collect();
        let filled = names.iter().filter(|name| !name.is_empty()).count();
        // A column that is named by its letter is in each row, so it shows no header.
        let is_named = |(at, name): (usize, &String)| {
            ColumnMeaning::find(table, options, name, 1, None).is_some() && at < names.len()
        };
        let is_header = identify_rows(table, &sets, meanings.iter())
            && (meanings.len() > 1 || filled != 2 || title_rows == 0)
            && (filled > 1 && options.header_rows.is_some()
                || names.iter().enumerate().any(is_named));
        if !is_header {
            return if above.len() > MAX_ROWS_ABOVE {
                self.report_missing_id()
            } else {
                ControlFlow::Continue(())
            };
        }
        if let (Some((first, _)), Some((last, _))) =
            (above[..title_rows].first(), above[..title_rows].last())
        {
            let lines = if first == last {
                format!("line {first}")
            } else {
                format!("lines {first} to {last}")
            };
            self.rows.warn(
                Some(line),
                message!("the rows above the header ({lines}) are ignored"),
            );
        }
        match options.header_rows {
            None | Some(1) => self.read_header(line, cells),
            _ => {
                let cells: Vec<TableCell<'_>> = names.into_iter().map(TableCell::text).collect();
                self.read_header(line, &cells)
            }
        }
    }

    /// Reads the header row.
    fn read_header(&mut self, line: u64, cells: &[TableCell<'_>]) -> ControlFlow<()> {
        let options = self.rows.options;
        let (mut columns, mut is_incomplete) = (None, false);
        self.rows.add(line, |faults| {
            columns = Columns::read(
                cells,
                F::table(),
                options,
                &options.match_sets(F::STEM),
                false,
                faults,
            );
            is_incomplete = faults.has_fault();
            None
        });
        self.header_line = line;
        self.is_incomplete = is_incomplete;
        let is_readable = columns.is_some();
        self.header = HeaderState::Found(columns);
        if is_readable {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    /// Reports a missing header, at the row that looks most like one.
    fn report_missing_id(&mut self) -> ControlFlow<()> {
        let HeaderState::Searching(above) =
            std::mem::replace(&mut self.header, HeaderState::Found(None))
        else {
            return ControlFlow::Break(());
        };
        let options = self.rows.options;
        let known = |cells: &[String]| {
            cells
                .iter()
                .filter_map(|cell| ColumnMeaning::find(F::table(), options, cell, 1, None))
                .count()
        };
        // In reverse, since `max_by_key` returns the last maximum.
        let best = above.iter().rev().max_by_key(|(_, cells)| known(cells));
        if let Some((line, cells)) = best {
            let cells: Vec<TableCell<'_>> = cells
                .iter()
                .map(|text| TableCell::text(text.as_str()))
                .collect();
            if self.read_header(*line, &cells).is_continue() {
                let names_letters = options.columns.iter();
                let message = match names_letters
                    .filter_map(|given| given.value.column.index)
                    .next()
                {
                    Some(_) => {
                        "no row has the name of a column, and letters such as `=A` fit any row; write in a recipe whether the \
                         file has a header: `header_rows = 0`, or `header_rows = 1`"
                    }
                    None => "is not a header; the first row must name the columns, including `id`",
                };
                self.rows.add_fault(*line, message);
            }
            self.header = HeaderState::Found(None);
        }
        ControlFlow::Break(())
    }
}

/// Joins the rows of a header by blanks. A blank cell has the text at its left, as in merged cells, if both have a text
/// below.
pub(in crate::import) fn joined_header<'t>(
    rows: impl DoubleEndedIterator<Item = &'t [String]>,
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in rows.rev() {
        let mut group = String::new();
        names.resize(names.len().max(row.len()), String::new());
        for (at, below) in names.iter_mut().enumerate() {
            let text = row.get(at).map_or("", |text| text.trim_matches(is_blank));
            if !text.is_empty() {
                group = if below.is_empty() {
                    String::new()
                } else {
                    text.to_owned()
                };
            }
            let own = if text.is_empty() && !below.is_empty() {
                group.as_str()
            } else {
                text
            };
            let parts: Vec<&str> = [own, below.as_str()]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect();
            *below = parts.join(" ");
        }
    }
    names
}

/// Returns true if a row contains totals: a word for it, and otherwise only numbers.
fn is_total(cells: &[TableCell<'_>]) -> bool {
    #[rustfmt::skip]
    const WORDS: &[&str] = &[
        "total", "totals", "grandtotal", "subtotal", "sum", "average", "mean", "median", "summe", "gesamt", "insgesamt", "mittelwert",
        "durchschnitt", "somme", "moyenne", "totale", "promedio", "suma",
    ];
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
    word.is_some_and(|word| WORDS.contains(&word.as_str())) && filled.all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_header_are_joined() {
        let cases: [(&[&[&str]], &[&str]); 5] = [
            (&[&["Title", "ISSN"]], &["Title", "ISSN"]),
            (
                &[&["Title", "List price", ""], &["", "USD", "EUR"]],
                &["Title", "List price USD", "List price EUR"],
            ),
            (
                &[&["Title", "", "Price"], &["", "ISSN", "USD"]],
                &["Title", "ISSN", "Price USD"],
            ),
            (
                &[&["Title", "ISSN", "", "Price"], &["", "print", "online"]],
                &["Title", "ISSN print", "ISSN online", "Price"],
            ),
            (&[&["A", ""], &["B", "C"], &["D", "E"]], &["A B D", "A C E"]),
        ];
        for (rows, expected) in cases {
            let rows: Vec<Vec<String>> = rows
                .iter()
                .map(|row| row.iter().map(|text| (*text).to_owned()).collect())
                .collect();
            assert_eq!(
                joined_header(rows.iter().map(Vec::as_slice)),
                expected,
                "{rows:?}"
            );
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
