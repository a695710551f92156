//! Cells that contain several fields, such as `Rome, Italy` or `12-15 March 2026`.

use crate::import::read::dates::date_range;
use crate::import::read::notation::DateOrder;
use crate::import::read::options::ReadOptions;
use crate::model::country::is_country;
use crate::model::field::Field;
use crate::model::message::{Message, message};
use crate::model::value::ValueKind;

/// The signs that separate the texts in a cell.
const SEPARATORS: [char; 4] = [',', ';', '/', '\n'];

/// Splits the text of a cell into the CSV texts of several fields.
pub(in crate::import) fn split_parts(
    fields: &[&Field],
    text: &str,
    order: Option<DateOrder>,
    options: &ReadOptions,
) -> Result<Vec<String>, Message> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(vec![String::new(); fields.len()]);
    }
    if fields[0].kind == ValueKind::Date {
        let Some((start, end)) = date_range(text, order)? else { return Ok(vec![String::new(); fields.len()]) };
        let dates = fields.iter().enumerate().map(|(at, field)| match field.kind {
            ValueKind::Year => start.year().to_string(),
            _ if at == 0 => start.to_string(),
            _ => end.to_string(),
        });
        let has_end = fields.iter().filter(|field| field.kind == ValueKind::Date).count() > 1;
        return match has_end || start == end {
            true => Ok(dates.collect()),
            false => Err("is a range of dates; map the column to `start_date` and `end_date`".into()),
        };
    }
    if let [_, country] = fields
        && country.column == "country"
    {
        return split_place(text, options);
    }
    let parts: Vec<&str> = text.split(SEPARATORS).map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.len() > fields.len() {
        return Err(message!("has {} parts for {} fields; correct the cell", parts.len(), fields.len()));
    }
    let missing = fields.len() - parts.len();
    Ok(parts.into_iter().chain(std::iter::repeat_n("", missing)).map(str::to_owned).collect())
}

/// Splits a place at its last comma. Without a comma, it is a country, or a city.
fn split_place(text: &str, options: &ReadOptions) -> Result<Vec<String>, Message> {
    let (city, country) = match text.rsplit_once(',') {
        Some((city, country)) => (city.trim(), country.trim()),
        None if is_country(text) => ("", text),
        None => (text, ""),
    };
    let meant = options.meaning_of("country", country).unwrap_or_default();
    if !meant.is_empty() && !is_country(meant) {
        return Err(message!(
            "ends with `{country}`, which is not a country; write one at the end, or its country under \
             [values.country] of a recipe"
        ));
    }
    Ok(vec![city.to_owned(), country.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConferenceFields, Fields, JournalFields};

    #[test]
    fn cells_are_split() {
        let cases = [
            ("city+country", "Rome, Italy", "Rome|Italy"),
            ("city+country", "Chicago, IL, USA", "Chicago, IL|USA"),
            ("city+country", "Singapore", "|Singapore"),
            ("city+country", "Vienna", "Vienna|"),
            ("city+country", "Chicago, IL", "ends with `IL`, which is not a country"),
            ("city+country", "", "|"),
            ("issn_print+issn_online", "0028-4793, 1533-4406", "0028-4793|1533-4406"),
            ("issn_print+issn_online", "0028-4793 / 1533-4406\n", "0028-4793|1533-4406"),
            ("issn_print+issn_online", "0028-4793;", "0028-4793|"),
            ("issn_print+issn_online", "1;2;3", "has 3 parts for 2 fields"),
            ("start_date+end_date", "12-15 March 2026", "2026-03-12|2026-03-15"),
            ("start_date+end_date+year", "30 Dec 2025 – 2 Jan 2026", "2025-12-30|2026-01-02|2025"),
            ("start_date+year", "2026-03-12", "2026-03-12|2026"),
            ("start_date+year", "12-15 March 2026", "is a range of dates"),
        ];
        let known: Vec<&Field> =
            ConferenceFields::table().fields.iter().chain(&JournalFields::table().fields).collect();
        for (names, text, expected) in cases {
            let fields: Vec<&Field> =
                names.split('+').map(|name| *known.iter().find(|field| field.column == name).unwrap()).collect();
            let parts = split_parts(&fields, text, None, &ReadOptions::default());
            let shown = parts.map_or_else(|message| message.text, |parts| parts.join("|"));
            assert!(shown == expected || expected.len() > 12 && shown.starts_with(expected), "{text}: {shown}");
        }
    }
}
