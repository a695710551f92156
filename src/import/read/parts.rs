//! The parts of a source, each with rows of one kind: a text, or the sheets of a workbook.

use std::io::{self, Read};
use std::sync::Arc;

use encoding_rs::Encoding;

use super::csv::CsvTable;
use super::json_rows::{read_json, read_jsonl};
use super::options::{Bounds, ReadOptions};
use super::row_kind::RowKind;
use super::row_sink::RowSink;
use super::source::{FileFormat, Source, SourceContent};
use super::table_cell::{Container, Notation};
use super::workbook::{SheetRows, Workbook};

/// A part of a source.
pub(in crate::import) struct Part<'w> {
    pub kind: RowKind,
    /// The name in reports.
    pub name: Arc<str>,
    /// The encoding, if it was guessed.
    pub encoding: Option<&'static Encoding>,
    content: PartContent<'w>,
}

enum PartContent<'w> {
    Jsonl(Box<dyn Read>),
    Json(Box<dyn Read>),
    Csv(Box<CsvTable<Box<dyn Read>>>),
    Sheet(Box<SheetRows<'w>>),
}

impl Part<'_> {
    /// Returns how the part writes its cells, as far as that is known.
    pub fn notation(&self, options: &ReadOptions) -> Notation {
        Notation {
            container: match &self.content {
                PartContent::Jsonl(_) | PartContent::Json(_) => Container::Json,
                PartContent::Csv(_) => Container::Csv,
                PartContent::Sheet(sheet) => sheet.container(),
            },
            has_semicolons: self.separator() == b';',
            ..options.notation()
        }
    }

    /// Returns the separator of the cells of a text.
    pub fn separator(&self) -> u8 {
        match &self.content {
            PartContent::Csv(table) => table.separator(),
            _ => b',',
        }
    }

    /// Reads all rows.
    pub fn read(self, bounds: &Bounds, rows: &mut impl RowSink) -> io::Result<()> {
        match self.content {
            PartContent::Jsonl(content) => read_jsonl(content, bounds, rows),
            PartContent::Json(content) => read_json(content, bounds, rows),
            PartContent::Csv(table) => (*table).read(rows),
            PartContent::Sheet(sheet) => sheet.read(bounds, rows),
        }
    }
}

/// Passes each part of a source that is imported to `take`. Returns the quoted names of the other sheets.
pub(in crate::import) fn each_part(
    source: &Source,
    options: &ReadOptions,
    mut take: impl FnMut(Part<'_>) -> io::Result<()>,
) -> io::Result<Vec<String>> {
    match source.open(options)? {
        SourceContent::Text {
            format,
            guessed,
            content,
        } => {
            let kind = source.kind.ok_or_else(|| {
                io::Error::other("it is not a workbook; name its dataset with --dataset")
            })?;
            let content = match format {
                FileFormat::Jsonl => PartContent::Jsonl(content),
                FileFormat::Json => PartContent::Json(content),
                FileFormat::Csv | FileFormat::Xlsx => {
                    PartContent::Csv(Box::new(CsvTable::open(content, kind.table(), options)?))
                }
            };
            take(Part {
                kind,
                name: source.name.clone(),
                encoding: guessed,
                content,
            })?;
            Ok(Vec::new())
        }
        SourceContent::Workbook(file) => {
            let mut workbook = Workbook::open(file, &options.bounds)?;
            let chosen = workbook.choose(source.kind, &options.sheets)?;
            for (kind, sheet) in chosen.sheets {
                take(Part {
                    kind,
                    name: format!("{}[{}]", source.name, sheet.trim()).into(),
                    encoding: None,
                    content: PartContent::Sheet(Box::new(workbook.sheet(&sheet)?)),
                })?;
            }
            Ok(chosen.skipped)
        }
    }
}
