//! Import: curated files in, one validated [`Batch`](crate::store::write::batch::Batch) out, or every reason why not.
//!
//! A run has two phases. Reading needs nothing but the files and holds no lock; merging is judged in the very state
//! that will be changed, under the writer's lock. Every bad row of both is reported at once. Both phases walk the
//! field tables of [`model::field`](crate::model::field): a new field needs no line here.
//!
//! In reading order:
//! - [`source`]: where rows come from: files, folders, standard input.
//! - [`bounds`]: how much of them is read.
//! - [`rows`]: rows as the files state them, before they meet what is stored.
//! - [`read`]: phase 1, files to rows; `jsonl` and `csv` are the two formats, `statement` what their rows state,
//!   `json` a JSON reader that sees duplicate keys.
//! - [`mod@merge`]: phase 2, rows to a batch, by the rules that the README tells under "Import".
//! - [`lint`]: what is most likely a mistake, though no rule forbids it.
//! - [`report`]: what a run says about rows.
//! - `names`: the nearest known name.

pub mod bounds;
mod csv;
mod json;
mod jsonl;
pub mod lint;
pub mod merge;
mod names;
pub mod read;
pub mod report;
pub mod rows;
pub mod source;
mod statement;
mod table;

pub use bounds::Bounds;
pub use merge::{Merged, Options, Refusal, TooManyRemovals, merge};
pub use read::{ReadError, read_sources};
pub use report::{BadRows, Finding, Position};
pub use rows::Rows;
pub use source::{Format, RowKind, Source, SourceError};
