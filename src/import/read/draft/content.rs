//! The content of the cells of a column. The readers of an import decide.

use std::collections::BTreeMap;

use jiff::civil::Date;

use super::names::year_of;
use crate::import::lint::{is_area, is_placeholder, may_be_name};
use crate::import::read::cell_text::web_address;
use crate::import::read::cells::normalize;
use crate::import::read::dates::{DateOrder, date_range};
use crate::import::read::loose::{
    PlaceEnd, issns, open_date, place_end, without_mode, without_time,
};
use crate::import::read::options::{ISSN_COLUMNS, field_named};
use crate::import::read::shared_cells::{BEFORE_COUNTRY, split_at_signs};
use crate::import::read::table_cell::{DecimalSign, Notation, TableCell};
use crate::model::ReferenceKind;
use crate::model::country::is_country;
use crate::model::field::Field;
use crate::model::fold::{comparable, is_blank};
use crate::model::value::{JsonType, ValueKind};

/// A column of a draft.
#[derive(Debug)]
pub(super) struct DraftColumn {
    /// The name in the recipe: the header, `header#2`, or `=D`.
    pub name: String,
    pub header: String,
    /// The cells of the sample that are not blank.
    pub cells: Vec<TableCell<'static>>,
    /// Whether no row of the sample is blank.
    pub is_full: bool,
    /// The fields that the column contains; none if it is ignored.
    pub fields: Vec<&'static str>,
    /// Why the column is ignored, although its header names a field.
    pub reason: Option<String>,
}

impl DraftColumn {
    pub fn new(
        name: String,
        header: String,
        cells: impl Iterator<Item = TableCell<'static>>,
    ) -> DraftColumn {
        let all: Vec<TableCell<'static>> = cells.collect();
        let count = all.len();
        let cells: Vec<_> = all.into_iter().filter(|cell| !cell.is_blank()).collect();
        DraftColumn {
            name,
            header,
            is_full: cells.len() == count,
            cells,
            fields: Vec::new(),
            reason: None,
        }
    }

    /// Returns the texts of the cells.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.cells
            .iter()
            .map(|cell| cell.text.trim_matches(is_blank))
    }

    /// Returns the number of cells for which `is` returns true.
    pub fn count(&self, is: impl Fn(&str) -> bool) -> usize {
        self.texts().filter(|text| is(text)).count()
    }

    /// Returns true if most cells are so.
    pub fn are_mostly(&self, is: impl Fn(&str) -> bool) -> bool {
        self.count(is) * 2 > self.cells.len()
    }

    /// Returns the different texts with the numbers of their cells.
    pub fn counted(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for text in self.texts() {
            *counts.entry(text).or_default() += 1;
        }
        counts
    }

    /// Returns the number of cells that say something, and how many of these the fields can have. A word in a column of
    /// numbers or dates says that there is none.
    pub fn shares(&self, fields: &[&str], notation: &Notation) -> (usize, usize) {
        let kind = field_named(fields[0]).map(|field| field.kind);
        let has_digits = matches!(
            kind,
            Some(ValueKind::Number | ValueKind::Integer | ValueKind::Year | ValueKind::Date)
        );
        let says_something = |cell: &&TableCell<'_>| {
            let has_digit = cell.text.bytes().any(|byte| byte.is_ascii_digit());
            !is_absence(fields[0], &cell.text) && (has_digit || !has_digits)
        };
        let told: Vec<&TableCell<'_>> = self.cells.iter().filter(says_something).collect();
        let taken = told
            .iter()
            .filter(|cell| are_taken(fields, cell, notation))
            .count();
        (told.len(), taken)
    }
}

/// Returns true if a text says that there is no value.
pub(super) fn is_absence(field: &str, text: &str) -> bool {
    is_placeholder("", text.trim_matches(is_blank)) && !may_be_name(field, text)
}

/// Returns true for words that fill the cells of numbers and dates without a value, in some languages.
pub(super) fn is_word_for_none(text: &str) -> bool {
    #[rustfmt::skip]
    const WORDS: &[&str] = &[
        "ka", "keineangabe", "keineangaben", "nichtverfugbar", "folgt", "offen", "nochoffen", "aufanfrage", "nc", "nd", "ndp", "aconfirmer",
        "adefinir", "nondisponible", "surdemande", "pordefinir", "porconfirmar", "sindatos", "sindato", "nodisponible", "aconsultar",
        "dadefinire", "daconfermare", "nondisponibile", "brak", "brakdanych", "notlisted", "notyetannounced", "notannounced", "announcedlater",
        "closed", "passed", "expired", "ongoing", "rolling", "abgelaufen", "geschlossen", "notyetknown", "notyet", "onrequest", "uponrequest", "contactus", "seewebsite", "seejournal", "several", "varies", "various", "variable",
        "未定", "なし", "无", "暂无", "待定", "미정",
    ];
    let letters: String = comparable(text)
        .chars()
        .filter(|sign| sign.is_alphanumeric())
        .collect();
    WORDS.contains(&letters.as_str())
}

/// Returns true if an import can read the cell as these fields, perhaps with options for numbers and dates.
pub(super) fn are_taken(fields: &[&str], cell: &TableCell<'_>, notation: &Notation) -> bool {
    let text = &*cell.text;
    let is_list = |column: &&str| field_named(column).is_some_and(|field| field.kind.is_list());
    match fields {
        [column] if cell.json_type() == Some(JsonType::List) => is_list(column),
        ["url"] => is_address(text) || cell.link.is_some(),
        [column, ..] if ISSN_COLUMNS.contains(column) => has_issn(text),
        ["start_date", _, ..] => is_range(text) || open_date(text).is_some(),
        [column, ..] => field_named(column).is_some_and(|field| is_taken(field, cell, notation)),
        [] => false,
    }
}

fn is_taken(field: &Field, cell: &TableCell<'_>, notation: &Notation) -> bool {
    match field.kind {
        ValueKind::Text => !is_data(cell),
        // `Type: Name`, or members of JSON objects.
        ValueKind::Links(ReferenceKind::Tag) => {
            cell.text.contains(": ") || cell.json.is_some() && cell.text.contains(':')
        }
        ValueKind::Texts | ValueKind::Links(_) => !is_data(cell),
        ValueKind::Number => [None, Some(DecimalSign::Point), Some(DecimalSign::Comma)]
            .into_iter()
            .any(|decimal| {
                is_value(
                    field,
                    cell,
                    &Notation {
                        decimal,
                        ..*notation
                    },
                )
            }),
        ValueKind::Date => is_date(&cell.text) || open_date(&cell.text).is_some(),
        _ => is_value(field, cell, notation),
    }
}

/// Returns true if an import reads the cell as a value of a field of one value.
pub(super) fn is_value(field: &Field, cell: &TableCell<'_>, notation: &Notation) -> bool {
    let notation = Notation {
        is_number: cell.is_number,
        is_price: field.column.ends_with("_usd"),
        ..*notation
    };
    normalize(field.kind, &cell.text, &notation).is_ok_and(|text| (field.rank_of)(&text) > 0)
}

/// Returns true if a text contains a valid ISSN.
pub(super) fn has_issn(text: &str) -> bool {
    let mut parts = split_at_signs(text).into_iter().chain([text]);
    parts.any(|part| issns(part).is_some_and(|found| !found.is_empty()))
}

/// Returns the first and the last day of a date or a range, without its time of day.
pub(super) fn days_in(text: &str, order: Option<DateOrder>) -> Option<(Date, Date)> {
    let read = |text: &str| date_range(text, order).ok().flatten();
    read(text).or_else(|| read(&without_time(text)?))
}

const ORDERS: [Option<DateOrder>; 2] = [Some(DateOrder::Dmy), Some(DateOrder::Mdy)];

/// Returns true if a text contains a date or a range of dates, in any order of day and month.
pub(super) fn is_range(text: &str) -> bool {
    ORDERS
        .into_iter()
        .any(|order| days_in(text, order).is_some())
}

/// Returns true if a text is one date, in any order of day and month.
fn is_date(text: &str) -> bool {
    let mut days = ORDERS.into_iter().filter_map(|order| days_in(text, order));
    days.any(|(first, last)| first == last)
}

/// Returns true if a text is a web address, perhaps without its scheme.
pub(super) fn is_address(text: &str) -> bool {
    web_address(text).is_some() || text.starts_with("www.") && !text.contains(char::is_whitespace)
}

/// Returns true if a text is a city with its country or state.
pub(super) fn is_place(text: &str) -> bool {
    let place = without_mode(text);
    let mut ends = BEFORE_COUNTRY
        .into_iter()
        .filter_map(|sign| place.rsplit_once(sign));
    ends.any(|(_, end)| {
        let end = end.trim().trim_end_matches(')');
        !matches!(place_end(end), PlaceEnd::Unclear) || is_country(end)
    })
}

/// Returns true if a text is a number, perhaps with a sign for percent or a currency.
fn is_number(text: &str) -> bool {
    let is_sign = |sign: char| matches!(sign, '.' | ',' | '%' | '$' | '€' | ' ');
    text.bytes().any(|byte| byte.is_ascii_digit())
        && text
            .chars()
            .all(|sign| sign.is_ascii_digit() || is_sign(sign))
}

/// Returns true if a cell is a number, a date, an ISSN or an address. The name of a column is none of these.
pub(super) fn is_data(cell: &TableCell<'_>) -> bool {
    let text = cell.text.trim_matches(is_blank);
    let is_year = text.len() == 4 && year_of(text).is_some();
    !is_year
        && (is_number(text) || cell.is_date || has_issn(text) || is_range(text) || is_address(text))
}

/// Returns what most cells of a column are, if it is more than a text.
pub(super) fn kind_of_cells(column: &DraftColumn) -> &'static str {
    let are_mostly = |is: fn(&str) -> bool| column.are_mostly(is);
    match () {
        () if column.cells.is_empty() => "cells",
        () if are_mostly(has_issn) => "valid ISSNs",
        () if are_mostly(is_range) => "dates",
        () if are_mostly(is_address) => "web addresses",
        () if are_mostly(is_place) => "places",
        () if are_mostly(is_country) => "countries",
        () if are_mostly(is_area) => "therapy areas",
        () if column.count(is_number) == column.cells.len() => "numbers",
        () => "cells",
    }
}
