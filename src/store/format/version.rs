//! The version of a file: its format, and the fields in the JSON of its rows.
//!
//! A release that adds a field keeps the number of the format. But the JSON in `log` lacks the field. So a file stores
//! the names of its fields, and `medfeed upgrade` renders the JSON again.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use redb::ReadableTable;

use crate::model::{ConferenceFields, Fields, JournalFields, OrganizationFields, TagFields};
use crate::store::StoreError;
use crate::store::format::tables::{META_FIELDS, META_SCHEMA, SCHEMA};

/// The fields of this program in the order of the JSON, one per line, such as `conferences.formats.oral`.
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The number of the format.
    pub schema: u32,
    /// The names of the fields.
    pub fields: Vec<u8>,
}

/// The differences between the fields of a file and those of this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldDifference {
    /// The same fields in the same order.
    None,
    /// The file lacks these fields, such as `conferences.acronym`. Empty if only the order differs.
    Added(Vec<String>),
    /// This program does not know these fields of the file.
    Unknown(Vec<String>),
}

impl Version {
    /// Reads the version from `meta`; `None` if there is none.
    pub(in crate::store) fn read(
        meta: &impl ReadableTable<&'static str, &'static [u8]>,
    ) -> Result<Option<Version>, StoreError> {
        let Some(schema) = meta.get(META_SCHEMA)? else { return Ok(None) };
        let Ok(schema) = schema.value().try_into() else { return Ok(None) };
        let fields = meta.get(META_FIELDS)?.map(|fields| fields.value().to_vec()).unwrap_or_default();
        Ok(Some(Version { schema: u32::from_le_bytes(schema), fields }))
    }

    /// Whether this program writes the same version.
    pub fn is_current(&self) -> bool {
        self.schema == SCHEMA && self.field_difference() == FieldDifference::None
    }

    /// Compares the fields with those of this program.
    pub fn field_difference(&self) -> FieldDifference {
        if self.fields == known_fields().as_bytes() {
            return FieldDifference::None;
        }
        let stored = String::from_utf8_lossy(&self.fields);
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

    /// Fails unless this program reads the file. `older` accepts a file that it upgrades.
    pub(in crate::store) fn check(&self, path: &Path, older: bool) -> Result<(), StoreError> {
        let (path, found, known) = (path.to_owned(), self.schema, SCHEMA);
        match (found.cmp(&known), self.field_difference()) {
            (Ordering::Less, _) => Err(StoreError::OlderSchema { path, found, known }),
            (Ordering::Greater, _) => Err(StoreError::NewerSchema { path, found, known }),
            (Ordering::Equal, FieldDifference::Unknown(unknown)) => Err(StoreError::NewerFields { path, unknown }),
            (Ordering::Equal, FieldDifference::Added(missing)) if !older => {
                Err(StoreError::OlderFields { path, missing })
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
            let version = Version { schema: SCHEMA, fields: stored.into_bytes() };
            assert_eq!(version.field_difference(), expected, "{version:?}");
        }
    }
}
