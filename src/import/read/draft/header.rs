//! Finds the header of a table, and its columns.

use super::content::{DraftColumn, is_data};
use super::names::{known_name, year_of};
use crate::import::read::column_name::column_letters;
use crate::import::read::columns::numbered;
use crate::import::read::row_kind::RowKind;
use crate::import::read::table_cell::TableCell;
use crate::import::read::tabular::{MAX_ROWS_ABOVE, joined_header};

/// A row of a sample.
type Row = Vec<TableCell<'static>>;

/// The position of a header: its first row, and the number of its rows. Without a header it has none.
#[derive(Clone, Copy)]
pub(super) struct Header {
    pub first: usize,
    pub rows: usize,
}

impl Header {
    /// Finds the header: the first row with two known names, else a row of names above other content. A row that looks
    /// like those below it is no header.
    pub fn find(kind: RowKind, rows: &[Row]) -> Header {
        let width = rows.iter().map(|row| filled(row).count()).max();
        let is_wide = |row: &Row| filled(row).count() * 2 > width.unwrap_or(0);
        let count_data = |row: &Row| filled(row).filter(|cell| is_data(cell)).count();
        let mut first_rows = rows.iter().take(MAX_ROWS_ABOVE + 1);
        let named = first_rows.clone().position(|row| {
            let names = filled(row).filter(|cell| known_name(kind, &cell.text).is_some());
            let known = names.count();
            known > count_data(row) && (known > 1 || is_wide(row))
        });
        if let Some(first) = named {
            let below = rows.get(first + 1);
            let has_two = below.is_some_and(|below| is_second(kind, &rows[first], below));
            let rows = 1 + usize::from(has_two);
            return Header { first, rows };
        }
        let first = first_rows.position(is_wide).unwrap_or(0);
        let has_header = count_data(&rows[first]) == 0 && has_data_below(&rows[first..]);
        let rows = usize::from(has_header);
        Header { first, rows }
    }
}

fn filled(row: &Row) -> impl Iterator<Item = &TableCell<'static>> {
    row.iter().filter(|cell| !cell.is_blank())
}

fn is_filled(row: &Row, at: usize) -> bool {
    row.get(at).is_some_and(|cell| !cell.is_blank())
}

fn text_at(row: &Row, at: usize) -> &str {
    row.get(at).map_or("", |cell| &cell.text)
}

/// Returns true if a column with a text in the first row has mostly dates, numbers and the like below it.
fn has_data_below(rows: &[Row]) -> bool {
    (0..rows[0].len())
        .filter(|at| is_filled(&rows[0], *at))
        .any(|at| {
            let below = rows[1..].iter().filter(|row| is_filled(row, at));
            below.clone().filter(|row| is_data(&row[at])).count() * 2 > below.count()
        })
}

/// Returns true if a row is the second row of a header: it fills gaps of the first, under its groups, with names.
fn is_second(kind: RowKind, first: &Row, second: &Row) -> bool {
    let width = first.len().max(second.len());
    let is_gap = |at: usize| at < width && !is_filled(first, at);
    let mut filled = (0..width).filter(|at| is_filled(second, *at));
    // A group has a gap at its right.
    let fits = filled.clone().all(|at| is_gap(at) || is_gap(at + 1));
    if !fits || !filled.clone().any(is_gap) || second.iter().any(is_data) {
        return false;
    }
    let names = joined_header(&[first.clone(), second.clone()]);
    filled.any(|at| {
        let own = &*second[at].text;
        let is_known = |name: &str| known_name(kind, name).is_some();
        is_known(own) || is_known(&names[at]) || year_of(own).is_some()
    })
}

/// Returns the columns of a table. Equal columns with one header are one.
pub(super) fn columns(rows: &[Row], header: Header) -> Vec<DraftColumn> {
    let (head, body) = rows[header.first..].split_at(header.rows);
    let mut names = joined_header(head);
    let width = body.iter().map(Vec::len).max().unwrap_or(0);
    names.resize(names.len().max(width), String::new());
    let numbered = numbered(&names);
    let mut columns: Vec<DraftColumn> = Vec::new();
    for (at, header) in names.into_iter().enumerate() {
        let (form, number) = &numbered[at];
        let first = numbered.iter().position(|(other, _)| other == form);
        let first = first.filter(|first| *first < at && !form.is_empty());
        let repeats = |first| {
            body.iter()
                .all(|row| text_at(row, first) == text_at(row, at))
        };
        if first.is_some_and(repeats) {
            continue;
        }
        let name = match number {
            _ if form.is_empty() => format!("={}", column_letters(at)),
            1 => header.clone(),
            number => format!("{header}#{number}"),
        };
        let cells = body.iter().filter(|row| is_filled(row, at));
        let cells: Vec<_> = cells.map(|row| row[at].clone()).collect();
        if !header.is_empty() || !cells.is_empty() {
            columns.push(DraftColumn {
                name,
                header,
                is_full: cells.len() == body.len(),
                cells,
                ..DraftColumn::default()
            });
        }
    }
    columns
}
