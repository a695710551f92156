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
use crate::import::read::workbook::Workbook;
pub use toml_text::Draft;

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
    let choices = match sheets.len() {
        1 if sheet.is_none() => vec![&[][..]],
        0 => vec![&[][..]],
        _ => sheets.chunks(1).collect(),
    };
    let mut drafts = Vec::new();
    let mut bad = Findings::default();
    for chosen in choices {
        let sample = FileSample::read(source, kind, chosen)?;
        drafts.extend(Draft::new(&sample, &sheets, chosen.first()));
        bad.append(sample.bad);
    }
    // In reverse, since `max_by_key` returns the last maximum.
    let drafts = drafts.into_iter().rev();
    let best = drafts.max_by_key(|draft| (draft.has_name, draft.mapped_count));
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
