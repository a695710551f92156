//! Record lists: a page of the visible records in the order of their ids, filtered.

use super::page::JsonPage;
use crate::model::{Filter, Id};
use crate::store::StoreError;
use crate::view::{LiveRow, View};

/// The records of a list page.
#[derive(Debug)]
pub struct ListRows {
    /// The visible records.
    pub rows: Vec<LiveRow>,
    /// The id of the last record, if another page follows.
    pub next_after: Option<Id>,
}

/// Returns up to `limit` matching records with ids greater than `after` (0 for the first page).
pub fn list(view: &View<'_>, filter: &Filter, after: u64, limit: usize) -> Result<ListRows, StoreError> {
    let since = filter.updated_since.map(|time| view.seq_before(time)).transpose()?;
    let is_new = since.map(|since| view.is_after(since)).transpose()?;
    let is_new = |row: &LiveRow| is_new.as_ref().is_none_or(|is_new| is_new(row));
    // One extra record shows whether another page follows.
    let mut found: Vec<LiveRow> = if filter.is_empty() {
        view.list_after(after)?.filter(is_new).take(limit + 1).collect()
    } else {
        view.list_matching(after, filter, is_new, limit + 1)?
    };
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next_after = found.last().map(|row| row.id).filter(|_| has_more);
    Ok(ListRows { rows: found, next_after })
}

/// Returns the JSON of a list page.
pub fn page(view: &View<'_>, rows: &ListRows) -> Result<JsonPage, StoreError> {
    let records = view.record_json(rows.rows.iter().copied())?;
    let mut page = JsonPage::new(records.len(), records.iter().map(|json| json.bytes().len()).sum());
    records.iter().for_each(|json| page.push(*json.hash(), json.bytes()));
    Ok(page)
}
