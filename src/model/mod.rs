//! The plain types of medfeed and their rules: no storage, no network, no clock but [`time::now`].
//!
//! In reading order:
//! - [`dataset`] and [`id`]: what is named in every path and every row.
//! - [`number`], [`time`], [`status`]: the small values with rules of their own.
//! - [`value`]: the kinds of field values, each with its JSON, CSV, schema and parser.
//! - [`field`]: the fields of a row as a table. JSON, CSV, import and documentation go over these tables.
//! - [`curated`]: a row whose rules hold; [`conference`], [`journal`], [`mod@reference`] are the four kinds; [`filter`]: what
//!   lists of records are filtered by.
//! - [`json`] and [`flat`]: the two shapes that a row takes outside.
//! - [`license`] and [`key`]: who may see what, and what an answer rests on; [`network`]: from where.
//! - [`replication`]: what an origin, its replicas and the bucket between them agree on.
//! - [`country`]: the countries that are known, with their regions and aliases.
//! - [`fold`]: text folding for `q` and alphabetical order; [`nearest`]: suggestions for misspelt names.
//! - [`printable`]: texts from outside, made safe for a terminal; [`shell`]: in command lines.

pub mod conference;
pub mod country;
pub mod curated;
pub mod dataset;
pub mod field;
pub mod filter;
pub mod flat;
pub mod fold;
pub mod id;
pub mod journal;
pub mod json;
pub mod key;
pub mod license;
pub mod nearest;
pub mod network;
pub mod number;
pub mod printable;
pub mod reference;
pub mod replication;
pub mod shell;
pub mod status;
pub mod time;
pub mod value;

#[cfg(test)]
mod tests;

pub use conference::{Conference, ConferenceFields};
pub use curated::{Curated, Fault, Fields, RecordFields};
pub use dataset::{Dataset, ExportFormat, PerDataset};
pub use filter::{Condition, Filter};
pub use id::Id;
pub use journal::{Access, Journal, JournalFields};
pub use key::{ApiKey, KeyHash, KeyRecord};
pub use license::{FeedId, License, LicenseId, Rule, Scope, Subscription, Witness};
pub use number::Number;
pub use reference::{Organization, OrganizationFields, ReferenceKind, References, Tag, TagFields};
pub use replication::{CommitInfo, DatabaseId, Head, RowDigest};
pub use status::DateStatus;
pub use time::Timestamp;
