//! Import: reads curated files, and returns one validated [`Batch`](crate::store::write::edit::Batch) or all faults.
//!
//! The steps of a row:
//! 1. [`read`]: files become [`rows`], one at a time, within [`Bounds`]. A `.json` file, and a text that is
//!    not UTF-8, are in memory as a whole. The field tables of [`model::field`](crate::model::field) decide what is
//!    read, so a new field needs no change here.
//! 2. [`mod@merge`]: rows are merged with a snapshot of the database to a batch. The rules are in docs/import.md, and
//!    those of lists of others in docs/recipes.md. It
//!    ends with [`lint`], the warnings about probable mistakes. A message may carry the right value, which `import
//!    --fix` writes.
//! 3. The command (`cli/commands/import.rs`) takes the write lock, and applies the batch
//!    ([`Edit::apply`](crate::store::Edit::apply)). If there is another commit since step 2, the rows are merged again,
//!    under the lock.
//!
//! Steps 1 and 2 report all bad rows together. `row_faults` collects those of a row. [`findings`] holds bad rows and
//! warnings, and groups similar ones. The text of each is a `Message` (`model/message.rs`). Its code is the format
//! string of `message!`.
//!
//! Lint compares new names, numbers, words and days with those of the records of the snapshot. A few new names are
//! compared only with those of the same year or day. New words and days, and many names, with all records, which takes
//! about a second for 100,000. An import of other values reads only its own records.

pub mod findings;
pub mod lint;
pub mod merge;
pub mod read;
mod row_faults;
pub mod rows;

pub use findings::{FilePosition, Finding, FindingGroup, Findings};
pub use merge::{ListCounts, MergeOptions, Merged, Refusal, merge};
pub use read::bad_rows::SourceRows;
pub use read::dates::DateOrder;
pub use read::draft::{Draft, draft_recipe};
pub use read::options::{
    Bounds, ColumnMapping, ColumnName, Given, InputError, ReadOptions, TextEncoding, Word,
};
pub use read::read_sources;
pub use read::recipe::{parse_recipe, read_recipe};
pub use read::source::{FileFormat, RowKind, Source, SourceOptions};
pub use read::table_cell::DecimalSign;
pub use rows::FilledFields;
pub use rows::ImportRows;
