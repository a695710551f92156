//! The kinds of field values, and what every value can do.

use std::borrow::Cow;

use super::json::{Json, JsonType};
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

/// A kind of field value. Code that treats kinds differently matches all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Any text.
    Text,
    /// A list of texts.
    Texts,
    /// A whole number from 0 to 2^53-1.
    Integer,
    /// A number from 0.
    Number,
    /// A year, 1900 to 2100.
    Year,
    /// A day.
    Date,
    /// True or false.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A date confidence, one of these words.
    DateStatus(&'static [&'static str]),
    /// A list of links to organizations or tags.
    Links(ReferenceKind),
}

impl ValueKind {
    /// All values, where the kind has but a few words; else none.
    pub const fn words(self) -> &'static [&'static str] {
        if let ValueKind::Choice(words) | ValueKind::DateStatus(words) = self { words } else { &[] }
    }

    /// The type of its values in JSON. Lists are never null.
    pub const fn json_type(self) -> JsonType {
        match self {
            ValueKind::Text | ValueKind::Date | ValueKind::Choice(_) | ValueKind::DateStatus(_) => JsonType::Text,
            ValueKind::Integer | ValueKind::Number | ValueKind::Year => JsonType::Number,
            ValueKind::Flag => JsonType::Flag,
            ValueKind::Texts | ValueKind::Links(_) => JsonType::List,
        }
    }
}

/// A field's value: one of a kind, or null (the empty list).
pub trait FieldValue: Send + Sync {
    /// The kind of its values.
    fn kind() -> ValueKind
    where
        Self: Sized;

    /// The texts in it, as people wrote them.
    fn texts(&self) -> &[String] {
        &[]
    }

    /// The ids of the linked rows.
    fn ids(&self) -> &[Id] {
        &[]
    }

    /// Replaces the links.
    fn set_ids(&mut self, _ids: Vec<Id>) {}

    /// A number from 1 in the order of values, for kinds of one number, date or word; 0 for null and for other kinds.
    fn rank(&self) -> u64 {
        0
    }

    /// The [`rank`](FieldValue::rank) of the value that a text states.
    fn rank_of(_text: &str) -> u64
    where
        Self: Sized,
    {
        0
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
