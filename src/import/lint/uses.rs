//! Values that rows share.

use super::rule::RowLocation;
use crate::model::Id;

/// The rows that have a value.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// The number of rows that have it after the import.
    pub total: usize,
    /// The rows to which the import brings it.
    pub brought: Vec<Id>,
    /// The location of the first of these.
    pub first: Option<RowLocation>,
    /// Whether the database has it before the import.
    pub is_stored: bool,
}

impl Uses {
    /// Adds a row of the import.
    pub fn add(&mut self, location: &RowLocation, id: Id, is_brought: bool) {
        self.total += 1;
        if is_brought {
            self.brought.push(id);
            self.first.get_or_insert_with(|| location.clone());
        }
    }

    /// Adds a record of the database. `is_kept` says that the import neither sets nor removes it.
    pub fn add_stored(&mut self, is_kept: bool) {
        self.is_stored = true;
        self.total += usize::from(is_kept);
    }
}
