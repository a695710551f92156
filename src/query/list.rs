//! Record lists: a page of the visible records in the order of their ids, filtered.

use super::page::JsonPage;
use crate::model::{Filter, Id};
use crate::store::StoreError;
use crate::store::read::records::StoredRecord;
use crate::view::View;

/// The records of a list page.
#[derive(Debug)]
pub struct ListRows<'s> {
    /// The visible records.
    pub rows: Vec<&'s StoredRecord>,
    /// The id of the last record, if another page follows.
    pub next_after: Option<Id>,
}

/// Returns up to `limit` matching records with ids greater than `after` (0 for the first page).
pub fn list<'s>(view: &View<'s>, filter: &Filter, after: u64, limit: usize) -> Result<ListRows<'s>, StoreError> {
    // One extra record shows whether another page follows.
    let mut rows = view.list(after, filter, limit + 1)?;
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next_after = rows.last().map(|record| record.id()).filter(|_| has_more);
    Ok(ListRows { rows, next_after })
}

/// Returns the JSON of a list page.
pub fn page(rows: &ListRows<'_>) -> JsonPage {
    let records = &rows.rows;
    let mut page = JsonPage::new(records.len(), records.iter().map(|record| record.json().len()).sum());
    records.iter().for_each(|record| page.push(*record.hash(), record.json()));
    page
}
