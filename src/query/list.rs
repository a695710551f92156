//! Lists: the visible records in the order of their ids, filtered, a page at a time.

use jiff::civil::Date;
use memchr::memmem::Finder;

use crate::model::fold::fold;
use crate::model::{Id, Timestamp};
use crate::store::StoreError;
use crate::store::codec::Hash;
use crate::store::columns::ColumnRow;
use crate::view::{LiveRow, View};

/// What a record must match; every given condition must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    /// Whether some condition needs the packed columns.
    fn needs_columns(&self) -> bool {
        let Filter { updated_since: _, text, year, start_date_from, start_date_to, country, therapy_area } = self;
        text.is_some()
            || year.is_some()
            || start_date_from.is_some()
            || start_date_to.is_some()
            || country.is_some()
            || therapy_area.is_some()
    }
}

/// The conditions on packed columns, prepared for many rows.
struct Matcher<'a> {
    filter: &'a Filter,
    folded: Option<String>,
}

impl<'a> Matcher<'a> {
    fn new(filter: &'a Filter) -> Matcher<'a> {
        Matcher { filter, folded: filter.text.as_deref().map(fold) }
    }

    fn finder(&self) -> Option<Finder<'_>> {
        self.folded.as_ref().map(|text| Finder::new(text.as_bytes()))
    }

    fn matches(&self, row: &ColumnRow, finder: Option<&Finder<'_>>) -> bool {
        let Filter { updated_since: _, text: _, year, start_date_from, start_date_to, country, therapy_area } =
            self.filter;
        year.is_none_or(|year| row.year == Some(year))
            && start_date_from.is_none_or(|from| row.start_date.is_some_and(|date| date >= from))
            && start_date_to.is_none_or(|to| row.start_date.is_some_and(|date| date <= to))
            && country.as_deref().is_none_or(|country| row.country.as_deref() == Some(country))
            && therapy_area.as_deref().is_none_or(|wanted| row.therapy_areas.iter().any(|area| area.as_ref() == wanted))
            && finder.is_none_or(|finder| {
                // A text of diacritics alone folds to nothing, and nothing is found nowhere.
                !finder.needle().is_empty()
                    && [&row.folded_name, &row.folded_abbv].iter().any(|text| finder.find(text.as_bytes()).is_some())
            })
    }
}

/// A page of a list.
#[derive(Debug)]
pub struct Page {
    /// The records' JSON objects, separated by commas.
    pub items: Vec<u8>,
    /// The hash of each record's JSON, in the same order.
    pub hashes: Vec<Hash>,
    /// The last record's id where another page follows.
    pub next_after: Option<Id>,
}

/// Up to `limit` matching records with ids larger than `after` (0 from the start).
///
/// # Errors
/// When the database cannot be read.
pub fn list(view: &View<'_>, filter: &Filter, after: u64, limit: usize) -> Result<Page, StoreError> {
    let since = filter.updated_since.map(|time| view.seq_before(time)).transpose()?;
    let matcher = Matcher::new(filter);
    let finder = matcher.finder();
    let mut columns = if filter.needs_columns() { Some(view.columns()?.cursor()) } else { None };
    let mut found: Vec<LiveRow> = Vec::with_capacity(limit + 1);
    for row in view.list_after(after)? {
        let row = row?;
        if since.is_some_and(|since| row.seq <= since) {
            continue;
        }
        let matching = match &mut columns {
            None => true,
            Some(columns) => columns.seek(row.id).is_some_and(|packed| matcher.matches(packed, finder.as_ref())),
        };
        if matching {
            found.push(row);
            // One more than the page holds tells whether another follows.
            if found.len() > limit {
                break;
            }
        }
    }
    let has_more = found.len() > limit;
    found.truncate(limit);
    let mut page = Page {
        items: Vec::with_capacity(found.len() * 1024),
        hashes: Vec::with_capacity(found.len()),
        next_after: found.last().map(|row| row.id).filter(|_| has_more),
    };
    for row in &found {
        if !page.items.is_empty() {
            page.items.push(b',');
        }
        page.hashes.push(view.push_body(row, &mut page.items)?);
    }
    Ok(page)
}
