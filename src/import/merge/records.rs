//! Merging of records with their stored values.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::references::Resolved;
use crate::import::findings::{FilePosition, Findings};
use crate::import::lint::{Lint, Lintable, RowLocation};
use crate::import::row_faults::RowFaults;
use crate::import::rows::{ImportRow, RowEdit};
use crate::model::message::message;
use crate::model::{
    Curated, Dataset, Id, OrganizationFields, RecordFields, ReferenceKind, TagFields,
};
use crate::store::{Snapshot, StoreError};

/// The records of a dataset in an import.
pub(super) struct MergedRecords<F> {
    /// The valid records, and `None` for removed ones.
    pub rows: BTreeMap<Id, Option<Curated<F>>>,
    /// The positions of all records in the files, including bad ones.
    pub positions: HashMap<Id, FilePosition>,
    pub removals: Removals,
}

impl<F: RecordFields + Lintable> MergedRecords<F> {
    /// Returns true if the import sets or removes the record.
    pub fn contains(&self, id: Id) -> bool {
        self.positions.contains_key(&id) || self.rows.contains_key(&id)
    }

    /// Returns true if the record, which links to `id` in the database, does so after the import.
    pub fn links_after(&self, record: Id, kind: ReferenceKind, id: Id) -> bool {
        match self.rows.get(&record) {
            Some(None) => false,
            Some(Some(row)) => row.fields().links(kind).contains(&id),
            // The links of a bad record are unknown, and its faults are already reported.
            None => !self.positions.contains_key(&record),
        }
    }
}

/// Merges the rows of a dataset with their stored values.
pub(super) fn merge_records<F: RecordFields + Lintable>(
    rows: Vec<ImportRow<F>>,
    state: &Snapshot,
    organizations: &Resolved<'_, OrganizationFields>,
    tags: &Resolved<'_, TagFields>,
    options: &MergeOptions,
    bad: &mut Findings,
    lint: &mut Lint,
) -> Result<MergedRecords<F>, StoreError> {
    // If the files contain no row of a dataset, it is not replaced.
    let replaces = options.replace && !rows.is_empty();
    let stored_ids = if replaces {
        state.record_ids(F::DATASET)?
    } else {
        BTreeSet::new()
    };

    let mut merged = BTreeMap::new();
    let mut positions: HashMap<Id, FilePosition> = HashMap::with_capacity(rows.len());
    for row in rows {
        // Rows without a record are already reported.
        let Some(id) = row.id else { continue };
        if let Some(first) = positions.get(&id) {
            let message = message!("appears twice; the first row with this id is at {first}");
            bad.push(&row.position, Some("id"), Some(&id.to_string()), message);
            continue;
        }
        match row.edit {
            RowEdit::Remove => {
                if state.find_stored::<F>(id)?.is_some() {
                    merged.insert(id, None);
                }
            }
            RowEdit::Set(statement) => {
                let mut stored = state.find_stored::<F>(id)?.map(Curated::into_fields);
                let mut fields = stored.clone().unwrap_or_default();
                if let Some(stored) = stored.as_mut().filter(|_| options.fix) {
                    // All values of the row are checked and corrected.
                    statement.clear_in(stored);
                }
                let mut faults = RowFaults::new(&row.position, bad);
                let organization_ids =
                    organizations.find_ids(&statement.organizations, &mut faults);
                let tag_ids = tags.find_ids(&statement.tags, &mut faults);
                statement.apply_to(&mut fields);
                for (kind, ids) in [
                    (ReferenceKind::Organization, organization_ids),
                    (ReferenceKind::Tag, tag_ids),
                ] {
                    if !ids.is_empty() {
                        fields.set_links(kind, ids);
                    }
                }
                // Rules about whole rows need complete rows. Otherwise one mistake would be reported twice.
                if !row.is_bad && !faults.has_fault() {
                    match Curated::new(id, fields) {
                        Ok(record) => {
                            let location = RowLocation::File(row.position.clone());
                            lint.check(&location, None, stored.as_ref(), &record);
                            merged.insert(id, Some(record));
                        }
                        Err(broken) => faults.push_faults(None, broken),
                    }
                }
            }
        }
        positions.insert(id, row.position);
    }
    if replaces {
        for id in stored_ids.iter().filter(|id| !positions.contains_key(id)) {
            merged.insert(*id, None);
        }
    }
    let removed = merged.values().map(|row| u64::from(row.is_none())).sum();
    let removals = Removals {
        dataset: F::DATASET,
        removed,
        stored: state.totals().records[F::DATASET],
    };
    Ok(MergedRecords {
        rows: merged,
        positions,
        removals,
    })
}

/// The options for merging.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeOptions {
    /// Whether to remove the records that are missing in the files, in each dataset that the files contain.
    pub replace: bool,
    /// The maximum number of removed records per dataset, if that is more than the default allows.
    pub allow_removals: Option<u64>,
    /// Whether lint reports all values of the rows, not only changed ones.
    pub lints_all: bool,
    /// Whether values are corrected whose right value follows from them.
    pub fix: bool,
}

/// The number of records of a dataset that an import removes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Removals {
    dataset: Dataset,
    removed: u64,
    stored: u64,
}

/// Returns why an import is refused: it removes more records of a dataset than ten, a tenth, and `allowed`.
pub(super) fn too_many_removals(all: &[Removals], allowed: Option<u64>) -> Option<String> {
    let most = |stored: u64| (stored / 10).max(10).max(allowed.unwrap_or(0));
    let refused: Vec<&Removals> = all
        .iter()
        .filter(|removals| removals.removed > most(removals.stored))
        .collect();
    let needed = refused.iter().map(|removals| removals.removed).max()?;
    let removals = refused.iter().map(
        |Removals {
             dataset,
             removed,
             stored,
         }| format!("{removed} of {stored} {dataset}"),
    );
    let removals = removals.collect::<Vec<_>>().join(" and ");
    Some(format!(
        "the import would remove {removals}; to allow that, add `--allow-removals {needed}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_records_or_a_tenth_may_be_removed_without_permission() {
        let cases = [
            (0, 0, true),
            (10, 10, true),
            (10, 11, true),
            (11, 11, false),
            (11, 109, false),
            (11, 110, true),
            (11, 111, true),
            (12, 119, false),
            (100, 999, false),
            (100, 1_000, true),
            (101, 1_000, false),
        ];
        for (removed, stored, expected) in cases {
            let removals = Removals {
                dataset: Dataset::Journals,
                removed,
                stored,
            };
            assert_eq!(
                too_many_removals(&[removals], None).is_none(),
                expected,
                "{removed} of {stored}"
            );
            assert!(
                too_many_removals(&[removals], Some(removed)).is_none(),
                "{removed} of {stored} is allowed"
            );
        }
    }

    #[test]
    fn the_permission_covers_each_dataset() {
        let of = |dataset, removed, stored| Removals {
            dataset,
            removed,
            stored,
        };
        let refused = [
            of(Dataset::Conferences, 11, 20),
            of(Dataset::Journals, 30, 40),
        ];
        let expected = "the import would remove 11 of 20 conferences and 30 of 40 journals; to allow that, add \
                    `--allow-removals 30`";
        assert_eq!(too_many_removals(&refused, None).unwrap(), expected);
        assert!(
            too_many_removals(&refused, Some(29))
                .unwrap()
                .contains("remove 30 of 40 journals; ")
        );
    }
}
