//! The first rows of a file, from which a recipe is drafted.

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::ControlFlow;

use encoding_rs::Encoding;

use crate::import::read::cells::{Notation, TableCell};

/// The number of rows from which a recipe is drafted.
const MAX_ROWS: usize = 1_000;

/// The first rows of a file, from which a recipe is drafted.
#[derive(Clone, Debug, Default)]
pub struct FileSample {
    pub(super) rows: RefCell<Vec<Vec<TableCell<'static>>>>,
    /// The notation of the table.
    pub(super) notation: Cell<Notation>,
    /// Whether the rows are JSON objects. Then the first row has the paths of their members.
    pub(super) has_objects: Cell<bool>,
    /// The probable encoding, if it is not UTF-8.
    pub(in crate::import) encoding: OnceCell<&'static Encoding>,
}

impl FileSample {
    /// Adds a row of a table. Returns `Break` if no more rows are needed.
    pub(in crate::import) fn add_row(
        &self,
        notation: Notation,
        cells: &[TableCell<'_>],
    ) -> ControlFlow<()> {
        self.notation.set(notation);
        let mut rows = self.rows.borrow_mut();
        rows.push(cells.iter().map(TableCell::to_owned_cell).collect());
        if rows.len() > MAX_ROWS {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Adds a JSON object: the paths and the values of its members.
    pub(in crate::import) fn add_object(&self, members: Vec<(String, TableCell<'static>)>) {
        self.has_objects.set(true);
        let mut rows = self.rows.borrow_mut();
        if rows.len() > MAX_ROWS {
            return;
        }
        if rows.is_empty() {
            rows.push(Vec::new());
        }
        let mut row = Vec::new();
        for (path, cell) in members {
            let known = rows[0].iter().position(|known| known.text == path);
            let at = known.unwrap_or(rows[0].len());
            if known.is_none() {
                rows[0].push(TableCell::text(path));
            }
            row.resize_with(row.len().max(at + 1), TableCell::default);
            row[at] = cell;
        }
        rows.push(row);
    }
}
