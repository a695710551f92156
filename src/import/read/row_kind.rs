//! The kinds of rows that an import reads.

use serde::Deserialize;
use strum::{Display, EnumString, VariantNames};

use crate::model::field::FieldTable;
use crate::model::{ConferenceFields, Fields, JournalFields, OrganizationFields, TagFields};

/// The kinds of rows. Rows that others link to come first.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Deserialize,
    Display,
    EnumString,
    VariantNames,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum RowKind {
    /// Organizations, which records link to by name.
    Organizations,
    /// Tags, which records link to by type and name.
    Tags,
    /// Medical conference editions.
    Conferences,
    /// Medical journals.
    Journals,
}

impl RowKind {
    /// Returns the fields of these rows.
    pub fn table(self) -> &'static FieldTable {
        match self {
            RowKind::Organizations => OrganizationFields::table(),
            RowKind::Tags => TagFields::table(),
            RowKind::Conferences => ConferenceFields::table(),
            RowKind::Journals => JournalFields::table(),
        }
    }
}
