//! Cells that contain several fields, such as `Rome, Italy` or `12-15 March 2026`.

use crate::import::read::dates::DateOrder;
use crate::import::read::dates::date_range;
use crate::import::read::options::ReadOptions;
use crate::model::country::is_country;
use crate::model::field::Field;
use crate::model::message::{Message, message};
use crate::model::value::ValueKind;

/// The signs that separate the texts in a cell. The first that a cell contains is the one. `N/A` may be one of them.
const SEPARATORS: [&str; 5] = [";", "\n", ",", " / ", "/"];

/// The signs before the country in a place.
const BEFORE_COUNTRY: [&str; 6] = [",", ";", "/", " - ", " – ", "("];

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
    let separator = SEPARATORS.into_iter().find(|separator| text.contains(separator)).unwrap_or(SEPARATORS[0]);
    let is_blank_or_separator = |sign: char| sign.is_whitespace() || matches!(sign, ',' | ';');
    let mut parts: Vec<&str> = text.split(separator).map(|part| part.trim_matches(is_blank_or_separator)).collect();
    // An empty part keeps its position, unless there are too many.
    if parts.len() > fields.len() {
        parts.retain(|part| !part.is_empty());
    }
    if parts.len() > fields.len() {
        return Err(message!("has {} parts for {} fields; correct the cell", parts.len(), fields.len()));
    }
    parts.resize(fields.len(), "");
    Ok(parts.into_iter().map(str::to_owned).collect())
}

/// Splits a place before its country. Without one, it is a city.
fn split_place(text: &str, options: &ReadOptions) -> Result<Vec<String>, Message> {
    let pieces = BEFORE_COUNTRY.into_iter().filter_map(|sign| text.rsplit_once(sign));
    let mut pieces = pieces.map(|(city, country)| (city.trim(), country.trim().trim_end_matches(')')));
    let known =
        pieces.clone().find(|(_, country)| is_country(options.meaning_of("country", country).unwrap_or_default()));
    let (city, country) = match known.or_else(|| pieces.next().filter(|_| text.contains(','))) {
        Some(place) => place,
        None if is_country(text) => ("", text),
        None => (text, ""),
    };
    let meant = options.meaning_of("country", country).unwrap_or_default();
    let problem = match meant {
        "" => None,
        // `Atlanta, Georgia` is in the United States.
        "Georgia" if !city.is_empty() && !options.words_of("country").any(|word| word.is(country)) => {
            Some("the country and a state")
        }
        _ if is_country(meant) => None,
        _ => Some("no country"),
    };
    match problem {
        None => Ok(vec![city.to_owned(), country.to_owned()]),
        Some(problem) => Err(message!(
            "ends with `{country}`, which is {problem}; write one at the end, or its country under [values.country] of a \
             recipe"
        )),
    }
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
            ("city+country", "Chicago, IL", "ends with `IL`, which is no country"),
            ("city+country", "", "|"),
            ("city+country", "Buenos Aires (Argentina)", "Buenos Aires|Argentina"),
            ("city+country", "Berlin / Germany", "Berlin|Germany"),
            ("city+country", "Berlin - Germany", "Berlin|Germany"),
            ("city+country", "Tbilisi, Georgia", "ends with `Georgia`, which is the country and a state"),
            ("issn_print+issn_online", "/1533-4406", "|1533-4406"),
            ("issn_print+issn_online", "N/A / 1533-4406", "N/A|1533-4406"),
            ("issn_print+issn_online", "0028-4793,\n1533-4406", "0028-4793|1533-4406"),
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
