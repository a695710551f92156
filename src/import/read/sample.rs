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
    pub(in crate::import) objects: RefCell<Vec<Vec<(String, String)>>>,
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

    /// Adds a JSON object.
    pub(in crate::import) fn add_object(&self, members: JsonMembers<'_>) {
        let mut objects = self.objects.borrow_mut();
        if objects.len() < MAX_ROWS {
            let text = |value: Json<'_>| if value == Json::Null { String::new() } else { value.to_string() };
            objects
                .push(leaves("", members, &|_| false).into_iter().map(|(path, value)| (path, text(value))).collect());
        }
    }
}
