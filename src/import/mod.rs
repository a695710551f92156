//! Import: reads curated files, and returns one validated [`Batch`](crate::store::write::batch::Batch) or all faults.
//!
//! An import has three phases. Phase 1 reads the files. Phase 2 merges their rows with a snapshot of the database.
//! Neither holds the write lock. Phase 3 takes the lock and applies the batch. If the database has changed since phase
//! 2, the import starts again. Phases 1 and 2 report all bad rows together. They use the field tables of
//! [`model::field`](crate::model::field), so a new field needs no change here.
//!
//! In reading order:
//! - [`source`]: input files, folders and standard input.
//! - [`bounds`]: limits on the input. [`read_options`]: other options for reading.
//! - [`rows`]: rows of files, not yet merged with stored rows.
//! - [`read`]: phase 1, files to rows. `jsonl` and `json` read JSON lines. `csv` (with `quoting`) and `workbook` pass
//!   rows of cells to `tabular`, which finds the header. `cells` normalizes cells. `address` handles cells with a
//!   hyperlink. `statement` holds the values of a row.
//! - [`mod@merge`]: phase 2, rows to a batch. The rules are in docs/import.md.
//! - `apply`: phase 3.
//! - [`lint`]: warnings about probable mistakes.
//! - [`report`]: the faults and warnings of an import. `finding` is one of them, [`groups`] combines similar ones.
//! - `suggestions`: remedies for unknown names. `utf16`: UTF-16 decoding.

mod address;
mod apply;
pub mod bounds;
pub mod cells;
mod csv;
mod finding;
pub mod groups;
mod json;
mod jsonl;
pub mod lint;
pub mod merge;
mod quoting;
pub mod read;
pub mod read_options;
pub mod report;
pub mod rows;
pub mod source;
mod statement;
mod suggestions;
mod tabular;
mod utf16;
mod workbook;

pub use apply::apply;
pub use bounds::Bounds;
pub use cells::{DateOrder, DecimalSign};
pub use groups::{FindingGroup, group};
pub use merge::{AssignedId, MergeOptions, Merged, Refusal, TooManyRemovals, merge};
pub use read::{ReadError, read_sources};
pub use read_options::{ReadOptions, Rename, read_renames};
pub use report::{BadRows, FilePosition, Finding};
pub use rows::ImportRows;
pub use source::{FileFormat, RowKind, Source, SourceError, SourceOptions};
