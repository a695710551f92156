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
//!
//! Reading takes one row at a time, within bounds (`import/read/bounds.rs`), and without the lock for writing. Only a
//! `.json` file is in memory as a whole. Options and recipes become one structure (`import/read/options.rs`). JSON
//! objects are read like the rows of a table. The paths of their members are its header. The calamine crate reads
//! workbooks (`import/read/workbook`). Before that, all parts are inflated and counted, since the sizes in the file
//! may be wrong. The cells are streamed; shared strings, styles and hyperlinks stay in memory. The meaning of a number
//! format is found once for each style: digits, a date, or something else than the stored number. Rows are checked
//! against a snapshot, without the lock (One writer, many readers). The text of a fault or warning is a `Message`
//! (`model/message.rs`). Its code is the format string of `message!`. Reports group findings of one field and code
//! (`import/report/groups.rs`).
//!
//! Lint (`import/lint`) is a set of small rules. It compares names and words with those of all records of the
//! snapshot. So an import of one record reads the whole database, which takes about a second for 100,000 records. It
//! looks for misspellings among at most 5,000 different words (`import/lint/spellings.rs`). A message may carry the
//! right value. `import --fix` writes it: texts before rows are matched with records, words after all rows are merged.

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
