//! Merged cells and hyperlinks of a sheet. They follow its cells, so they are read in a pass of their own.

use std::io;

use super::fault::damaged_part;
use super::position::{CellPosition, CellRange};
use super::relations::Relations;
use super::xml::{StartTag, Xml, XmlEvent};

/// The most merged regions.
const MAX_MERGED: usize = 200_000;

/// The most hyperlinks. Excel allows 66,530.
const MAX_LINKS: usize = 100_000;

/// The most hyperlinks of several cells.
const MAX_WIDE_LINKS: usize = 1_000;

/// The most bytes of addresses that are held in memory.
const MAX_HELD_BYTES: usize = 16 << 20;

/// The merged cells of a sheet.
#[derive(Default)]
pub(super) struct MergedCells {
    /// In the order of their first rows.
    regions: Vec<CellRange>,
    /// The index of the first region that no row met yet.
    next: usize,
    /// The region that reaches furthest down, of those that a row met.
    current: Option<CellRange>,
}

/// The hyperlinks of a sheet.
#[derive(Default)]
pub(super) struct Hyperlinks {
    /// Those of single cells, in the order of the cells.
    single: Vec<(CellPosition, String)>,
    wide: Vec<(CellRange, String)>,
}

/// Reads a whole sheet, its cells skipped.
///
/// # Errors
/// When the sheet is damaged or exceeds a bound.
pub(super) fn read_regions(
    xml: &mut Xml<'_>,
    part: &str,
    relations: &Relations,
) -> io::Result<(MergedCells, Hyperlinks)> {
    let (mut merged, mut links) = (MergedCells::default(), Hyperlinks::default());
    let mut held = 0;
    loop {
        let depth = xml.depth();
        match xml.next()? {
            XmlEvent::Start(tag) if depth == 2 && tag.is("mergeCell") => {
                let mut region = None;
                tag.attributes(|name, value| {
                    if name == "ref" {
                        region = CellRange::read(&value);
                    }
                })?;
                merged.regions.extend(region);
            }
            XmlEvent::Start(tag) if depth == 2 && tag.is("hyperlink") => {
                if let Some((region, address)) = link(&tag, relations)? {
                    held += address.len();
                    if region.first == region.last {
                        links.single.push((region.first, address));
                    } else {
                        links.wide.push((region, address));
                    }
                }
            }
            XmlEvent::EndOfPart => break,
            _ => {}
        }
        if merged.regions.len() > MAX_MERGED {
            return Err(damaged_part(part, format_args!("it has more than {MAX_MERGED} merged regions")));
        }
        if links.single.len() > MAX_LINKS || links.wide.len() > MAX_WIDE_LINKS || held > MAX_HELD_BYTES {
            return Err(damaged_part(part, "it has implausibly many hyperlinks"));
        }
    }
    merged.regions.sort_by_key(|region| region.first);
    links.single.sort_by_key(|(cell, _)| *cell);
    Ok((merged, links))
}

impl MergedCells {
    /// A merged region that the row meets. Rows must be asked for in their order.
    pub fn region_in(&mut self, row: u32) -> Option<CellRange> {
        while let Some(region) = self.regions.get(self.next).filter(|region| region.first.row <= row) {
            if self.current.is_none_or(|current| current.last.row < region.last.row) {
                self.current = Some(*region);
            }
            self.next += 1;
        }
        self.current.filter(|region| region.last.row >= row)
    }
}

impl Hyperlinks {
    /// The address that a cell links to.
    pub fn of(&self, cell: CellPosition) -> Option<&str> {
        if let Ok(at) = self.single.binary_search_by_key(&cell, |(cell, _)| *cell) {
            return self.single.get(at).map(|(_, address)| &**address);
        }
        self.wide.iter().find(|(region, _)| region.contains(cell)).map(|(_, address)| &**address)
    }
}

/// The cells of a hyperlink and its address; of a position within the workbook after `#`.
fn link(tag: &StartTag<'_>, relations: &Relations) -> io::Result<Option<(CellRange, String)>> {
    let (mut region, mut address, mut location) = (None, String::new(), String::new());
    tag.attributes(|name, value| match name {
        "ref" => region = CellRange::read(&value),
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
    Ok(region.filter(|_| !address.is_empty()).map(|region| (region, address)))
}
