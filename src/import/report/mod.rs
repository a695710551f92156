//! The faults and warnings of an import: [`faults`] collects them, `finding` is one of them and [`groups`] combines similar ones.

pub mod faults;
mod finding;
pub mod groups;
