//! Tables: a header, and rows of cells below it, wherever they come from.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::address::{address, is_address_column};
use super::cells::{Notation, as_flag, groups_are_likely, may_be_grouped, plain, unclear_groups};
use super::read_options::ReadOptions;
use super::report::{RowFaults, shortened};
use super::rows::{FileRows, RowEdit};
use super::statement::Statement;
use super::suggestions::did_you_mean;
use crate::model::fold::comparable;
use crate::model::fold::is_blank;
use crate::model::id::NotAnId;
use crate::model::value::ValueKind;
use crate::model::{Fields, Id};

/// How many rows may stand above the header.
const ROWS_ABOVE: usize = 20;

/// How many columns or fields that are passed over a warning names.
const NAMED: usize = 20;

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct TableCell<'a> {
    pub text: Cow<'a, str>,
    /// Whether the text stands for a cell that holds a date.
    pub is_date: bool,
    /// Whether the text stands for a cell that holds a number.
    pub is_number: bool,
    /// Why the cell cannot be read; the text shows it.
    pub fault: Option<Cow<'static, str>>,
    /// How a spreadsheet shows the number that the text stands for, where it shows it in other signs.
    pub shown: Option<String>,
    /// The unit that is shown with the number. `fault` does not count in a column that is named by it.
    pub unit: Option<String>,
    /// The target of the cell's hyperlink.
    pub link: Option<Cow<'a, str>>,
}

impl<'a> TableCell<'a> {
    pub fn text(text: impl Into<Cow<'a, str>>) -> TableCell<'a> {
        TableCell { text: text.into(), ..TableCell::default() }
    }

    fn is_blank(&self) -> bool {
        self.fault.is_none() && self.text.chars().all(is_blank)
    }
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnMeaning {
    Id,
    /// Whether the row is to be removed.
    Deleted,
    /// The field of this index in its table.
    Field(usize),
    /// Accepted without a meaning, or reported already.
    Ignored,
    /// Without a name, so that it must be empty.
    Unnamed,
}

/// Takes the rows of a table one after the other, its header among them.
pub(super) struct TableReader<'r, 'a, F> {
    rows: &'r mut FileRows<'a, F>,
    header: HeaderState,
    /// Whether each row has a cell for each column, empty ones included.
    is_rectangular: bool,
    /// Whether a column is not read, so that what rows lack may stand in it: one mistake must not look like many.
    is_incomplete: bool,
    /// The rows below the header that are not empty.
    read: usize,
    /// How all cells are written.
    notation: Notation,
    /// By column.
    separators: Vec<Separators>,
    /// Which fields hold numbers that may have a fraction, in the order of their table.
    holds_numbers: Vec<bool>,
}

/// The signs in the numbers of a column.
#[derive(Clone, Debug, Default)]
struct Separators {
    /// Whether a cell has a comma.
    has_commas: bool,
    /// The first cells whose point may group digits, and their lines: they do where other cells have commas for that.
    unclear: Vec<(u64, String)>,
}

/// The most unclear cells of a column that are reported.
const MAX_UNCLEAR: usize = 100;

enum HeaderState {
    /// Rows above it, or the header itself without the column `id`: their lines and cells.
    Sought(Vec<(u64, Vec<String>)>),
    /// `None` when rows cannot be read by it at all.
    Found(Option<Vec<ColumnMeaning>>),
}

impl<'r, 'a, F: Fields> TableReader<'r, 'a, F> {
    /// A table of which no row is read yet. In one that `is_rectangular` a row with fewer cells than the header is bad.
    pub fn new(rows: &'r mut FileRows<'a, F>, is_rectangular: bool) -> TableReader<'r, 'a, F> {
        let ReadOptions { decimal, dates, .. } = *rows.options;
        let notation = Notation { decimal, dates, is_sheet: !is_rectangular, ..Notation::default() };
        let holds_numbers = F::table().fields.iter().map(|field| field.kind == ValueKind::Number).collect();
        let (header, separators) = (HeaderState::Sought(Vec::new()), Vec::new());
        TableReader { rows, header, is_rectangular, is_incomplete: false, read: 0, notation, separators, holds_numbers }
    }

    /// The same table, in which semicolons separate the cells.
    pub fn with_semicolons(mut self) -> TableReader<'r, 'a, F> {
        self.notation.has_semicolons = true;
        self
    }

    /// Takes the row that begins on the line; breaks when no further one is to be read.
    pub fn take(&mut self, line: u64, cells: &[TableCell<'_>]) -> ControlFlow<()> {
        if cells.iter().all(TableCell::is_blank) {
            return ControlFlow::Continue(());
        }
        let bounds = &self.rows.options.bounds;
        match &mut self.header {
            HeaderState::Sought(above) => {
                let names = column_names::<F>();
                let options = self.rows.options;
                let meant = |cell: &TableCell<'_>| options.renamed(&cell.text).map(str::to_owned);
                let is_column = |column: &str, cell: &TableCell<'_>| match meant(cell) {
                    Some(meant) => meant == column,
                    None => is_same(column, &cell.text),
                };
                let known = cells.iter().filter(|cell| names.iter().any(|name| is_column(name, cell))).count();
                let has_id = cells.iter().any(|cell| is_column("id", cell));
                let identifies = options.matching.iter().any(|name| cells.iter().any(|cell| is_column(name, cell)));
                let filled = cells.iter().filter(|cell| !cell.is_blank()).count();
                if (has_id || identifies) && (known > 1 || filled == 1 || above.is_empty()) {
                    if let (Some((first, _)), Some((last, _))) = (above.first(), above.last()) {
                        let lines =
                            if first == last { format!("line {first}") } else { format!("lines {first} to {last}") };
                        let message = format!("what stands above the header, in {lines}, is passed over");
                        self.rows.warn(Some(line), message);
                    }
                    return self.begin(line, cells);
                }
                above.push((line, cells.iter().map(|cell| cell.text.chars().take(300).collect()).collect()));
                if above.len() > ROWS_ABOVE { self.begin_without_id() } else { ControlFlow::Continue(()) }
            }
            HeaderState::Found(None) => {
                self.read += 1;
                ControlFlow::Break(())
            }
            HeaderState::Found(Some(_)) if self.read == bounds.rows => {
                let message = bounds.rows_fault("rows");
                self.rows.add_fault(line, message);
                self.read += 1;
                ControlFlow::Break(())
            }
            HeaderState::Found(Some(columns)) => {
                self.read += 1;
                let (is_rectangular, notation) = (self.is_rectangular, self.notation);
                note_separators::<F>(&mut self.separators, &self.holds_numbers, &notation, line, columns, cells);
                self.rows.add(line, |faults| read_row(columns, cells, is_rectangular, &notation, faults));
                if self.is_incomplete
                    && let Some(row) = self.rows.rows.last_mut()
                {
                    row.is_bad = true;
                }
                ControlFlow::Continue(())
            }
        }
    }

    /// Whether the header was found.
    pub fn has_header(&self) -> bool {
        matches!(self.header, HeaderState::Found(_))
    }

    /// Counts a row that cannot be read, and reports it.
    pub fn take_fault(&mut self, line: u64, message: impl AsRef<str>) {
        self.read += 1;
        self.rows.add_fault(line, message);
    }

    /// Ends the table; returns how many rows there are below the header.
    pub fn end(mut self) -> usize {
        if let HeaderState::Sought(above) = &self.header
            && !above.is_empty()
        {
            self.read += above.len() - 1;
            let _ = self.begin_without_id();
        }
        self.report_unclear();
        self.read
    }

    /// Reports the numbers whose points may group digits, in columns where other cells have commas.
    fn report_unclear(&mut self) {
        let HeaderState::Found(Some(columns)) = &self.header else { return };
        if self.notation.decimal.is_some() {
            return;
        }
        for (column, separators) in columns.iter().zip(&self.separators) {
            let ColumnMeaning::Field(index) = *column else { continue };
            for (line, text) in separators.unclear.iter().filter(|_| separators.has_commas) {
                self.rows.add(*line, |faults| {
                    let message = format!("{}; other cells of the column have commas", unclear_groups(text));
                    faults.push_value(&F::table().fields[index].column, text, message);
                    None
                });
            }
        }
    }

    /// Reads the header.
    fn begin(&mut self, line: u64, cells: &[TableCell<'_>]) -> ControlFlow<()> {
        let options = self.rows.options;
        let ignored = self.rows.ignored;
        let (mut columns, mut is_incomplete) = (None, false);
        let mut passed_over = Vec::new();
        self.rows.add(line, |faults| {
            let mut header = HeaderReader { options, ignored, passed_over: &mut passed_over, faults };
            columns = header.read::<F>(cells);
            is_incomplete = faults.found();
            None
        });
        if !passed_over.is_empty() {
            self.rows.warn(Some(line), passed_over_message("column", &passed_over));
        }
        self.is_incomplete = is_incomplete;
        let is_readable = columns.is_some();
        self.header = HeaderState::Found(columns);
        if is_readable { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Reports the likeliest header of those rows that were read.
    fn begin_without_id(&mut self) -> ControlFlow<()> {
        let HeaderState::Sought(above) = std::mem::replace(&mut self.header, HeaderState::Found(None)) else {
            return ControlFlow::Break(());
        };
        let names = column_names::<F>();
        let known = |cells: &[String]| cells.iter().filter(|cell| names.iter().any(|name| is_same(name, cell))).count();
        // The first of the best: `max_by_key` returns the last.
        let best = above.iter().rev().max_by_key(|(_, cells)| known(cells));
        if let Some((line, cells)) = best {
            let cells: Vec<TableCell<'_>> = cells.iter().map(|text| TableCell::text(text.as_str())).collect();
            if self.begin(*line, &cells).is_continue() {
                self.rows.add_fault(*line, "is no header; the first row names the columns, `id` among them");
            }
            self.header = HeaderState::Found(None);
        }
        ControlFlow::Break(())
    }
}

/// The warning of columns or fields that are passed over.
pub(super) fn passed_over_message(what: &str, names: &[String]) -> String {
    let told: Vec<String> = names.iter().take(NAMED).map(|name| format!("`{}`", shortened(name))).collect();
    let more = if names.len() > NAMED { " and more" } else { "" };
    let plural = if names.len() == 1 { "" } else { "s" };
    format!(
        "the unknown {what}{plural} {}{more} {} passed over",
        told.join(", "),
        if names.len() == 1 { "is" } else { "are" }
    )
}

/// The names of columns that a table may have.
pub(super) fn column_names<F: Fields>() -> Vec<&'static str> {
    std::iter::once("id").chain(F::table().fields.iter().map(|field| &*field.column)).collect()
}

/// Whether the cell of a header names the column: case, blanks, `_`, `-` and `.` do not count.
pub(super) fn is_same(column: &str, cell: &str) -> bool {
    // Far longer than any column: not worth comparing.
    cell.len() <= 256 && (column == cell || comparable(column) == comparable(cell))
}

/// Reads the columns of a header.
struct HeaderReader<'h, 'f, 'p> {
    options: &'h ReadOptions,
    ignored: &'h [&'h str],
    passed_over: &'p mut Vec<String>,
    faults: &'h mut RowFaults<'f>,
}

impl HeaderReader<'_, '_, '_> {
    /// Reads the columns; `None` when rows cannot be read by them at all.
    fn read<F: Fields>(&mut self, header: &[TableCell<'_>]) -> Option<Vec<ColumnMeaning>> {
        let bounds = &self.options.bounds;
        let width = header.iter().rposition(|cell| !cell.is_blank()).map_or(0, |last| last + 1);
        let header = &header[..width];
        if header.len() > bounds.columns {
            self.faults.push_row(None, bounds.columns_fault("columns"));
            return None;
        }
        if let Some(fault) = header.iter().find_map(|cell| cell.fault.as_ref()) {
            self.faults.push_row(None, fault);
            return None;
        }
        let known = column_names::<F>();
        let comparable_known: Vec<String> = known.iter().map(|name| comparable(name)).collect();
        let mut columns: Vec<ColumnMeaning> = Vec::with_capacity(header.len());
        let mut seen = std::collections::HashSet::new();
        for cell in header {
            let name = cell.text.trim_matches(is_blank);
            let shown = shortened(name);
            let meant = self.options.renamed(name).filter(|to| known.contains(to) || *to == "deleted").unwrap_or(name);
            let exact = known.iter().position(|known| *known == meant);
            let found = exact.or_else(|| {
                let meant = if meant.len() <= 256 { comparable(meant) } else { return None };
                comparable_known.iter().position(|known| *known == meant)
            });
            let mut column = ColumnMeaning::Ignored;
            if name.is_empty() {
                column = ColumnMeaning::Unnamed;
            } else if name.len() > bounds.name_bytes {
                self.faults.push(&shown, bounds.name_fault(name.len()));
            } else if let Some(found) = found {
                column = found.checked_sub(1).map_or(ColumnMeaning::Id, ColumnMeaning::Field);
            } else if is_same("deleted", meant) {
                column = ColumnMeaning::Deleted;
            } else if self.ignored.iter().any(|ignored| is_same(ignored, name)) {
                // The service adds it; it has no meaning here.
            } else if self.options.ignore_unknown {
                self.passed_over.push(shown.clone());
            } else if !seen.contains(name) {
                let remedy = unknown_remedy(&shown, &known, self.faults);
                self.faults.push(&shown, format!("unknown column `{shown}`; {remedy}"));
            }
            let is_twice = match column {
                ColumnMeaning::Unnamed => false,
                ColumnMeaning::Ignored => !seen.insert(name) && !self.options.ignore_unknown,
                known => columns.contains(&known),
            };
            if is_twice {
                self.faults.push(&shown, format!("column `{shown}` stands twice; give each column once"));
            }
            columns.push(column);
        }
        let is_matched = |column: &ColumnMeaning| match column {
            ColumnMeaning::Field(index) => {
                self.options.matching.iter().any(|name| *name == F::table().fields[*index].column)
            }
            _ => false,
        };
        if columns.contains(&ColumnMeaning::Id) || columns.iter().any(is_matched) {
            return Some(columns);
        }
        if !self.options.matching.is_empty() {
            let names = self.options.matching.join("`, `");
            self.faults.push(&"id", format!("there is no column `id`, and none of `{names}` that --match names"));
            return None;
        }
        self.faults.push(&"id", "the column `id` is missing; the first row names the columns, `id` among them; a file without ids needs --match");
        None
    }
}

/// What to do about an unknown column or field.
pub(super) fn unknown_remedy(name: &str, known: &[&str], faults: &RowFaults<'_>) -> String {
    let remedy = did_you_mean(name, known, faults);
    match remedy.strip_prefix("did you mean `").and_then(|rest| rest.strip_suffix("`?")) {
        Some(near) => format!("did you mean `{near}`? Then rename it, or give --map '{name}={near}'"),
        None => format!(
            "{remedy}; give --map 'NAME=FIELD' or --map-file where one has another name, or --ignore-unknown to pass over the rest"
        ),
    }
}

/// Whether a column holds prices.
fn is_price(column: &str) -> bool {
    column.ends_with("_usd")
}

/// Notes the commas and points in the numbers of a row.
fn note_separators<F: Fields>(
    separators: &mut Vec<Separators>,
    holds_numbers: &[bool],
    notation: &Notation,
    line: u64,
    columns: &[ColumnMeaning],
    cells: &[TableCell<'_>],
) {
    separators.resize(columns.len(), Separators::default());
    for ((column, cell), separators) in columns.iter().zip(cells).zip(separators) {
        let ColumnMeaning::Field(index) = *column else { continue };
        if cell.is_number || !holds_numbers[index] {
            continue;
        }
        separators.has_commas |= cell.text.contains(',');
        let notation = Notation { is_price: is_price(&F::table().fields[index].column), ..*notation };
        // Those are refused by themselves.
        if groups_are_likely(cell.text.trim_matches(is_blank), &notation) {
            continue;
        }
        if cell.text.contains('.')
            && may_be_grouped(cell.text.trim_matches(is_blank))
            && separators.unclear.len() < MAX_UNCLEAR
        {
            separators.unclear.push((line, cell.text.to_string()));
        }
    }
}

fn read_row<F: Fields>(
    columns: &[ColumnMeaning],
    cells: &[TableCell<'_>],
    is_rectangular: bool,
    notation: &Notation,
    faults: &mut RowFaults<'_>,
) -> Option<(Option<Id>, RowEdit<F>)> {
    let filled = cells.iter().rposition(|cell| !cell.is_blank()).map_or(0, |last| last + 1);
    if is_rectangular && (cells.len() < columns.len() || filled > columns.len()) {
        let (expected, actual) = (columns.len(), cells.len());
        faults.push_row(
            None,
            format!(
                "has {actual} cells, but the header has {expected}; put cells that contain commas or line ends in quotes"
            ),
        );
        return None;
    }
    for (at, cell) in cells.iter().enumerate() {
        if columns.get(at).is_none_or(|column| *column == ColumnMeaning::Unnamed) && !cell.is_blank() {
            let message =
                format!("has a value in column {}, which has no name; name it, or clear the cell", letters(at));
            faults.push_row(Some(&cell.text), message);
        }
    }
    let none = TableCell::default();
    let cell_of = |wanted: ColumnMeaning| {
        columns.iter().position(|column| *column == wanted).map(|at| cells.get(at).unwrap_or(&none))
    };
    let is_deleted = cell_of(ColumnMeaning::Deleted).is_some_and(|cell| read_deleted(cell, faults));
    // Without a column of ids the fields tell which record is meant.
    let id = cell_of(ColumnMeaning::Id).map(|cell| read_id(cell, faults));
    if is_deleted {
        return Some((id.unwrap_or_default(), RowEdit::Remove)).filter(|_| id != Some(None));
    }
    let mut statement = Box::new(Statement::new());
    let mut reader = statement.reader(faults);
    for (at, column) in columns.iter().enumerate() {
        let ColumnMeaning::Field(index) = *column else { continue };
        let (name, cell) = (&F::table().fields[index].column, cells.get(at).unwrap_or(&none));
        let has_unit = cell.unit.as_ref().is_some_and(|unit| names_unit(name, unit));
        if let Some(fault) = cell.fault.as_ref().filter(|_| !has_unit) {
            reader.faults.push_value(name, &cell.text, fault);
        } else if cell.is_date && reader.holds_text(index) {
            let message =
                "is a date in the spreadsheet, but the column holds texts; format the cell as text, and write it anew";
            reader.faults.push_value(name, &cell.text, message);
        } else if let Some(shown) = cell.shown.as_ref().filter(|_| reader.holds_text(index)) {
            let message = format!("is a number that is shown as `{shown}`; format the cell as text, and write it anew");
            reader.faults.push_value(name, &cell.text, message);
        } else if let Some(link) = cell.link.as_ref().filter(|_| is_address_column(name) && !cell.is_blank()) {
            match address(&cell.text, link) {
                Ok(address) => reader.read_csv(index, &address, notation, name),
                Err(message) => reader.faults.push_value(name, &cell.text, message),
            }
        } else {
            let notation = Notation { is_price: is_price(name), is_number: cell.is_number, ..*notation };
            reader.read_csv(index, &cell.text, &notation, name);
        }
    }
    Some((id.unwrap_or_default(), RowEdit::Set(statement))).filter(|_| id != Some(None))
}

/// Whether a word of the column's name is the unit, such as `months` of `publishing_embargo_months`.
fn names_unit(column: &str, unit: &str) -> bool {
    let singular = |word: &str| word.strip_suffix('s').unwrap_or(word).to_lowercase();
    column.split('_').any(|word| singular(word) == singular(unit))
}

fn read_id(cell: &TableCell<'_>, faults: &mut RowFaults<'_>) -> Option<Id> {
    if let Some(fault) = &cell.fault {
        faults.push_value(&"id", &cell.text, fault);
        return None;
    }
    match plain(ValueKind::Integer, &cell.text, &Notation::default()) {
        Ok(text) if text.starts_with('0') && text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            let digits = text.trim_start_matches('0');
            faults.push_value(&"id", &cell.text, format!("begins with zeros, which ids do not have; write `{digits}`"));
        }
        Ok(text) if text.is_empty() => faults.push(&"id", "is missing; every row names its id"),
        Ok(text) => match text.parse() {
            Ok(id) => return Some(id),
            Err(error @ NotAnId) => faults.push_value(&"id", &cell.text, error.to_string()),
        },
        Err(message) => faults.push_value(&"id", &cell.text, message),
    }
    None
}

/// Whether the cell of the column `deleted` asks to remove the row.
fn read_deleted(cell: &TableCell<'_>, faults: &mut RowFaults<'_>) -> bool {
    let is_empty = cell.text.chars().all(is_blank);
    match as_flag(&cell.text) {
        _ if cell.fault.is_some() => {}
        Some(is_deleted) => return is_deleted,
        None if is_empty => return false,
        None => {}
    }
    faults.push_value(&"deleted", &cell.text, "write TRUE to remove the row, or leave the cell empty");
    false
}

/// The name of a column in spreadsheets: `A` for the first.
pub(super) fn letters(at: usize) -> String {
    let letter = char::from(b'A' + u8::try_from(at % 26).unwrap_or(0));
    let before = if at < 26 { String::new() } else { letters(at / 26 - 1) };
    format!("{before}{letter}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConferenceFields, JournalFields, OrganizationFields, TagFields};

    #[test]
    fn columns_have_the_letters_of_spreadsheets() {
        for (at, expected) in [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ"), (702, "AAA")] {
            assert_eq!(letters(at), expected);
        }
    }

    #[test]
    fn no_two_columns_look_the_same() {
        fn check<F: Fields>() {
            let mut names: Vec<String> = column_names::<F>().iter().map(|name| comparable(name)).collect();
            names.extend(["deleted".to_owned(), "updatedat".to_owned()]);
            let count = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), count);
        }
        check::<ConferenceFields>();
        check::<JournalFields>();
        check::<OrganizationFields>();
        check::<TagFields>();
    }
}
