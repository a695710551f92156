//! Phase 1: reads files into rows ([`read_sources`]). It needs no database and no lock.
//!
//! The steps:
//! 1. [`source`] finds the files, opens them, and decodes them to UTF-8. [`options`] say how they are read, within
//!    bounds. [`recipe`] reads the options of a source from a file.
//! 2. `csv` and `workbook` pass rows of cells to a `TableSink`, and `json_rows` passes objects to an `ObjectSink`.
//!    [`sample`] takes the first ones, from which `draft` drafts a recipe. An import takes all: `tabular` finds the
//!    header, and `columns` gives its names a meaning. The members of an object are read like cells; their paths are
//!    the header.
//! 3. The `RowReader` in `table_row` reads a row of cells as the values of a `statement`. [`cells`] brings each into the
//!    form of its field, with `dates`. `loose` has what a cell of a list of others may be beside.

pub mod bad_rows;
pub mod cells;
mod columns;
mod csv;
pub mod dates;
pub mod draft;
mod json;
mod json_rows;
mod loose;
pub mod options;
pub mod recipe;
pub mod row_kind;
pub mod sample;
pub mod source;
pub(in crate::import) mod statement;
mod table_row;
mod tabular;
mod workbook;

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::import::findings::Finding;
use crate::import::read::cells::Notation;
use crate::import::read::csv::CsvTable;
use crate::import::read::json_rows::{ObjectReader, read_json, read_jsonl};
use crate::import::read::options::{InputError, ReadOptions, all_columns, columns_with_companions};
use crate::import::read::source::{FileFormat, RowKind, Source, SourceContent};
use crate::import::read::tabular::TableReader;
use crate::import::read::workbook::{OpenSheet, Workbook};
use crate::import::row_faults::UnknownNames;
use crate::import::rows::{FileRows, ImportRows, ListOptions};
use crate::model::Fields;
use crate::model::message::message;

/// Reads all sources. Bad rows are not an error here: [`merge`](crate::import::merge::merge) reports them together with
/// its own.
pub fn read_sources(sources: &[Source], options: &ReadOptions) -> Result<ImportRows, InputError> {
    let matching = options.match_sets("").into_iter();
    let matching = matching
        .map(|set| set.into_iter().map(str::to_owned).collect())
        .collect();
    let mut rows = ImportRows {
        list: ListOptions {
            is_list: !options.matching.is_empty(),
            matching,
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
        },
        create_links: options.create_links,
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
        let message =
            "is skipped, since its name is none of `conferences`, `journals`, `organizations` and `tags`; rename \
                       it, or import it alone with --dataset"
                .into();
        let file = Some(source.name.to_string());
        rows.warnings.add(Finding {
            file,
            message,
            rule: Some("file_passed_over"),
            ..Finding::default()
        });
        return Ok(());
    }
    match source.open(options)? {
        SourceContent::Text {
            format, content, ..
        } => {
            let kind = source.kind.ok_or_else(|| {
                io::Error::other("it is not a workbook; name its dataset with --dataset")
            })?;
            read_kind(
                kind,
                &source.name,
                options,
                rows,
                RowSource::Text(format, content),
            )
        }
        SourceContent::Workbook(file) => {
            let mut workbook = Workbook::open(file, &options.bounds)?;
            let chosen = workbook.choose(source.kind, &options.sheets)?;
            if !chosen.skipped.is_empty() {
                let message = message!(
                    "skipped {}; only sheets named `conferences`, `journals`, `organizations` or `tags` are read",
                    chosen.skipped.join(", ")
                );
                let file = Some(source.name.to_string());
                rows.warnings.add(Finding {
                    file,
                    rule: Some("sheet_passed_over"),
                    ..Finding::about(None, None, message)
                });
            }
            for (kind, sheet) in chosen.sheets {
                let name = format!("{}[{}]", source.name, sheet.trim()).into();
                read_kind(
                    kind,
                    &name,
                    options,
                    rows,
                    RowSource::Sheet(workbook.sheet(&sheet)?),
                )?;
            }
            Ok(())
        }
    }
}

/// An input whose rows are all of one kind.
enum RowSource<'w> {
    Text(FileFormat, Box<dyn io::Read>),
    Sheet(OpenSheet<'w>),
}

impl RowSource<'_> {
    /// Reads the rows, and returns their number, including bad ones.
    fn read<F: Fields>(self, rows: &mut FileRows<'_, F>) -> io::Result<usize> {
        let options = rows.options;
        match self {
            RowSource::Text(FileFormat::Jsonl, content) => {
                let mut objects = ObjectReader::new(rows);
                read_jsonl(content, &options.bounds, &mut objects)?;
                Ok(objects.finish())
            }
            RowSource::Text(FileFormat::Json, content) => {
                let mut objects = ObjectReader::new(rows);
                read_json(content, &options.bounds, &mut objects)?;
                Ok(objects.finish())
            }
            RowSource::Text(FileFormat::Csv | FileFormat::Xlsx, content) => {
                let csv = CsvTable::open(content, F::table(), options)?;
                let mut table = TableReader::new(rows, csv.notation(options));
                csv.read(&mut table)?;
                Ok(table.finish())
            }
            RowSource::Sheet(sheet) => {
                let notation = Notation {
                    container: sheet.container(),
                    ..options.notation()
                };
                let mut table = TableReader::new(rows, notation);
                sheet.read(&options.bounds, &mut table)?;
                Ok(table.finish())
            }
        }
    }
}

/// Reads the rows of one kind.
fn read_kind(
    kind: RowKind,
    file: &Arc<str>,
    options: &ReadOptions,
    rows: &mut ImportRows,
    from: RowSource<'_>,
) -> io::Result<()> {
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
            from.read(&mut FileRows {
                file,
                options,
                rows: $rows,
                bad,
                unknown: UnknownNames::new(options.ignore_unknown),
                warnings: &mut *warnings,
                effects,
            })
        };
    }
    let row_count = match kind {
        RowKind::Organizations => read!(organizations),
        RowKind::Tags => read!(tags),
        RowKind::Conferences => read!(conferences),
        RowKind::Journals => read!(journals),
    }?;
    if row_count == 0 {
        warnings.add(Finding {
            file: Some(file.to_string()),
            message: message!("has no rows, so it changes no {kind}"),
            rule: Some("no_rows"),
            ..Finding::default()
        });
    }
    Ok(())
}
