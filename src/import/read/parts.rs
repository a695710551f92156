//! The parts of a source, each with rows of one kind: a text, or the sheets of a workbook.

use std::io;
use std::sync::Arc;

use encoding_rs::Encoding;

use super::csv::CsvTable;
use super::json_rows::{read_json, read_jsonl};
use super::options::ReadOptions;
use super::row_kind::RowKind;
use super::row_sink::RowSink;
use super::source::{FileFormat, Source, SourceContent};
use super::table_cell::{Container, Notation};
use super::workbook::Workbook;

/// A part of a source.
pub(in crate::import) struct Part<'w> {
    pub kind: RowKind,
    /// The name in reports.
    pub name: Arc<str>,
    /// The encoding, if it was guessed.
    pub encoding: Option<&'static Encoding>,
    pub container: Container,
    /// The separator of the cells of a text.
    pub separator: u8,
    /// Reads all rows.
    pub read: ReadRows<'w>,
}

/// A function that passes all rows to a sink.
type ReadRows<'w> = Box<dyn FnOnce(&mut dyn RowSink) -> io::Result<()> + 'w>;

impl Part<'_> {
    /// Returns how the part writes its cells, as far as that is known.
    pub fn notation(&self, options: &ReadOptions) -> Notation {
        Notation {
            container: self.container,
            has_semicolons: self.separator == b';',
            ..options.notation()
        }
    }
}

/// Passes each part of a source that is imported to `take`. Returns the quoted names of the other sheets.
pub(in crate::import) fn each_part(
    source: &Source,
    options: &ReadOptions,
    mut take: impl FnMut(Part<'_>) -> io::Result<()>,
) -> io::Result<Vec<String>> {
    let bounds = options.bounds;
    match source.open(options)? {
        SourceContent::Text {
            format,
            guessed,
            content,
        } => {
            let kind = source.kind.ok_or_else(|| {
                io::Error::other("it is not a workbook; name its dataset with --dataset")
            })?;
            let mut part = Part {
                kind,
                name: source.name.clone(),
                encoding: guessed,
                container: Container::Json,
                separator: b',',
                read: Box::new(|_| Ok(())),
            };
            match format {
                FileFormat::Jsonl => {
                    part.read = Box::new(move |rows| read_jsonl(content, &bounds, rows));
                }
                FileFormat::Json => {
                    let fields = &kind.table().fields;
                    part.read = Box::new(move |rows| read_json(content, fields, &bounds, rows));
                }
                FileFormat::Csv | FileFormat::Xlsx => {
                    let table = CsvTable::open(content, kind, options)?;
                    part.container = Container::Csv;
                    part.separator = table.separator;
                    part.read = Box::new(|rows| table.read(rows));
                }
            }
            take(part)?;
            Ok(Vec::new())
        }
        SourceContent::Workbook(file) => {
            let mut workbook = Workbook::open(file, &bounds)?;
            let chosen = workbook.choose(source.kind, &options.sheets)?;
            for (kind, name) in chosen.sheets {
                let sheet = workbook.sheet(&name)?;
                take(Part {
                    kind,
                    name: format!("{}[{}]", source.name, name.trim()).into(),
                    encoding: None,
                    container: sheet.container,
                    separator: b',',
                    read: Box::new(move |rows| sheet.read(&bounds, rows)),
                })?;
            }
            Ok(chosen.skipped)
        }
    }
}
