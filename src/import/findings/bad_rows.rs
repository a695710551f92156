//! The rows that have a finding. An import with `--allow-faults` leaves them out.

use std::collections::HashSet;

use super::finding::FilePosition;

/// The rows with a fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadRows {
    rows: HashSet<FilePosition>,
    /// Whether a fault is about a whole file. Then its rows are not known.
    pub of_file: bool,
}

impl BadRows {
    /// The maximum number of rows that may be left out.
    pub const MAX_ALLOWED: usize = 10_000;

    /// Adds a row. Those beyond the maximum are not counted exactly.
    pub(super) fn add(&mut self, position: &FilePosition) {
        if self.rows.len() <= BadRows::MAX_ALLOWED && !self.rows.contains(position) {
            self.rows.insert(position.clone());
        }
    }

    /// Adds the rows of other findings.
    pub(super) fn extend(&mut self, other: &BadRows) {
        other.rows.iter().for_each(|row| self.add(row));
        self.of_file |= other.of_file;
    }

    /// Removes rows.
    pub(super) fn remove(&mut self, rows: &HashSet<FilePosition>) {
        self.rows.retain(|row| !rows.contains(row));
    }

    /// The number of rows.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if a row has a fault.
    pub fn contains(&self, position: &FilePosition) -> bool {
        self.rows.contains(position)
    }

    /// Returns true if the faults are those of at most so many rows, and of no whole file.
    pub fn are_allowed(&self, most: usize) -> bool {
        !self.of_file && self.rows.len() <= most
    }
}
