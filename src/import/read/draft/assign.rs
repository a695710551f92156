//! Gives fields to columns: their headers and their cells decide together.

use std::cmp::Reverse;
use std::mem;

use super::content::{
    DraftColumn, days_in, has_digit, has_issn, is_absence, is_address, is_data, is_place, is_range,
};
use super::names::{KnownName, known_name, price_name, year_of};
use crate::import::lint::is_area;
use crate::import::read::currency::{is_currency, is_dollar, names_dollars, names_other_currency};
use crate::import::read::dates::DateOrder;
use crate::import::read::options::ISSN_COLUMNS;
use crate::import::read::row_kind::RowKind;
use crate::import::read::shared_cells::split_at_signs;
use crate::import::read::table_cell::Notation;
use crate::model::country::is_country;
use crate::model::fold::fold;

/// The field of prices in US dollars.
pub(super) const PRICE: &str = "publishing_apc_usd";

/// The columns of a draft, with their fields.
pub(super) struct Assigned {
    pub columns: Vec<DraftColumn>,
    /// The index of a column, and its values in rows that have a price in US dollars.
    pub condition: Option<(usize, Vec<String>)>,
}

impl Assigned {
    /// Gives each column the fields that its header names and its cells can have. Without a header, the cells alone
    /// decide.
    pub fn new(
        kind: RowKind,
        columns: Vec<DraftColumn>,
        has_header: bool,
        notation: &Notation,
    ) -> Assigned {
        let mut candidates = match has_header {
            true => named_candidates(kind, &columns),
            false => guessed_candidates(kind, &columns),
        };
        refine(&mut candidates, &columns);
        let mut assigned = Assigned {
            columns,
            condition: None,
        };
        for (at, candidate) in candidates.iter_mut().enumerate() {
            let reason = refusal(&candidate.fields, &assigned.columns, at, notation);
            if reason.is_some() {
                candidate.fields.clear();
            }
            assigned.columns[at].reason = reason;
        }
        for at in by_precedence(&candidates, &assigned.columns) {
            assigned.give(at, mem::take(&mut candidates[at].fields));
        }
        assigned.condition = assigned.find_condition();
        assigned.add_to("url", |column| {
            column.fields == ["name"] && column.cells.iter().any(|cell| cell.link.is_some())
        });
        assigned.add_to("year", |column| {
            column.fields.first() == Some(&"start_date")
        });
        assigned
    }

    /// Returns the column with a field.
    pub fn column_of(&self, field: &str) -> Option<&DraftColumn> {
        let mut columns = self.columns.iter();
        columns.find(|column| column.fields.contains(&field))
    }

    /// Gives a column its fields, unless other columns have them. Several columns may have one list.
    fn give(&mut self, column: usize, fields: Vec<&'static str>) {
        let mut others = fields.iter().map(|field| (*field, self.column_of(field)));
        let Some((field, Some(other))) = others.find(|(_, other)| other.is_some()) else {
            self.columns[column].fields = fields;
            return;
        };
        if other.field().is_some_and(|field| field.kind.is_list()) {
            self.columns[column].fields = fields;
        } else {
            let reason = format!("`{field}` is read from `{}`", other.name);
            self.columns[column].reason = Some(reason);
        }
    }

    /// Adds a field that no column has to the first column that may have it.
    fn add_to(&mut self, field: &'static str, may_have: impl Fn(&DraftColumn) -> bool) {
        let is_missing = self.column_of(field).is_none();
        let column = self.columns.iter_mut().find(|column| may_have(column));
        if let Some(column) = column.filter(|_| is_missing) {
            column.fields.push(field);
        }
    }

    /// Returns the condition that a price is in US dollars, if another column has the currency.
    fn find_condition(&self) -> Option<(usize, Vec<String>)> {
        let price = self
            .columns
            .iter()
            .position(|column| column.fields == [PRICE])?;
        let currency = currency_column(&self.columns, price)?;
        let dollars = self.columns[currency].counted().into_keys();
        let dollars = dollars.filter(|text| is_dollar(text)).map(str::to_owned);
        let is_needed = !names_dollars(&self.columns[price].header);
        is_needed.then(|| (currency, dollars.collect()))
    }
}

/// Returns the fields that the headers of columns name.
fn named_candidates(kind: RowKind, columns: &[DraftColumn]) -> Vec<KnownName> {
    let named = columns.iter().enumerate().map(|(at, column)| {
        let has_currency = kind == RowKind::Journals && currency_column(columns, at).is_some();
        let name = known_name(kind, &column.header);
        let name = name.or_else(|| price_name(&column.header).filter(|_| has_currency));
        name.unwrap_or_default()
    });
    named.collect()
}

/// Returns candidates for columns without headers. A text is the name only if no other column is one of different texts
/// of several words.
fn guessed_candidates(kind: RowKind, columns: &[DraftColumn]) -> Vec<KnownName> {
    let mut texts: Vec<usize> = (0..columns.len()).collect();
    texts.retain(|at| {
        let cells = &columns[*at].cells;
        !cells.is_empty() && !cells.iter().any(is_data)
    });
    if texts.len() > 1 {
        let is_phrase = |text: &str| text.contains(' ') && !is_place(text);
        texts.retain(|at| {
            let column = &columns[*at];
            column.are_mostly(is_phrase) && column.counted().len() == column.cells.len()
        });
    }
    let guessed = columns.iter().enumerate().map(|(rank, column)| {
        let fields = match () {
            () if texts == [rank] => "name",
            () if column.are_mostly(is_address) => "url",
            () if column.are_mostly(has_issn) => "issn_print",
            () if column.are_mostly(is_range) => "start_date+end_date",
            () if column.are_mostly(is_place) => "city+country",
            () => "",
        };
        let mut fields: Vec<&str> = fields.split('+').collect();
        fields.retain(|field| kind.table().index_of(field).is_some());
        KnownName { fields, rank }
    });
    guessed.collect()
}

/// Changes the fields to those that the cells contain: two ISSNs, a range of dates, or a city with its country.
fn refine(candidates: &mut [KnownName], columns: &[DraftColumn]) {
    for (at, column) in columns.iter().enumerate() {
        let has_other = |field: &str| {
            let mut others = candidates.iter().enumerate();
            others.any(|(other, candidate)| other != at && candidate.fields == [field])
        };
        let has = |is: fn(&str) -> bool| column.texts().any(is);
        let fields = match *candidates[at].fields {
            ["issn_print" | "issn_online"]
                if has(has_two_issns) && !ISSN_COLUMNS.into_iter().all(has_other) =>
            {
                ISSN_COLUMNS.to_vec()
            }
            ["city"] if column.are_mostly(is_place) => vec!["city", "country"],
            ["city", "country"] if column.are_mostly(is_country) => vec!["country"],
            ["city", "country"] if !has(is_place) => vec!["city"],
            // Calendars call their events so.
            ["therapy_areas"]
                if column.header == "Subject"
                    && !has_other("name")
                    && !column.are_mostly(is_area) =>
            {
                vec!["name"]
            }
            ["start_date"] if has(has_two_days) && !has_other("end_date") => {
                vec!["start_date", "end_date"]
            }
            ["start_date", "end_date"] if !has(has_two_days) => vec!["start_date"],
            _ => continue,
        };
        candidates[at].fields = fields;
    }
}

fn has_two_issns(text: &str) -> bool {
    let parts = split_at_signs(text);
    parts.into_iter().filter(|part| has_issn(part)).count() > 1
}

fn has_two_days(text: &str) -> bool {
    days_in(text, Some(DateOrder::Dmy)).is_some_and(|(first, last)| first != last)
}

/// Returns why a column does not have the fields that its header names, although it has cells.
fn refusal(
    fields: &[&str],
    columns: &[DraftColumn],
    at: usize,
    notation: &Notation,
) -> Option<String> {
    let column = &columns[at];
    let field = *fields.first()?;
    if field == PRICE {
        if names_other_currency(&column.header) {
            return Some("prices in another currency than US dollars".to_owned());
        }
        if let Some(currency) = currency_column(columns, at)
            && !names_dollars(&column.header)
            && !columns[currency].texts().any(is_dollar)
        {
            let name = &columns[currency].name;
            return Some(format!("no row has US dollars in `{name}`"));
        }
    }
    let (told, taken) = column.shares(fields, notation);
    let is_viable = match told {
        0 => column.texts().all(|text| is_absence(field, text)),
        _ => taken > 0 && taken * 2 >= told,
    };
    let count = column.cells.len();
    let reason = format!("not read as `{field}`, since only {taken} of {count} cells can be");
    (!is_viable).then_some(reason)
}

/// Returns the columns that have candidates, by precedence. A column with several fields comes before columns with one
/// of them, but after columns that have all of them.
fn by_precedence(candidates: &[KnownName], columns: &[DraftColumn]) -> Vec<usize> {
    let has_column = |field: &&str| candidates.iter().any(|other| other.fields == [*field]);
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.retain(|at| !candidates[*at].fields.is_empty());
    order.sort_by_key(|at| {
        let KnownName { fields, rank } = &candidates[*at];
        let column = &columns[*at];
        let group = match fields.len() {
            1 => 1,
            _ if fields.iter().all(has_column) => 2,
            _ => 0,
        };
        (
            group,
            column.cells.is_empty(),
            *rank,
            Reverse(year_of(&column.header)),
            Reverse(column.cells.len()),
        )
    });
    order
}

/// Returns the index of the column with currencies that is nearest to a column.
fn currency_column(columns: &[DraftColumn], near: usize) -> Option<usize> {
    /// Words in the header of such a column.
    const HEADERS: &str = "currency wahrung waehrung devise moneda moeda valuta waluta monnaie";
    let found = (0..columns.len()).filter(|at| {
        let column = &columns[*at];
        let header = fold(&column.header);
        let is_named = HEADERS.split(' ').any(|word| header.contains(word));
        *at != near
            && !column.cells.is_empty()
            && (column.are_mostly(is_currency) || is_named && !column.are_mostly(has_digit))
    });
    found.min_by_key(|at| at.abs_diff(near))
}
