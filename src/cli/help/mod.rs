//! Examples, and remedies for wrong command lines.

pub(in crate::cli) mod examples;
pub(in crate::cli) mod habits;
pub(in crate::cli) mod usage;
pub(in crate::cli) mod variables;
