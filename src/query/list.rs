//! Lists: the visible records in the order of their ids, filtered, a page at a time.

use jiff::civil::Date;

use super::page::Page;
use crate::model::fold::fold;
use crate::model::{Id, Timestamp};
use crate::store::StoreError;
use crate::store::read::columns::Condition;
use crate::view::{LiveRow, View};

/// What a record must match; every given condition must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Filter {
    /// Last changed, or entered the license, at or after this instant.
    pub updated_since: Option<Timestamp>,
    /// Text found anywhere in the name or the abbreviation, case and diacritics aside.
    pub text: Option<String>,
    /// Edition year.
    pub year: Option<u16>,
    /// Starts on or after this day.
    pub start_date_from: Option<Date>,
    /// Starts on or before this day.
    pub start_date_to: Option<Date>,
    /// Host country, exactly.
    pub country: Option<String>,
    /// One therapy area, exactly.
    pub therapy_area: Option<String>,
}

impl Filter {
    /// A hash that differs for different filters. Part of cursors, so it must not change between versions.
    pub fn hash(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_derive_key("medfeed 2026-11 list filters");
        let mut put = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                // Lengths keep one filter's end from passing for another's beginning.
                hasher.update(&u64::try_from(name.len()).unwrap_or(u64::MAX).to_be_bytes());
                hasher.update(name.as_bytes());
                hasher.update(&u64::try_from(value.len()).unwrap_or(u64::MAX).to_be_bytes());
                hasher.update(value.as_bytes());
            }
        };
        put("updated_since", self.updated_since.map(|time| time.unix_s().to_string()));
        put("q", self.text.clone());
        put("year", self.year.map(|year| year.to_string()));
        put("start_date_from", self.start_date_from.map(|date| date.to_string()));
        put("start_date_to", self.start_date_to.map(|date| date.to_string()));
        put("country", self.country.clone());
        put("therapy_area", self.therapy_area.clone());
        let mut short = [0; 16];
        short.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        short
    }

    /// Whether rows are found in the columns, so that these must be there.
    pub fn needs_columns(&self) -> bool {
        *self != Filter::default()
    }

    /// What is asked of the packed columns; nothing where no column is concerned.
    fn condition(&self) -> Condition {
        let Filter { updated_since: _, text, year, start_date_from, start_date_to, country, therapy_area } =
            self.clone();
        let folded_text = text.as_deref().map(fold);
        Condition { year, start_date_from, start_date_to, country, therapy_area, folded_text }
    }
}

/// The rows of a page.
#[derive(Debug)]
pub struct Rows {
    /// The records.
    pub rows: Vec<LiveRow>,
    /// The last record's id where another page follows.
    pub next_after: Option<Id>,
}

/// Up to `limit` matching records with ids larger than `after` (0 from the start).
///
/// # Errors
/// When the database cannot be read.
pub fn list(view: &View<'_>, filter: &Filter, after: u64, limit: usize) -> Result<Rows, StoreError> {
    let since = filter.updated_since.map(|time| view.seq_before(time)).transpose()?;
    let is_new = since.map(|since| view.is_after(since)).transpose()?;
    let is_new = |row: &LiveRow| is_new.as_ref().is_none_or(|is_new| is_new(row));
    let condition = filter.condition();
    // One more than the page holds tells whether another follows.
    let mut found: Vec<LiveRow> = if !filter.needs_columns() {
        view.list_after(after)?.filter(is_new).take(limit + 1).collect()
    } else {
        view.list_matching(after, &condition, is_new, limit + 1)?
    };
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next_after = found.last().map(|row| row.id).filter(|_| has_more);
    Ok(Rows { rows: found, next_after })
}

/// The JSON of a page's records.
///
/// # Errors
/// When the database cannot be read.
pub fn page(view: &View<'_>, rows: &Rows) -> Result<Page, StoreError> {
    let records = view.record_json(rows.rows.iter().copied())?;
    let mut page = Page::new(records.len(), records.iter().map(|json| json.bytes().len()).sum());
    records.iter().for_each(|json| page.push(*json.hash(), json.bytes()));
    Ok(page)
}
