//! A cell of a table, from CSV, JSON or a workbook.

use std::borrow::Cow;

use crate::model::fold::is_blank;
use crate::model::message::Message;
use crate::model::value::Json;

/// A cell of a table, or a value of a JSON object.
#[derive(Clone, Debug, Default)]
pub(in crate::import) struct TableCell<'a> {
    pub text: Cow<'a, str>,
    /// Whether the cell is a date cell of a workbook.
    pub is_date: bool,
    /// Whether the cell is a number cell of a workbook, or a number in JSON.
    pub is_number: bool,
    /// The reason why the cell cannot be read. `text` is the content for the report.
    pub fault: Option<Message>,
    /// The number format of a cell that shows its number in other digits or signs than `text`.
    pub format: Option<String>,
    /// The unit that the spreadsheet displays. If the column name contains the unit, `fault` is ignored.
    pub unit: Option<String>,
    /// The items of a list in JSON.
    pub items: Option<Vec<Json<'a>>>,
    /// The target of the cell's hyperlink.
    pub link: Option<Cow<'a, str>>,
}

impl<'a> TableCell<'a> {
    pub fn text(text: impl Into<Cow<'a, str>>) -> TableCell<'a> {
        TableCell { text: text.into(), ..TableCell::default() }
    }

    pub fn is_blank(&self) -> bool {
        self.fault.is_none() && self.text.chars().all(is_blank)
    }
}
