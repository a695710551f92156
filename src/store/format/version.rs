//! The version of a file: its format, and which fields the JSON of its rows has.
//!
//! A release that adds a field adds no table and changes no meaning, so the format keeps its number. But the JSON in `log` was
//! rendered without the field. So the file says which fields its JSON has, and `medfeed upgrade` renders it anew.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use redb::ReadableTable;

use crate::model::{ConferenceFields, Fields, JournalFields, OrganizationFields, TagFields};
use crate::store::StoreError;
use crate::store::format::tables::{META_FIELDS, META_SCHEMA, SCHEMA};

/// The fields of this program: a line for each, such as `conferences.formats.oral`, in the order of the JSON.
pub fn known_fields() -> &'static str {
    static KNOWN: LazyLock<String> = LazyLock::new(|| {
        fn lines<F: Fields>() -> String {
            F::table().fields.iter().map(|field| format!("{}.{}\n", F::STEM, field.name)).collect()
        }
        [lines::<ConferenceFields>(), lines::<JournalFields>(), lines::<OrganizationFields>(), lines::<TagFields>()]
            .concat()
    });
    &KNOWN
}

/// The version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The number of its format.
    pub schema: u32,
    /// Its fields, where files of the format tell them.
    pub fields: Option<Vec<u8>>,
}

/// A file's fields beside those of this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldDifference {
    /// The same, in the same order.
    None,
    /// The file has none that this program does not know, and lacks these, such as `conferences.acronym`.
    Added(Vec<String>),
    /// The file has these, which this program does not know.
    Unknown(Vec<String>),
}

impl Version {
    /// The version that `meta` tells; `None` if it tells none.
    pub(in crate::store) fn read(
        meta: &impl ReadableTable<&'static str, &'static [u8]>,
    ) -> Result<Option<Version>, StoreError> {
        let Some(schema) = meta.get(META_SCHEMA)? else { return Ok(None) };
        let Ok(schema) = schema.value().try_into() else { return Ok(None) };
        let fields = meta.get(META_FIELDS)?.map(|fields| fields.value().to_vec());
        Ok(Some(Version { schema: u32::from_le_bytes(schema), fields }))
    }

    /// Whether it is the version that this program writes.
    pub fn is_ours(&self) -> bool {
        self.schema == SCHEMA && self.field_change() == FieldDifference::None
    }

    /// The fields that this program adds, or does not know.
    pub fn field_change(&self) -> FieldDifference {
        let stored = self.fields.as_deref().unwrap_or_default();
        if stored == known_fields().as_bytes() {
            return FieldDifference::None;
        }
        let stored = String::from_utf8_lossy(stored);
        let (stored, known): (BTreeSet<&str>, BTreeSet<&str>) =
            (stored.lines().collect(), known_fields().lines().collect());
        let names = |names: Vec<&&str>| names.into_iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        let unknown = names(stored.difference(&known).collect());
        if unknown.is_empty() {
            FieldDifference::Added(names(known.difference(&stored).collect()))
        } else {
            FieldDifference::Unknown(unknown)
        }
    }

    /// Fails unless it is the version that this program writes.
    pub(in crate::store) fn check(&self, path: &Path) -> Result<(), StoreError> {
        self.check_known(path)?;
        match self.field_change() {
            _ if self.schema < SCHEMA => {
                Err(StoreError::OlderSchema { path: path.to_owned(), found: self.schema, known: SCHEMA })
            }
            FieldDifference::Added(missing) => Err(StoreError::OlderFields { path: path.to_owned(), missing }),
            _ => Ok(()),
        }
    }

    /// Fails if a newer program made the file.
    pub(in crate::store) fn check_known(&self, path: &Path) -> Result<(), StoreError> {
        match (self.schema.cmp(&SCHEMA), self.field_change()) {
            (Ordering::Greater, _) => {
                Err(StoreError::NewerSchema { path: path.to_owned(), found: self.schema, known: SCHEMA })
            }
            (Ordering::Equal, FieldDifference::Unknown(unknown)) => {
                Err(StoreError::NewerFields { path: path.to_owned(), unknown })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_and_newer_fields_are_told_apart() {
        let all = known_fields();
        let without = all.replacen("conferences.venue\n", "", 1);
        let moved = format!("{without}conferences.venue\n");
        let name = |name: &str| vec![name.to_owned()];
        let cases = [
            (all.to_owned(), FieldDifference::None),
            (without.clone(), FieldDifference::Added(name("conferences.venue"))),
            (moved, FieldDifference::Added(Vec::new())),
            (format!("{all}tags.x\n"), FieldDifference::Unknown(name("tags.x"))),
            (format!("{without}tags.x\n"), FieldDifference::Unknown(name("tags.x"))),
        ];
        for (stored, expected) in cases {
            let version = Version { schema: SCHEMA, fields: Some(stored.into_bytes()) };
            assert_eq!(version.field_change(), expected, "{version:?}");
        }
    }
}
