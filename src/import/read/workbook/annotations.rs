//! Merged cells, hyperlinks and formulas of a sheet. They are read before its cells.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Seek};

use calamine::{DataRef, Dimensions, Xlsx, XlsxFormulaMetadata};

use super::archive::{cell_name, sheet_error, unreadable};
use super::cells::Position;
use crate::import::read::row_sink::MergedCells;
use crate::model::message::{Message, message};

/// The merged cells, hyperlinks and empty formulas of a sheet. Positions are rows and columns, from 0.
#[derive(Default)]
pub(super) struct Annotations {
    /// Ranges of merged cells that begin below the last row, the next one last.
    merged: Vec<Dimensions>,
    /// Ranges of merged cells that begin in the last row or above it.
    begun: Vec<Dimensions>,
    /// The hyperlinks of single cells.
    links: HashMap<Position, String>,
    /// The hyperlinks of several cells.
    wide_links: Vec<(Dimensions, String)>,
    /// The cells with a formula without a result.
    without_result: HashSet<Position>,
}

impl Annotations {
    pub fn read(book: &mut Xlsx<impl Read + Seek>, sheet: &str) -> io::Result<Annotations> {
        let mut merged = book.merge_cells_by_sheet_name(sheet).map_err(unreadable)?;
        merged.sort_by_key(|range| Reverse(range.start));
        let mut annotations = Annotations {
            merged,
            ..Annotations::default()
        };
        for link in book.hyperlinks_by_sheet_name(sheet).map_err(unreadable)? {
            let mut address = link.target.unwrap_or_default();
            // A location within the workbook follows `#`.
            if let Some(location) = link.location
                && !location.is_empty()
                && !address.contains('#')
            {
                address = format!("{address}#{location}");
            }
            if address.is_empty() {
                continue;
            }
            if link.range.start == link.range.end {
                annotations.links.insert(link.range.start, address);
            } else {
                annotations.wide_links.push((link.range, address));
            }
        }
        annotations.read_formulas(book, sheet)?;
        Ok(annotations)
    }

    fn read_formulas(&mut self, book: &mut Xlsx<impl Read + Seek>, sheet: &str) -> io::Result<()> {
        let mut cells = book.worksheet_cells_reader(sheet).map_err(unreadable)?;
        let mut shared = HashMap::new();
        let mut last = None;
        while let Some(cell) = cells
            .next_cell_with_formula_metadata()
            .map_err(|error| sheet_error(sheet, last, error))?
        {
            last = Some(cell.pos);
            let link = match cell.formula {
                Some(XlsxFormulaMetadata::Normal { formula }) => hyperlink_in(&formula),
                // Only the first cell of a shared formula contains its text.
                Some(XlsxFormulaMetadata::Shared {
                    shared_index,
                    formula,
                    ..
                }) => {
                    let link = hyperlink_in(&formula);
                    shared.insert(shared_index, link.clone());
                    link
                }
                Some(XlsxFormulaMetadata::SharedDerived { shared_index }) => {
                    shared.get(&shared_index).cloned().flatten()
                }
                _ => continue,
            };
            if cell.value == DataRef::Empty {
                self.without_result.insert(cell.pos);
            }
            self.links.extend(link.map(|link| (cell.pos, link)));
        }
        Ok(())
    }

    /// Returns the merged cells of a row. The rows are asked in their order.
    pub fn merged_in(&mut self, row: u32) -> Vec<MergedCells> {
        while let Some(range) = self.merged.pop_if(|range| range.start.0 <= row) {
            self.begun.push(range);
        }
        self.begun.retain(|range| range.end.0 >= row);
        let column = |at: u32| usize::try_from(at).unwrap_or(usize::MAX);
        let merged = self.begun.iter().map(|range| MergedCells {
            columns: column(range.start.1)..=column(range.end.1),
            is_tall: range.start.0 < range.end.0,
            fault: message!(
                "the cells {}:{} are merged, so that only the first has a value; unmerge them, and fill in each",
                cell_name(range.start),
                cell_name(range.end)
            ),
        });
        merged.collect()
    }

    /// Returns the address that a cell links to.
    pub fn link(&self, cell: Position) -> Option<&String> {
        self.links.get(&cell).or_else(|| {
            let mut wide = self.wide_links.iter();
            let found = wide.find(|(range, _)| range.contains(cell.0, cell.1));
            found.map(|(_, address)| address)
        })
    }

    /// Returns the fault of a cell with a formula without a result.
    pub fn formula_fault(&self, cell: Position) -> Option<Message> {
        self.without_result.contains(&cell).then(|| {
            message!(
                "the cell {} contains a formula without a result; open the file in a spreadsheet program, and save it \
                 again",
                cell_name(cell)
            )
        })
    }
}

/// Returns the address in a `HYPERLINK` formula. If the formula computes the address, returns the formula itself, which
/// is not a web address.
fn hyperlink_in(formula: &str) -> Option<String> {
    let formula = formula.trim();
    formula
        .get(..10)
        .filter(|name| name.eq_ignore_ascii_case("HYPERLINK("))?;
    let literal = formula[10..].trim_start().strip_prefix('"');
    let literal = literal.and_then(|literal| literal.split_once('"'));
    Some(match literal {
        Some((address, after)) if after.trim_start().starts_with([',', ')']) => address.to_owned(),
        _ => formula.chars().take(200).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_in_formulas() {
        let cases = cases![
            "HYPERLINK(\"https://esmo.org\",\"ESMO\")", Some("https://esmo.org");
            " hyperlink( \"https://esmo.org\" )", Some("https://esmo.org");
            "HYPERLINK(\"https://a.org/\"\"x\"\"\")", Some("HYPERLINK(\"https://a.org/\"\"x\"\"\")");
            "HYPERLINK(\"https://a.org/\"&A1)", Some("HYPERLINK(\"https://a.org/\"&A1)");
            "HYPERLINK(\"https://a.org", Some("HYPERLINK(\"https://a.org");
            "\"ES\"&\"MO\"", None;
        ];
        for (formula, expected) in cases {
            assert_eq!(hyperlink_in(formula).as_deref(), expected, "{formula}");
        }
    }
}
