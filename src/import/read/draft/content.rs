//! The content of the cells of a column. The readers of an import decide.

use std::collections::BTreeMap;

use jiff::civil::Date;

use super::names::year_of;
use crate::import::lint::{is_placeholder, may_be_name};
use crate::import::read::cells::normalize;
use crate::import::read::dates::{DateOrder, date_range};
use crate::import::read::loose::{country_of_end, issns, open_date, without_mode, without_time};
use crate::import::read::options::field_named;
use crate::import::read::shared_cells::{BEFORE_COUNTRY, split_at_signs};
use crate::import::read::table_cell::{DecimalSign, Notation, TableCell, web_address};
use crate::import::read::table_row::is_issn;
use crate::import::read::words::has_word;
use crate::model::ReferenceKind;
use crate::model::country::is_country;
use crate::model::field::Field;
use crate::model::fold::{comparable, is_blank};
use crate::model::value::{JsonType, ValueKind};

/// A column of a draft.
#[derive(Debug, Default)]
pub(super) struct DraftColumn {
    /// The name in the recipe: the header, `header#2`, or `=D`.
    pub name: String,
    pub header: String,
    /// The cells of the sample that are not blank.
    pub cells: Vec<TableCell>,
    /// The fields that the column contains; none if it is ignored.
    pub fields: Vec<&'static str>,
    /// Why the column is ignored, although its header names a field.
    pub reason: Option<String>,
}

impl DraftColumn {
    /// Returns the first field that the column contains.
    pub fn field(&self) -> Option<&'static Field> {
        self.fields.first().and_then(|name| field_named(name))
    }

    /// Returns the texts of the cells.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let cells = self.cells.iter();
        cells.map(|cell| cell.text.trim_matches(is_blank))
    }

    /// Returns true if most cells are so.
    pub fn are_mostly(&self, is: impl Fn(&str) -> bool) -> bool {
        self.texts().filter(|text| is(text)).count() * 2 > self.cells.len()
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
        use ValueKind::{Date, Integer, Number, Year};
        let kind = field_named(fields[0]).map(|field| field.kind);
        let may_be_word = !matches!(kind, Some(Number | Integer | Year | Date));
        let told = self.cells.iter().filter(|cell| {
            !is_absence(fields[0], &cell.text) && (may_be_word || has_digit(&cell.text))
        });
        let taken = told
            .clone()
            .filter(|cell| are_taken(fields, cell, notation));
        (told.clone().count(), taken.count())
    }
}

pub(super) fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns true if a text says that there is no value.
pub(super) fn is_absence(field: &str, text: &str) -> bool {
    is_placeholder("", text.trim_matches(is_blank)) && !may_be_name(field, text)
}

/// Returns true for words that fill the cells of numbers and dates without a value, in some languages.
pub(super) fn is_word_for_none(text: &str) -> bool {
    const WORDS: &str = "ka keineangabe keineangaben nichtverfugbar folgt offen nochoffen aufanfrage nc nd ndp aconfirmer \
        adefinir nondisponible surdemande pordefinir porconfirmar sindatos sindato nodisponible aconsultar dadefinire \
        daconfermare nondisponibile brak brakdanych notlisted notyetannounced notannounced announcedlater closed passed \
        expired ongoing rolling abgelaufen geschlossen notyetknown notyet onrequest uponrequest contactus seewebsite \
        seejournal several varies various variable 未定 なし 无 暂无 待定 미정";
    let mut letters = comparable(text);
    letters.retain(char::is_alphanumeric);
    has_word(WORDS, &letters)
}

/// Returns true if an import can read the cell as these fields, perhaps with options for numbers and dates.
pub(super) fn are_taken(fields: &[&str], cell: &TableCell, notation: &Notation) -> bool {
    let text = &*cell.text;
    let Some(field) = fields.first().and_then(|name| field_named(name)) else {
        return false;
    };
    match field.kind {
        kind if fields.len() == 1 && cell.json_type() == Some(JsonType::List) => kind.is_list(),
        ValueKind::Text if field.column == "url" => is_address(text) || cell.link.is_some(),
        ValueKind::Text if is_issn(&field.column) => has_issn(text),
        // `Type: Name`, or members of JSON objects.
        ValueKind::Links(ReferenceKind::Tag) => {
            text.contains(": ") || cell.json.is_some() && text.contains(':')
        }
        ValueKind::Text | ValueKind::Texts | ValueKind::Links(_) => !is_data(cell),
        ValueKind::Date => {
            days_of(text).any(|(first, last)| first == last || fields.len() > 1)
                || open_date(text).is_some()
        }
        ValueKind::Number => [DecimalSign::Point, DecimalSign::Comma]
            .into_iter()
            .any(|sign| {
                let notation = Notation {
                    decimal: Some(sign),
                    ..*notation
                };
                is_value(field, cell, &notation)
            }),
        _ => is_value(field, cell, notation),
    }
}

/// Returns true if an import reads the cell as a value of a field of one value.
pub(super) fn is_value(field: &Field, cell: &TableCell, notation: &Notation) -> bool {
    let notation = Notation {
        is_number: cell.is_number,
        ..notation.of_field(field)
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

/// Returns the first and the last day of a date or a range, in each order of day and month that it may have.
fn days_of(text: &str) -> impl Iterator<Item = (Date, Date)> {
    let orders = [DateOrder::Dmy, DateOrder::Mdy].into_iter();
    orders.filter_map(move |order| days_in(text, Some(order)))
}

/// Returns true if a text contains a date or a range of dates, in any order of day and month.
pub(super) fn is_range(text: &str) -> bool {
    days_of(text).next().is_some()
}

/// Returns true if a text is a web address, perhaps without its scheme.
pub(super) fn is_address(text: &str) -> bool {
    web_address(text).is_some() || text.starts_with("www.") && !text.contains(char::is_whitespace)
}

/// Returns true if a text is a city with its country or state.
pub(super) fn is_place(text: &str) -> bool {
    let place = without_mode(text);
    let ends = BEFORE_COUNTRY.into_iter();
    ends.filter_map(|sign| place.rsplit_once(sign))
        .any(|(_, end)| {
            let end = end.trim().trim_end_matches(')');
            country_of_end(end).is_some() || is_country(end)
        })
}

/// Returns true if a text is a number, perhaps with a sign for percent or a currency.
fn is_number(text: &str) -> bool {
    let mut signs = text.chars();
    has_digit(text) && signs.all(|sign| sign.is_ascii_digit() || ".,%$€ ".contains(sign))
}

/// Returns true if a cell is a number, a date, an ISSN or an address. The name of a column is none of these.
pub(super) fn is_data(cell: &TableCell) -> bool {
    let text = cell.text.trim_matches(is_blank);
    let is_year = text.len() == 4 && year_of(text).is_some();
    !is_year
        && (is_number(text) || cell.is_date || has_issn(text) || is_range(text) || is_address(text))
}
