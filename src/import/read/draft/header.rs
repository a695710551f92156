//! Finds the header of a table, and its columns.

use std::ops::Range;

use super::content::{DraftColumn, is_data};
use super::names::{known_name, year_of};
use crate::import::read::column_name::column_letters;
use crate::import::read::columns::numbered;
use crate::import::read::row_kind::RowKind;
use crate::import::read::table_cell::TableCell;
use crate::import::read::tabular::{MAX_ROWS_ABOVE, joined_header};

/// A row of a sample.
type Row = Vec<TableCell>;

/// Finds the header of a table: the first row with two known names, else a row of names above other content. A row that
/// looks like those below it is no header, and then the range is empty.
pub(super) fn find_header(kind: RowKind, rows: &[Row]) -> Range<usize> {
    let width = rows.iter().map(|row| filled(row).count()).max();
    let is_wide = |row: &Row| filled(row).count() * 2 > width.unwrap_or(0);
    let has_known_names = |row: &Row| {
        let names = filled(row).filter(|cell| known_name(kind, &cell.text).is_some());
        let known = names.count();
        let data = filled(row).filter(|cell| is_data(cell)).count();
        known > data && (known > 1 || is_wide(row))
    };
    let mut first_rows = rows.iter().take(MAX_ROWS_ABOVE + 1);
    if let Some(first) = first_rows.clone().position(has_known_names) {
        let pair = rows.get(first..first + 2);
        let has_two = pair.is_some_and(|pair| has_second(kind, pair));
        return first..first + 1 + usize::from(has_two);
    }
    let first = first_rows.position(is_wide).unwrap_or(0);
    let has_header = !filled(&rows[first]).any(is_data) && has_data_below(&rows[first..]);
    first..first + usize::from(has_header)
}

fn filled(row: &Row) -> impl Iterator<Item = &TableCell> {
    row.iter().filter(|cell| !cell.is_blank())
}

/// Returns a cell that is not blank.
fn cell_at(row: &Row, at: usize) -> Option<&TableCell> {
    row.get(at).filter(|cell| !cell.is_blank())
}

/// Returns true if a column with a text in the first row has mostly dates, numbers and the like below it.
fn has_data_below(rows: &[Row]) -> bool {
    let mut columns = (0..rows[0].len()).filter(|at| cell_at(&rows[0], *at).is_some());
    columns.any(|at| {
        let below = rows[1..].iter().filter_map(|row| cell_at(row, at));
        below.clone().filter(|cell| is_data(cell)).count() * 2 > below.count()
    })
}

/// Returns true if the second of two rows belongs to the header: it fills gaps of the first, under its groups, with names.
fn has_second(kind: RowKind, rows: &[Row]) -> bool {
    let [first, second] = rows else { return false };
    let width = first.len().max(second.len());
    let is_gap = |at: usize| at < width && cell_at(first, at).is_none();
    let mut filled = (0..width).filter(|at| cell_at(second, *at).is_some());
    // A group has a gap at its right.
    let fits = filled.clone().all(|at| is_gap(at) || is_gap(at + 1));
    if !fits || !filled.clone().any(is_gap) || second.iter().any(is_data) {
        return false;
    }
    let names = joined_header(rows);
    filled.any(|at| {
        let own = &second[at].text;
        known_name(kind, own).is_some()
            || known_name(kind, &names[at]).is_some()
            || year_of(own).is_some()
    })
}

/// Returns the columns of a table by the rows of its header and those below it.
pub(super) fn columns(header: &[Row], body: &[Row]) -> Vec<DraftColumn> {
    let mut names = joined_header(header);
    let width = body.iter().map(Vec::len).max().unwrap_or(0);
    names.resize(names.len().max(width), String::new());
    let numbered = numbered(&names);
    let mut columns: Vec<DraftColumn> = Vec::new();
    for (at, header) in names.into_iter().enumerate() {
        let name = match &numbered[at] {
            (form, _) if form.is_empty() => format!("={}", column_letters(at)),
            (_, 1) => header.clone(),
            (_, number) => format!("{header}#{number}"),
        };
        let cells = body.iter().filter_map(|row| cell_at(row, at).cloned());
        let cells: Vec<_> = cells.collect();
        if !header.is_empty() || !cells.is_empty() {
            columns.push(DraftColumn {
                name,
                header,
                cells,
                ..DraftColumn::default()
            });
        }
    }
    columns
}
