//! Merging of records, and the bound of their removals.

use super::listed::ListedFields;
use super::merged_rows::{MergedRows, PendingRow};
use super::references::Resolved;
use super::report::Merged;
use crate::import::rows::{ImportRow, ListOptions};
use crate::model::{Curated, Dataset, Id, Joined, OrganizationFields, RecordFields, TagFields};
use crate::store::{Snapshot, StoreError};

/// Merges the rows of records with their stored values.
pub struct RecordMerger<'a> {
    pub state: &'a Snapshot,
    pub organizations: &'a Resolved<'a, OrganizationFields>,
    pub tags: &'a Resolved<'a, TagFields>,
    pub options: &'a MergeOptions,
    pub list: &'a ListOptions,
}

impl RecordMerger<'_> {
    /// Merges the rows of a dataset.
    pub fn merge<F: RecordFields + ListedFields>(
        &self,
        rows: Vec<ImportRow<F>>,
        report: &mut Merged,
    ) -> Result<MergedRows<F>, StoreError> {
        // If the files contain no row of a dataset, it is not replaced.
        let replaces = self.options.replace && !rows.is_empty();
        let mut merged = MergedRows::new(rows.len(), self.options.fix);
        for row in rows {
            let Some(id) = row.id else { continue };
            let stored = self.state.find_stored::<F>(id)?;
            let pending = PendingRow {
                row: &row,
                stored: stored.map(Curated::into_fields),
                list: self.list.is_list.then_some(self.list),
                is_linked: false,
            };
            let statement = &row.edit.statement;
            merged.add(pending, report, |listed, faults| {
                self.organizations.link(statement, listed, faults);
                self.tags.link(statement, listed, faults);
            });
        }
        if replaces {
            let missing = self
                .state
                .record_ids(F::DATASET)?
                .into_iter()
                .filter(|id| !merged.positions.contains_key(id));
            let missing: Vec<Id> = missing.collect();
            merged.removed += missing.len() as u64;
            merged.rows.extend(missing.into_iter().map(|id| (id, None)));
        }
        Ok(merged)
    }
}

/// The options for merging.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeOptions {
    /// Whether to remove the records that are missing in the files, in each dataset that the files contain.
    pub replace: bool,
    /// The maximum number of removed records per dataset, if that is more than the default allows.
    pub allow_removals: Option<u64>,
    /// The maximum number of bad rows that are left out. If more are bad, the import is refused.
    pub allow_faults: usize,
    /// Whether lint reports all values of the rows, not only changed ones.
    pub lints_all: bool,
    /// Whether values are corrected whose right value follows from them.
    pub fix: bool,
}

/// The number of records of a dataset that an import removes.
#[derive(Clone, Copy, Debug)]
pub struct Removals {
    dataset: Dataset,
    removed: u64,
    stored: u64,
}

impl Removals {
    pub fn of<F: RecordFields>(merged: &MergedRows<F>, state: &Snapshot) -> Removals {
        Removals {
            dataset: F::DATASET,
            removed: merged.removed,
            stored: state.totals().records[F::DATASET],
        }
    }
}

/// Returns why an import is refused: it removes more records of a dataset than ten, a tenth, and `allowed`.
pub fn too_many_removals(all: &[Removals], allowed: Option<u64>) -> Option<String> {
    let refused = all.iter().filter(|removals| {
        let most = (removals.stored / 10).max(10);
        removals.removed > most.max(allowed.unwrap_or(0))
    });
    let needed = refused.clone().map(|removals| removals.removed).max()?;
    let removals = refused
        .map(|of| format!("{} of {} {}", of.removed, of.stored, of.dataset))
        .joined(" and ");
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
            let found = too_many_removals(&[removals], None).is_none();
            assert_eq!(found, expected, "{removed} of {stored}");
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
        let text = too_many_removals(&refused, Some(29)).unwrap();
        assert!(text.contains("remove 30 of 40 journals; "));
    }
}
