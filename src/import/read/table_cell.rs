//! The cells of tables, and how a table writes them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::dates::DateOrder;
use crate::model::field::Field;
use crate::model::fold::is_blank;
use crate::model::message::{Message, message};
use crate::model::value::{JsonType, ValueKind};

/// A cell of a table, or a value of a JSON object.
#[derive(Clone, Debug, Default)]
pub(in crate::import) struct TableCell {
    pub text: String,
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

impl TableCell {
    pub fn text(text: impl Into<String>) -> TableCell {
        TableCell {
            text: text.into(),
            ..TableCell::default()
        }
    }

    /// Returns the type of a value in JSON that is no text.
    pub fn json_type(&self) -> Option<JsonType> {
        self.json.as_ref().map(JsonType::of)
    }

    /// Returns the fault of a JSON value whose type is not that of a field. A list of texts may have several fields.
    pub fn type_fault(&self, kind: ValueKind, has_several: bool) -> Option<Message> {
        let found = self.json_type()?;
        let items = self.json.as_ref().and_then(Value::as_array);
        let are_texts = items.is_some_and(|items| {
            let mut items = items.iter();
            items.all(|item| item.is_string() || item.is_null())
        });
        let is_split = has_several && are_texts;
        let remedy = match (found, kind.json_type()) {
            (_, JsonType::List) => return None,
            (JsonType::List | JsonType::Object, _) if !is_split => "write one value",
            (JsonType::Number | JsonType::Flag, JsonType::Text) => {
                "write a text in quotation marks"
            }
            _ => return None,
        };
        Some(message!("is {found}; {remedy}"))
    }

    /// Returns the text of a cell for a field, or the reason why it cannot be read.
    pub fn text_for(&self, field: &Field) -> Result<Cow<'_, str>, Message> {
        let column = field.column.as_str();
        let holds_text = field.kind.is_list() || field.kind == ValueKind::Text;
        let has_unit = self
            .unit
            .as_ref()
            .is_some_and(|unit| names_unit(column, unit));
        if let Some(fault) = self.fault.as_ref().filter(|_| !has_unit) {
            return Err(fault.clone());
        }
        if self.is_date && holds_text {
            return Err(
                "is a date in the spreadsheet, but the column contains text; format the cell as text, and enter it \
                        again"
                    .into(),
            );
        }
        if let Some(format) = self.format.as_ref().filter(|_| holds_text) {
            return Err(message!(
                "is a number in the format `{format}`; format the cell as text, and enter what it shows"
            ));
        }
        match &self.link {
            Some(link) if column == "url" => address(&self.text, link),
            _ => Ok(Cow::Borrowed(&self.text)),
        }
    }

    pub fn is_blank(&self) -> bool {
        self.fault.is_none() && self.text.chars().all(is_blank)
    }
}

/// Returns true if a word of the column name is the unit, such as `months` in `publishing_embargo_months`.
fn names_unit(column: &str, unit: &str) -> bool {
    let singular = |word: &str| word.strip_suffix('s').unwrap_or(word).to_lowercase();
    column
        .split('_')
        .any(|word| singular(word) == singular(unit))
}

/// Returns the address to store for a cell with the text `text` and a hyperlink to `link`. An address in the text takes
/// precedence. Fails if the two addresses differ, or if neither is a web address.
fn address<'c>(text: &'c str, link: &'c str) -> Result<Cow<'c, str>, Message> {
    let shown = text.trim_matches(is_blank);
    let link = link.trim_matches(is_blank);
    match (web_address(shown), web_address(link)) {
        (Some(shown), Some(target)) if comparable(&shown) != comparable(&target) => Err(message!(
            "shows one address and links to another, `{link}`; remove the link, or write the right address in both"
        )),
        (Some(_), _) => Ok(text.into()),
        (None, Some(_)) => Ok(link.into()),
        (None, None) => Err(message!(
            "links to `{link}`, which is not a web address (http or https); write the address in the cell, and remove \
             the link"
        )),
    }
}

/// Returns the web address that a text is.
pub(in crate::import) fn web_address(text: &str) -> Option<Url> {
    Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// Returns the address without its scheme and its final slashes. Spreadsheets change these when they turn a text into a
/// hyperlink.
fn comparable(url: &Url) -> String {
    let rest = url.as_str().split_once("://").map_or("", |(_, rest)| rest);
    rest.trim_end_matches('/').to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_website_is_read_from_the_text_or_the_link_of_a_cell() {
        let cases = cases![
            "ESMO", "https://esmo.org/", Ok("https://esmo.org/");
            "www.esmo.org", "http://www.esmo.org/", Ok("http://www.esmo.org/");
            "https://esmo.org", "https://esmo.org/", Ok("https://esmo.org");
            "https://ESMO.org", "http://esmo.org/", Ok("https://ESMO.org");
            "https://esmo.org/a b", "https://esmo.org/a%20b", Ok("https://esmo.org/a b");
            "https://esmo.org/2026", "https://esmo.org/2025", Err("links to another, `https://esmo.org/2025`");
            "https://esmo.org", "mailto:info@esmo.org", Ok("https://esmo.org");
            "ESMO", "mailto:info@esmo.org", Err("`mailto:info@esmo.org`, which is not a web address");
            "ESMO", "file:///C:/esmo.html", Err("not a web address");
            "ESMO", "#Sheet2!A1", Err("not a web address");
            "ESMO", "HYPERLINK(A1,B1)", Err("not a web address");
        ];
        for (text, link, expected) in cases {
            match (address(text, link), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text} {link}"),
                (Err(message), Err(expected)) => {
                    assert!(message.contains(expected), "{text} {link}: {message}")
                }
                (found, expected) => panic!("{text} {link}: {found:?}, expected {expected:?}"),
            }
        }
    }
}
