//! The cells of tables, and how a table writes them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::dates::DateOrder;
use crate::model::Message;
use crate::model::field::Field;
use crate::model::fold::is_blank;
use crate::model::value::JsonType;

/// A cell of a table, or a value of a JSON object.
#[derive(Clone, Debug, Default)]
pub(in crate::import) struct TableCell<'a> {
    pub text: Cow<'a, str>,
    /// Whether the cell is a date cell of a workbook.
    pub is_date: bool,
    /// Whether the cell is a number cell of a workbook, or a number in JSON.
    pub is_number: bool,
    /// The value in JSON, if it is no text. Another value than a list is a list of one.
    pub json: Option<Value>,
    /// The reason why the cell cannot be read. `text` is the content for the report.
    pub fault: Option<Message>,
    /// The number format of a cell that shows its number in other digits or signs than `text`.
    pub format: Option<String>,
    /// The unit that the spreadsheet displays. If the column name contains the unit, `fault` is ignored.
    pub unit: Option<String>,
    /// The part of a date that a cell shows, if it does not show all of it.
    pub part_of_date: Option<String>,
    /// The target of the cell's hyperlink.
    pub link: Option<String>,
}

impl<'a> TableCell<'a> {
    pub fn text(text: impl Into<Cow<'a, str>>) -> TableCell<'a> {
        TableCell {
            text: text.into(),
            ..TableCell::default()
        }
    }

    /// Returns a copy that borrows nothing.
    pub fn to_owned_cell(&self) -> TableCell<'static> {
        TableCell {
            text: Cow::Owned(self.text.to_string()),
            fault: self.fault.clone(),
            format: self.format.clone(),
            part_of_date: self.part_of_date.clone(),
            unit: self.unit.clone(),
            json: self.json.clone(),
            link: self.link.clone(),
            ..*self
        }
    }

    /// Returns the type of a value in JSON that is no text.
    pub fn json_type(&self) -> Option<JsonType> {
        self.json.as_ref().map(JsonType::of)
    }

    pub fn is_blank(&self) -> bool {
        self.fault.is_none() && self.text.chars().all(is_blank)
    }
}

/// The known facts about how a table writes its values.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::import) struct Notation {
    /// Whether semicolons separate the cells. In such files a comma usually is the decimal sign, and points group
    /// digits.
    pub has_semicolons: bool,
    /// Whether the column contains prices. Prices rarely have three decimals.
    pub is_price: bool,
    /// The kind of file or part that contains the cells.
    pub container: Container,
    /// Whether the cell is a number cell of a workbook, or a number in JSON.
    pub is_number: bool,
    /// Whether the file is a list of others, whose cells may be more than values ([`loose`](super::loose)).
    pub is_loose: bool,
    /// The decimal sign, if set by an option.
    pub decimal: Option<DecimalSign>,
    /// The order of day and month, if set by an option.
    pub dates: Option<DateOrder>,
}

impl Notation {
    /// Returns the notation of a column with a field.
    pub fn of_field(&self, field: &Field) -> Notation {
        Notation {
            is_price: field.column.ends_with("_usd"),
            ..*self
        }
    }

    /// Returns true if a comma may be the decimal sign.
    pub fn may_have_comma(&self) -> bool {
        self.has_semicolons || self.decimal == Some(DecimalSign::Comma)
    }
}

/// The kind of file or part that contains cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::import) enum Container {
    /// A text with a cell for each column in each row, even an empty one.
    #[default]
    Csv,
    /// A sheet of a workbook. Its numbers are number cells, not text.
    Sheet,
    /// A sheet of an .xls or .ods file. The formats of its numbers are not known.
    OldSheet,
    /// Objects. Their texts have no guard against formulas.
    Json,
}

impl Container {
    /// Returns what messages call a column.
    pub fn column(self) -> &'static str {
        match self {
            Container::Csv | Container::Sheet | Container::OldSheet => "column",
            Container::Json => "field",
        }
    }
}

/// A decimal sign.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Deserialize, strum::EnumString, strum::VariantNames,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DecimalSign {
    /// `2.5`; commas group digits.
    Point,
    /// `2,5`; points group digits.
    Comma,
}
