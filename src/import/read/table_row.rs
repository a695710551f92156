//! A row of cells, as the values of a record: with the words and empty texts of a recipe, with lists, with hyperlinks,
//! and with several fields in a cell, such as `Rome, Italy` or `12-15 March 2026`.

use std::borrow::Cow;

use serde_json::Value;
use url::Url;

use crate::import::read::cells::{Notation, TableCell, normalize, parse_flag};
use crate::import::read::columns::{ColumnMeaning, Columns};
use crate::import::read::dates::{DateOrder, date_range};
use crate::import::read::options::{ReadOptions, column_letters};
use crate::import::read::statement::Statement;
use crate::import::row_faults::RowFaults;
use crate::import::rows::RowEdit;
use crate::model::country::is_country;
use crate::model::field::Field;
use crate::model::fold::is_blank;
use crate::model::message::{Message, message};
use crate::model::value::json::is_empty;
use crate::model::value::text::{ITEM_SEPARATOR, split_at};
use crate::model::value::{JsonType, ValueKind};
use crate::model::{Fields, Id};

/// Reads the cells of a row. If `is_rectangular`, there must be a cell for each column.
pub(in crate::import) fn read_row<F: Fields>(
    columns: &Columns<'_>,
    cells: &[TableCell<'_>],
    is_rectangular: bool,
    notation: &Notation,
    options: &ReadOptions,
    faults: &mut RowFaults<'_>,
) -> Option<(Option<Id>, RowEdit<F>)> {
    let (width, named) = (columns.meanings.len(), columns.named_width);
    let filled = cells
        .iter()
        .rposition(|cell| !cell.is_blank())
        .map_or(0, |last| last + 1);
    if is_rectangular && (cells.len() < named || filled > width) {
        let actual = cells.len();
        let message = match filled {
            1 => message!(
                "has one cell, but the header has {named}; if it is a note, leave an empty line above it"
            ),
            _ => message!(
                "has {actual} cells, but the header has {named}; put cells that contain commas or line ends in quotes"
            ),
        };
        faults.push_row(None, message);
        return None;
    }
    for (at, cell) in cells.iter().enumerate() {
        let is_unnamed = columns
            .meanings
            .get(at)
            .is_none_or(|column| *column == ColumnMeaning::Unnamed);
        if is_unnamed && !cell.is_blank() {
            let letters = column_letters(at);
            if options.ignore_unknown {
                faults.push_unknown("column", "", &format!("={letters}"), &[]);
                continue;
            }
            let message = message!(
                "has a value in column {letters}, which has no name; name it, clear the cell, or read it with --map \
                 '={letters}=FIELD'"
            );
            faults.push_row(Some(&cell.text), message);
        }
    }
    for (meaning, at_columns) in columns
        .sources
        .iter()
        .filter(|(_, at_columns)| at_columns.len() > 1)
    {
        let is_joined = meaning.is_joined(F::table());
        let mut filled = filled_cells(cells, at_columns);
        if let Some(first) = filled.next()
            && let Some(other) = filled.find(|cell| !is_joined && cell.text != first.text)
        {
            let names: Vec<String> = at_columns.iter().map(|at| columns.name(*at)).collect();
            let message = message!(
                "the columns {} have one header, and differ here; ignore one of them, such as `HEADER#2`",
                names.join(" and ")
            );
            faults.push_row(Some(&other.text), message);
            return None;
        }
    }
    let none = TableCell::default();
    let cell_of = |wanted: ColumnMeaning| {
        let (_, at_columns) = columns
            .sources
            .iter()
            .find(|(meaning, _)| *meaning == wanted)?;
        Some(filled_cells(cells, at_columns).next().unwrap_or(&none))
    };
    let is_deleted = cell_of(ColumnMeaning::Deleted).is_some_and(|cell| read_deleted(cell, faults));
    // Without a column `id`, other fields identify the record. A row with an invalid id is read too, to report its
    // other faults.
    let id = cell_of(ColumnMeaning::Id).map(|cell| read_id(cell, faults));
    if is_deleted {
        return (id != Some(None)).then(|| (id.flatten(), RowEdit::Remove));
    }
    let table = F::table();
    let mut statement = Box::new(Statement::<F>::new());
    let (mut filled, mut texts): (Vec<&TableCell<'_>>, Vec<Cow<'_, str>>) =
        (Vec::new(), Vec::new());
    for (meaning, at_columns) in &columns.sources {
        let ColumnMeaning::Fields(fields) = meaning else {
            continue;
        };
        let field = &table.fields[fields[0]];
        filled.clear();
        texts.clear();
        filled.extend(filled_cells(cells, at_columns));
        if !columns.passes_filters_of(fields[0], cells) {
            if filled.iter().any(|cell| !cell.is_blank()) {
                let mut effects = options.effects.borrow_mut();
                *effects.unmet.entry(field.column.clone()).or_default() += 1;
            }
            filled.clear();
        }
        for cell in &filled {
            let fault = type_fault(cell, field.kind, fields.len() > 1).filter(|_| {
                !options
                    .words_of(&field.column)
                    .any(|word| word.is(&cell.text))
            });
            match fault.map_or_else(|| cell_text(cell, field), Err) {
                Ok(text) => texts.push(text),
                Err(message) => faults.push_value(&field.column, &cell.text, message),
            }
        }
        if texts.len() < filled.len() {
            continue;
        }
        let notation = Notation {
            is_number: filled.first().is_some_and(|cell| cell.is_number),
            ..*notation
        };
        match &*texts {
            [] => fields.iter().for_each(|index| statement.set_null(*index)),
            texts => read_texts(
                fields,
                texts,
                &filled,
                &notation,
                options,
                &mut statement,
                faults,
            ),
        }
    }
    for (index, constant) in &columns.constants {
        let lacks_metric = columns
            .metric_of(*index)
            .is_some_and(|metric| statement.is_empty(metric));
        if statement.is_empty(*index) && !lacks_metric {
            read_text(
                *index,
                constant,
                &options.notation(),
                options,
                &mut statement,
                faults,
            );
        }
    }
    (id != Some(None)).then(|| (id.flatten(), RowEdit::Set(statement)))
}

/// Returns the cells of columns: of one column its cell, and of several those that are not blank.
fn filled_cells<'c, 'a>(
    cells: &'c [TableCell<'a>],
    columns: &'c [usize],
) -> impl Iterator<Item = &'c TableCell<'a>> {
    let is_kept = |cell: &&TableCell<'_>| columns.len() == 1 || !cell.is_blank();
    columns
        .iter()
        .filter_map(|at| cells.get(*at))
        .filter(is_kept)
}

/// Returns the fault of a JSON value whose type is not that of a field. A list of texts may have several fields.
fn type_fault(cell: &TableCell<'_>, kind: ValueKind, has_several: bool) -> Option<Message> {
    let found = cell.json?;
    let is_split = has_several && cell.items.iter().flatten().all(Value::is_string);
    let remedy = match (found, kind.json_type()) {
        (_, JsonType::List) => return None,
        (JsonType::List | JsonType::Object, _) if !is_split => "write one value",
        (JsonType::Number | JsonType::Flag, JsonType::Text) => "write a text in quotation marks",
        _ => return None,
    };
    Some(message!("is {found}; {remedy}"))
}

/// Returns the text of a cell for a field, or the reason why it cannot be read.
fn cell_text<'c>(cell: &'c TableCell<'_>, field: &Field) -> Result<Cow<'c, str>, Message> {
    let (column, holds_text) = (
        field.column.as_str(),
        field.kind.is_list() || field.kind == ValueKind::Text,
    );
    let has_unit = cell
        .unit
        .as_ref()
        .is_some_and(|unit| names_unit(column, unit));
    if let Some(fault) = cell.fault.as_ref().filter(|_| !has_unit) {
        return Err(fault.clone());
    }
    if cell.is_date && holds_text {
        return Err(
            "is a date in the spreadsheet, but the column contains text; format the cell as text, and enter it \
                    again"
                .into(),
        );
    }
    if let Some(format) = cell.format.as_ref().filter(|_| holds_text) {
        return Err(message!(
            "is a number in the format `{format}`; format the cell as text, and enter what it shows"
        ));
    }
    match &cell.link {
        Some(link) if column == "url" => address(&cell.text, link),
        _ => Ok(Cow::Borrowed(&cell.text)),
    }
}

/// Returns true if a word of the column name is the unit, such as `months` in `publishing_embargo_months`.
fn names_unit(column: &str, unit: &str) -> bool {
    let singular = |word: &str| word.strip_suffix('s').unwrap_or(word).to_lowercase();
    column
        .split('_')
        .any(|word| singular(word) == singular(unit))
}

fn read_id(cell: &TableCell<'_>, faults: &mut RowFaults<'_>) -> Option<Id> {
    let fault = cell.fault.clone();
    if let Some(fault) = fault.or_else(|| type_fault(cell, ValueKind::Integer, false)) {
        faults.push_value(&"id", &cell.text, fault);
        return None;
    }
    let notation = Notation {
        is_number: cell.is_number,
        ..Notation::default()
    };
    match normalize(ValueKind::Integer, &cell.text, &notation) {
        Ok(text) if text.is_empty() => faults.push(&"id", "is missing; give each row an id"),
        Ok(text) => match text.parse::<Id>() {
            Ok(id) => return Some(id),
            Err(error) => faults.push_value(
                &"id",
                &cell.text,
                message!("{error}, without zeros before it"),
            ),
        },
        Err(message) => faults.push_value(&"id", &cell.text, message),
    }
    None
}

/// Parses the cell of the column `deleted`.
fn read_deleted(cell: &TableCell<'_>, faults: &mut RowFaults<'_>) -> bool {
    let is_flag = cell.fault.is_none() && cell.json.is_none_or(|json| json == JsonType::Flag);
    match parse_flag(&cell.text) {
        Some(is_deleted) if is_flag => is_deleted,
        None if cell.is_blank() && is_flag => false,
        _ => {
            faults.push_value(
                &"deleted",
                &cell.text,
                "write TRUE to remove the row (in JSON true, without quotation marks), or leave it empty",
            );
            false
        }
    }
}

/// Reads the cells of a row for `fields`: several fields share the first text, and a list joins all cells.
fn read_texts<F: Fields>(
    fields: &[usize],
    texts: &[Cow<'_, str>],
    cells: &[&TableCell<'_>],
    notation: &Notation,
    options: &ReadOptions,
    statement: &mut Statement<F>,
    faults: &mut RowFaults<'_>,
) {
    let (Some(index), Some(text)) = (fields.first(), texts.first()) else {
        return;
    };
    let table = &F::table().fields;
    let field = &table[*index];
    if fields.len() > 1 {
        let text = options
            .read_meaning(&field.column, text)
            .unwrap_or_default();
        let parts: Vec<&Field> = fields.iter().map(|index| &table[*index]).collect();
        return match split_parts(&parts, text, notation.dates, options) {
            Ok(texts) => {
                for (index, text) in fields.iter().zip(texts) {
                    read_text(*index, &text, notation, options, statement, faults);
                }
            }
            Err(message) => faults.push_value(&field.column, text, message),
        };
    }
    let has_items = cells.iter().any(|cell| cell.items.is_some());
    let is_plain = texts.len() == 1
        && options.list_separator.is_none()
        && options.words_of(&field.column).next().is_none();
    if !field.kind.is_list() || is_plain && !has_items {
        return read_text(*index, text, notation, options, statement, faults);
    }
    let separator = options.list_separator.as_deref().unwrap_or(ITEM_SEPARATOR);
    let mut items: Vec<Value> = Vec::new();
    for (text, cell) in texts.iter().zip(cells) {
        match (&cell.items, split_at(text, separator)) {
            (Some(found), _) => items.extend(found.iter().cloned()),
            // Blanks around a separator of the source belong to no item. In the lists of an export they do.
            (None, Ok(found)) if options.list_separator.is_some() => {
                items.extend(found.map(|item| Value::from(item.trim())));
            }
            (None, Ok(found)) => items.extend(found.map(Value::from)),
            (None, Err(message)) => return faults.push_value(&field.column, text, message),
        }
    }
    let meant = |item| match item {
        Value::String(text) => Some(options.read_meaning(&field.column, &text)?.into()),
        other => Some(other),
    };
    let items = items
        .into_iter()
        .filter_map(meant)
        .filter(|item| !is_empty(item))
        .collect();
    statement.read_json(*index, Value::Array(items), &field.column, faults);
}

/// Reads one text as one field.
fn read_text<F: Fields>(
    index: usize,
    text: &str,
    notation: &Notation,
    options: &ReadOptions,
    statement: &mut Statement<F>,
    faults: &mut RowFaults<'_>,
) {
    let column = &F::table().fields[index].column;
    match options.read_meaning(column, text) {
        Some(text) => {
            let notation = Notation {
                is_price: column.ends_with("_usd"),
                ..*notation
            };
            statement.read_csv(index, text, &notation, column, faults);
        }
        None => statement.set_null(index),
    }
}

/// Returns the address to store for a cell with the text `text` and a hyperlink to `link`. An address in the text takes
/// precedence. Fails if the two addresses differ, or if neither is a web address.
pub(in crate::import) fn address<'c>(
    text: &'c str,
    link: &'c str,
) -> Result<Cow<'c, str>, Message> {
    let shown = text.trim_matches(is_blank);
    let link = link.trim_matches(is_blank);
    match (web_address(shown), web_address(link)) {
        (Some(shown), Some(target)) if comparable(&shown) != comparable(&target) => Err(message!(
            "shows one address and links to another, `{link}`; remove the link, or write the right address in both"
        )),
        (Some(_), _) => Ok(text.into()),
        (None, Some(_)) => Ok(link.into()),
        (None, None) => Err(message!(
            "links to `{link}`, which is not a web address (http or https); write the address in the cell, and remove \
             the link"
        )),
    }
}

/// Returns the web address that a text is.
pub(in crate::import) fn web_address(text: &str) -> Option<Url> {
    Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// Returns the address without its scheme and its final slashes. Spreadsheets change these when they turn a text into a
/// hyperlink.
fn comparable(url: &Url) -> String {
    let rest = url.as_str().split_once("://").map_or("", |(_, rest)| rest);
    rest.trim_end_matches('/').to_owned()
}

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
        let Some((start, end)) = date_range(text, order)? else {
            return Ok(vec![String::new(); fields.len()]);
        };
        let dates = fields
            .iter()
            .enumerate()
            .map(|(at, field)| match field.kind {
                ValueKind::Year => start.year().to_string(),
                _ if at == 0 => start.to_string(),
                _ => end.to_string(),
            });
        let has_end = fields
            .iter()
            .filter(|field| field.kind == ValueKind::Date)
            .count()
            > 1;
        return match has_end || start == end {
            true => Ok(dates.collect()),
            false => {
                Err("is a range of dates; map the column to `start_date` and `end_date`".into())
            }
        };
    }
    if let [_, country] = fields
        && country.column == "country"
    {
        return split_place(text, options);
    }
    let mut parts = split_at_signs(text);
    // An empty part keeps its position, unless there are too many.
    if parts.len() > fields.len() {
        parts.retain(|part| !part.is_empty());
    }
    if parts.len() > fields.len() {
        return Err(message!(
            "has {} parts for {} fields; correct the cell",
            parts.len(),
            fields.len()
        ));
    }
    parts.resize(fields.len(), "");
    Ok(parts.into_iter().map(str::to_owned).collect())
}

/// Splits a text at the first of the separators that it contains.
pub(in crate::import) fn split_at_signs(text: &str) -> Vec<&str> {
    let separator = SEPARATORS
        .into_iter()
        .find(|separator| text.contains(separator))
        .unwrap_or(SEPARATORS[0]);
    let is_blank_or_separator = |sign: char| sign.is_whitespace() || matches!(sign, ',' | ';');
    text.split(separator)
        .map(|part| part.trim_matches(is_blank_or_separator))
        .collect()
}

/// Splits a place before its country. Without one, it is a city.
fn split_place(text: &str, options: &ReadOptions) -> Result<Vec<String>, Message> {
    let pieces = BEFORE_COUNTRY
        .into_iter()
        .filter_map(|sign| text.rsplit_once(sign));
    let mut pieces =
        pieces.map(|(city, country)| (city.trim(), country.trim().trim_end_matches(')')));
    let known = pieces.clone().find(|(_, country)| {
        is_country(options.meaning_of("country", country).unwrap_or_default())
    });
    let (city, country) = match known.or_else(|| pieces.next().filter(|_| text.contains(','))) {
        Some(place) => place,
        None if is_country(text) => ("", text),
        None => (text, ""),
    };
    let meant = options.meaning_of("country", country).unwrap_or_default();
    let problem = match meant {
        "" => None,
        // `Atlanta, Georgia` is in the United States.
        "Georgia"
            if !city.is_empty() && !options.words_of("country").any(|word| word.is(country)) =>
        {
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
    fn a_website_is_read_from_the_text_or_the_link_of_a_cell() {
        let cases = [
            ("ESMO", "https://esmo.org/", Ok("https://esmo.org/")),
            (
                "www.esmo.org",
                "http://www.esmo.org/",
                Ok("http://www.esmo.org/"),
            ),
            (
                "https://esmo.org",
                "https://esmo.org/",
                Ok("https://esmo.org"),
            ),
            (
                "https://ESMO.org",
                "http://esmo.org/",
                Ok("https://ESMO.org"),
            ),
            (
                "https://esmo.org/a b",
                "https://esmo.org/a%20b",
                Ok("https://esmo.org/a b"),
            ),
            (
                "https://esmo.org/2026",
                "https://esmo.org/2025",
                Err("links to another, `https://esmo.org/2025`"),
            ),
            (
                "https://esmo.org",
                "mailto:info@esmo.org",
                Ok("https://esmo.org"),
            ),
            (
                "ESMO",
                "mailto:info@esmo.org",
                Err("`mailto:info@esmo.org`, which is not a web address"),
            ),
            ("ESMO", "file:///C:/esmo.html", Err("not a web address")),
            ("ESMO", "#Sheet2!A1", Err("not a web address")),
            ("ESMO", "HYPERLINK(A1,B1)", Err("not a web address")),
        ];
        for (text, link, expected) in cases {
            match (address(text, link), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text} {link}"),
                (Err(message), Err(expected)) => {
                    assert!(message.contains(expected), "{text} {link}: {message}")
                }
                (found, expected) => panic!("{text} {link}: {found:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn cells_are_split() {
        let cases = [
            ("city+country", "Rome, Italy", "Rome|Italy"),
            ("city+country", "Chicago, IL, USA", "Chicago, IL|USA"),
            ("city+country", "Singapore", "|Singapore"),
            ("city+country", "Vienna", "Vienna|"),
            (
                "city+country",
                "Chicago, IL",
                "ends with `IL`, which is no country",
            ),
            ("city+country", "", "|"),
            (
                "city+country",
                "Buenos Aires (Argentina)",
                "Buenos Aires|Argentina",
            ),
            ("city+country", "Berlin / Germany", "Berlin|Germany"),
            ("city+country", "Berlin - Germany", "Berlin|Germany"),
            (
                "city+country",
                "Tbilisi, Georgia",
                "ends with `Georgia`, which is the country and a state",
            ),
            ("issn_print+issn_online", "/1533-4406", "|1533-4406"),
            ("issn_print+issn_online", "N/A / 1533-4406", "N/A|1533-4406"),
            (
                "issn_print+issn_online",
                "0028-4793,\n1533-4406",
                "0028-4793|1533-4406",
            ),
            (
                "issn_print+issn_online",
                "0028-4793, 1533-4406",
                "0028-4793|1533-4406",
            ),
            (
                "issn_print+issn_online",
                "0028-4793 / 1533-4406\n",
                "0028-4793|1533-4406",
            ),
            ("issn_print+issn_online", "0028-4793;", "0028-4793|"),
            (
                "issn_print+issn_online",
                "1;2;3",
                "has 3 parts for 2 fields",
            ),
            (
                "start_date+end_date",
                "12-15 March 2026",
                "2026-03-12|2026-03-15",
            ),
            (
                "start_date+end_date+year",
                "30 Dec 2025 – 2 Jan 2026",
                "2025-12-30|2026-01-02|2025",
            ),
            ("start_date+year", "2026-03-12", "2026-03-12|2026"),
            ("start_date+year", "12-15 March 2026", "is a range of dates"),
        ];
        let known: Vec<&Field> = ConferenceFields::table()
            .fields
            .iter()
            .chain(&JournalFields::table().fields)
            .collect();
        for (names, text, expected) in cases {
            let fields: Vec<&Field> = names
                .split('+')
                .map(|name| *known.iter().find(|field| field.column == name).unwrap())
                .collect();
            let parts = split_parts(&fields, text, None, &ReadOptions::default());
            let shown = parts.map_or_else(|message| message.text, |parts| parts.join("|"));
            assert!(
                shown == expected || expected.len() > 12 && shown.starts_with(expected),
                "{text}: {shown}"
            );
        }
    }
}
