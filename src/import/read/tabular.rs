//! Tables: a header and rows of cells, from CSV or from a workbook.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::ControlFlow;

use crate::import::read::address::address;
use crate::import::read::cells::{Notation, normalize, parse_flag};
use crate::import::read::options::ReadOptions;
use crate::import::read::statement::Statement;
use crate::import::report::faults::{RowFaults, shortened};
use crate::import::rows::{ADDED_TO_RECORDS, FileRows, RowEdit, RowId};
use crate::model::fold::comparable;
use crate::model::fold::is_blank;
use crate::model::id::NotAnId;
use crate::model::message::{Message, message};
use crate::model::value::ValueKind;
use crate::model::{Fields, Id};

/// The maximum number of rows above the header.
const MAX_ROWS_ABOVE: usize = 20;

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub(in crate::import) struct TableCell<'a> {
    pub text: Cow<'a, str>,
    /// Whether the cell is a date cell of a workbook.
    pub is_date: bool,
    /// Whether the cell is a number cell of a workbook.
    pub is_number: bool,
    /// The reason why the cell cannot be read. `text` is the content for the report.
    pub fault: Option<Message>,
    /// The number format of a cell that shows its number in other digits or signs than `text`.
    pub format: Option<String>,
    /// The unit that the spreadsheet displays. If the column name contains the unit, `fault` is ignored.
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

/// The meaning of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) enum ColumnMeaning {
    Id,
    /// Whether to remove the row.
    Deleted,
    /// The field with this index in its table.
    Field(usize),
    /// An accepted column without a meaning, or one that is already reported.
    Ignored,
    /// A column without a name. Its cells must be empty.
    Unnamed,
}

/// Reads the rows of a table, including the header.
pub(in crate::import) struct TableReader<'r, 'a, F> {
    rows: &'r mut FileRows<'a, F>,
    header: HeaderState,
    /// Whether each row must have a cell for each column, even an empty one.
    is_rectangular: bool,
    /// Whether a column cannot be read. Then missing values in rows are not reported, since that column may contain
    /// them.
    is_incomplete: bool,
    /// The number of rows after the header that are not empty.
    row_count: usize,
    /// The notation of all cells.
    notation: Notation,
}

enum HeaderState {
    /// The lines and cells of the rows so far: text above the header, or a header without the column `id`.
    Searching(Vec<(u64, Vec<String>)>),
    /// The columns, or `None` if the header is unusable.
    Found(Option<Vec<ColumnMeaning>>),
}

impl<'r, 'a, F: Fields> TableReader<'r, 'a, F> {
    /// Creates a reader. If `is_rectangular`, a row with fewer cells than the header is bad.
    pub fn new(rows: &'r mut FileRows<'a, F>, is_rectangular: bool) -> TableReader<'r, 'a, F> {
        let ReadOptions { decimal, dates, .. } = *rows.options;
        let notation = Notation { decimal, dates, is_sheet: !is_rectangular, ..Notation::default() };
        let header = HeaderState::Searching(Vec::new());
        TableReader { rows, header, is_rectangular, is_incomplete: false, row_count: 0, notation }
    }

    /// Marks the table as separated by semicolons.
    pub fn with_semicolons(mut self) -> TableReader<'r, 'a, F> {
        self.notation.has_semicolons = true;
        self
    }

    /// Adds the row that starts at `line`. Returns `Break` if no more rows should be read.
    pub fn add_row(&mut self, line: u64, cells: &[TableCell<'_>]) -> ControlFlow<()> {
        if cells.iter().all(TableCell::is_blank) {
            return ControlFlow::Continue(());
        }
        let bounds = &self.rows.options.bounds;
        match &mut self.header {
            HeaderState::Searching(above) => {
                let options = self.rows.options;
                let meanings = cells.iter().map(|cell| meaning::<F>(&cell.text, options));
                let meanings: Vec<ColumnMeaning> = meanings.flatten().collect();
                let filled = cells.iter().filter(|cell| !cell.is_blank()).count();
                if identifies::<F>(&meanings, options) && (meanings.len() > 1 || filled == 1 || above.is_empty()) {
                    if let (Some((first, _)), Some((last, _))) = (above.first(), above.last()) {
                        let lines =
                            if first == last { format!("line {first}") } else { format!("lines {first} to {last}") };
                        let message = message!("the rows above the header ({lines}) are ignored");
                        self.rows.warn(Some(line), message);
                    }
                    return self.read_header(line, cells);
                }
                above.push((line, cells.iter().map(|cell| cell.text.chars().take(300).collect()).collect()));
                if above.len() > MAX_ROWS_ABOVE { self.report_missing_id() } else { ControlFlow::Continue(()) }
            }
            HeaderState::Found(None) => {
                self.row_count += 1;
                ControlFlow::Break(())
            }
            HeaderState::Found(Some(_)) if self.row_count == bounds.rows => {
                let message = bounds.rows_fault("rows");
                self.rows.add_fault(line, message);
                self.row_count += 1;
                ControlFlow::Break(())
            }
            HeaderState::Found(Some(columns)) => {
                self.row_count += 1;
                let (is_rectangular, notation) = (self.is_rectangular, self.notation);
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
        self.row_count
    }

    /// Reads the header row.
    fn read_header(&mut self, line: u64, cells: &[TableCell<'_>]) -> ControlFlow<()> {
        let options = self.rows.options;
        let (mut columns, mut is_incomplete) = (None, false);
        self.rows.add(line, |faults| {
            columns = read_header::<F>(cells, options, faults);
            is_incomplete = faults.has_fault();
            None
        });
        self.rows.warn_of_ignored(Some(line), "column");
        self.is_incomplete = is_incomplete;
        let is_readable = columns.is_some();
        self.header = HeaderState::Found(columns);
        if is_readable { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Reports a missing header, at the row that looks most like one.
    fn report_missing_id(&mut self) -> ControlFlow<()> {
        let HeaderState::Searching(above) = std::mem::replace(&mut self.header, HeaderState::Found(None)) else {
            return ControlFlow::Break(());
        };
        let options = self.rows.options;
        let known = |cells: &[String]| cells.iter().filter_map(|cell| meaning::<F>(cell, options)).count();
        // In reverse, since `max_by_key` returns the last maximum.
        let best = above.iter().rev().max_by_key(|(_, cells)| known(cells));
        if let Some((line, cells)) = best {
            let cells: Vec<TableCell<'_>> = cells.iter().map(|text| TableCell::text(text.as_str())).collect();
            if self.read_header(*line, &cells).is_continue() {
                self.rows.add_fault(*line, "is not a header; the first row must name the columns, including `id`");
            }
            self.header = HeaderState::Found(None);
        }
        ControlFlow::Break(())
    }
}

/// Returns the meaning of a column name, after `--map`; `None` for an unknown one. Case, blanks, `_`, `-` and `.` are
/// ignored.
pub(in crate::import) fn meaning<F: Fields>(name: &str, options: &ReadOptions) -> Option<ColumnMeaning> {
    let meaning = |name: &str| {
        // No column name is that long.
        let name = if name.len() <= 256 { comparable(name) } else { return None };
        let is = |column: &str| comparable(column) == name;
        let field = || F::table().fields.iter().position(|field| is(&field.column)).map(ColumnMeaning::Field);
        match () {
            () if is("id") => Some(ColumnMeaning::Id),
            () if is("deleted") => Some(ColumnMeaning::Deleted),
            () if is(ADDED_TO_RECORDS) => Some(ColumnMeaning::Ignored),
            () => field(),
        }
    };
    options.renamed(name).and_then(meaning).or_else(|| meaning(name))
}

/// Returns true if the columns identify records: one is `id`, or a column of `--match`.
fn identifies<F: Fields>(columns: &[ColumnMeaning], options: &ReadOptions) -> bool {
    columns.iter().any(|column| match column {
        ColumnMeaning::Id => true,
        ColumnMeaning::Field(index) => options.matched_columns().any(|name| name == F::table().fields[*index].column),
        _ => false,
    })
}

/// Reads the columns of a header. Returns `None` if it is unusable.
fn read_header<F: Fields>(
    header: &[TableCell<'_>],
    options: &ReadOptions,
    faults: &mut RowFaults<'_>,
) -> Option<Vec<ColumnMeaning>> {
    let width = header.iter().rposition(|cell| !cell.is_blank()).map_or(0, |last| last + 1);
    let header = &header[..width];
    if header.len() > options.bounds.columns {
        faults.push_row(None, options.bounds.columns_fault());
        return None;
    }
    if let Some(fault) = header.iter().find_map(|cell| cell.fault.as_ref()) {
        faults.push_row(None, fault.clone());
        return None;
    }
    let known: Vec<&str> = std::iter::once("id").chain(F::table().fields.iter().map(|field| &*field.column)).collect();
    let mut columns: Vec<ColumnMeaning> = Vec::with_capacity(header.len());
    let mut others = HashSet::new();
    for cell in header {
        let name = cell.text.trim_matches(is_blank);
        let meaning = meaning::<F>(name, options);
        let column = if name.is_empty() { ColumnMeaning::Unnamed } else { meaning.unwrap_or(ColumnMeaning::Ignored) };
        let is_twice = match column {
            ColumnMeaning::Unnamed => false,
            ColumnMeaning::Ignored => !others.insert(name) && !options.ignore_unknown,
            known => columns.contains(&known),
        };
        if is_twice {
            let shown = shortened(name);
            faults.push(&shown, message!("column `{shown}` appears twice; give each column once"));
        } else if meaning.is_none() && column == ColumnMeaning::Ignored {
            faults.push_unknown("column", "", name, &known);
        }
        columns.push(column);
    }
    if identifies::<F>(&columns, options) {
        return Some(columns);
    }
    if options.matching.is_empty() {
        faults.push(
            &"id",
            "the column `id` is missing; the first row must name the columns, including `id`; a file without ids needs \
             --match",
        );
    } else {
        let names = options.matching.join("`, `");
        faults.push(&"id", message!("there is no column `id`, and none of the columns of --match (`{names}`)"));
    }
    None
}

/// Returns true if a column contains prices.
fn is_price(column: &str) -> bool {
    column.ends_with("_usd")
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
            message!(
                "has {actual} cells, but the header has {expected}; put cells that contain commas or line ends in quotes"
            ),
        );
        return None;
    }
    for (at, cell) in cells.iter().enumerate() {
        if columns.get(at).is_none_or(|column| *column == ColumnMeaning::Unnamed) && !cell.is_blank() {
            let message =
                message!("has a value in column {}, which has no name; name it, or clear the cell", column_letters(at));
            faults.push_row(Some(&cell.text), message);
        }
    }
    let none = TableCell::default();
    let cell_of = |wanted: ColumnMeaning| {
        columns.iter().position(|column| *column == wanted).map(|at| cells.get(at).unwrap_or(&none))
    };
    let is_deleted = cell_of(ColumnMeaning::Deleted).is_some_and(|cell| read_deleted(cell, faults));
    // Without a column `id`, other fields identify the record.
    let id = cell_of(ColumnMeaning::Id).map_or(RowId::Absent, |cell| read_id(cell, faults).into());
    if is_deleted {
        return id.with(RowEdit::Remove);
    }
    let mut statement = Box::new(Statement::new());
    let mut reader = statement.reader(faults);
    for (at, column) in columns.iter().enumerate() {
        let ColumnMeaning::Field(index) = *column else { continue };
        let (name, cell) = (&F::table().fields[index].column, cells.get(at).unwrap_or(&none));
        let has_unit = cell.unit.as_ref().is_some_and(|unit| names_unit(name, unit));
        if let Some(fault) = cell.fault.as_ref().filter(|_| !has_unit) {
            reader.faults.push_value(name, &cell.text, fault.clone());
        } else if cell.is_date && reader.holds_text(index) {
            let message = "is a date in the spreadsheet, but the column contains text; format the cell as text, and enter it \
                           again";
            reader.faults.push_value(name, &cell.text, message);
        } else if let Some(format) = cell.format.as_ref().filter(|_| reader.holds_text(index)) {
            let message =
                message!("is a number in the format `{format}`; format the cell as text, and enter what it shows");
            reader.faults.push_value(name, &cell.text, message);
        } else if let Some(link) = cell.link.as_ref().filter(|_| name == "url" && !cell.is_blank()) {
            match address(&cell.text, link) {
                Ok(address) => reader.read_csv(index, &address, notation, name),
                Err(message) => reader.faults.push_value(name, &cell.text, message),
            }
        } else {
            let notation = Notation { is_price: is_price(name), is_number: cell.is_number, ..*notation };
            reader.read_csv(index, &cell.text, &notation, name);
        }
    }
    id.with(RowEdit::Set(statement))
}

/// Returns true if a word of the column name is the unit, such as `months` in `publishing_embargo_months`.
fn names_unit(column: &str, unit: &str) -> bool {
    let singular = |word: &str| word.strip_suffix('s').unwrap_or(word).to_lowercase();
    column.split('_').any(|word| singular(word) == singular(unit))
}

fn read_id(cell: &TableCell<'_>, faults: &mut RowFaults<'_>) -> Option<Id> {
    if let Some(fault) = &cell.fault {
        faults.push_value(&"id", &cell.text, fault.clone());
        return None;
    }
    let notation = Notation { is_number: cell.is_number, ..Notation::default() };
    match normalize(ValueKind::Integer, &cell.text, &notation) {
        Ok(text) if text.starts_with('0') && text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            let digits = text.trim_start_matches('0');
            faults.push_value(
                &"id",
                &cell.text,
                message!("begins with zeros, which ids do not have; write `{digits}`"),
            );
        }
        Ok(text) if text.is_empty() => faults.push(&"id", "is missing; give each row an id"),
        Ok(text) => match text.parse() {
            Ok(id) => return Some(id),
            Err(error @ NotAnId) => faults.push_value(&"id", &cell.text, message!("{error}")),
        },
        Err(message) => faults.push_value(&"id", &cell.text, message),
    }
    None
}

/// Parses the cell of the column `deleted`.
fn read_deleted(cell: &TableCell<'_>, faults: &mut RowFaults<'_>) -> bool {
    match parse_flag(&cell.text) {
        Some(is_deleted) if cell.fault.is_none() => is_deleted,
        None if cell.is_blank() => false,
        _ => {
            faults.push_value(&"deleted", &cell.text, "write TRUE to remove the row, or leave the cell empty");
            false
        }
    }
}

/// Returns the spreadsheet name of the column with this index: `A` for 0.
pub(in crate::import) fn column_letters(at: usize) -> String {
    let letter = char::from(b'A' + u8::try_from(at % 26).unwrap_or(0));
    let before = if at < 26 { String::new() } else { column_letters(at / 26 - 1) };
    format!("{before}{letter}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConferenceFields, JournalFields, OrganizationFields, TagFields};

    #[test]
    fn columns_have_the_letters_of_spreadsheets() {
        for (at, expected) in [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ"), (702, "AAA")] {
            assert_eq!(column_letters(at), expected);
        }
    }

    #[test]
    fn no_two_columns_look_the_same() {
        fn check<F: Fields>() {
            let mut names: Vec<String> = F::table().fields.iter().map(|field| comparable(&field.column)).collect();
            names.extend(["id", "deleted", "updatedat"].map(str::to_owned));
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
