//! The kinds of field values. A kind is a variant of [`ValueKind`], and a type with its JSON, CSV and parser in one
//! `impl`. For a new kind, the compiler points to all other code that needs a change.
//!
//! In reading order:
//! - [`mod@json`]: parsed JSON values, and appending values to JSON.
//! - [`kind`]: the kinds, and the trait of all values.
//! - [`text`]: texts and lists of texts.
//! - [`scalar`]: single numbers, dates and words.
//!
//! Links to organizations and tags are in [`reference`](mod@super::reference).

pub mod json;
pub mod kind;
pub mod scalar;
pub mod text;

pub use json::{Json, JsonType};
pub use kind::{FieldValue, LinkTexts, ReferenceKind, ValueKind, ValueReader};
pub use scalar::Scalar;
