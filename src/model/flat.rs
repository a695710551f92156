//! Rows as the cells of a flat table: the CSV of exports and imports (the contract, "GET /exports/{dataset}").

use std::borrow::Cow;

use super::curated::{Curated, Fields};
use super::{References, Timestamp};

/// What separates the items of a list within a cell.
const ITEM_SEPARATOR: &str = "; ";

/// What a CSV file begins with: the byte-order mark of UTF-8.
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The header of a record's CSV file: `id`, the fields, `updated_at`.
pub fn record_columns<F: Fields>() -> Vec<String> {
    let mut columns = reference_columns::<F>();
    columns.push("updated_at".to_owned());
    columns
}

/// The header of the CSV file of organizations or tags: `id`, the fields.
pub fn reference_columns<F: Fields>() -> Vec<String> {
    std::iter::once("id".to_owned()).chain(F::table().fields.iter().map(|field| field.column.clone())).collect()
}

/// The cells of a row, in the order of its columns, without `updated_at`.
pub fn cells<'a, F: Fields>(row: &'a Curated<F>, references: &'a References) -> Vec<Cow<'a, str>> {
    let values = row.fields().values();
    let mut cells = Vec::with_capacity(values.len() + 2);
    cells.push(Cow::Owned(row.id().to_string()));
    cells.extend(values.into_iter().map(|value| value.to_csv(references)));
    cells
}

/// The cells of a record, `updated_at` included.
pub fn record_cells<'a, F: Fields>(
    row: &'a Curated<F>,
    updated_at: Timestamp,
    references: &'a References,
) -> Vec<Cow<'a, str>> {
    let mut cells = cells(row, references);
    cells.push(Cow::Owned(updated_at.to_string()));
    cells
}

/// The cell of a list.
pub(super) fn join_items<'a>(items: &[impl AsRef<str>]) -> Cow<'a, str> {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    guard_formula(Cow::Owned(items.join(ITEM_SEPARATOR)))
}

/// The items of a list in a cell.
pub(super) fn split_items(cell: &str) -> Result<std::str::Split<'_, &'static str>, String> {
    let items = unguard_formula(cell).split(ITEM_SEPARATOR);
    if items.clone().any(str::is_empty) {
        return Err("an item is empty; separate items by one `; `, with none at the beginning or end".to_owned());
    }
    Ok(items)
}

/// Whether a spreadsheet may take the text for a formula: `^'*[=+\-@\t\r]`.
pub fn looks_like_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r'])
}

/// Puts one `'` before a text that a spreadsheet may take for a formula.
pub(super) fn guard_formula(text: Cow<'_, str>) -> Cow<'_, str> {
    if looks_like_formula(&text) { Cow::Owned(format!("'{text}")) } else { text }
}

/// Takes the `'` off again that `guard_formula` put there.
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
