//! Reading one committed state.
//!
//! - [`snapshot`]: one committed state, and its commits.
//! - [`records`]: the records in memory, and the values that filters read.
//! - [`feed_index`]: a feed in memory, and the entries of one license.
//!
//! # Data in memory
//!
//! | data | module | content |
//! | --- | --- | --- |
//! | records | `store/read/records.rs` | all records of a dataset: their JSON, and the values that filters, `q` and reference lists read |
//! | feeds | `store/read/feed_index.rs` | the entries of a feed in use by seq, and the records that it shows by id |
//! | segments | `query/segments.rs` | compressed parts of exports |
//!
//! - **Records** are shared by all licenses. A server reads them before its first response, and compares each with its
//!   hash. A record keeps its *slot* as long as it exists. A commit changes a copy: unchanged records are shared, and
//!   columns of numbers are copied. Organizations and tags are read with the records, before a state is shown. Then
//!   responses read only the table `commits`.
//! - **Feeds** are read when a license first uses them, then updated by each commit. Each feed has a sum of counts
//!   and a digest, which is sealed. A feed must add up to its sum, so a row that an index lost is noticed. Each entry
//!   must name the seq of a record in memory, so a lost record is noticed too. A damaged record fails the answers that
//!   contain it, and the filters and reference lists of the licenses that show it.
//! - **Filters** walk the list of a feed, and never all records. So their time does not depend on hidden records. A
//!   name that only hidden records have takes as long as one that no record has.
//! - **Segments.** An export is a gzip member made of segments that end with a full flush. The cuts depend on the
//!   hashes of visible records. After a commit, only changed segments are compressed again.
//!
//! If the history does not contain the commit of the data in memory, they are read anew.

pub mod feed_index;
pub mod records;
pub mod snapshot;
