//! The plain types of medfeed and their rules: no storage, no network, and no clock except [`time::now`].
//!
//! In reading order:
//! - [`dataset`]: datasets and ids, the parts of every path and row key.
//! - [`time`]: dates and timestamps.
//! - [`value`]: the kinds of field values, each with its JSON, CSV, schema and parser.
//! - [`field`]: the table of a row's fields. JSON, CSV, import and documentation use these tables.
//! - [`curated`]: a row that follows all rules. [`records`] and [`mod@reference`] are the kinds of
//!   rows.
//! - [`mod@message`]: messages about wrong values.
//! - [`filter`]: the filters of lists.
//! - [`json`] and [`flat`]: rows as JSON and as CSV.
//! - [`license`] and [`key`]: licenses, and API keys with the networks of their callers.
//! - [`replication`]: the identity of a database and of its commits.
//! - [`country`]: the known countries, with their regions and aliases.
//! - [`mod@fold`]: text folding for `q` and alphabetical order, and suggestions for misspelt names.
//! - [`printable`]: foreign texts, made safe for terminals and for command lines.

pub mod country;
pub mod curated;
pub mod dataset;
pub mod field;
pub mod filter;
pub mod flat;
pub mod fold;
pub mod json;
pub mod key;
pub mod license;
pub mod message;
pub mod printable;
pub mod records;
pub mod reference;
pub mod replication;
#[cfg(test)]
mod tests;
pub mod time;
pub mod value;

pub use curated::{Curated, Fault, Fields, RecordFields};
pub(crate) use dataset::with_fields;
pub use dataset::{Dataset, ExportFormat, Id, PerDataset};
pub use field::Field;
pub use filter::{FieldCondition, Filter};
pub use fold::{fold, match_form, nearest};
pub use key::{ApiKey, KeyHash, KeyRecord, KeyStatus, network_of, parse_network};
pub use license::{FeedId, License, LicenseId, Rule, Scope, Subscription, Witness};
pub(crate) use message::message;
pub use message::{Count, Joined, Message, Remedy, first_of};
pub use printable::{Printable, ShellWord, printable_json, steers};
pub use records::{Access, Conference, ConferenceFields, DateStatus, Journal, JournalFields};
pub use reference::{
    Organization, OrganizationFields, ReferenceFields, ReferenceKind, Referenced, References, Tag,
    TagFields,
};
pub use replication::{CommitInfo, DatabaseId, Head, RowDigest};
pub use time::{DAY_S, Timestamp, now, parse_date, parse_time, since_boot};
pub use value::scalar::Number;
pub use value::{FieldValue, JsonType, LinkTexts, ValueKind};
