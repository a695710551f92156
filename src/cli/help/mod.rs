//! Examples, and hints for wrong command lines.

pub(in crate::cli) mod corrections;
pub(in crate::cli) mod examples;
pub(in crate::cli) mod usage;
pub(in crate::cli) mod variables;
