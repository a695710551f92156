//! Gives fields to columns: their headers and their cells decide together.

use std::cmp::Reverse;

use super::content::{
    DraftColumn, days_in, has_issn, is_absence, is_address, is_data, is_place, is_range,
};
use super::names::{KnownName, known_name, price_name, year_of};
use crate::import::lint::is_area;
use crate::import::read::currency::{is_currency, is_dollar, names_dollars, names_other_currency};
use crate::import::read::dates::DateOrder;
use crate::import::read::options::{ISSN_COLUMNS, field_named};
use crate::import::read::row_kind::RowKind;
use crate::import::read::shared_cells::split_at_signs;
use crate::import::read::table_cell::Notation;
use crate::model::country::is_country;
use crate::model::fold::{fold, is_blank};

/// Fields that a column may contain.
#[derive(Debug)]
struct Candidate {
    column: usize,
    fields: Vec<&'static str>,
    rank: usize,
}

/// The columns of a draft, with their fields.
#[derive(Debug)]
pub(super) struct Assigned {
    pub columns: Vec<DraftColumn>,
    /// Fields that only rows with certain values of another column have: the field, the index of this column, and the
    /// values.
    pub conditions: Vec<(&'static str, usize, Vec<String>)>,
}

impl Assigned {
    /// Returns the column with a field.
    pub fn column_of(&self, field: &str) -> Option<&DraftColumn> {
        self.columns
            .iter()
            .find(|column| column.fields.contains(&field))
    }
}

/// Gives each column the fields that its header names and its cells can have. Without a header, the cells alone
/// decide.
pub(super) fn assign(
    kind: RowKind,
    columns: Vec<DraftColumn>,
    has_header: bool,
    notation: &Notation,
) -> Assigned {
    let mut assigned = Assigned {
        columns,
        conditions: Vec::new(),
    };
    let named = if has_header {
        named_candidates(kind, &assigned.columns)
    } else {
        guessed_candidates(kind, &assigned.columns)
    };
    let mut candidates = Vec::new();
    for candidate in refined(named, &assigned.columns) {
        match refusal(&candidate, &assigned.columns, notation) {
            Some(reason) => assigned.columns[candidate.column].reason = Some(reason),
            None => candidates.push(candidate),
        }
    }
    sort(&mut candidates, &assigned.columns);
    for candidate in candidates {
        assigned.give(candidate);
    }
    assigned.add_condition();
    let has_link = |column: &DraftColumn| column.cells.iter().any(|cell| cell.link.is_some());
    assigned.add_to("url", |column| {
        column.fields == ["name"] && has_link(column)
    });
    assigned.add_to("year", |column| {
        column.fields.first() == Some(&"start_date")
    });
    assigned
}

fn named_candidates(kind: RowKind, columns: &[DraftColumn]) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        let has_currency = kind == RowKind::Journals && currency_column(columns, at).is_some();
        let known = known_name(kind, &column.header)
            .or_else(|| price_name(&column.header).filter(|_| has_currency));
        candidates.extend(known.map(|KnownName { fields, rank }| Candidate {
            column: at,
            fields,
            rank,
        }));
    }
    candidates
}

/// Returns candidates for columns without headers. A text is the name only if no other column is one of different texts
/// of several words.
fn guessed_candidates(kind: RowKind, columns: &[DraftColumn]) -> Vec<Candidate> {
    let filled = |at: &usize| !columns[*at].cells.is_empty();
    let is_text = |at: &usize| !columns[*at].cells.iter().any(is_data);
    let indexes: Vec<usize> = (0..columns.len()).filter(filled).collect();
    let mut texts: Vec<usize> = indexes.iter().copied().filter(is_text).collect();
    if texts.len() > 1 {
        let is_phrase = |text: &str| text.contains(' ') && !is_place(text);
        texts.retain(|at| {
            let column = &columns[*at];
            column.are_mostly(is_phrase) && column.counted().len() == column.cells.len()
        });
    }
    let mut candidates = Vec::new();
    let mut issns = ISSN_COLUMNS.iter();
    for at in indexes {
        let column = &columns[at];
        let fields = match kind {
            _ if texts == [at] => vec!["name"],
            _ if column.are_mostly(is_address) => vec!["url"],
            RowKind::Journals if column.are_mostly(has_issn) => {
                issns.next().copied().into_iter().collect()
            }
            RowKind::Conferences if column.are_mostly(is_range) => vec!["start_date", "end_date"],
            RowKind::Conferences if column.are_mostly(is_place) => vec!["city", "country"],
            _ => continue,
        };
        if !fields.is_empty() {
            candidates.push(Candidate {
                column: at,
                fields,
                rank: at,
            });
        }
    }
    candidates
}

/// Changes the fields to those that the cells contain: two ISSNs, a range of dates, or a city with its country.
fn refined(mut candidates: Vec<Candidate>, columns: &[DraftColumn]) -> Vec<Candidate> {
    for at in 0..candidates.len() {
        let column = &columns[candidates[at].column];
        let has_other = |field: &str| {
            candidates
                .iter()
                .enumerate()
                .any(|(other, candidate)| other != at && candidate.fields == [field])
        };
        let fields = match &*candidates[at].fields {
            ["issn_print" | "issn_online"]
                if column.texts().any(has_two_issns)
                    && !ISSN_COLUMNS.iter().all(|field| has_other(field)) =>
            {
                ISSN_COLUMNS.to_vec()
            }
            ["city"] if column.are_mostly(is_place) => vec!["city", "country"],
            ["city", "country"] if column.are_mostly(is_country) => vec!["country"],
            ["city", "country"] if column.count(is_place) == 0 => vec!["city"],
            // Calendars call their events so.
            ["therapy_areas"]
                if column.header == "Subject"
                    && !has_other("name")
                    && !column.are_mostly(is_area) =>
            {
                vec!["name"]
            }
            ["start_date"] if column.texts().any(has_two_days) && !has_other("end_date") => {
                vec!["start_date", "end_date"]
            }
            ["start_date", "end_date"] if !column.texts().any(has_two_days) => vec!["start_date"],
            _ => continue,
        };
        candidates[at].fields = fields;
    }
    candidates
}

fn has_two_issns(text: &str) -> bool {
    let parts = split_at_signs(text);
    parts.into_iter().filter(|part| has_issn(part)).count() > 1
}

/// Returns why a column does not have the fields that its header names, although it has cells.
fn refusal(candidate: &Candidate, columns: &[DraftColumn], notation: &Notation) -> Option<String> {
    let column = &columns[candidate.column];
    let field = candidate.fields[0];
    if field == "publishing_apc_usd" {
        if names_other_currency(&column.header) {
            return Some("prices in another currency than US dollars".to_owned());
        }
        if let Some(currency) = currency_column(columns, candidate.column)
            && !names_dollars(&column.header)
            && !columns[currency].texts().any(is_dollar)
        {
            let name = &columns[currency].name;
            return Some(format!("no row has US dollars in `{name}`"));
        }
    }
    let (told, taken) = column.shares(&candidate.fields, notation);
    let says_nothing = || column.texts().all(|text| is_absence(field, text));
    let is_viable = if told == 0 {
        says_nothing()
    } else {
        taken > 0 && taken * 2 >= told
    };
    (!is_viable).then(|| {
        let count = column.cells.len();
        format!("not read as `{field}`, since only {taken} of {count} cells can be")
    })
}

/// Sorts candidates by precedence. A column with several fields comes before columns with one of them, but after
/// columns that have all of them.
fn sort(candidates: &mut [Candidate], columns: &[DraftColumn]) {
    let single: Vec<&'static str> = candidates
        .iter()
        .filter(|candidate| candidate.fields.len() == 1)
        .map(|candidate| candidate.fields[0])
        .collect();
    candidates.sort_by_key(|candidate| {
        let column = &columns[candidate.column];
        let is_covered = candidate.fields.iter().all(|field| single.contains(field));
        let group = match candidate.fields.len() {
            1 => 1,
            _ if is_covered => 2,
            _ => 0,
        };
        let length: usize = column.texts().map(str::len).sum();
        (
            group,
            column.cells.is_empty(),
            candidate.rank,
            Reverse(year_of(&column.header)),
            Reverse(column.cells.len()),
            Reverse(length),
        )
    });
}

impl Assigned {
    /// Gives a column its fields, unless other columns have them. Several columns may have one list.
    fn give(&mut self, candidate: Candidate) {
        let is_list = field_named(candidate.fields[0]).is_some_and(|field| field.kind.is_list());
        let other = candidate
            .fields
            .iter()
            .find_map(|field| Some((field, self.column_of(field)?)));
        match other {
            // The second of two columns such as `ISSN1` and `ISSN2`.
            Some((&"issn_print", other))
                if self.column_of("issn_online").is_none()
                    && without_number(&self.columns[candidate.column]) == without_number(other) =>
            {
                self.columns[candidate.column].fields = vec!["issn_online"];
            }
            Some((field, other)) if !is_list => {
                let reason = format!("`{field}` is read from `{}`", other.name);
                self.columns[candidate.column].reason = Some(reason);
            }
            _ => self.columns[candidate.column].fields = candidate.fields,
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

    /// Adds the condition that a price is in US dollars, if another column has the currency.
    fn add_condition(&mut self) {
        const PRICE: &str = "publishing_apc_usd";
        let has_price = |column: &DraftColumn| column.fields == [PRICE];
        let Some(price) = self.columns.iter().position(has_price) else {
            return;
        };
        let Some(currency) = currency_column(&self.columns, price) else {
            return;
        };
        if names_dollars(&self.columns[price].header) {
            return;
        }
        let dollars = self.columns[currency].counted().into_keys();
        let dollars = dollars.filter(|text| is_dollar(text)).map(str::to_owned);
        self.conditions.push((PRICE, currency, dollars.collect()));
    }
}

/// Returns the header of a column without the number at its end.
fn without_number(column: &DraftColumn) -> &str {
    let is_number = |sign: char| sign.is_ascii_digit() || is_blank(sign);
    column.header.trim_end_matches(is_number)
}

fn has_two_days(text: &str) -> bool {
    days_in(text, Some(DateOrder::Dmy)).is_some_and(|(first, last)| first != last)
}

/// Words in the header of a column with currencies.
const HEADERS: [&str; 9] = [
    "currency", "wahrung", "waehrung", "devise", "moneda", "moeda", "valuta", "waluta", "monnaie",
];

/// Returns the index of the column with currencies that is nearest to a column.
fn currency_column(columns: &[DraftColumn], near: usize) -> Option<usize> {
    let has_currencies = |at: &usize| {
        let header = fold(&columns[*at].header);
        *at != near
            && !columns[*at].cells.is_empty()
            && (columns[*at].are_mostly(is_currency)
                || HEADERS.iter().any(|word| header.contains(word))
                    && !columns[*at].are_mostly(has_digit))
    };
    (0..columns.len())
        .filter(has_currencies)
        .min_by_key(|at| at.abs_diff(near))
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}
