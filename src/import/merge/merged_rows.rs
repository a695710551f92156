//! The rows of one kind in an import, merged with their stored values.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;

use indexmap::IndexMap;

use super::listed::{ListedFields, ListedRow};
use super::report::Merged;
use crate::import::findings::FilePosition;
use crate::import::lint::{ComparedRow, RowLocation};
use crate::import::row_faults::RowFaults;
use crate::import::rows::{ImportRow, ListOptions};
use crate::model::{Curated, Id, RecordFields, ReferenceKind, message};
use crate::store::{Snapshot, StoreError};

/// A row with an id, and what it changes.
pub struct PendingRow<'a, F> {
    pub row: &'a ImportRow<F>,
    pub stored: Option<F>,
    /// For a row of a list of others.
    pub list: Option<&'a ListOptions>,
    /// Whether a record contains the row, or links to it by name.
    pub is_linked: bool,
}

impl<F: ListedFields> PendingRow<'_, F> {
    /// Merges the row with its stored values, and checks it. `link` sets the links of a record. A bad row is reported.
    pub fn merge(
        &self,
        report: &mut Merged,
        link: impl FnOnce(&mut ListedRow<F>, &mut RowFaults<'_>),
    ) -> Option<Curated<F>> {
        let row = self.row;
        let mut faults = RowFaults::new(&row.position, &mut report.bad);
        let known = self.stored.as_ref().zip(self.list);
        let statement = &row.edit.statement;
        let mut listed = ListedRow::new(statement, known.map(|(_, list)| list), row.found_by);
        link(&mut listed, &mut faults);
        let fields = if let Some((stored, _)) = known {
            listed.merge_into(stored, &mut report.counts)
        } else {
            if self.list.is_some() {
                F::settle_new(&mut listed);
            }
            listed.replace_in(self.stored.clone().unwrap_or_default())
        };
        // Rules about whole rows need complete rows. Otherwise one mistake would be reported twice.
        if row.is_bad || faults.has_fault() {
            return None;
        }
        let merged = Curated::new(row.id?, fields);
        let within: Option<&dyn Display> = match self.is_linked {
            true => Some(&F::STEM),
            false => None,
        };
        let merged = merged
            .map_err(|broken| faults.push_faults(within, broken))
            .ok()?;
        let is_unchanged = self.stored.as_ref() == Some(merged.fields());
        let is_respelled = is_unchanged && listed.is_respelled && !self.is_linked;
        report.counts.respelled += u64::from(is_respelled);
        for (at, message) in listed.warnings {
            let column = &F::table().fields[at].column;
            report.warn(&row.position, Some(column), message);
        }
        Some(merged)
    }
}

/// The rows of one kind in an import.
pub struct MergedRows<F> {
    /// The valid rows, and `None` for removed ones.
    pub rows: BTreeMap<Id, Option<Curated<F>>>,
    /// The positions of all rows in the files, including bad ones, in their order.
    pub positions: IndexMap<Id, FilePosition>,
    /// The rows that records contain or link to by name.
    linked: HashSet<Id>,
    /// The number of stored rows that are removed.
    pub removed: u64,
    /// Whether all values of a row are checked and corrected, also those that are stored.
    is_fixed: bool,
}

impl<F: ListedFields> MergedRows<F> {
    pub fn new(capacity: usize, is_fixed: bool) -> MergedRows<F> {
        MergedRows {
            rows: BTreeMap::new(),
            positions: IndexMap::with_capacity(capacity),
            linked: HashSet::new(),
            removed: 0,
            is_fixed,
        }
    }

    /// Adds a row. Rows without a record are already reported. Returns false if the row is bad.
    pub fn add(
        &mut self,
        pending: PendingRow<'_, F>,
        report: &mut Merged,
        link: impl FnOnce(&mut ListedRow<F>, &mut RowFaults<'_>),
    ) -> bool {
        let row = pending.row;
        let Some(id) = row.id else { return true };
        if let Some(first) = self.positions.get(&id) {
            let rows = [first, &row.position];
            report.refuse_both(rows, Some("id"), Some(&id.to_string()), |other| {
                message!(
                    "appears twice, and the rows differ; the other row with this id is at {}",
                    rows[other]
                )
            });
            return true;
        }
        let unknown = pending.list.filter(|_| pending.stored.is_none());
        if unknown.is_some_and(|list| list.leaves_out_new && !row.edit.is_removal) {
            report.leave_out_unknown(row);
            return true;
        }
        self.positions.insert(id, row.position.clone());
        if row.edit.is_removal {
            match unknown {
                Some(_) => report.count_absent(),
                None => self.removed += u64::from(pending.stored.is_some()),
            }
            self.rows.insert(id, None);
            return true;
        }
        if pending.is_linked {
            self.linked.insert(id);
        } else {
            report.counts.unknown += u64::from(unknown.is_some());
        }
        let Some(merged) = pending.merge(report, link) else {
            return false;
        };
        let mut before = pending.stored;
        if let Some(before) = &mut before {
            report.counts.count_removed(before, merged.fields());
            if self.is_fixed {
                row.edit.statement.clear_in(before);
            }
        }
        let checked = ComparedRow {
            location: self.location(id, row.position.clone()),
            before: before.as_ref(),
            is_imported: true,
            ..ComparedRow::stored(id, merged.fields())
        };
        let Merged { lint, warnings, .. } = report;
        lint.check(checked, &|id| self.find(id), warnings);
        self.rows.insert(id, Some(merged));
        true
    }

    fn location(&self, id: Id, position: FilePosition) -> RowLocation {
        RowLocation::File(position, self.linked.contains(&id).then_some(F::STEM))
    }

    /// Returns a valid row, and its location.
    pub fn find(&self, id: Id) -> Option<(RowLocation, F)> {
        let location = self.location(id, self.positions.get(&id)?.clone());
        let row = self.rows.get(&id)?.as_ref()?;
        Some((location, row.fields().clone()))
    }
}

impl<F: RecordFields + ListedFields> MergedRows<F> {
    /// Lint compares the stored records with those of the import.
    pub fn compare_with_stored(
        &self,
        state: &Snapshot,
        report: &mut Merged,
    ) -> Result<(), StoreError> {
        // The import sets or removes these records.
        report.lint.compare_with_stored(
            state,
            &|id| self.positions.contains_key(&id) || self.rows.contains_key(&id),
            &|id| self.find(id),
            &mut report.warnings,
        )
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
