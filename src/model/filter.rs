//! Filters of lists: `q`, `updated_since`, and the parameters of fields.

use super::curated::Fields;
use super::dataset::Dataset;
use super::field::{FieldFilter, FieldTable};
use super::records::{ConferenceFields, JournalFields};
use super::time::Timestamp;

/// The conditions of a list. A record must match all of them.
#[derive(Debug, Default)]
pub struct Filter {
    /// Matches records that changed, or entered the license, at or after this time.
    pub updated_since: Option<Timestamp>,
    /// Matches records with this text in a field that `q` searches. [`fold`](super::fold::fold) says what counts.
    pub text: Option<String>,
    /// Conditions on fields, in the order of [`FieldTable::filters`].
    pub conditions: Vec<FieldCondition>,
}

/// A condition on a field.
#[derive(Debug)]
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
        let since = self
            .updated_since
            .map(|time| ("updated_since", time.unix_s().to_string()));
        let text = self.text.clone().map(|text| ("q", text));
        let conditions = self
            .conditions
            .iter()
            .map(|condition| (&*condition.filter.name, condition.value.clone()));
        for (name, value) in since.into_iter().chain(text).chain(conditions) {
            for part in [name, &value] {
                // The length prefix makes the encoding unambiguous.
                hasher.update(&(part.len() as u64).to_be_bytes());
                hasher.update(part.as_bytes());
            }
        }
        let mut short = [0; 16];
        hasher.finalize_xof().fill(&mut short);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn filters_with_different_conditions_have_different_hashes() {
        let condition = |name: &str, value: &str| {
            let filters = &Dataset::Conferences.table().filters;
            let filter = filters.iter().find(|filter| filter.name == name).unwrap();
            FieldCondition {
                filter,
                value: value.to_owned(),
            }
        };
        let of =
            |updated_since: Option<i64>, text: Option<&str>, conditions: &[(&str, &str)]| Filter {
                updated_since: updated_since.map(Timestamp::from_unix_s),
                text: text.map(str::to_owned),
                conditions: conditions
                    .iter()
                    .map(|(name, value)| condition(name, value))
                    .collect(),
            };
        let filters = [
            of(None, None, &[]),
            of(Some(17), None, &[]),
            of(Some(18), None, &[]),
            of(None, Some("17"), &[]),
            of(None, Some(""), &[]),
            of(Some(17), Some("17"), &[]),
            // The same value of two fields, in either direction of a range, and in two ways to cut it.
            of(None, None, &[("country", "Oncology")]),
            of(None, None, &[("therapy_area", "Oncology")]),
            of(None, None, &[("start_date_from", "2026-05-01")]),
            of(None, None, &[("start_date_to", "2026-05-01")]),
            of(
                None,
                None,
                &[
                    ("start_date_from", "2026-05-01"),
                    ("start_date_to", "2026-05-02"),
                ],
            ),
            of(
                None,
                None,
                &[
                    ("start_date_from", "2026-05-02"),
                    ("start_date_to", "2026-05-01"),
                ],
            ),
            of(None, None, &[("country", "A"), ("therapy_area", "B")]),
            of(None, None, &[("country", "Atherapy_areaB")]),
            of(None, Some("country"), &[]),
            of(None, Some("x"), &[("country", "A")]),
        ];
        let hashes: BTreeSet<[u8; 16]> = filters.iter().map(Filter::hash).collect();
        assert_eq!(hashes.len(), filters.len());
        let hash = of(Some(1), Some("x"), &[("country", "A")]).hash();
        assert_eq!(hash, of(Some(1), Some("x"), &[("country", "A")]).hash());
        let empty: Vec<bool> = filters.iter().map(Filter::is_empty).collect();
        assert!(empty[0] && !empty[1..].contains(&true), "{empty:?}");
    }
}
