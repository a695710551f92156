//! The faults and warnings of an import: [`faults`] collects them, `finding` is one of them, [`groups`] combines similar ones,
//! and `suggestions` has remedies for unknown names.

pub mod faults;
mod finding;
pub mod groups;
pub(in crate::import) mod suggestions;
