//! Filters of lists: `q`, `updated_since`, and a condition for each parameter that a field's line declares.

use super::conference::ConferenceFields;
use super::curated::Fields;
use super::dataset::Dataset;
use super::field::{FieldFilter, Table};
use super::journal::JournalFields;
use super::time::Timestamp;

/// The conditions that a record must match, all of them.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Last changed, or entered the license, at or after this instant.
    pub updated_since: Option<Timestamp>,
    /// Text found anywhere in a field that `q` searches, case and diacritics aside.
    pub text: Option<String>,
    /// Conditions on fields, in the order of [`Table::filters`].
    pub conditions: Vec<Condition>,
}

/// A condition on a field.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The parameter.
    pub filter: &'static FieldFilter,
    /// Its value, of the parameter's form.
    pub value: String,
}

impl Filter {
    /// Whether nothing is filtered.
    pub fn is_empty(&self) -> bool {
        self.updated_since.is_none() && self.text.is_none() && self.conditions.is_empty()
    }

    /// A hash that differs for different filters. Part of cursors, so it must not change between versions.
    pub fn hash(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_derive_key("medfeed 2026-11 list filters");
        let mut put = |text: &str| {
            // Lengths keep one filter's end from passing for another's beginning.
            hasher.update(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            hasher.update(text.as_bytes());
        };
        let since = self.updated_since.map(|time| ("updated_since", time.unix_s().to_string()));
        let text = self.text.clone().map(|text| ("q", text));
        let conditions = self.conditions.iter().map(|condition| (&*condition.filter.name, condition.value.clone()));
        for (name, value) in since.into_iter().chain(text).chain(conditions) {
            put(name);
            put(&value);
        }
        let mut short = [0; 16];
        short.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        short
    }
}

impl Dataset {
    /// The table of its records.
    pub fn table(self) -> &'static Table {
        match self {
            Dataset::Conferences => ConferenceFields::table(),
            Dataset::Journals => JournalFields::table(),
        }
    }
}
