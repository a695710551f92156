//! Finds the header of a table, and its columns.

use super::content::{DraftColumn, is_data};
use super::names::{is_known_name, year_of};
use crate::import::read::cells::TableCell;
use crate::import::read::column_name::column_letters;
use crate::import::read::row_kind::RowKind;
use crate::import::read::tabular::{MAX_ROWS_ABOVE, joined_header};
use crate::model::fold::{comparable, is_blank};

/// The rows of a sample.
type Rows = [Vec<TableCell<'static>>];

/// The position of a header: its first row, and the number of its rows. Without a header it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub first: usize,
    pub rows: usize,
}

impl Header {
    /// Finds the header: the first row with two known names, else a row of names above other content. A row that looks
    /// like those below it is no header.
    pub fn find(kind: RowKind, rows: &Rows) -> Header {
        let count_known = |at: usize| {
            texts(&rows[at])
                .filter(|text| is_known_name(kind.table(), text))
                .count()
        };
        let count_data = |at: usize| rows[at].iter().filter(|cell| is_data(cell)).count();
        let width = rows.iter().map(|row| texts(row).count()).max().unwrap_or(0);
        let is_wide = |at: usize| texts(&rows[at]).count() * 2 > width;
        let first_rows = 0..rows.len().min(MAX_ROWS_ABOVE + 1);
        let named = first_rows.clone().find(|at| {
            let known = count_known(*at);
            known > count_data(*at) && (known > 1 || is_wide(*at))
        });
        if let Some(first) = named {
            let has_two = rows
                .get(first + 1)
                .is_some_and(|below| is_second(kind, &rows[first], below));
            return Header {
                first,
                rows: 1 + usize::from(has_two),
            };
        }
        let first = first_rows.clone().find(|at| is_wide(*at)).unwrap_or(0);
        let has_header = count_data(first) == 0 && has_data_below(&rows[first..]);
        Header {
            first,
            rows: usize::from(has_header),
        }
    }
}

fn texts<'r>(row: &'r [TableCell<'static>]) -> impl Iterator<Item = &'r str> {
    row.iter()
        .filter(|cell| !cell.is_blank())
        .map(|cell| cell.text.trim_matches(is_blank))
}

/// Returns true if a column with a text in the first row has mostly dates, numbers and the like below it.
fn has_data_below(rows: &Rows) -> bool {
    let Some((first, below)) = rows.split_first() else {
        return false;
    };
    let is_typed = |at: usize| {
        let cells = below.iter().filter_map(|row| row.get(at));
        let filled: Vec<&TableCell<'_>> = cells.filter(|cell| !cell.is_blank()).collect();
        let data = filled.iter().filter(|cell| is_data(cell)).count();
        data * 2 > filled.len()
    };
    (0..first.len()).any(|at| !first[at].is_blank() && is_typed(at))
}

/// Returns true if a row is the second row of a header: it fills gaps of the first, under its groups, with names.
fn is_second(kind: RowKind, first: &[TableCell<'static>], second: &[TableCell<'static>]) -> bool {
    let is_filled =
        |row: &[TableCell<'static>], at: usize| row.get(at).is_some_and(|cell| !cell.is_blank());
    let width = first.len().max(second.len());
    let is_gap = |at: usize| at < width && !is_filled(first, at);
    let filled = |at: &usize| is_filled(second, *at);
    // A group has a gap at its right.
    let fits = (0..width)
        .filter(filled)
        .all(|at| is_gap(at) || is_gap(at + 1));
    let fills_gap = (0..width).filter(filled).any(is_gap);
    if !fits || !fills_gap || second.iter().any(is_data) {
        return false;
    }
    let names = joined_header(
        [texts_of(first), texts_of(second)]
            .iter()
            .map(Vec::as_slice),
    );
    (0..width).filter(filled).any(|at| {
        let own = &second[at].text;
        is_known_name(kind.table(), own)
            || is_known_name(kind.table(), &names[at])
            || year_of(own).is_some()
    })
}

fn texts_of(row: &[TableCell<'static>]) -> Vec<String> {
    row.iter().map(|cell| cell.text.to_string()).collect()
}

/// Returns the columns of a table. Equal columns with one header are one.
pub(super) fn columns(rows: &Rows, header: Header) -> Vec<DraftColumn> {
    let body = &rows[(header.first + header.rows).min(rows.len())..];
    let head: Vec<Vec<String>> = rows[header.first..][..header.rows]
        .iter()
        .map(|row| texts_of(row))
        .collect();
    let mut names = joined_header(head.iter().map(Vec::as_slice));
    let width = body.iter().map(Vec::len).max().unwrap_or(0);
    names.resize(names.len().max(width), String::new());
    let cells_at = |at: usize| {
        body.iter()
            .map(move |row| row.get(at).cloned().unwrap_or_default())
    };
    let texts_at = |at: usize| cells_at(at).map(|cell| cell.text);
    let mut columns: Vec<DraftColumn> = Vec::new();
    for (at, header) in names.iter().enumerate() {
        let form = comparable(header);
        let equal: Vec<usize> = (0..at)
            .filter(|other| !form.is_empty() && comparable(&names[*other]) == form)
            .collect();
        if equal
            .first()
            .is_some_and(|first| texts_at(*first).eq(texts_at(at)))
        {
            continue;
        }
        let name = match equal.len() {
            _ if form.is_empty() => format!("={}", column_letters(at)),
            0 => header.clone(),
            count => format!("{header}#{}", count + 1),
        };
        let column = DraftColumn::new(name, header.clone(), cells_at(at));
        if !header.is_empty() || !column.cells.is_empty() {
            columns.push(column);
        }
    }
    columns
}
