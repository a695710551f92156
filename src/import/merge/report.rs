//! The report of an import: faults, warnings, new ids and counts.

use std::collections::HashSet;

use serde::Serialize;

use crate::import::findings::{FilePosition, Finding, Findings};
use crate::import::lint::{Lint, Respellings};
use crate::import::rows::{FilledFields, ImportRow, ListOptions, MAY_BE_NOTE};
use crate::model::{Id, Message, message};
use crate::store::Batch;

/// A merged import: its batch, and what to report. The steps of [`merge`](super::merge()) fill it.
#[derive(Debug, Default)]
pub struct Merged {
    /// The rows of the files, merged with stored values. Some may equal the stored rows.
    pub batch: Batch,
    /// Probable mistakes for a curator to check.
    pub warnings: Findings,
    /// Effects of the options that the user may want to know.
    pub notes: Vec<Finding>,
    /// The ids assigned to rows without a matching record, and to links that created a row.
    pub assigned: Vec<Finding>,
    /// The faults of the rows that are left out.
    pub bad: Findings,
    /// The corrected values.
    pub fixes: Findings,
    /// The effects of the rows on known records.
    pub counts: ListCounts,
    /// The number of rows that fill each field.
    pub filled: Vec<FilledFields>,
    /// The check of the rows, until they are merged.
    pub(super) lint: Lint,
    /// The words with one right spelling.
    pub(super) respellings: Respellings,
    /// The bad rows that are left out, so that their faults do not count.
    pub(super) withdrawn: HashSet<FilePosition>,
    /// The rows that exclude a later one.
    pub(super) excluding: HashSet<FilePosition>,
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

impl Merged {
    /// Adds a warning about a row.
    pub(super) fn warn(
        &mut self,
        position: &FilePosition,
        field: Option<&str>,
        message: impl Into<Message>,
    ) {
        self.warnings.push(position, field, None, message);
    }

    /// Refuses two rows that exclude each other. `message` is about the one with this index. The earlier row is reported
    /// once.
    pub(super) fn refuse_both(
        &mut self,
        [earlier, later]: [&FilePosition; 2],
        field: Option<&str>,
        value: Option<&str>,
        message: impl Fn(usize) -> Message,
    ) {
        if self.excluding.insert(earlier.clone()) {
            self.bad.push(earlier, field, value, message(1));
        }
        self.bad.push(later, field, value, message(0));
    }

    /// Returns true if a row without a record is a new one. Otherwise the row is counted, or bad.
    pub(super) fn is_new<F>(&mut self, row: &ImportRow<F>, list: &ListOptions) -> bool {
        match () {
            () if row.edit.is_removal => self.count_absent(),
            () if list.leaves_out_new => self.leave_out_unknown(row),
            () if row.may_be_note => self.bad.push(&row.position, None, None, MAY_BE_NOTE),
            () => return true,
        }
        false
    }

    /// Leaves out a row that matches no record, with its faults.
    pub(super) fn leave_out_unknown<F>(&mut self, row: &ImportRow<F>) {
        self.counts.unknown += 1;
        self.counts.left_out += 1;
        if row.is_bad {
            self.withdrawn.insert(row.position.clone());
        }
    }

    /// Counts a row that removes a record that is not there.
    pub(super) fn count_absent(&mut self) {
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
        report: &mut Merged,
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
