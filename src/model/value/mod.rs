//! The kinds of field values. A kind is a type with its JSON, CSV, schema and parser in one `impl`, so a new kind is one
//! file, and nothing else has to know of it.
//!
//! In reading order:
//! - [`mod@json`]: JSON values as rows state them, and how values are appended to JSON.
//! - [`cell`]: what CSV cells have in common.
//! - [`kind`]: what every kind can do.
//! - [`text`]: texts, and lists of them.
//! - [`scalar`]: what is one number, date or word.
//! - [`links`]: links to organizations and tags.

pub mod cell;
pub mod json;
pub mod kind;
pub mod links;
pub mod scalar;
pub mod text;

pub use json::{Json, JsonType};
pub use kind::{FieldValue, LinkTexts, ReferenceKind, ValueReader};
pub use links::{LinkTarget, Links};
pub use scalar::Scalar;
