//! The report of an import: faults, warnings, new ids and counts.

use std::collections::HashSet;

use serde::Serialize;

use crate::import::findings::{FilePosition, Finding, Findings};
use crate::import::lint::Lint;
use crate::import::rows::{ImportRow, ListOptions, MAY_BE_NOTE};
use crate::model::{Id, Message, message};

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
    /// The corrected values.
    pub fixes: Findings,
    /// The bad rows that are left out, so that their faults do not count.
    pub withdrawn: HashSet<FilePosition>,
    /// The rows that exclude a later one.
    excluding: HashSet<FilePosition>,
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
            fixes: Findings::default(),
            withdrawn: HashSet::new(),
            excluding: HashSet::new(),
        }
    }

    /// Adds a warning about a row.
    pub fn warn(
        &mut self,
        position: &FilePosition,
        field: Option<&str>,
        message: impl Into<Message>,
    ) {
        self.lint.findings.push(position, field, None, message);
    }

    /// Refuses two rows that exclude each other. `message` is about the other one. The earlier row is reported once.
    pub fn refuse_both(
        &mut self,
        [earlier, later]: [&FilePosition; 2],
        field: Option<&str>,
        value: &str,
        message: impl Fn(&FilePosition) -> Message,
    ) {
        if self.excluding.insert(earlier.clone()) {
            self.bad.push(earlier, field, Some(value), message(later));
        }
        self.bad.push(later, field, Some(value), message(earlier));
    }

    /// Refuses two rows with the same id.
    pub fn refuse_double(&mut self, rows: [&FilePosition; 2], id: Id) {
        self.refuse_both(rows, Some("id"), &id.to_string(), |other| {
            message!("appears twice, and the rows differ; the other row with this id is at {other}")
        });
    }

    /// Returns true if a row without a record is a new one. Otherwise the row is counted, or bad.
    pub fn is_new<F>(&mut self, row: &ImportRow<F>, list: &ListOptions) -> bool {
        match () {
            () if row.edit.is_removal => self.count_absent(),
            () if list.leaves_out_new => self.leave_out_unknown(row),
            () if row.may_be_note => self.bad.push(&row.position, None, None, MAY_BE_NOTE),
            () => return true,
        }
        false
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

/// The next free ids of a kind of row.
pub(super) struct FreeIds {
    /// The stem of the kind's file names.
    pub kind: &'static str,
    /// The largest id so far.
    pub largest: Option<Id>,
}

impl FreeIds {
    /// Assigns the next id to a row, or to the label that it links to.
    pub fn assign(
        &mut self,
        position: &FilePosition,
        link: Option<&str>,
        report: &mut Report,
    ) -> Option<Id> {
        match Id::try_from(self.largest.map_or(1, |id| id.get() + 1)) {
            Ok(id) => {
                self.largest = Some(id);
                let assigned = Finding::assigned(position, self.kind, id, link);
                report.assigned.push(assigned);
                Some(id)
            }
            Err(error) => {
                let message = message!("no id is free: {error}");
                report.bad.push(position, Some("id"), None, message);
                None
            }
        }
    }
}
