//! Phase 1: reads files into rows.
//!
//! In reading order:
//! - [`source`]: input files, folders and standard input.
//! - [`bounds`]: limits on the input. [`options`]: other options for reading.
//! - [`sources`]: reads all sources into rows.
//! - [`recipe`] reads the options of a source from a file. `draft` drafts it from a [`sample`] of the file.
//! - `jsonl` and `json` read JSON lines. `json_list` reads other JSON files. `csv` (with `csv_reader`) and `workbook` pass
//!   rows of cells to `tabular`. `columns` reads its header, and [`column_name`] is a name in an option.
//! - `mapped` and `parts` read texts as fields. [`cells`] normalizes them, with `dates` and `numbers`. `notation` says how a
//!   table writes them. `address` handles cells with a hyperlink. `table_row` reads a row of cells, and
//!   `statement` holds its values.
//! - `encoding` decodes texts that are not UTF-8.

mod address;
pub mod bounds;
pub mod cells;
pub mod column_name;
mod columns;
mod csv;
mod csv_reader;
pub(in crate::import) mod dates;
mod draft;
mod encoding;
mod json;
mod json_list;
mod jsonl;
mod mapped;
mod notation;
mod numbers;
pub mod options;
mod parts;
pub mod recipe;
pub mod sample;
pub mod source;
pub mod sources;
pub(in crate::import) mod statement;
mod table_cell;
mod table_row;
mod tabular;
mod workbook;
