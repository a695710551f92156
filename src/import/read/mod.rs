//! Phase 1: reads files into rows ([`read_sources`]). It needs no database and no lock.
//!
//! The steps:
//! 1. [`source`] finds the files, opens them, and decodes them to UTF-8. [`options`] say how they are read, within
//!    bounds. [`recipe`] reads the options of a source from a file.
//! 2. `parts` has the tables and lists of a source. `csv` and `workbook` pass rows of cells to a `RowSink`, and
//!    `json_rows` passes objects. [`sample`] takes the first ones, from which `draft` drafts a recipe. An import takes
//!    all: `tabular` finds the header, and `columns` gives its names a meaning. The members of an object are read like
//!    cells; their paths are the header.
//! 3. The `RowReader` in `table_row` reads a row of cells as the values of a `statement`. [`cells`] brings each into the
//!    form of its field, with `dates`. `shared_cells` has the cells of several fields, and `loose` what a cell of a list
//!    of others may be beside.

pub mod bad_rows;
pub mod cells;
pub(in crate::import) mod column_name;
mod columns;
mod csv;
mod currency;
pub mod dates;
pub mod draft;
mod json;
mod json_rows;
mod loose;
mod numbers;
pub mod options;
mod parts;
pub mod recipe;
pub mod row_kind;
mod row_sink;
pub mod sample;
mod shared_cells;
pub mod source;
pub(in crate::import) mod statement;
pub(in crate::import) mod table_cell;
mod table_row;
mod tabular;
pub(in crate::import) mod words;
mod workbook;

use std::io;
use std::path::Path;

use crate::import::findings::Finding;
use crate::import::row_faults::UnknownNames;
use crate::import::rows::{FileRows, ImportRows, ListOptions};
use crate::model::Fields;
use crate::model::message::{Message, message};
use options::{InputError, ReadOptions, all_columns, columns_with_companions};
use parts::{Part, each_part};
use source::{RowKind, Source};
use tabular::TableReader;

/// Reads all sources. Bad rows are not an error here: [`merge`](crate::import::merge::merge) reports them together with
/// its own.
pub fn read_sources(sources: &[Source], options: &ReadOptions) -> Result<ImportRows, InputError> {
    let mut rows = ImportRows {
        list: ListOptions {
            is_list: !options.matching.is_empty(),
            matching: options.match_sets(""),
            leaves_out_new: options.leaves_out_new,
            update: options
                .update
                .as_ref()
                .map(|fields| columns_with_companions(&fields.value)),
            clear: options
                .clear
                .iter()
                .flat_map(|fields| all_columns(&fields.value))
                .collect(),
            creates_links: options.create_links,
        },
        ..ImportRows::default()
    };
    for source in sources {
        read_source(source, options, &mut rows)
            .map_err(|error| InputError::unreadable(Path::new(&*source.name), &error))?;
    }
    rows.effects.check_used(options)?;
    rows.notes.extend(rows.effects.notes());
    Ok(rows)
}

fn read_source(source: &Source, options: &ReadOptions, rows: &mut ImportRows) -> io::Result<()> {
    if source.is_skipped {
        let message = "is skipped, since its name is none of `conferences`, `journals`, `organizations` and `tags`; rename \
                       it, or import it alone with --dataset";
        rows.warn_of_file(&source.name, "file_passed_over", message.into());
        return Ok(());
    }
    let skipped = each_part(source, options, |part| read_part(part, options, rows))?;
    if !skipped.is_empty() {
        let message = message!(
            "skipped {}; only sheets named `conferences`, `journals`, `organizations` or `tags` are read",
            skipped.join(", ")
        );
        rows.warn_of_file(&source.name, "sheet_passed_over", message);
    }
    Ok(())
}

impl ImportRows {
    /// Adds a warning about a whole file.
    fn warn_of_file(&mut self, file: &str, rule: &'static str, message: Message) {
        self.warnings.add(Finding {
            file: Some(file.to_owned()),
            message,
            rule: Some(rule),
            ..Finding::default()
        });
    }
}

/// Reads the rows of a part.
fn read_part(part: Part<'_>, options: &ReadOptions, rows: &mut ImportRows) -> io::Result<()> {
    let kind = part.kind;
    let file = &part.name.clone();
    let ImportRows {
        organizations,
        tags,
        conferences,
        journals,
        bad,
        warnings,
        effects,
        ..
    } = rows;
    effects.rows_read = 0;
    macro_rules! read {
        ($rows:ident) => {
            read_rows(
                part,
                &mut FileRows {
                    file,
                    options,
                    rows: $rows,
                    bad,
                    unknown: UnknownNames::new(options.ignore_unknown),
                    warnings: &mut *warnings,
                    effects,
                },
            )
        };
    }
    let row_count = match kind {
        RowKind::Organizations => read!(organizations),
        RowKind::Tags => read!(tags),
        RowKind::Conferences => read!(conferences),
        RowKind::Journals => read!(journals),
    }?;
    if row_count == 0 {
        let message = message!("has no rows, so it changes no {kind}");
        rows.warn_of_file(file, "no_rows", message);
    }
    Ok(())
}

/// Reads the rows of a part. Returns their number, including bad ones.
fn read_rows<F: Fields>(part: Part<'_>, rows: &mut FileRows<'_, F>) -> io::Result<usize> {
    let options = rows.options;
    let mut table = TableReader::new(rows, part.notation(options));
    (part.read)(&mut table)?;
    Ok(table.finish())
}
