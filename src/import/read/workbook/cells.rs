//! The cells of a sheet, each with its position, its value and the index of its format.

use std::fs::File;
use std::io::BufReader;
use std::iter;

use calamine::{Data, Range, XlsxCellReader, XlsxError};

/// The row and the column of a cell, from 0.
pub(super) type Position = (u32, u32);

/// The formats of cells of .xls and .ods files, for which calamine returns none: of numbers, days and times.
pub(super) const OLD_FORMATS: [&str; 3] = ["General", "yyyy-mm-dd", "[h]:mm"];

/// The cells of a sheet in their order: the position of each, its value, and the index of its format.
pub(super) type SheetCells<'a> =
    Box<dyn Iterator<Item = Result<(Position, Data, usize), XlsxError>> + 'a>;

/// Returns the cells of a sheet of an .xlsx file.
pub(super) fn xlsx_cells(mut cells: XlsxCellReader<'_, BufReader<File>>) -> SheetCells<'_> {
    Box::new(iter::from_fn(move || {
        let next = cells.next_cell_with_style_id().transpose()?;
        Some(next.map(|(cell, style)| {
            let value = cell.get_value().clone().into();
            (cell.get_position(), value, style)
        }))
    }))
}

/// Returns the cells of a sheet of an .xls or .ods file.
pub(super) fn old_cells(range: &Range<Data>) -> SheetCells<'static> {
    let (first_row, first_column) = range.start().unwrap_or_default();
    let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let cells = range.used_cells().map(|(row, column, value)| {
        let format = match value {
            Data::DateTime(time) if time.is_datetime() => 1,
            Data::DateTime(_) => 2,
            _ => 0,
        };
        let position = (first_row + index(row), first_column + index(column));
        Ok((position, value.clone(), format))
    });
    Box::new(cells.collect::<Vec<_>>().into_iter())
}
