//! Rows as cells of a table: the CSV of exports and imports (contract, "GET /exports/{dataset}").

use std::borrow::Cow;

use super::curated::{Curated, Fields};
use super::time::Timestamp;
use super::value::LinkTexts;
pub use super::value::cell::looks_like_formula;

/// The first bytes of a CSV file: the byte-order mark of UTF-8.
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Returns the header of a record's CSV file: `id`, the fields, `updated_at`.
pub fn record_columns<F: Fields>() -> Vec<String> {
    let mut columns = reference_columns::<F>();
    columns.push("updated_at".to_owned());
    columns
}

/// Returns the header of the CSV file of organizations or tags: `id`, the fields.
pub fn reference_columns<F: Fields>() -> Vec<String> {
    std::iter::once("id".to_owned()).chain(F::table().fields.iter().map(|field| field.column.clone())).collect()
}

/// Returns the cells of a row, in the order of its columns, without `updated_at`.
pub fn cells<'a, F: Fields>(row: &'a Curated<F>, links: &'a dyn LinkTexts) -> Vec<Cow<'a, str>> {
    let values = row.fields().values();
    let mut cells = Vec::with_capacity(values.len() + 2);
    cells.push(Cow::Owned(row.id().to_string()));
    cells.extend(values.into_iter().map(|value| value.to_csv(links)));
    cells
}

/// Returns the cells of a record with `updated_at`.
pub fn record_cells<'a, F: Fields>(
    row: &'a Curated<F>,
    updated_at: Timestamp,
    links: &'a dyn LinkTexts,
) -> Vec<Cow<'a, str>> {
    let mut cells = cells(row, links);
    cells.push(Cow::Owned(updated_at.to_string()));
    cells
}
