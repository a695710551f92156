//! The report of an import: faults, warnings, new ids and counts.

use std::collections::HashSet;

use serde::Serialize;

use crate::import::findings::{FilePosition, Finding, Findings};
use crate::import::lint::{Lint, comparable_word};
use crate::import::rows::{FilledFields, ImportRow};
use crate::model::message::message;
use crate::model::{Fields, Id};

/// Reports a row whose id another row has too.
pub(super) fn report_double(
    bad: &mut Findings,
    position: &FilePosition,
    id: Id,
    other: &FilePosition,
) {
    let message =
        message!("appears twice, and the rows differ; the other row with this id is at {other}");
    bad.push(position, Some("id"), Some(&id.to_string()), message);
}

/// The effects of the rows on known records, and of rows without a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListCounts {
    /// The rows of the files, apart from bad ones.
    pub rows: u64,
    /// The rows that match no record.
    pub unknown: u64,
    /// The rows that are left out because `new` is false: unknown ones, and those whose ISSN contradicts their record's.
    pub left_out: u64,
    /// The rows that differ from their records only in spelling.
    pub respelled: u64,
    /// The empty cells that kept a stored value.
    pub kept: u64,
    /// The stored values that became empty.
    pub cleared: u64,
    /// The items that were removed from stored lists.
    pub removed_items: u64,
    /// The rows that remove a record that is not there. They count as unknown too.
    #[serde(skip)]
    pub absent: u64,
    /// The rows that are left out because their ISSN contradicts that of their record.
    #[serde(skip)]
    pub contradicting: u64,
    /// Whether the files are lists of others.
    #[serde(skip)]
    pub is_list: bool,
}

/// The findings and counts of a merge.
pub(super) struct Report {
    pub bad: Findings,
    /// Lint, with the warnings.
    pub lint: Lint,
    /// The ids assigned to rows without a matching record, and to links that created a row.
    pub assigned: Vec<Finding>,
    pub counts: ListCounts,
    pub filled: Vec<FilledFields>,
    /// The bad rows that are left out, so that their faults do not count.
    pub withdrawn: HashSet<FilePosition>,
}

impl Report {
    /// Creates a report with the faults and warnings of reading.
    pub fn new(bad: Findings, warnings: Findings, is_list: bool, lints_all: bool) -> Report {
        let mut lint = Lint::new(lints_all);
        lint.findings = warnings;
        Report {
            bad,
            lint,
            assigned: Vec::new(),
            counts: ListCounts {
                is_list,
                ..ListCounts::default()
            },
            filled: Vec::new(),
            withdrawn: HashSet::new(),
        }
    }

    /// Leaves out a row that matches no record, with its faults.
    pub fn leave_out_unknown<F>(&mut self, row: &ImportRow<F>) {
        self.counts.unknown += 1;
        self.counts.left_out += 1;
        if row.is_bad {
            self.withdrawn.insert(row.position.clone());
        }
    }

    /// Counts a row that removes a record that is not there.
    pub fn count_absent(&mut self) {
        self.counts.unknown += 1;
        self.counts.absent += 1;
    }
}

impl ListCounts {
    /// Counts the values and items of a stored row that it does not have after the import.
    pub(super) fn count_removed<F: Fields>(&mut self, stored: &F, fields: &F) {
        let values = stored.values().into_iter().zip(fields.values());
        for (field, (old, new)) in F::table().fields.iter().zip(values) {
            if old.is_null() {
                continue;
            }
            if new.is_null() {
                self.cleared += 1;
            } else if field.kind.is_list() {
                let ids = old.ids().iter().filter(|id| !new.ids().contains(id));
                let form = |text: &String| {
                    comparable_word(&field.name, text).unwrap_or_else(|| text.clone())
                };
                let kept: Vec<String> = new.texts().iter().map(form).collect();
                let texts = old.texts().iter().map(form);
                let removed = texts.filter(|text| !kept.contains(text));
                self.removed_items += (ids.count() + removed.count()) as u64;
            }
        }
    }
}
