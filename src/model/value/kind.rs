//! What every kind of field value can do.

use std::borrow::Cow;

use serde_json::Value as Schema;

use super::json::Json;
use crate::model::id::Id;

/// Which of the two kinds of rows that records link to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum ReferenceKind {
    /// An organization.
    Organization,
    /// A tag.
    Tag,
}

impl ReferenceKind {
    /// Both kinds.
    pub const ALL: [ReferenceKind; 2] = [ReferenceKind::Organization, ReferenceKind::Tag];

    /// The number that stands for the kind in row keys. Part of the file format.
    pub const fn code(self) -> u8 {
        match self {
            ReferenceKind::Organization => 1,
            ReferenceKind::Tag => 2,
        }
    }
}

/// The texts that stand for linked rows.
pub trait LinkTexts {
    /// The JSON object of a linked row; `null` where the link leads nowhere, which no commit lets happen.
    fn json(&self, kind: ReferenceKind, id: Id) -> &[u8];

    /// The CSV text of a linked row.
    fn label(&self, kind: ReferenceKind, id: Id) -> &str;
}

/// For rows without links.
impl LinkTexts for () {
    fn json(&self, _kind: ReferenceKind, _id: Id) -> &[u8] {
        b"null"
    }

    fn label(&self, _kind: ReferenceKind, _id: Id) -> &str {
        ""
    }
}

/// A field's value: one of a kind, or null (the empty list).
pub trait FieldValue: Send + Sync {
    /// The kind in words, as the reference page names it.
    fn type_name(&self) -> &'static str;

    /// The JSON Schema of the values that are not null.
    fn schema(&self) -> Schema;

    /// All values, where the kind has but a few words; else none.
    fn words(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether it is a list. Lists are never null.
    fn is_list(&self) -> bool {
        false
    }

    /// The texts in it, as people wrote them.
    fn texts(&self) -> &[String] {
        &[]
    }

    /// Appends the value as JSON, its links resolved.
    fn write_json(&self, out: &mut Vec<u8>, links: &dyn LinkTexts);

    /// The value as a CSV cell; empty for null.
    fn to_csv<'a>(&'a self, links: &'a dyn LinkTexts) -> Cow<'a, str>;

    /// Sets the value that a JSON member states, which is neither null nor an empty text, or reports its faults.
    fn read_json(&mut self, json: Json<'_>, reader: &mut dyn ValueReader);

    /// Sets the value that a CSV cell states, which is not empty, or reports its fault.
    fn read_csv(&mut self, cell: &str, reader: &mut dyn ValueReader);

    /// Brings the value into its stored form.
    fn normalize(&mut self) {}
}

/// Takes what reading a value leads to beside the value itself.
pub trait ValueReader {
    /// Takes the fault of a value or of an item in it: what to show of it, and the rule and remedy.
    fn fault(&mut self, value: &str, message: String);

    /// Takes the items of a list of links, whose meaning depends on what else is read.
    fn links(&mut self, kind: ReferenceKind, items: Vec<Json<'_>>);
}
