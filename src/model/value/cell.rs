//! CSV cells: lists, and the guard against formulas.

use std::borrow::Cow;

use crate::model::message::{Message, message};

/// The separator of list items within a cell.
pub const ITEM_SEPARATOR: &str = "; ";

pub(super) fn join_items<'a>(items: &[impl AsRef<str>]) -> Cow<'a, str> {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    guard_formula(Cow::Owned(items.join(ITEM_SEPARATOR)))
}

pub(super) fn split_items(cell: &str) -> Result<std::str::Split<'_, &'static str>, Message> {
    let items = split_at(cell, ITEM_SEPARATOR)?;
    if items.clone().any(str::is_empty) {
        return Err("an item is empty; separate items by one `; `, with none at the beginning or end".into());
    }
    Ok(items)
}

/// Splits a list at another separator than that of exports. Fails for a list that a program wrote.
pub fn split_at<'c, 's>(cell: &'c str, separator: &'s str) -> Result<std::str::Split<'c, &'s str>, Message> {
    match bracketed_items(cell) {
        Some(items) => Err(message!("is a list of a program; write its items without brackets and quotes: `{items}`")),
        None => Ok(unguard_formula(cell).split(separator)),
    }
}

/// Returns the items of a list that a program wrote, such as `['a', 'b']` or `["a","b"]`, as a cell.
pub(super) fn bracketed_items(text: &str) -> Option<String> {
    const QUOTES: [char; 2] = ['\'', '"'];
    let items = text.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
    if !items.starts_with(QUOTES) || !items.ends_with(QUOTES) {
        return None;
    }
    let mut items = items.trim_matches(QUOTES).to_owned();
    for separator in ["', '", "','", "\", \"", "\",\"", "', \"", "\", '"] {
        items = items.replace(separator, ITEM_SEPARATOR);
    }
    Some(items)
}

/// Whether a spreadsheet may evaluate the text as a formula: `^'*[=+\-@\t\r]`.
pub fn looks_like_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r'])
}

/// Adds a `'` before a text that a spreadsheet may evaluate as a formula.
pub(super) fn guard_formula(text: Cow<'_, str>) -> Cow<'_, str> {
    if looks_like_formula(&text) { Cow::Owned(format!("'{text}")) } else { text }
}

pub(super) fn unguard_formula(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(rest) if looks_like_formula(rest) => rest,
        _ => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_guarded_and_read_back() {
        let cases = [
            ("Oncology", "Oncology"),
            ("=1+1", "'=1+1"),
            ("'=1+1", "''=1+1"),
            ("-aminobutyric", "'-aminobutyric"),
            ("@home", "'@home"),
            ("\tx", "'\tx"),
            ("'Iraq", "'Iraq"),
            ("a=b", "a=b"),
            ("", ""),
            ("'", "'"),
        ];
        for (text, cell) in cases {
            assert_eq!(guard_formula(Cow::Borrowed(text)), cell, "{text:?}");
            assert_eq!(unguard_formula(cell), text, "{cell:?}");
        }
    }
}
