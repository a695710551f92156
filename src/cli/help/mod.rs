//! Examples, and hints for wrong command lines.

pub(in crate::cli) mod examples;
pub(in crate::cli) mod hints;
pub(in crate::cli) mod variables;
