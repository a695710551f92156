//! The kinds of field values. A kind is a variant of [`ValueKind`], and a type with its JSON, CSV and parser in one `impl`.
//! The compiler names all other code that a new kind concerns.
//!
//! In reading order:
//! - [`mod@json`]: JSON values as rows state them, and how values are appended to JSON.
//! - [`cell`]: what CSV cells have in common.
//! - [`kind`]: the kinds, and what every value can do.
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
pub use kind::{FieldValue, LinkTexts, ReferenceKind, ValueKind, ValueReader};
pub use links::{LinkTarget, Links};
pub use scalar::Scalar;
