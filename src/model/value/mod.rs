//! The kinds of field values. A kind is a variant of [`ValueKind`], and a type with its JSON, CSV and parser in one
//! `impl`. For a new kind, the compiler points to all other code that needs a change.
//!
//! In reading order:
//! - [`mod@json`]: parsed JSON values, and appending values to JSON.
//! - [`cell`]: CSV cells.
//! - [`kind`]: the kinds, and the trait of all values.
//! - [`text`]: texts and lists of texts.
//! - [`scalar`]: single numbers, dates and words.
//! - [`links`]: links to organizations and tags.

pub mod cell;
pub mod json;
pub mod kind;
pub mod links;
pub mod scalar;
pub mod text;

pub use json::{Json, JsonType};
pub use kind::{FieldValue, LinkTexts, ReferenceKind, ValueKind, ValueReader};
pub use links::{LinkTarget, Links};
pub use scalar::Scalar;
