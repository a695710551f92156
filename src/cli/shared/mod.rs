//! Options, output and helpers that several commands share.

pub(in crate::cli) mod arguments;
pub(in crate::cli) mod change;
pub(in crate::cli) mod common;
pub(in crate::cli) mod output;
pub(in crate::cli) mod sheets;
