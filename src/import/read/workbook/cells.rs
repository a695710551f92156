//! The cells of a sheet, each with its position, its value and the index of its format.

use std::fs::File;
use std::io::BufReader;
use std::vec;

use calamine::{Data, Range, XlsxCellReader, XlsxError};

/// The row and the column of a cell, from 0.
pub(super) type Position = (u32, u32);

/// The formats of cells of .xls and .ods files, for which calamine returns none: of numbers, days and times.
pub(super) const OLD_FORMATS: [&str; 3] = ["General", "yyyy-mm-dd", "[h]:mm"];

/// The cells of a sheet in their order.
pub(super) enum SheetCells<'a> {
    Xlsx(Box<XlsxCellReader<'a, BufReader<File>>>),
    /// Those of an .xls or .ods file.
    Old(vec::IntoIter<(Position, Data)>),
}

impl SheetCells<'_> {
    pub fn old(range: &Range<Data>) -> SheetCells<'static> {
        let (first_row, first_column) = range.start().unwrap_or_default();
        let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let cells = range.used_cells().map(|(row, column, value)| {
            let position = (first_row + index(row), first_column + index(column));
            (position, value.clone())
        });
        SheetCells::Old(cells.collect::<Vec<_>>().into_iter())
    }

    /// Returns the next cell: its position, its value, and the index of its format.
    pub fn next(&mut self) -> Result<Option<(Position, Data, usize)>, XlsxError> {
        match self {
            SheetCells::Xlsx(cells) => {
                let next = cells.next_cell_with_style_id()?;
                Ok(next.map(|(cell, style)| {
                    (cell.get_position(), cell.get_value().clone().into(), style)
                }))
            }
            SheetCells::Old(cells) => Ok(cells.next().map(|(position, value)| {
                let format = match &value {
                    Data::DateTime(time) if time.is_datetime() => 1,
                    Data::DateTime(_) => 2,
                    _ => 0,
                };
                (position, value, format)
            })),
        }
    }
}
