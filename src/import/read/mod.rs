//! Phase 1: reads files into rows.
//!
//! In reading order:
//! - [`source`]: input files, folders and standard input.
//! - [`bounds`]: limits on the input. [`options`]: other options for reading.
//! - [`sources`]: reads all sources into rows.
//! - `jsonl` and `json` read JSON lines. `json_list` reads other JSON files. `csv` (with `csv_reader`) and `workbook` pass
//!   rows of cells to `tabular`, which finds the header.
//! - [`cells`] normalizes cells, with `dates` and `numbers`. `notation` says how a table writes them. `address` handles
//!   cells with a hyperlink. `statement` holds the values of a row.
//! - `utf16` decodes UTF-16.

mod address;
pub mod bounds;
pub mod cells;
mod csv;
mod csv_reader;
pub(in crate::import) mod dates;
mod json;
mod json_list;
mod jsonl;
mod notation;
mod numbers;
pub mod options;
pub mod source;
pub mod sources;
pub(in crate::import) mod statement;
mod tabular;
mod utf16;
mod workbook;
