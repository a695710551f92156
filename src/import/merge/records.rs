//! Merging of records with their stored values.

use std::collections::{BTreeMap, HashMap};

use super::listed::{ListedFields, merge_row};
use super::references::Resolved;
use super::report::Report;
use crate::import::findings::FilePosition;
use crate::import::lint::{Lint, Lintable, RowLocation};
use crate::import::read::statement::CellContent;
use crate::import::rows::{ImportRow, ListOptions};
use crate::model::{
    Curated, Dataset, Id, Joined, OrganizationFields, RecordFields, ReferenceKind, TagFields,
};
use crate::store::{Snapshot, StoreError};

/// The records of a dataset in an import.
pub(super) struct MergedRecords<F> {
    /// The valid records, and `None` for removed ones.
    pub rows: BTreeMap<Id, Option<Curated<F>>>,
    /// The positions of all records in the files, including bad ones.
    pub positions: HashMap<Id, FilePosition>,
}

impl<F: RecordFields + Lintable> MergedRecords<F> {
    /// Lint compares the stored records with those of the import.
    pub fn compare_with_stored(&self, state: &Snapshot, lint: &mut Lint) -> Result<(), StoreError> {
        // The import sets or removes these records.
        lint.compare_with_stored(
            state,
            &|id| self.positions.contains_key(&id) || self.rows.contains_key(&id),
            &|id| self.find(id),
        )
    }

    /// Returns a valid record, and its location.
    pub fn find(&self, id: Id) -> Option<(RowLocation, F)> {
        let location = RowLocation::File(self.positions.get(&id)?.clone(), None);
        let record = self.rows.get(&id)?.as_ref()?;
        Some((location, record.fields().clone()))
    }

    /// Returns the number of records that the import removes.
    pub fn removals(&self, state: &Snapshot) -> Removals {
        let removed = self.rows.values().filter(|row| row.is_none());
        Removals {
            dataset: F::DATASET,
            removed: removed.count() as u64,
            stored: state.totals().records[F::DATASET],
        }
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

/// Merges the rows of records with their stored values.
pub(super) struct RecordMerger<'a> {
    pub state: &'a Snapshot,
    pub organizations: &'a Resolved<'a, OrganizationFields>,
    pub tags: &'a Resolved<'a, TagFields>,
    pub options: &'a MergeOptions,
    pub list: &'a ListOptions,
}

impl RecordMerger<'_> {
    /// Merges the rows of a dataset.
    pub fn merge<F: RecordFields + Lintable + ListedFields>(
        &self,
        rows: Vec<ImportRow<F>>,
        report: &mut Report,
    ) -> Result<MergedRecords<F>, StoreError> {
        // If the files contain no row of a dataset, it is not replaced.
        let replaces = self.options.replace && !rows.is_empty();
        let mut merged = MergedRecords {
            rows: BTreeMap::new(),
            positions: HashMap::with_capacity(rows.len()),
        };
        for row in rows {
            // Rows without a record are already reported.
            let Some(id) = row.id else { continue };
            if let Some(first) = merged.positions.get(&id) {
                report.refuse_double([first, &row.position], id);
                continue;
            }
            merged.positions.insert(id, row.position.clone());
            let stored = self.state.find_stored::<F>(id)?.map(Curated::into_fields);
            match (row.edit.is_removal, &stored) {
                (true, Some(_)) => drop(merged.rows.insert(id, None)),
                (true, None) if self.list.is_list => report.count_absent(),
                (true, None) => {}
                (false, None) if self.list.leaves_out_new => report.leave_out_unknown(&row),
                (false, _) => {
                    let is_unknown = stored.is_none() && self.list.is_list;
                    report.counts.unknown += u64::from(is_unknown);
                    let record = self.merge_row(&row, stored.as_ref(), report);
                    let Some(record) = record else { continue };
                    let mut before = stored;
                    if let Some(before) = before.as_mut().filter(|_| self.options.fix) {
                        // All values of the row are checked and corrected.
                        row.edit.statement.clear_in(before);
                    }
                    let location = RowLocation::File(row.position.clone(), None);
                    let lint = &mut report.lint;
                    lint.check(&location, before.as_ref(), &record, &|id| merged.find(id));
                    merged.rows.insert(id, Some(record));
                }
            }
        }
        if replaces {
            let stored_ids = self.state.record_ids(F::DATASET)?;
            let missing = stored_ids
                .iter()
                .filter(|id| !merged.positions.contains_key(id));
            merged.rows.extend(missing.map(|id| (*id, None)));
        }
        Ok(merged)
    }

    /// Merges a row with its stored values, and checks it. A bad row is reported.
    fn merge_row<F: RecordFields + ListedFields>(
        &self,
        row: &ImportRow<F>,
        stored: Option<&F>,
        report: &mut Report,
    ) -> Option<Curated<F>> {
        let statement = &row.edit.statement;
        let list = self.list.is_list.then_some(self.list);
        merge_row(row, stored, list, report, |fields, listed, faults| {
            for kind in ReferenceKind::ALL {
                let Some(at) = F::table().links(kind) else {
                    continue;
                };
                let known = fields.links(kind);
                match listed.map(|listed| listed.contents[at]) {
                    None | Some(CellContent::Value) => {}
                    Some(CellContent::Constant) if known.is_empty() => {}
                    Some(_) => continue,
                }
                let mut ids = match kind {
                    ReferenceKind::Organization => self
                        .organizations
                        .find_ids(&statement.organizations, faults),
                    ReferenceKind::Tag => self.tags.find_ids(&statement.tags, faults),
                };
                if ids.is_empty() {
                    continue;
                }
                if !listed.is_some_and(|listed| listed.is_update) {
                    ids.extend_from_slice(known);
                }
                fields.set_links(kind, ids);
            }
        })
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
pub(super) struct Removals {
    dataset: Dataset,
    removed: u64,
    stored: u64,
}

/// Returns why an import is refused: it removes more records of a dataset than ten, a tenth, and `allowed`.
pub(super) fn too_many_removals(all: &[Removals], allowed: Option<u64>) -> Option<String> {
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
