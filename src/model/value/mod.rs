//! The kinds of field values, and the trait of all values. A kind is a variant of [`ValueKind`], and a type with its
//! JSON, CSV and parser in one `impl`. For a new kind, the compiler points to all other code that needs a change.
//!
//! - [`mod@json`]: the types and texts of parsed JSON values, and appending values to JSON.
//! - [`text`]: texts and lists of texts.
//! - [`scalar`]: single numbers, dates and words.
//!
//! Links to organizations and tags are in [`reference`](mod@super::reference).

pub mod json;
pub mod scalar;
pub mod text;

use std::borrow::Cow;

use serde_json::Value;

pub use self::json::JsonType;
use self::json::as_text;
use crate::model::dataset::Id;
use crate::model::message::Message;

/// The two kinds of rows that records link to.
#[allow(missing_docs, reason = "the names explain the variants")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum ReferenceKind {
    Organization = 1,
    Tag = 2,
}

impl ReferenceKind {
    /// Both kinds.
    pub const ALL: [ReferenceKind; 2] = [ReferenceKind::Organization, ReferenceKind::Tag];

    /// Returns the number in row keys. It is part of the file format.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// The texts of linked rows.
pub trait LinkTexts {
    /// Returns the JSON object of a linked row, and its CSV text. Valid databases have all rows.
    fn find(&self, kind: ReferenceKind, id: Id) -> Option<(&[u8], &str)>;
}

/// For rows without links.
impl LinkTexts for () {
    fn find(&self, _kind: ReferenceKind, _id: Id) -> Option<(&[u8], &str)> {
        None
    }
}

/// A kind of field value. Code that depends on the kind matches all variants.
#[allow(missing_docs, reason = "the names explain the other variants")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    Text,
    Texts,
    /// A whole number from 0 to 2^53-1.
    Integer,
    /// A number from 0.
    Number,
    /// A year, 1900 to 2100.
    Year,
    Date,
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A date confidence, one of these words.
    DateStatus(&'static [&'static str]),
    /// A list of links to organizations or tags.
    Links(ReferenceKind),
}

impl ValueKind {
    /// Returns all values of a kind with few values; else none.
    pub const fn words(self) -> &'static [&'static str] {
        if let ValueKind::Choice(words) | ValueKind::DateStatus(words) = self {
            words
        } else {
            &[]
        }
    }

    /// Whether the values are whole numbers.
    pub const fn is_whole(self) -> bool {
        matches!(self, ValueKind::Integer | ValueKind::Year)
    }

    /// Whether the values are lists.
    pub const fn is_list(self) -> bool {
        matches!(self, ValueKind::Texts | ValueKind::Links(_))
    }

    /// Returns the type of the values in JSON. Lists are never null.
    pub const fn json_type(self) -> JsonType {
        match self {
            ValueKind::Text | ValueKind::Date | ValueKind::Choice(_) | ValueKind::DateStatus(_) => {
                JsonType::Text
            }
            ValueKind::Integer | ValueKind::Number | ValueKind::Year => JsonType::Number,
            ValueKind::Flag => JsonType::Flag,
            ValueKind::Texts | ValueKind::Links(_) => JsonType::List,
        }
    }
}

/// The value of a field. Null is represented as `None` or an empty list.
pub trait FieldValue: Send + Sync {
    /// Returns the kind.
    fn kind() -> ValueKind
    where
        Self: Sized;

    /// Returns the texts in the value.
    fn texts(&self) -> &[String] {
        &[]
    }

    /// Replaces texts. `replacement` returns `None` for a text that stays, and an empty text for one that goes.
    fn replace_texts(&mut self, _replacement: &mut dyn FnMut(&str) -> Option<String>) {}

    /// Adds texts to a list of texts.
    fn add_texts(&mut self, _texts: Vec<String>) {}

    /// Returns the ids of linked rows.
    fn ids(&self) -> &[Id] {
        &[]
    }

    /// Replaces the links.
    fn set_ids(&mut self, _ids: Vec<Id>) {}

    /// Returns a number from 1, in the order of the values of a [`Scalar`](scalar::Scalar) kind. Returns 0 for null and
    /// other kinds.
    fn rank(&self) -> u64 {
        0
    }

    /// Returns true for null and for an empty list.
    fn is_null(&self) -> bool {
        self.rank() == 0 && self.texts().is_empty() && self.ids().is_empty()
    }

    /// Returns the [`rank`](FieldValue::rank) of a value's text.
    fn rank_of(_text: &str) -> u64
    where
        Self: Sized,
    {
        0
    }

    /// Appends the value as JSON, with its links resolved.
    fn write_json(&self, out: &mut Vec<u8>, links: &dyn LinkTexts);

    /// Returns the value as a CSV cell; empty for null.
    fn to_csv<'a>(&'a self, links: &'a dyn LinkTexts) -> Cow<'a, str>;

    /// Sets the value from JSON that is neither null nor an empty text, or reports its faults.
    fn read_json(&mut self, json: Value, reader: &mut dyn ValueReader) {
        self.read_csv(&as_text(&json), reader);
    }

    /// Sets the value from a nonempty CSV cell, or reports its fault.
    fn read_csv(&mut self, cell: &str, reader: &mut dyn ValueReader);

    /// Changes the value into its stored form.
    fn normalize(&mut self) {}
}

/// Receives faults and links while a value is read.
pub trait ValueReader {
    /// Receives a fault: the value or item to show, and the rule with its remedy.
    fn fault(&mut self, value: &str, message: Message);

    /// Receives the items of a list of links. They are resolved later, because rows in the same import can be linked.
    fn links(&mut self, kind: ReferenceKind, items: Vec<Value>);
}
