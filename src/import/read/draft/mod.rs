//! Drafts of recipes: the columns of a file, each with its best field.
//!
//! The steps:
//! 1. `sample` has the first rows.
//! 2. `header` finds the header and the columns.
//! 3. `assign` gives each column the fields that its header (`names`) and its cells (`content`, `currency`) allow.
//! 4. `notation` finds out how the file writes numbers, dates, lists and gaps.
//! 5. `toml_text` writes the recipe.

mod assign;
mod content;
mod header;
pub(in crate::import) mod names;
mod notation;
mod toml_text;

use std::io;
use std::path::Path;

use crate::import::findings::Findings;
use crate::import::read::options::{InputError, ReadOptions};
use crate::import::read::sample::FileSample;
use crate::import::read::source::{RowKind, Source, SourceContent};
use crate::import::read::table_cell::Container;
use crate::import::read::workbook::Workbook;
use crate::model::flat;
use crate::model::fold::comparable;
use assign::{Assigned, assign};
use header::{Header, columns};
use notation::{Reading, date_order, decimal_sign, empty_in_field, empty_texts, list_separator};

/// Drafts a recipe for a file. If no sheet of a workbook is chosen, it is for the one with most columns that are read.
/// Returns `None` if no row is found, with the faults of reading.
pub fn draft_recipe(
    source: &Source,
    kind: RowKind,
    sheet: Option<&str>,
) -> Result<(Option<Draft>, Findings), InputError> {
    let sheets = match sheet {
        Some(sheet) => vec![sheet.to_owned()],
        None => sheets_of(source)
            .map_err(|error| InputError::unreadable(Path::new(&*source.name), &error))?,
    };
    if sheet.is_none() && sheets.len() < 2 {
        let sample = FileSample::read(source, kind, &[])?;
        return Ok((sample.draft(), sample.bad));
    }
    let mut drafts = Vec::new();
    let mut bad = Findings::default();
    for sheet in &sheets {
        let sample = FileSample::read(source, kind, std::slice::from_ref(sheet))?;
        bad.extend(sample.bad.kept().iter().cloned());
        drafts.extend(sample.draft().map(|draft| {
            Draft {
                sheet: Some(sheet.clone()),
                other_sheets: sheets
                    .iter()
                    .filter(|other| *other != sheet)
                    .cloned()
                    .collect(),
                ..draft
            }
        }));
    }
    // In reverse, since `max_by_key` returns the last maximum.
    let drafts = drafts.into_iter().rev();
    let best = drafts.max_by_key(|draft| (draft.has_name(), draft.mapped_count()));
    Ok((best, bad))
}

/// Returns the names of the sheets of a workbook that are visible; none for another file.
fn sheets_of(source: &Source) -> io::Result<Vec<String>> {
    let options = ReadOptions::default();
    match source.open(&options)? {
        SourceContent::Text { .. } => Ok(Vec::new()),
        SourceContent::Workbook(file) => {
            Ok(Workbook::open(file, &options.bounds)?.visible_sheets())
        }
    }
}

/// A recipe for a file, drafted from its first rows.
#[derive(Debug)]
pub struct Draft {
    kind: RowKind,
    sheet: Option<String>,
    other_sheets: Vec<String>,
    encoding: Option<&'static str>,
    header_rows: usize,
    /// Whether the file has the columns of an export. Then its ids are those of the database.
    is_export: bool,
    assigned: Assigned,
    decimal: Reading,
    dates: Reading,
    separator: Reading,
    empty: Vec<&'static str>,
    /// The texts that count as empty in a field, with the numbers of their cells.
    empty_in: Vec<(&'static str, Vec<(String, usize)>)>,
}

impl FileSample {
    /// Drafts a recipe. Returns `None` if the file has no row.
    pub fn draft(&self) -> Option<Draft> {
        let kind = self.kind;
        let rows = &*self.rows;
        let header = match self.notation.container {
            _ if rows.is_empty() => return None,
            Container::Json => Header { first: 0, rows: 1 },
            Container::Csv | Container::Sheet | Container::OldSheet => Header::find(kind, rows),
        };
        let notation = self.notation;
        let columns = columns(rows, header);
        let is_export = flat::columns(kind.table(), false).iter().all(|name| {
            let name = comparable(name);
            columns
                .iter()
                .any(|column| comparable(&column.name) == name)
        });
        let assigned = assign(kind, columns, header.rows > 0, &notation);
        let columns = &assigned.columns;
        let empty = empty_texts(columns);
        let empty_in = columns.iter().filter_map(|column| {
            let texts = empty_in_field(column, &empty, &notation);
            let field = column.fields.first().filter(|_| !texts.is_empty())?;
            let texts = texts
                .into_iter()
                .map(|(text, count)| (text.to_owned(), count));
            Some((*field, texts.collect()))
        });
        Some(Draft {
            kind,
            sheet: None,
            other_sheets: Vec::new(),
            encoding: self.encoding.map(|encoding| encoding.name()),
            header_rows: header.rows,
            is_export,
            decimal: decimal_sign(columns, &notation),
            dates: date_order(columns),
            separator: list_separator(columns),
            empty_in: empty_in.collect(),
            empty,
            assigned,
        })
    }
}

impl Draft {
    /// Returns true if a column is read as the name.
    pub fn has_name(&self) -> bool {
        self.assigned.column_of("name").is_some()
    }

    /// Returns the number of columns that are read.
    pub fn mapped_count(&self) -> usize {
        let columns = self.assigned.columns.iter();
        columns.filter(|column| !column.fields.is_empty()).count()
    }
}
