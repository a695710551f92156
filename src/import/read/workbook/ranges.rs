//! The merged cells and hyperlinks of a sheet. They follow its cells in the file, so a separate pass reads them.

use std::io;

use super::fault::damaged_part;
use super::position::{CellPosition, CellRange};
use super::relations::Relations;
use super::xml::{StartTag, Xml, XmlEvent};

/// The maximum number of merged ranges.
const MAX_MERGED: usize = 200_000;

/// The maximum number of hyperlinks of single cells. Excel allows 66,530.
const MAX_LINKS: usize = 100_000;

/// The maximum number of hyperlinks of several cells.
const MAX_WIDE_LINKS: usize = 1_000;

/// The maximum size of all addresses, which stay in memory.
const MAX_HELD_BYTES: usize = 16 << 20;

/// The merged cells of a sheet.
#[derive(Default)]
pub(super) struct MergedCells {
    /// Sorted by first cell.
    ranges: Vec<CellRange>,
    /// The index of the first range below the rows so far.
    next: usize,
    /// Of the ranges that started so far, the one with the last row furthest down.
    current: Option<CellRange>,
}

/// The hyperlinks of a sheet.
#[derive(Default)]
pub(super) struct Hyperlinks {
    /// The hyperlinks of single cells, sorted by cell.
    single: Vec<(CellPosition, String)>,
    wide: Vec<(CellRange, String)>,
}

/// Reads the merged cells and hyperlinks of a sheet, and skips its cells.
pub(super) fn read_ranges(
    xml: &mut Xml<'_>,
    part: &str,
    relations: &Relations,
) -> io::Result<(MergedCells, Hyperlinks)> {
    let (mut merged, mut links) = (MergedCells::default(), Hyperlinks::default());
    let mut held_bytes = 0;
    loop {
        let depth = xml.depth();
        match xml.next()? {
            XmlEvent::Start(tag) if depth == 2 && tag.is("mergeCell") => {
                let mut range = None;
                tag.attributes(|name, value| {
                    if name == "ref" {
                        range = CellRange::read(&value);
                    }
                })?;
                merged.ranges.extend(range);
            }
            XmlEvent::Start(tag) if depth == 2 && tag.is("hyperlink") => {
                if let Some((range, address)) = link(&tag, relations)? {
                    held_bytes += address.len();
                    if range.first == range.last {
                        links.single.push((range.first, address));
                    } else {
                        links.wide.push((range, address));
                    }
                }
            }
            XmlEvent::EndOfPart => break,
            _ => {}
        }
        if merged.ranges.len() > MAX_MERGED {
            return Err(damaged_part(part, format_args!("it has more than {MAX_MERGED} merged ranges")));
        }
        if links.single.len() > MAX_LINKS || links.wide.len() > MAX_WIDE_LINKS || held_bytes > MAX_HELD_BYTES {
            return Err(damaged_part(part, "it has implausibly many hyperlinks"));
        }
    }
    merged.ranges.sort_by_key(|range| range.first);
    links.single.sort_by_key(|(cell, _)| *cell);
    Ok((merged, links))
}

impl MergedCells {
    /// Returns a merged range with cells in the row. Rows must be passed in ascending order.
    pub fn range_in(&mut self, row: u32) -> Option<CellRange> {
        while let Some(range) = self.ranges.get(self.next).filter(|range| range.first.row <= row) {
            if self.current.is_none_or(|current| current.last.row < range.last.row) {
                self.current = Some(*range);
            }
            self.next += 1;
        }
        self.current.filter(|range| range.last.row >= row)
    }
}

impl Hyperlinks {
    /// Returns the address that a cell links to.
    pub fn get(&self, cell: CellPosition) -> Option<&str> {
        if let Ok(at) = self.single.binary_search_by_key(&cell, |(cell, _)| *cell) {
            return self.single.get(at).map(|(_, address)| &**address);
        }
        self.wide.iter().find(|(range, _)| range.contains(cell)).map(|(_, address)| &**address)
    }
}

/// Returns the cells of a hyperlink and its address. A location within the workbook follows `#`.
fn link(tag: &StartTag<'_>, relations: &Relations) -> io::Result<Option<(CellRange, String)>> {
    let (mut range, mut address, mut location) = (None, String::new(), String::new());
    tag.attributes(|name, value| match name {
        "ref" => range = CellRange::read(&value),
        ":id" => {
            if let Some(relation) = relations.get(&value).filter(|relation| relation.is_external) {
                address.clone_from(&relation.target);
            }
        }
        "location" => location = value.into_owned(),
        _ => {}
    })?;
    if !location.is_empty() && !address.contains('#') {
        address = format!("{address}#{location}");
    }
    Ok(range.filter(|_| !address.is_empty()).map(|range| (range, address)))
}
