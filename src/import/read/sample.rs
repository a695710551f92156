//! The first rows of a file, from which a recipe is drafted.

use std::cell::{OnceCell, RefCell};
use std::ops::ControlFlow;

use encoding_rs::Encoding;

use crate::import::read::json::leaves;
use crate::model::value::Json;
use crate::model::value::json::JsonMembers;

/// The number of rows from which a recipe is drafted.
const MAX_ROWS: usize = 200;

/// The first rows of a file.
#[derive(Clone, Debug, Default)]
pub struct FileSample {
    pub(in crate::import) rows: RefCell<Vec<Vec<String>>>,
    /// The probable encoding, if it is not UTF-8.
    pub(in crate::import) encoding: OnceCell<&'static Encoding>,
}

impl FileSample {
    /// Adds a row of a table. Returns `Break` if no more rows are needed.
    pub(in crate::import) fn add_row(&self, cells: Vec<String>) -> ControlFlow<()> {
        let mut rows = self.rows.borrow_mut();
        rows.push(cells);
        if rows.len() < MAX_ROWS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Adds a JSON object as a row. The first row has the paths of the members of all objects.
    pub(in crate::import) fn add_object(&self, members: JsonMembers<'_>) {
        let mut rows = self.rows.borrow_mut();
        if rows.len() > MAX_ROWS {
            return;
        }
        let mut header = if rows.is_empty() { Vec::new() } else { rows.remove(0) };
        let mut row = vec![String::new(); header.len()];
        for (path, value) in leaves("", members, &|_| false) {
            let at = header.iter().position(|known| *known == path).unwrap_or(header.len());
            if at == header.len() {
                header.push(path);
                row.push(String::new());
            }
            row[at] = if value == Json::Null { String::new() } else { value.to_string() };
        }
        rows.insert(0, header);
        rows.push(row);
    }
}
