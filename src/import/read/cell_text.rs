//! The text of a cell for a field, and the address that its hyperlink gives it.

use std::borrow::Cow;

use serde_json::Value;
use url::Url;

use super::table_cell::TableCell;
use crate::model::field::Field;
use crate::model::fold::is_blank;
use crate::model::message::{Message, message};
use crate::model::value::{JsonType, ValueKind};

/// Returns the fault of a JSON value whose type is not that of a field. A list of texts may have several fields.
pub(super) fn type_fault(
    cell: &TableCell<'_>,
    kind: ValueKind,
    has_several: bool,
) -> Option<Message> {
    let found = cell.json_type()?;
    let items = cell.json.as_ref().and_then(Value::as_array);
    let is_text = |item: &Value| item.is_string() || item.is_null();
    let is_split = has_several && items.is_some_and(|items| items.iter().all(is_text));
    let remedy = match (found, kind.json_type()) {
        (_, JsonType::List) => return None,
        (JsonType::List | JsonType::Object, _) if !is_split => "write one value",
        (JsonType::Number | JsonType::Flag, JsonType::Text) => "write a text in quotation marks",
        _ => return None,
    };
    Some(message!("is {found}; {remedy}"))
}

/// Returns the text of a cell for a field, or the reason why it cannot be read.
pub(super) fn cell_text<'c>(
    cell: &'c TableCell<'_>,
    field: &Field,
) -> Result<Cow<'c, str>, Message> {
    let column = field.column.as_str();
    let holds_text = field.kind.is_list() || field.kind == ValueKind::Text;
    let has_unit = cell
        .unit
        .as_ref()
        .is_some_and(|unit| names_unit(column, unit));
    if let Some(fault) = cell.fault.as_ref().filter(|_| !has_unit) {
        return Err(fault.clone());
    }
    if cell.is_date && holds_text {
        return Err(
            "is a date in the spreadsheet, but the column contains text; format the cell as text, and enter it \
                    again"
                .into(),
        );
    }
    if let Some(format) = cell.format.as_ref().filter(|_| holds_text) {
        return Err(message!(
            "is a number in the format `{format}`; format the cell as text, and enter what it shows"
        ));
    }
    match &cell.link {
        Some(link) if column == "url" => address(&cell.text, link),
        _ => Ok(Cow::Borrowed(&cell.text)),
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
