//! The raw cells of a sheet.

use std::collections::HashSet;
use std::io;

use super::fault::{damaged, unusable};
use super::position::{COLUMNS, CellPosition, ROWS, row_number};
use super::strings::RichText;
use super::xml::{StartTag, Xml, XmlEvent};

/// The maximum size of a formula. Excel allows 8,192 characters.
const MAX_FORMULA_BYTES: usize = 1 << 15;

/// The maximum number of shared formulas with hyperlinks.
const MAX_SHARED_LINKS: usize = 100_000;

/// Reads the cells of a sheet, row by row.
pub(super) struct CellReader<'a> {
    xml: Xml<'a>,
    /// The current row.
    row: Option<u32>,
    /// The column after the last cell.
    column: u32,
    is_in_data: bool,
    item: RichText,
    formula: String,
    /// The indexes of shared formulas with hyperlinks.
    shared_links: HashSet<String>,
}

/// A cell as it is stored in the sheet.
pub(super) struct RawCell<'r> {
    pub position: CellPosition,
    pub style: usize,
    pub kind: RawKind,
    pub value: Option<&'r str>,
    /// The formula that computed the value.
    pub formula: Option<&'r str>,
}

/// The encoding of a cell's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawKind {
    Number,
    /// An index into the shared strings.
    Shared,
    Text,
    Flag,
    Error,
    /// A date in ISO 8601 format.
    Date,
}

impl<'a> CellReader<'a> {
    /// Creates a reader. Fails if the part is not a sheet.
    pub fn new(mut xml: Xml<'a>) -> io::Result<CellReader<'a>> {
        xml.root("worksheet")?;
        Ok(CellReader {
            xml,
            row: None,
            column: 0,
            is_in_data: false,
            item: RichText::default(),
            formula: String::new(),
            shared_links: HashSet::new(),
        })
    }

    /// Returns the next cell.
    pub fn next(&mut self) -> io::Result<Option<RawCell<'_>>> {
        let (position, style, kind) = loop {
            let depth = self.xml.depth();
            match self.xml.next()? {
                XmlEvent::Start(tag) if depth == 1 => {
                    self.is_in_data = tag.is("sheetData");
                    if !self.is_in_data {
                        self.xml.skip()?;
                    }
                }
                XmlEvent::Start(tag) if depth == 2 && tag.is("row") => {
                    let row = row_of(&tag, self.row)?;
                    if self.row.is_some_and(|before| before >= row) {
                        return Err(damaged("its rows are not in order"));
                    }
                    (self.row, self.column) = (Some(row), 0);
                }
                XmlEvent::Start(tag) if depth == 3 && tag.is("c") => {
                    let row = self.row.unwrap_or(0);
                    let found = cell_of(&tag, CellPosition { row, column: self.column })?;
                    self.column = found.0.column + 1;
                    break found;
                }
                XmlEvent::Start(_) => self.xml.skip()?,
                XmlEvent::EndOfPart => return Ok(None),
                _ => {}
            }
        };
        let (has_value, has_formula) = self.content().map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => unusable(format!("the cell {}: {error}", position.name())),
            _ => error,
        })?;
        let value = has_value.then_some(&*self.item.text);
        Ok(Some(RawCell { position, style, kind, value, formula: has_formula.then_some(&*self.formula) }))
    }

    /// Reads the content of a cell. Returns whether it has a value, and whether it has a formula.
    fn content(&mut self) -> io::Result<(bool, bool)> {
        let (mut has_value, mut has_formula) = (false, false);
        let depth = self.xml.depth();
        while self.xml.depth() >= depth {
            match self.xml.next()? {
                XmlEvent::Start(tag) if tag.is("v") => {
                    has_value = true;
                    self.item.read_plain(&mut self.xml)?;
                }
                XmlEvent::Start(tag) if tag.is("is") => {
                    has_value = true;
                    self.item.read(&mut self.xml)?;
                }
                XmlEvent::Start(tag) if tag.is("f") => {
                    has_formula = true;
                    let mut shared = None;
                    tag.attributes(|name, value| {
                        if name == "si" {
                            shared = Some(value.into_owned());
                        }
                    })?;
                    self.formula.clear();
                    self.xml.text(&mut self.formula, MAX_FORMULA_BYTES)?;
                    if let Some(shared) = shared.filter(|shared| shared.len() < 10) {
                        self.share_link(shared);
                    }
                }
                XmlEvent::Start(_) => self.xml.skip()?,
                XmlEvent::EndOfPart => break,
                _ => {}
            }
        }
        Ok((has_value, has_formula))
    }

    /// Records a shared formula with a hyperlink. Only the first of its cells contains the formula text.
    fn share_link(&mut self, index: String) {
        if self.formula.is_empty() {
            if self.shared_links.contains(&index) {
                self.formula.push_str("HYPERLINK()");
            }
        } else if is_hyperlink_formula(&self.formula) && self.shared_links.len() < MAX_SHARED_LINKS {
            self.shared_links.insert(index);
        }
    }
}

/// Returns true for a `HYPERLINK` formula.
pub(super) fn is_hyperlink_formula(formula: &str) -> bool {
    formula.trim_start().get(..10).is_some_and(|name| name.eq_ignore_ascii_case("HYPERLINK("))
}

/// Parses the row number of a tag, from 0. The default is the row after `before`.
fn row_of(tag: &StartTag<'_>, before: Option<u32>) -> io::Result<u32> {
    let mut row = before.map_or(0, |before| before + 1);
    let mut bad = None;
    tag.attributes(|name, value| {
        if name == "r" {
            match row_number(&value) {
                Some(number) => row = number,
                None => bad = Some(value.into_owned()),
            }
        }
    })?;
    match bad {
        Some(bad) => Err(damaged(format_args!("it has a row `{bad:.20}`, which no sheet has"))),
        None if row >= ROWS => Err(damaged(format_args!("it has more than {ROWS} rows"))),
        None => Ok(row),
    }
}

/// Parses the position, style and value type of a cell. The default position is `next`.
fn cell_of(tag: &StartTag<'_>, next: CellPosition) -> io::Result<(CellPosition, usize, RawKind)> {
    let (mut position, mut style, mut kind, mut bad) = (Some(next), 0, RawKind::Number, String::new());
    tag.attributes(|name, value| match name {
        "r" => {
            position = CellPosition::read(&value).filter(|found| found.row == next.row);
            if position.is_none() {
                bad = value.into_owned();
            }
        }
        "s" => style = value.parse().unwrap_or(0),
        "t" => {
            kind = match &*value {
                "s" => RawKind::Shared,
                "str" | "inlineStr" => RawKind::Text,
                "b" => RawKind::Flag,
                "e" => RawKind::Error,
                "d" => RawKind::Date,
                _ => RawKind::Number,
            };
        }
        _ => {}
    })?;
    match position.filter(|position| position.column < COLUMNS) {
        Some(position) => Ok((position, style, kind)),
        None => Err(damaged(format_args!("its row {} has a cell `{bad:.20}`, which cannot be there", next.row + 1))),
    }
}
