//! Rows as the cells of a flat table: the CSV of exports and imports (the contract, "GET /exports/{dataset}").

use std::borrow::Cow;

use super::Timestamp;
use super::curated::{Curated, Fields};
use super::field::Value;
use super::reference::{ReferenceKind, References};

/// What separates the items of a list within a cell.
pub const ITEM_SEPARATOR: &str = "; ";

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
    std::iter::once("id".to_owned()).chain(F::table().iter().map(|field| field.column())).collect()
}

/// The cells of a row, in the order of its columns, without `updated_at`.
pub fn cells<'a, F: Fields>(row: &'a Curated<F>, references: &'a References) -> Vec<Cow<'a, str>> {
    let mut cells = Vec::with_capacity(F::table().len() + 2);
    cells.push(Cow::Owned(row.id().to_string()));
    cells.extend(F::table().iter().map(|field| cell((field.get)(row.fields()), references)));
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

fn cell<'a>(value: Value<'a>, references: &'a References) -> Cow<'a, str> {
    fn shown<'a>(value: &Option<impl ToString>) -> Cow<'a, str> {
        value.as_ref().map_or(Cow::Borrowed(""), |value| Cow::Owned(value.to_string()))
    }
    match value {
        Value::Text(text) => guard_formula(Cow::Borrowed(text.as_deref().unwrap_or_default())),
        Value::Date(date) => shown(date),
        Value::Status(status) => status.map_or(Cow::Borrowed(""), |status| Cow::Borrowed(status.as_str())),
        Value::Access(access) => access.map_or(Cow::Borrowed(""), |access| Cow::Borrowed(access.as_str())),
        Value::Year(year) => shown(year),
        Value::Whole(number) => shown(number),
        Value::Number(number) => shown(number),
        Value::Flag(flag) => Cow::Borrowed(match flag {
            Some(true) => "TRUE",
            Some(false) => "FALSE",
            None => "",
        }),
        Value::Texts(items) => guard_formula(Cow::Owned(items.join(ITEM_SEPARATOR))),
        Value::Organizations(ids) => labels(ReferenceKind::Organization, ids, references),
        Value::Tags(ids) => labels(ReferenceKind::Tag, ids, references),
    }
}

fn labels<'a>(kind: ReferenceKind, ids: &[super::Id], references: &'a References) -> Cow<'a, str> {
    let labels: Vec<&str> = ids.iter().map(|id| references.label(kind, *id)).collect();
    guard_formula(Cow::Owned(labels.join(ITEM_SEPARATOR)))
}

/// Whether a spreadsheet may take the text for a formula: `^'*[=+\-@\t\r]`.
pub fn looks_like_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r'])
}

/// Puts one `'` before a text that a spreadsheet may take for a formula.
fn guard_formula(text: Cow<'_, str>) -> Cow<'_, str> {
    if looks_like_formula(&text) { Cow::Owned(format!("'{text}")) } else { text }
}

/// Takes the `'` off again that `guard_formula` put there.
pub fn unguard_formula(cell: &str) -> &str {
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
