//! How a file writes its numbers, dates, lists and gaps, as far as its cells show it.

use std::collections::BTreeMap;

use super::content::{
    DraftColumn, are_taken, days_in, has_digit, has_issn, is_absence, is_value, is_word_for_none,
};
use crate::import::lint::{is_area, may_be_name};
use crate::import::read::dates::DateOrder;
use crate::import::read::loose::is_zero;
use crate::import::read::numbers::with_decimal;
use crate::import::read::table_cell::Notation;
use crate::import::read::table_row::is_issn;
use crate::model::field::Field;
use crate::model::value::ValueKind;
use crate::model::value::text::ITEM_SEPARATOR;

/// The evidence of the cells for an option.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// The file can be read without it.
    NotNeeded,
    /// The cells have one meaning with this value only.
    One(&'static str),
    /// The cells have several meanings, or contradict each other: their number, and one of them.
    Open(usize, String),
}

impl Reading {
    /// Returns the reading of cells with several meanings.
    fn open(cells: &[&str]) -> Reading {
        Reading::Open(cells.len(), cells[0].to_owned())
    }
}

/// Returns the columns with fields of some kinds, and their first fields.
fn columns_of(
    columns: &[DraftColumn],
    is_kind: fn(ValueKind) -> bool,
) -> impl Iterator<Item = (&DraftColumn, &'static Field)> {
    let columns = columns.iter();
    let columns = columns.filter_map(|column| Some((column, column.field()?)));
    columns.filter(move |(_, field)| is_kind(field.kind))
}

/// Returns the decimal sign of the numbers.
pub(super) fn decimal_sign(columns: &[DraftColumn], notation: &Notation) -> Reading {
    let mut open = Vec::new();
    let mut points = 0;
    let mut commas = 0;
    let mut has_groups = true;
    for (column, field) in columns_of(columns, |kind| kind == ValueKind::Number) {
        for cell in column.cells.iter().filter(|cell| !cell.is_number) {
            let text = cell.text.trim();
            match (with_decimal(text, '.'), with_decimal(text, ',')) {
                (Some(_), None) => points += 1,
                (None, Some(_)) => commas += 1,
                _ => {}
            }
            if !is_value(field, cell, notation) && are_taken(&column.fields, cell, notation) {
                // A price has no thousandths, so `3,000` are thousands.
                has_groups &= field.column.ends_with("_usd") && text.contains(',');
                open.push(&*cell.text);
            }
        }
    }
    match (points, commas) {
        (0, 1..) => Reading::One("comma"),
        _ if open.is_empty() => Reading::NotNeeded,
        (1.., 0) => Reading::One("point"),
        (0, 0) if has_groups => Reading::One("point"),
        _ => Reading::open(&open),
    }
}

/// Returns the order of day and month in dates.
pub(super) fn date_order(columns: &[DraftColumn]) -> Reading {
    let mut open = Vec::new();
    let mut days_first = 0;
    let mut months_first = 0;
    let mut is_order_needed = false;
    let dates = columns_of(columns, |kind| kind == ValueKind::Date);
    for text in dates.flat_map(|(column, _)| column.texts()) {
        let is_needed = days_in(text, None).is_none();
        let dmy = days_in(text, Some(DateOrder::Dmy));
        let mdy = days_in(text, Some(DateOrder::Mdy));
        is_order_needed |= is_needed && dmy.or(mdy).is_some();
        match (dmy, mdy) {
            (Some(_), None) => days_first += 1,
            (None, Some(_)) => months_first += 1,
            (Some(one), Some(other)) if is_needed && one != other => open.push(text),
            _ => {}
        }
    }
    match (days_first, months_first) {
        _ if !is_order_needed => Reading::NotNeeded,
        (0, 1..) => Reading::One("mdy"),
        (1.., 0) => Reading::One("dmy"),
        (0, 0) if open.is_empty() => Reading::One("dmy"),
        _ if open.is_empty() => Reading::NotNeeded,
        _ => Reading::open(&open),
    }
}

/// Returns the separator of list items.
pub(super) fn list_separator(columns: &[DraftColumn]) -> Reading {
    let cells = columns_of(columns, ValueKind::is_list).flat_map(|(column, _)| &column.cells);
    let texts = cells.filter(|cell| cell.json.is_none());
    let texts: Vec<&str> = texts.map(|cell| &*cell.text).collect();
    let mut signs = [ITEM_SEPARATOR, "|", ";", "\n", ",", "/"].into_iter();
    let separator = match signs.find(|sign| texts.iter().any(|text| text.contains(sign))) {
        None | Some(ITEM_SEPARATOR) => return Reading::NotNeeded,
        Some(sign @ ("|" | ";" | "\n")) => return Reading::One(sign),
        Some(sign) => sign,
    };
    let items = texts.iter().flat_map(|text| text.split(separator));
    let items: Vec<&str> = items.map(str::trim).collect();
    // An item that comes again is no part of a name.
    let is_item =
        |part: &str| is_area(part) || items.iter().filter(|item| **item == part).count() > 1;
    let found = texts.into_iter().filter(|text| text.contains(separator));
    let found: Vec<&str> = found.collect();
    let mut sure = found.clone();
    sure.retain(|text| text.split(separator).all(|part| is_item(part.trim())));
    match sure.len() * 2 > found.len() {
        true => Reading::One(separator),
        false => Reading::open(&found),
    }
}

/// Returns the texts that mark empty cells in all columns, without those that may be values of a column.
pub(super) fn empty_texts(columns: &[DraftColumn]) -> Vec<&'static str> {
    /// Texts that usually mark an empty cell, whatever the field.
    const EMPTY: &str = "N/A n/a NA #N/A - – — * ** NULL null None";
    let is_used = |text: &&str| {
        let has = |column: &&DraftColumn| column.texts().any(|sample| sample == *text);
        let with_text = columns.iter().filter(has);
        let mut fields = with_text.flat_map(|column| &column.fields).peekable();
        fields.peek().is_some() && !fields.any(|field| may_be_name(field, text))
    };
    EMPTY.split(' ').filter(is_used).collect()
}

/// Returns the texts that mark empty cells of a field, with the numbers of their cells: signs of absence, and words
/// that the field cannot have and that come again.
pub(super) fn empty_in_field<'c>(
    column: &'c DraftColumn,
    empty: &[&str],
    notation: &Notation,
) -> BTreeMap<&'c str, usize> {
    let mut found = column.counted();
    let field = column.fields.first().copied().unwrap_or("name");
    let kind = column.field().map(|field| field.kind);
    found.retain(|text, count| {
        let is_bound = text.starts_with(['<', '>', '~', '≤', '≥']);
        let comes_again = *count > 1 && !has_digit(text);
        let may_be_gap = is_bound || comes_again || is_word_for_none(text) && !has_digit(text);
        let mut cells = column.cells.iter().filter(|cell| cell.text.trim() == *text);
        match () {
            () if empty.contains(text) || field == "name" => false,
            () if is_absence(field, text) => true,
            () if is_issn(field) => is_zero(text) || comes_again && !has_issn(text),
            () if kind == Some(ValueKind::Text) || !may_be_gap => false,
            () => cells.any(|cell| !are_taken(&column.fields, cell, notation)),
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::read::table_cell::TableCell;

    fn column(field: &'static str, texts: &str) -> DraftColumn {
        let cells = texts
            .split('~')
            .map(|text| TableCell::text(text.to_owned()));
        DraftColumn {
            fields: vec![field],
            cells: cells.collect(),
            ..DraftColumn::default()
        }
    }

    #[test]
    fn numbers_show_their_decimal_sign() {
        let open = |count, text: &str| Reading::Open(count, text.to_owned());
        let cases = [
            ("4.2~1.25", Reading::NotNeeded),
            ("22,797~0,319", Reading::One("comma")),
            ("22,797~1.234,5", Reading::One("comma")),
            ("1,234~1,234.5", Reading::One("point")),
            ("1,234~0.5", Reading::One("point")),
            ("1,234~5", open(1, "1,234")),
            ("1,234~0.5~0,7", open(2, "1,234")),
            ("12~", Reading::NotNeeded),
        ];
        for (texts, expected) in cases {
            let found = decimal_sign(&[column("sjr", texts)], &Notation::default());
            assert_eq!(found, expected, "{texts}");
        }
        let prices = [column("publishing_apc_usd", "$3,000~2,500~900")];
        let found = decimal_sign(&prices, &Notation::default());
        assert_eq!(found, Reading::One("point"));
        let found = decimal_sign(
            &[
                column("sjr", "1,234"),
                column("publishing_apc_usd", "3,000"),
            ],
            &Notation::default(),
        );
        assert_eq!(found, open(2, "1,234"));
    }

    #[test]
    fn dates_show_the_order_of_day_and_month() {
        let cases = cases![
            "2026-03-15~15 March 2026", Reading::NotNeeded;
            "3/4/2026~15/4/2026", Reading::One("dmy");
            "3/4/2026~4/15/2026", Reading::One("mdy");
            "3/4/2026~5/4/2026", Reading::Open(2, "3/4/2026".to_owned());
            "15/4/2026~16/4/2026", Reading::NotNeeded;
            "15-Mar-26", Reading::One("dmy");
            "5/13/26~5/14/26", Reading::One("mdy");
            "3/4/2026~13/4/2026~4/13/2026", Reading::Open(1, "3/4/2026".to_owned());
        ];
        for (texts, expected) in cases {
            let found = date_order(&[column("start_date", texts)]);
            assert_eq!(found, expected, "{texts}");
        }
    }

    #[test]
    fn lists_show_their_separator() {
        let cases = cases![
            "Cardiology; Oncology", Reading::NotNeeded;
            "Cardiology|Oncology", Reading::One("|");
            "Cardiology;Oncology", Reading::One(";");
            "Cardiology\nOncology", Reading::One("\n");
            "Cardiology, Oncology", Reading::One(",");
            "Ear, Nose and Throat~Surgery, Plastic", Reading::Open(2, "Ear, Nose and Throat".to_owned());
            "Cardiology", Reading::NotNeeded;
        ];
        for (texts, expected) in cases {
            let found = list_separator(&[column("therapy_areas", texts)]);
            assert_eq!(found, expected, "{texts}");
        }
    }
}
