//! How a table writes its numbers and dates.

use serde::Deserialize;

/// The known facts about how a table writes its values.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::import) struct Notation {
    /// Whether semicolons separate the cells. In such files a comma usually is the decimal sign, and points group
    /// digits.
    pub has_semicolons: bool,
    /// Whether the column contains prices. Prices rarely have three decimals.
    pub is_price: bool,
    /// Whether the table is a sheet of a workbook. Its numbers are number cells, not text.
    pub is_sheet: bool,
    /// Whether the cell is a number cell of a workbook.
    pub is_number: bool,
    /// Whether the cell is from JSON, whose texts have no guard against formulas.
    pub is_json: bool,
    /// The decimal sign, if set by an option.
    pub decimal: Option<DecimalSign>,
    /// The order of day and month, if set by an option.
    pub dates: Option<DateOrder>,
}

impl Notation {
    /// Returns true if a comma may be the decimal sign.
    pub fn may_have_comma(&self) -> bool {
        self.has_semicolons || self.decimal == Some(DecimalSign::Comma)
    }
}

/// A decimal sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, strum::EnumString, strum::VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DecimalSign {
    /// `2.5`; commas group digits.
    Point,
    /// `2,5`; points group digits.
    Comma,
}

/// The order of day, month and year in a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, strum::Display, strum::EnumString, strum::VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DateOrder {
    /// Day, month, year.
    Dmy,
    /// Month, day, year.
    Mdy,
}
