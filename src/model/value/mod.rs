//! The kinds of field values. A kind is a type with its JSON, CSV, schema and parser in one `impl`, so a new kind is one
//! file, and nothing else has to know of it.
//!
//! - [`mod@json`]: a JSON value as a row states it.
//! - [`text`]: texts, and lists of them.
//! - [`scalar`]: what is one number, date or word.
//! - [`links`]: links to organizations and tags.

pub mod json;
pub mod links;
pub mod scalar;
pub mod text;

use std::borrow::Cow;

use serde_json::Value as Schema;

use super::{ReferenceKind, References};
pub use json::{Json, JsonType};
pub use links::Links;
pub use scalar::Scalar;

/// A field's value: one of a kind, or null (the empty list).
pub trait FieldValue: Send + Sync {
    /// The kind in words, as the reference page names it.
    fn type_name(&self) -> &'static str;

    /// The JSON Schema of the values that are not null.
    fn schema(&self) -> Schema;

    /// Whether it is a list. Lists are never null.
    fn is_list(&self) -> bool {
        false
    }

    /// Appends the value as JSON, its links resolved.
    fn write_json(&self, out: &mut Vec<u8>, references: &References);

    /// The value as a CSV cell; empty for null.
    fn to_csv<'a>(&'a self, references: &'a References) -> Cow<'a, str>;

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
