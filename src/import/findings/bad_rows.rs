//! The rows that have a finding. An import with `--allow-faults` leaves them out.

use std::collections::HashSet;

use super::finding::FilePosition;

/// The rows with a fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadRows {
    /// The positions of the rows.
    pub rows: HashSet<FilePosition>,
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

    /// Returns true if the faults are those of at most so many rows, and of no whole file.
    pub fn are_allowed(&self, most: usize) -> bool {
        !self.of_file && self.rows.len() <= most
    }
}
