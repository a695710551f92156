//! Filters of lists: `q`, `updated_since`, and the parameters of fields.

use super::conference::ConferenceFields;
use super::curated::Fields;
use super::dataset::Dataset;
use super::field::{FieldFilter, FieldTable};
use super::journal::JournalFields;
use super::time::Timestamp;

/// The conditions of a list. A record must match all of them.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Matches records that changed, or entered the license, at or after this time.
    pub updated_since: Option<Timestamp>,
    /// Matches records with this text in a field that `q` searches. Case and diacritics are ignored.
    pub text: Option<String>,
    /// Conditions on fields, in the order of [`FieldTable::filters`].
    pub conditions: Vec<FieldCondition>,
}

/// A condition on a field.
#[derive(Clone, Debug)]
pub struct FieldCondition {
    /// The parameter.
    pub filter: &'static FieldFilter,
    /// The value, in the parameter's form.
    pub value: String,
}

impl Filter {
    /// Whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        self.updated_since.is_none() && self.text.is_none() && self.conditions.is_empty()
    }

    /// Returns a hash of the filter. Cursors contain it, so it must not change between versions.
    pub fn hash(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_derive_key("medfeed 2026-11 list filters");
        let mut put = |text: &str| {
            // The length prefix makes the encoding unambiguous.
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
    /// Returns the table of the dataset's records.
    pub fn table(self) -> &'static FieldTable {
        match self {
            Dataset::Conferences => ConferenceFields::table(),
            Dataset::Journals => JournalFields::table(),
        }
    }
}
