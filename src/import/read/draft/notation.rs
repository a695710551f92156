//! How a file writes its numbers, dates, lists and gaps, as far as its cells show it.

use std::collections::BTreeMap;

use super::content::{
    DraftColumn, are_taken, days_in, has_issn, is_absence, is_value, is_word_for_none,
};
use crate::import::lint::{is_area, may_be_name};
use crate::import::read::dates::DateOrder;
use crate::import::read::loose::is_zero;
use crate::import::read::options::{ISSN_COLUMNS, field_named};
use crate::import::read::table_cell::{DecimalSign, Notation};
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

/// The kind of the values of a column with one field.
fn kind_of(column: &DraftColumn) -> Option<ValueKind> {
    let field = column.fields.first()?;
    field_named(field).map(|field| field.kind)
}

/// Returns the decimal sign of the numbers.
pub(super) fn decimal_sign(columns: &[DraftColumn], notation: &Notation) -> Reading {
    let mut open = Vec::new();
    let mut points = 0;
    let mut commas = 0;
    let mut has_groups = true;
    for column in columns {
        let Some(field) = column.fields.first().and_then(|name| field_named(name)) else {
            continue;
        };
        if field.kind != ValueKind::Number {
            continue;
        }
        for cell in column.cells.iter().filter(|cell| !cell.is_number) {
            match sign_of(&cell.text) {
                Some(DecimalSign::Point) => points += 1,
                Some(DecimalSign::Comma) => commas += 1,
                None => {}
            }
            if !is_value(field, cell, notation) && are_taken(&[&field.column], cell, notation) {
                // A price has no thousandths, so `3,000` are thousands.
                has_groups &= field.column.ends_with("_usd") && cell.text.contains(',');
                open.push(cell.text.to_string());
            }
        }
    }
    match (points, commas) {
        (0, 1..) => Reading::One("comma"),
        _ if open.is_empty() => Reading::NotNeeded,
        (1.., 0) => Reading::One("point"),
        (0, 0) if has_groups => Reading::One("point"),
        _ => Reading::Open(open.len(), open.swap_remove(0)),
    }
}

/// Returns the decimal sign of a number that has only one meaning.
fn sign_of(text: &str) -> Option<DecimalSign> {
    let text = text.trim();
    let last = text.rfind(['.', ','])?;
    let whole = &text[..last];
    let fraction = &text[last + 1..];
    let (sign, other) = if text[last..].starts_with(',') {
        (DecimalSign::Comma, DecimalSign::Point)
    } else {
        (DecimalSign::Point, DecimalSign::Comma)
    };
    match () {
        () if !fraction.bytes().all(|byte| byte.is_ascii_digit()) => None,
        // `1,234,567` groups digits by commas.
        () if whole.contains(&text[last..=last]) => Some(other),
        () if whole.contains(['.', ',']) || fraction.len() != 3 || whole == "0" => Some(sign),
        () => None,
    }
}

/// Returns the order of day and month in dates.
pub(super) fn date_order(columns: &[DraftColumn]) -> Reading {
    let mut open = Vec::new();
    let mut days_first = 0;
    let mut months_first = 0;
    let mut is_order_needed = false;
    let dates = columns
        .iter()
        .filter(|column| kind_of(column) == Some(ValueKind::Date));
    for text in dates.flat_map(DraftColumn::texts) {
        let dmy = days_in(text, Some(DateOrder::Dmy));
        let mdy = days_in(text, Some(DateOrder::Mdy));
        let is_needed = days_in(text, None).is_none();
        is_order_needed |= is_needed && dmy.or(mdy).is_some();
        match (dmy, mdy) {
            (Some(_), None) => days_first += 1,
            (None, Some(_)) => months_first += 1,
            (Some(one), Some(other)) if is_needed && one != other => open.push(text.to_owned()),
            _ => {}
        }
    }
    match (days_first, months_first) {
        _ if !is_order_needed => Reading::NotNeeded,
        (0, 1..) => Reading::One("mdy"),
        (1.., 0) => Reading::One("dmy"),
        (0, 0) if open.is_empty() => Reading::One("dmy"),
        _ if open.is_empty() => Reading::NotNeeded,
        _ => Reading::Open(open.len(), open.swap_remove(0)),
    }
}

/// Returns the separator of list items.
pub(super) fn list_separator(columns: &[DraftColumn]) -> Reading {
    let is_list = |column: &&DraftColumn| kind_of(column).is_some_and(ValueKind::is_list);
    let lists = columns.iter().filter(is_list);
    let cells = lists.flat_map(|column| &column.cells);
    let texts: Vec<&str> = cells
        .filter(|cell| cell.json.is_none())
        .map(|cell| &*cell.text)
        .collect();
    let with = |separator: &str| -> Vec<&str> {
        let texts = texts.iter().copied();
        texts.filter(|text| text.contains(separator)).collect()
    };
    if !with(ITEM_SEPARATOR).is_empty() {
        return Reading::NotNeeded;
    }
    if let Some(found) = ["|", ";", "\n"]
        .into_iter()
        .find(|sign| !with(sign).is_empty())
    {
        return Reading::One(found);
    }
    for separator in [",", "/"] {
        let found = with(separator);
        if found.is_empty() {
            continue;
        }
        let items: Vec<&str> = texts
            .iter()
            .flat_map(|text| text.split(separator))
            .map(str::trim)
            .collect();
        // An item that comes again is no part of a name.
        let is_item =
            |part: &str| is_area(part) || items.iter().filter(|item| **item == part).count() > 1;
        let are_items = |text: &&&str| text.split(separator).all(|part| is_item(part.trim()));
        let sure = found.iter().filter(are_items).count();
        return match sure * 2 > found.len() {
            true => Reading::One(separator),
            false => Reading::Open(found.len(), found[0].to_owned()),
        };
    }
    Reading::NotNeeded
}

/// Texts that usually mark an empty cell, whatever the field.
const EMPTY: [&str; 12] = [
    "N/A", "n/a", "NA", "#N/A", "-", "–", "—", "*", "**", "NULL", "null", "None",
];

/// Returns the texts that mark empty cells in all columns, without those that may be values of a column.
pub(super) fn empty_texts(columns: &[DraftColumn]) -> Vec<&'static str> {
    let used: Vec<&DraftColumn> = columns
        .iter()
        .filter(|column| !column.fields.is_empty())
        .collect();
    let has = |column: &DraftColumn, text: &str| column.texts().any(|sample| sample == text);
    let may_be_value = |column: &DraftColumn, text: &str| {
        has(column, text) && column.fields.iter().any(|field| may_be_name(field, text))
    };
    EMPTY
        .into_iter()
        .filter(|text| used.iter().any(|column| has(column, text)))
        .filter(|text| !used.iter().any(|column| may_be_value(column, text)))
        .collect()
}

/// Returns the texts that mark empty cells of a field, with the numbers of their cells: signs of absence, and words
/// that the field cannot have and that come again.
pub(super) fn empty_in_field<'c>(
    column: &'c DraftColumn,
    empty: &[&str],
    notation: &Notation,
) -> BTreeMap<&'c str, usize> {
    let mut found = column.counted();
    let Some(field) = column.fields.first().copied() else {
        return BTreeMap::new();
    };
    let is_text = kind_of(column) == Some(ValueKind::Text) && !ISSN_COLUMNS.contains(&field);
    found.retain(|text, count| {
        let may_be_data = text.bytes().any(|byte| byte.is_ascii_digit());
        let is_bound = text.starts_with(['<', '>', '~', '≤', '≥']);
        let is_refused = || {
            let cells = column.cells.iter();
            !cells
                .filter(|cell| cell.text.trim() == *text)
                .all(|cell| are_taken(&column.fields, cell, notation))
        };
        match () {
            () if empty.contains(text) => false,
            () if field == "name" => false,
            () if is_absence(field, text) => true,
            () if is_text => false,
            () if ISSN_COLUMNS.contains(&field) => {
                is_zero(text) || *count > 1 && !has_issn(text) && !may_be_data
            }
            () => {
                let may_be_gap = *count > 1 || is_word_for_none(text);
                (is_bound || !may_be_data && may_be_gap) && is_refused()
            }
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
            ..DraftColumn::new(String::new(), String::new(), cells)
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
            assert_eq!(
                date_order(&[column("start_date", texts)]),
                expected,
                "{texts}"
            );
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
            assert_eq!(
                list_separator(&[column("therapy_areas", texts)]),
                expected,
                "{texts}"
            );
        }
    }
}
