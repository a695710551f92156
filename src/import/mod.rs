//! Import: curated files in, one validated [`Batch`](crate::store::write::batch::Batch) out, or every reason why not.
//!
//! A run has three phases. Reading needs nothing but the files. Merging needs a state: a snapshot, so that neither phase holds
//! the writer's lock. Applying takes the lock, and only where the state is still the one that the rows were merged with; else
//! the run begins again. Every bad row of the first two is reported at once. They walk the field tables of
//! [`model::field`](crate::model::field): a new field needs no line here.
//!
//! In reading order:
//! - [`source`]: where rows come from: files, folders, standard input.
//! - [`bounds`]: how much of them is read; [`options`]: how else it is read.
//! - [`rows`]: rows as the files state them, before they meet what is stored.
//! - [`read`]: phase 1, files to rows. `jsonl` reads JSON lines, `json` one of them, duplicate keys seen. `csv` (with
//!   `quoting`) and `workbook` give rows of cells to `tabular`, which finds their header; `cells` brings cells into form,
//!   and `address` picks the address of a cell with a hyperlink.
//!   `statement` is what a row states.
//! - [`mod@merge`]: phase 2, rows to a batch, by the rules in docs/import.md.
//! - `apply`: phase 3.
//! - [`lint`]: what is most likely a mistake, though no rule forbids it.
//! - [`report`]: what a run says about rows: `finding` is one of its lines, [`groups`] those of one kind as one.
//! - `names`: remedies for unknown names; `utf16`: texts in UTF-16.

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
