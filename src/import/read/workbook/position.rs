//! Names of cells, such as `B7`, and of cell ranges, such as `A1:C3`.

use crate::import::read::tabular::column_letters;

/// The number of columns of an Excel sheet.
pub(super) const COLUMNS: u32 = 16_384;

/// The number of rows of an Excel sheet.
pub(super) const ROWS: u32 = 1_048_576;

/// The row and the column of a cell, both from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CellPosition {
    pub row: u32,
    pub column: u32,
}

impl CellPosition {
    /// Parses a name such as `B7` or `$B$7`. Returns `None` if no sheet has such a cell.
    pub fn read(name: &str) -> Option<CellPosition> {
        let name = name.strip_prefix('$').unwrap_or(name);
        let (letters, digits) = name.split_at(name.bytes().take_while(u8::is_ascii_alphabetic).count());
        if letters.is_empty() || letters.len() > 3 {
            return None;
        }
        let value = |letter: u8| u32::from(letter.to_ascii_uppercase() - b'A') + 1;
        let column = letters.bytes().fold(0, |column, letter| column * 26 + value(letter));
        let row = row_number(digits.strip_prefix('$').unwrap_or(digits))?;
        (column <= COLUMNS).then(|| CellPosition { row, column: column - 1 })
    }

    /// Returns the name of the cell.
    pub fn name(self) -> String {
        format!("{}{}", column_letters(usize::try_from(self.column).unwrap_or(usize::MAX)), u64::from(self.row) + 1)
    }
}

/// Parses a row number, and returns the row from 0. Returns `None` if no sheet has such a row.
pub(super) fn row_number(digits: &str) -> Option<u32> {
    let is_number = digits.len() <= 7 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<u32>().ok().filter(|number| is_number && (1..=ROWS).contains(number))?;
    Some(number - 1)
}

/// The cells from the first row and column to the last, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellRange {
    pub first: CellPosition,
    pub last: CellPosition,
}

impl CellRange {
    /// Parses a name such as `A1:C3` or `A1`.
    pub fn read(name: &str) -> Option<CellRange> {
        let (one, other) = name.split_once(':').unwrap_or((name, name));
        let (one, other) = (CellPosition::read(one)?, CellPosition::read(other)?);
        let first = CellPosition { row: one.row.min(other.row), column: one.column.min(other.column) };
        let last = CellPosition { row: one.row.max(other.row), column: one.column.max(other.column) };
        Some(CellRange { first, last })
    }

    pub fn contains(self, cell: CellPosition) -> bool {
        (self.first.row..=self.last.row).contains(&cell.row)
            && (self.first.column..=self.last.column).contains(&cell.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        let cases = [
            ("A1", Some((0, 0))),
            ("$b$7", Some((6, 1))),
            ("XFD1048576", Some((1_048_575, 16_383))),
            ("XFE1", None),
            ("A1048577", None),
            ("A0", None),
            ("A", None),
            ("7", None),
            ("A+7", None),
            ("AAAA1", None),
            ("A99999999999", None),
            ("", None),
            ("É1", None),
        ];
        for (name, expected) in cases {
            let read = CellPosition::read(name);
            assert_eq!(read.map(|cell| (cell.row, cell.column)), expected, "{name}");
            if let Some(cell) = read {
                assert_eq!(cell.name(), name.replace('$', "").to_uppercase());
            }
        }
        let range = CellRange::read("C3:A1").unwrap();
        assert!(
            range.contains(CellPosition { row: 1, column: 2 }) && !range.contains(CellPosition { row: 3, column: 0 })
        );
    }
}
