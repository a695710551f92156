//! Import: reads curated files, and returns one validated [`Batch`](crate::store::write::batch::Batch) or all faults.
//!
//! An import has three phases. Phase 1 reads the files. Phase 2 merges their rows with a snapshot of the database.
//! Neither holds the write lock. Phase 3 takes the lock and applies the batch ([`Edit::apply`](crate::store::Edit::apply)). If there is another commit since phase
//! 2, the rows are merged again, under the lock. Phases 1 and 2 report all bad rows together. They use the field tables of
//! [`model::field`](crate::model::field), so a new field needs no change here.
//!
//! In reading order:
//! - [`rows`]: rows of files, not yet merged with stored rows.
//! - [`read`]: phase 1, files to rows.
//! - [`mod@merge`]: phase 2, rows to a batch. The rules are in docs/import.md.
//! - [`lint`]: warnings about probable mistakes.
//! - [`report`]: the faults and warnings of an import.

pub mod lint;
pub mod merge;
pub mod read;
pub mod report;
pub mod rows;

pub use merge::{AssignedId, MergeOptions, Merged, Refusal, TooManyRemovals, merge};
pub use read::bounds::Bounds;
pub use read::cells::{DateOrder, DecimalSign};
pub use read::column_name::ColumnName;
pub use read::options::{ColumnMapping, Given, ReadOptions, Word};
pub use read::recipe::read_recipe;
pub use read::sample::FileSample;
pub use read::source::{FileFormat, RowKind, Source, SourceError, SourceOptions};
pub use read::sources::{ReadError, read_sources};
pub use report::faults::{BadRows, FilePosition, Finding};
pub use report::groups::{FindingGroup, group};
pub use rows::ImportRows;
