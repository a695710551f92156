//! A row of cells, as the values of a record: with the words and empty texts of a recipe, with lists, with hyperlinks,
//! and with several fields in a cell, such as `Rome, Italy` or `12-15 March 2026`.

use std::borrow::Cow;

use jiff::civil::Date;
use serde_json::Value;
use url::Url;

use crate::import::read::cells::{
    Container, Notation, TableCell, normalize, normalize_issn, parse_flag,
};
use crate::import::read::columns::{ColumnMeaning, Columns};
use crate::import::read::dates::date_range;
use crate::import::read::loose::{
    PlaceEnd, is_mark, issns, listed, open_date, place_end, without_mode, without_time,
};
use crate::import::read::options::{ISSN_COLUMNS, ReadOptions};
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

/// Reads the cells of a row.
pub(in crate::import) struct RowReader<'r, 'f, F> {
    options: &'r ReadOptions,
    notation: Notation,
    statement: Box<Statement<F>>,
    /// The year of a start that is not fixed.
    open_year: Option<i16>,
    faults: &'r mut RowFaults<'f>,
}

/// An id that cannot be read, and is reported.
#[derive(PartialEq, Eq)]
struct InvalidId;

impl<'r, 'f, F: Fields> RowReader<'r, 'f, F> {
    /// Creates a reader. `notation` is that of the file.
    pub fn new(
        options: &'r ReadOptions,
        notation: Notation,
        faults: &'r mut RowFaults<'f>,
    ) -> RowReader<'r, 'f, F> {
        RowReader {
            options,
            notation,
            statement: Box::new(Statement::new()),
            open_year: None,
            faults,
        }
    }

    /// Reads the cells of `columns`. Returns `None` if the id is invalid.
    pub fn read(
        mut self,
        columns: &Columns<'_>,
        cells: &[TableCell<'_>],
    ) -> Option<(Option<Id>, RowEdit<F>)> {
        self.compare_equal_columns(columns, cells)?;
        let none = TableCell::default();
        let cell_of = |wanted: ColumnMeaning| {
            let mut sources = columns.sources.iter();
            let (_, at_columns) = sources.find(|(meaning, _)| *meaning == wanted)?;
            Some(filled_cells(cells, at_columns).next().unwrap_or(&none))
        };
        let deleted = cell_of(ColumnMeaning::Deleted);
        let is_deleted = deleted.is_some_and(|cell| self.read_deleted(cell));
        // Without an id, other fields identify the record. A row with an invalid id is read too, to report its other
        // faults.
        let id = cell_of(ColumnMeaning::Id).map_or(Ok(None), |cell| self.read_id(cell));
        if is_deleted && id != Ok(None) {
            return Some((id.ok()?, RowEdit::Remove));
        }
        for (meaning, at_columns) in &columns.sources {
            if let ColumnMeaning::Fields(fields) = meaning {
                let is_given = columns.pass_filters(Some(fields[0]), cells);
                let mut found: Vec<&TableCell<'_>> = filled_cells(cells, at_columns).collect();
                if !is_given {
                    self.count_unmet(fields[0], &found);
                    found.clear();
                }
                self.read_cells(fields, &found);
            }
        }
        self.set_open_year();
        self.notation = self.options.notation();
        for constant in &columns.constants {
            let index = constant.index;
            let metric = constant.metric;
            let lacks_metric = metric.is_some_and(|metric| self.statement.is_null(metric));
            if self.statement.is_null(index) && !lacks_metric {
                self.statement.mark_constant(index);
                self.read_text(index, constant.text);
            }
        }
        let edit = if is_deleted {
            RowEdit::RemoveMatch(self.statement.into())
        } else {
            RowEdit::Set(self.statement.into())
        };
        Some((id.ok()?, edit))
    }

    /// Counts a cell that is left empty, since its row lacks a value that its field needs.
    fn count_unmet(&mut self, field: usize, cells: &[&TableCell<'_>]) {
        let column = &F::table().fields[field].column;
        if cells.iter().any(|cell| !cell.is_blank())
            && let Some(effects) = self.faults.effects()
        {
            *effects.unmet.entry(column.clone()).or_default() += 1;
        }
    }

    /// Reports columns of one header that differ in the row, unless they are joined to a list.
    fn compare_equal_columns(
        &mut self,
        columns: &Columns<'_>,
        cells: &[TableCell<'_>],
    ) -> Option<()> {
        for (meaning, at_columns) in &columns.sources {
            let mut filled = filled_cells(cells, at_columns);
            if meaning.is_joined(F::table()) {
                continue;
            }
            if let Some(first) = filled.next()
                && let Some(other) = filled.find(|cell| cell.text != first.text)
            {
                let names: Vec<String> = at_columns.iter().map(|at| columns.name(*at)).collect();
                let message = message!(
                    "the columns {} have one header, and differ here; ignore one of them, such as `HEADER#2`",
                    names.join(" and ")
                );
                self.faults.push_row(Some(&other.text), message);
                return None;
            }
        }
        Some(())
    }

    /// Reads the cell of an id. An empty one is `None`. An invalid one is reported.
    fn read_id(&mut self, cell: &TableCell<'_>) -> Result<Option<Id>, InvalidId> {
        let notation = Notation {
            is_number: cell.is_number,
            ..Notation::default()
        };
        let fault = cell.fault.clone();
        let fault = fault.or_else(|| type_fault(cell, ValueKind::Integer, false));
        let text = fault.map_or_else(|| normalize(ValueKind::Integer, &cell.text, &notation), Err);
        let message = match text {
            Ok(text) if text.is_empty() => return Ok(None),
            Ok(text) => match text.parse::<Id>() {
                Ok(id) => return Ok(Some(id)),
                Err(error) => message!("{error}, without zeros before it"),
            },
            Err(message) => message,
        };
        self.faults.push_value(&"id", &cell.text, message);
        Err(InvalidId)
    }

    /// Reads the cell of the column `deleted`.
    fn read_deleted(&mut self, cell: &TableCell<'_>) -> bool {
        let is_flag = cell.fault.is_none() && cell.json.is_none_or(|json| json == JsonType::Flag);
        match parse_flag(&cell.text) {
            Some(is_deleted) if is_flag => is_deleted,
            None if cell.is_blank() && is_flag => false,
            _ => {
                self.faults.push_value(
                    &"deleted",
                    &cell.text,
                    "write TRUE to remove the row (in JSON true, without quotation marks), or leave it empty",
                );
                false
            }
        }
    }

    /// Reads the cells of a row for `fields`: several fields share the first cell, and a list joins all cells.
    fn read_cells(&mut self, fields: &[usize], cells: &[&TableCell<'_>]) {
        let field = &F::table().fields[fields[0]];
        let mut texts: Vec<Cow<'_, str>> = Vec::with_capacity(cells.len());
        for cell in cells {
            let mut words = self.options.words_of(&field.column);
            let fault = type_fault(cell, field.kind, fields.len() > 1)
                .filter(|_| !words.any(|word| word.is(&cell.text)));
            let is_open = self.notation.is_loose && field.kind == ValueKind::Date;
            let part = cell.part_of_date.as_deref().filter(|_| is_open);
            let text = part.map_or_else(|| cell_text(cell, field), |part| Ok(part.into()));
            match fault.map_or(text, Err) {
                Ok(text) => texts.push(text),
                Err(message) => self.faults.push_value(&field.column, &cell.text, message),
            }
        }
        if texts.len() < cells.len() {
            return;
        }
        let [text, ..] = &*texts else {
            return fields
                .iter()
                .for_each(|index| self.statement.set_null(*index));
        };
        self.notation.is_number = cells[0].is_number;
        let has_items = cells.iter().any(|cell| cell.items.is_some());
        let is_plain = texts.len() == 1
            && self.options.list_separator.is_none()
            && self.options.words_of(&field.column).next().is_none();
        let is_list = has_items || !is_plain || self.is_listed(text);
        if let ([first, url], true) = (fields, names_link::<F>(fields)) {
            self.read_linked(*first, *url, cells[0]);
        } else if fields.len() > 1 {
            self.read_parts(fields, text);
        } else if field.kind.is_list() && is_list {
            self.read_list(fields[0], &texts, cells);
        } else {
            self.read_text(fields[0], text);
        }
    }

    /// Returns true if a text is a list as in a program, and may be one.
    fn is_listed(&self, text: &str) -> bool {
        self.notation.is_loose && listed(text).is_some()
    }

    /// Sets the year of a start that is not fixed, if the row has no other.
    fn set_open_year(&mut self) {
        if let Some(year) = self.open_year
            && let Some(index) = F::table().index_of("year")
            && self.statement.is_null(index)
        {
            self.read_text(index, &year.to_string());
        }
    }

    /// Reads a text and its link. Without a link, an address in the text is one.
    fn read_linked(&mut self, index: usize, url: usize, cell: &TableCell<'_>) {
        let link = cell.link.as_deref().map(|link| link.trim_matches(is_blank));
        match link.and_then(web_address) {
            None if cell.text.contains("://") => self.read_parts(&[index, url], &cell.text),
            address => {
                self.read_text(index, &cell.text);
                if let (Some(link), None) = (link, &address) {
                    let message =
                        message!("links to `{link}`, which is not a web address, and is left out");
                    self.warn(url, &cell.text, message);
                }
                let link = link.filter(|_| address.is_some());
                self.read_text(url, link.unwrap_or_default());
            }
        }
    }

    /// Reads a text that several fields share.
    fn read_parts(&mut self, fields: &[usize], text: &str) {
        let table = &F::table().fields;
        let column = &table[fields[0]].column;
        let text = self.meaning_of(column, text).unwrap_or_default();
        let parts: Vec<&Field> = fields.iter().map(|index| &table[*index]).collect();
        let texts = match (&parts[..], listed(text)) {
            ([first, ..], _) if first.kind == ValueKind::Date => self.date_parts(fields, text),
            ([_, country], _) if country.column == "country" => {
                Ok(self.place_parts(fields[0], text))
            }
            (_, Some(items)) if self.notation.is_loose => {
                self.issn_parts(fields, &items.join(", "))
            }
            _ if is_issn(column) => self.issn_parts(fields, text),
            _ => split_texts(text, fields.len()),
        };
        match texts {
            Ok(mut texts) => {
                texts.resize(fields.len(), String::new());
                for (index, text) in fields.iter().zip(texts) {
                    self.read_text(*index, &text);
                }
            }
            Err(message) => self.faults.push_value(column, text, message),
        }
    }

    /// Adds a warning about a value that is not taken as it stands.
    fn warn(&mut self, index: usize, value: &str, message: impl Into<Message>) {
        let column = &F::table().fields[index].column;
        self.faults.warn_value(column, value, message);
    }

    /// Returns the texts of a range of dates, and of its year.
    fn date_parts(&mut self, fields: &[usize], text: &str) -> Result<Vec<String>, Message> {
        let kinds = fields.iter().map(|index| F::table().fields[*index].kind);
        let kinds: Vec<ValueKind> = kinds.collect();
        let (range, year) = self.read_dates(fields[0], text)?;
        let has_end = kinds[1] == ValueKind::Date;
        if range.is_some_and(|(start, end)| start != end) && !has_end {
            return Err(
                "is a range of dates; map the column to `start_date` and `end_date`".into(),
            );
        }
        let text_of = |(at, kind): (usize, ValueKind)| match (kind, range) {
            (ValueKind::Year, _) => year.map(|year| year.to_string()),
            (_, Some((start, _))) if at == 0 => Some(start.to_string()),
            (_, range) => range.map(|(_, end)| end.to_string()),
        };
        let texts = kinds.into_iter().enumerate().map(text_of);
        Ok(texts.map(Option::unwrap_or_default).collect())
    }

    /// Returns the range of dates in a text, and its year. In a list of others, a time of day is left out, and a date
    /// may not be fixed.
    fn read_dates(&mut self, index: usize, text: &str) -> Result<DatesAndYear, Message> {
        let order = self.notation.dates;
        let fault = match date_range(text, order) {
            Ok(range) => return Ok((range, range.map(|(start, _)| start.year()))),
            Err(fault) if !self.notation.is_loose => return Err(fault),
            Err(fault) => fault,
        };
        if let Some(open) = open_date(text) {
            self.warn(index, text, "is no date yet, so it counts as empty");
            return Ok((None, open.year));
        }
        let date = without_time(text).ok_or(fault)?;
        let range = date_range(&date, order)?;
        self.warn(index, text, "has a time of day, which is left out");
        Ok((range, range.map(|(start, _)| start.year())))
    }

    /// Returns the city and the country of a place.
    fn place_parts(&mut self, city: usize, text: &str) -> Vec<String> {
        let place = without_mode(text);
        if place != text.trim_matches(is_blank) {
            let message = "says how the meeting takes place, which is left out";
            self.warn(city, text, message);
        }
        let (parts, is_clear) = split_place(place, self.options);
        if !is_clear {
            let message = "ends with no known country, or with a word that may be one, so it is all read as the city; write its \
                           country at the end, or under [values.country] of a recipe";
            self.warn(city, text, message);
        }
        parts.into()
    }

    /// Returns the ISSNs of a text. Only the first ones have a field.
    fn issn_parts(&mut self, fields: &[usize], text: &str) -> Result<Vec<String>, Message> {
        let is_loose = self.notation.is_loose;
        let issns = issns(text).filter(|issns| is_loose && issns.len() > fields.len());
        let Some(mut issns) = issns else {
            return split_texts(text, fields.len());
        };
        let message = message!(
            "has {} ISSNs; only the first {} are read",
            issns.len(),
            fields.len()
        );
        self.warn(fields[0], text, message);
        issns.truncate(fields.len());
        Ok(issns)
    }

    /// Reads the items of all cells as a list.
    fn read_list(&mut self, index: usize, texts: &[Cow<'_, str>], cells: &[&TableCell<'_>]) {
        let column = &F::table().fields[index].column;
        let separator = self.options.list_separator.as_deref();
        let mut items: Vec<Value> = Vec::new();
        for (text, cell) in texts.iter().zip(cells) {
            match (
                &cell.items,
                split_at(text, separator.unwrap_or(ITEM_SEPARATOR)),
            ) {
                (Some(found), _) => items.extend(found.iter().cloned()),
                (None, _) if self.is_listed(text) => {
                    let found = listed(text).unwrap_or_default();
                    items.extend(found.into_iter().map(Value::from));
                }
                // Blanks around a separator of the source belong to no item. In the lists of an export they do.
                (None, Ok(found)) if separator.is_some() => {
                    items.extend(found.map(|item| Value::from(item.trim())));
                }
                (None, Ok(found)) => items.extend(found.map(Value::from)),
                (None, Err(message)) => return self.faults.push_value(column, text, message),
            }
        }
        let meant = |item| match item {
            Value::String(text) => Some(self.meaning_of(column, &text)?.into()),
            other => Some(other),
        };
        let items = items.into_iter().filter_map(meant);
        let items: Vec<Value> = items.filter(|item| !is_empty(item)).collect();
        self.statement
            .read_json(index, Value::Array(items), column, self.faults);
    }

    /// Reads one text as one field.
    fn read_text(&mut self, index: usize, text: &str) {
        let field = &F::table().fields[index];
        let plain = match self.meaning_of(&field.column, text) {
            Some(text) => self.normalize(index, text),
            None => Some(Cow::Borrowed("")),
        };
        let Some(plain) = plain else { return };
        let is_json = self.notation.container == Container::Json;
        if plain.is_empty() {
            self.statement.set_null(index);
        } else if is_json && field.kind == ValueKind::Text {
            let text = Value::String(plain.into_owned());
            self.statement
                .read_json(index, text, &field.column, self.faults);
        } else {
            self.statement
                .read_csv(index, &plain, &field.column, self.faults);
        }
    }

    /// Returns the [`meaning_of`](ReadOptions::meaning_of) a text, and counts it if it is empty.
    fn meaning_of<'t>(&mut self, column: &str, text: &'t str) -> Option<&'t str>
    where
        'r: 't,
    {
        let options = self.options;
        let meaning = options.meaning_of(column, text);
        if meaning.is_none()
            && let Some(effects) = self.faults.effects()
        {
            let key = (column.to_owned(), text.trim().to_owned());
            *effects.emptied.entry(key).or_default() += 1;
        }
        meaning
    }

    /// Returns a text in the form that the field is parsed from, or reports its fault.
    fn normalize<'t>(&mut self, index: usize, text: &'t str) -> Option<Cow<'t, str>> {
        let field = &F::table().fields[index];
        let is_loose = self.notation.is_loose;
        if is_issn(&field.column)
            && let Some(issn) = self.normalize_issn(index, text)
        {
            return Some(Cow::Owned(issn));
        }
        let notation = Notation {
            is_price: field.column.ends_with("_usd"),
            ..self.notation
        };
        let normalized = match normalize(field.kind, text, &notation) {
            Err(fault) if is_loose && field.kind == ValueKind::Date => {
                self.read_open_date(index, text).ok_or(fault)
            }
            normalized => normalized,
        };
        normalized
            .map_err(|message| self.faults.push_value(&field.column, text, message))
            .ok()
    }

    /// Returns a date of a list of others that is not fixed, or has a time of day.
    fn read_open_date(&mut self, index: usize, text: &str) -> Option<Cow<'static, str>> {
        let (range, year) = self.read_dates(index, text).ok()?;
        if F::table().fields[index].column == "start_date" {
            self.open_year = year;
        }
        match range {
            None => Some(Cow::Borrowed("")),
            Some((start, end)) => (start == end).then(|| Cow::Owned(start.to_string())),
        }
    }

    /// Returns the usual form of an ISSN, and empty for one that is none.
    fn normalize_issn(&mut self, index: usize, text: &str) -> Option<String> {
        let column = &F::table().fields[index].column;
        let visible: String = text.chars().filter(|sign| !is_mark(*sign)).collect();
        let bare = if self.notation.is_loose {
            &visible
        } else {
            text
        };
        let mut digits = bare.chars().filter(|sign| sign.is_alphanumeric());
        match normalize_issn(column, bare) {
            None if self.notation.is_loose
                && digits.clone().count() > 0
                && digits.all(|digit| digit == '0') =>
            {
                self.warn(index, text, "is no ISSN, so it counts as empty");
                Some(String::new())
            }
            Some((issn, lacks_zero)) => {
                if lacks_zero {
                    let message =
                        message!("has 7 digits; it is stored as `{issn}`, whose check digit fits");
                    self.warn(index, text, message);
                }
                Some(issn)
            }
            None if self.notation.is_loose => {
                let text = listed(text).map_or(text.to_owned(), |items| items.join(", "));
                let issns = issns(&text).filter(|issns| !issns.is_empty())?;
                if issns.len() > 1 {
                    let message = message!("has {} ISSNs; only the first is read", issns.len());
                    self.warn(index, &text, message);
                }
                issns.into_iter().next()
            }
            None => None,
        }
    }
}

/// A range of dates, and the year, which may be known without a date.
type DatesAndYear = (Option<(Date, Date)>, Option<i16>);

fn is_issn(column: &str) -> bool {
    ISSN_COLUMNS.contains(&column)
}

/// Returns true if a column has a text and its link: `["name", "url"]`.
fn names_link<F: Fields>(fields: &[usize]) -> bool {
    let last = fields.last().map(|index| &F::table().fields[*index]);
    fields.len() == 2 && last.is_some_and(|field| field.column == "url")
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

/// Splits a text into at most so many texts.
fn split_texts(text: &str, max: usize) -> Result<Vec<String>, Message> {
    let text = text.trim();
    let mut parts = split_at_signs(text);
    // An empty part keeps its position, unless there are too many.
    if parts.len() > max {
        parts.retain(|part| !part.is_empty());
    }
    if parts.len() > max {
        return Err(message!(
            "has {} parts for {max} fields; correct the cell",
            parts.len()
        ));
    }
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

/// Splits a place before its country. Without one, it is a city. Returns whether its end is clear.
fn split_place(text: &str, options: &ReadOptions) -> ([String; 2], bool) {
    let place = |city: &str, country: &str| ([city.to_owned(), country.to_owned()], true);
    let pieces = BEFORE_COUNTRY
        .into_iter()
        .filter_map(|sign| text.rsplit_once(sign))
        .map(|(city, country)| (city.trim(), country.trim().trim_end_matches(')')));
    let mut is_open = text.contains(',');
    for (city, end) in pieces {
        let meant = match options.meaning_of("country", end) {
            Some(meant) => meant,
            None if text.contains(',') => return place(city, end),
            None => continue,
        };
        let is_given = options.words_of("country").any(|word| word.is(end));
        match place_end(meant) {
            _ if is_given && is_country(meant) => return place(city, end),
            PlaceEnd::Country => return place(city, end),
            PlaceEnd::Word(country) if !city.is_empty() => return place(city, country),
            PlaceEnd::State(country) if !city.is_empty() => return place(text, country),
            PlaceEnd::Unclear if is_country(meant) => is_open = true,
            _ => {}
        }
    }
    if is_country(text) {
        return place("", text);
    }
    ([text.to_owned(), String::new()], !is_open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::findings::{FilePosition, Findings};
    use crate::import::read::options::OptionEffects;
    use crate::import::row_faults::{FileLog, UnknownNames};
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

    /// Returns the values that a cell of a list of others gives several fields, and its faults and warnings.
    fn parts_of<F: Fields>(names: &[&str], text: &str) -> String {
        let position = FilePosition::new("f".into(), 1);
        let (mut bad, mut warnings) = (Findings::default(), Findings::default());
        let mut unknown = UnknownNames::default();
        let mut effects = OptionEffects::default();
        let options = ReadOptions {
            has_recipe: true,
            ..ReadOptions::default()
        };
        let mut faults = RowFaults::new(&position, &mut bad).of_file(FileLog {
            unknown: &mut unknown,
            warnings: &mut warnings,
            effects: &mut effects,
        });
        let mut reader = RowReader::<F>::new(&options, options.notation(), &mut faults);
        let index = |name: &&str| {
            F::table()
                .fields
                .iter()
                .position(|field| field.column == *name)
        };
        let fields: Vec<usize> = names.iter().filter_map(index).collect();
        reader.read_cells(&fields, &[&TableCell::text(text)]);
        reader.set_open_year();
        let values = reader.statement.values();
        let values = fields.iter().map(|index| values[*index].to_csv(&()));
        let values: Vec<Cow<'_, str>> = values.collect();
        let messages = bad.kept().iter().chain(warnings.kept());
        let messages = messages.map(|finding| format!(" - {}", finding.message));
        values.join("|") + &messages.collect::<String>()
    }

    #[test]
    fn cells_are_split() {
        const CITY: &str = "ends with no known country, or with a word that may be one";
        const MODE: &str = "says how the meeting takes place";
        const TIME: &str = "has a time of day, which is left out";
        const OPEN: &str = "is no date yet, so it counts as empty";
        let cases = [
            ("city+country", "Rome, Italy", "Rome|Italy", ""),
            ("city+country", "Chicago, IL, USA", "Chicago, IL|USA", ""),
            ("city+country", "Singapore", "|Singapore", ""),
            ("city+country", "Vienna", "Vienna|", ""),
            ("city+country", "Chicago, IL", "Chicago, IL|", CITY),
            (
                "city+country",
                "Atlanta, Georgia",
                "Atlanta, Georgia|",
                CITY,
            ),
            ("city+country", "Rome, Nowhere", "Rome, Nowhere|", CITY),
            (
                "city+country",
                "San Diego, California",
                "San Diego, California|United States",
                "",
            ),
            ("city+country", "Austin, TX", "Austin, TX|United States", ""),
            ("city+country", "Toronto, ON", "Toronto, ON|Canada", ""),
            ("city+country", "Antwerp, BE", "Antwerp|Belgium", ""),
            ("city+country", "Graz (AUT)", "Graz|Austria", ""),
            (
                "city+country",
                "Glasgow, Scotland",
                "Glasgow|United Kingdom",
                "",
            ),
            (
                "city+country",
                "Belfast, Northern Ireland",
                "Belfast|United Kingdom",
                "",
            ),
            (
                "city+country",
                "Málaga, Spain (hybrid)",
                "Málaga|Spain",
                MODE,
            ),
            (
                "city+country",
                "Toronto, Canada & Virtual",
                "Toronto|Canada",
                MODE,
            ),
            ("city+country", "", "|", ""),
            (
                "city+country",
                "Buenos Aires (Argentina)",
                "Buenos Aires|Argentina",
                "",
            ),
            ("city+country", "Berlin / Germany", "Berlin|Germany", ""),
            ("city+country", "Berlin - Germany", "Berlin|Germany", ""),
            ("issn_print+issn_online", "/1533-4406", "|1533-4406", ""),
            (
                "issn_print+issn_online",
                "0028-4793,\n1533-4406",
                "0028-4793|1533-4406",
                "",
            ),
            (
                "issn_print+issn_online",
                "0028-4793, 1533-4406",
                "0028-4793|1533-4406",
                "",
            ),
            (
                "issn_print+issn_online",
                "0028-4793 / 1533-4406\n",
                "0028-4793|1533-4406",
                "",
            ),
            ("issn_print+issn_online", "0028-4793;", "0028-4793|", ""),
            (
                "issn_print+issn_online",
                "['0028-4793', '1533-4406']",
                "0028-4793|1533-4406",
                "",
            ),
            (
                "issn_print+issn_online",
                "1;2;3",
                "|",
                "has 3 parts for 2 fields",
            ),
            (
                "issn_print+issn_online",
                "0028-4793, 1533-4406, 0378-5955",
                "0028-4793|1533-4406",
                "has 3 ISSNs; only the first 2 are read",
            ),
            ("issn_print", "0028-4793\u{200e}", "0028-4793", ""),
            ("issn_print", "\u{202a}0028-4793\u{202c}", "0028-4793", ""),
            ("issn_print", "0000-0000", "", "is no ISSN"),
            ("issn_print", "['0028-4793']", "0028-4793", ""),
            (
                "issn_print",
                "0028-4793; 1533-4406",
                "0028-4793",
                "has 2 ISSNs; only the first is read",
            ),
            ("therapy_areas", "['Lungs', 'Heart']", "Lungs; Heart", ""),
            ("therapy_areas", r#"["Lungs"]"#, "Lungs", ""),
            ("therapy_areas", "Lungs; Heart", "Lungs; Heart", ""),
            (
                "start_date+end_date",
                "12-15 March 2026",
                "2026-03-12|2026-03-15",
                "",
            ),
            (
                "start_date+end_date+year",
                "30 Dec 2025 – 2 Jan 2026",
                "2025-12-30|2026-01-02|2025",
                "",
            ),
            ("start_date+end_date+year", "June 2026", "||2026", OPEN),
            ("start_date+end_date+year", "TBC", "||", OPEN),
            (
                "start_date+end_date",
                "12 May 2026 09:00 - 15 May 2026 17:00",
                "2026-05-12|2026-05-15",
                TIME,
            ),
            ("start_date+year", "2026-03-12", "2026-03-12|2026", ""),
            (
                "start_date+year",
                "12-15 March 2026",
                "|",
                "is a range of dates",
            ),
            ("start_date", "Q3 2026", "", OPEN),
            (
                "start_date",
                "2026-01-15T23:59:00-12:00",
                "2026-01-15",
                TIME,
            ),
            ("abstract_due_date", "2026-01?", "", OPEN),
            (
                "abstract_due_date",
                "23 Jan 2026, 23:59 (UTC-12)",
                "2026-01-23",
                TIME,
            ),
            ("abstract_due_date", "whenever", "", "write a date as"),
            ("name+url", "Alpha", "Alpha|", ""),
            (
                "name+url",
                "Alpha, https://alpha.example",
                "Alpha|https://alpha.example",
                "",
            ),
        ];
        for (names, text, values, message) in cases {
            let names: Vec<&str> = names.split('+').collect();
            let shown = match names[0].starts_with("issn") {
                true => parts_of::<JournalFields>(&names, text),
                false => parts_of::<ConferenceFields>(&names, text),
            };
            let expected = match message {
                "" => values.to_owned(),
                message => format!("{values} - {message}"),
            };
            let is_equal = shown == expected || !message.is_empty() && shown.starts_with(&expected);
            assert!(is_equal, "{text:?}: {shown}, expected {expected}");
        }
    }

    /// Returns the value that a cell gives a field, as JSON or as links, or the messages of its faults.
    fn shown<F: Fields>(name: &str, cell: &str) -> String {
        let position = FilePosition::new("f".into(), 1);
        let mut bad = Findings::default();
        let index = F::table()
            .fields
            .iter()
            .position(|field| field.name == name)
            .unwrap();
        let options = ReadOptions::default();
        let mut faults = RowFaults::new(&position, &mut bad);
        let mut reader = RowReader::<F>::new(&options, Notation::default(), &mut faults);
        reader.read_text(index, cell);
        let statement = reader.statement.to_string();
        if !bad.is_empty() {
            return bad.to_string();
        }
        statement.replacen(&format!("{name}="), "", 1)
    }

    #[test]
    fn csv_cells_are_read() {
        let cases = [
            ("city", "", "null"),
            ("city", " a ", r#"" a ""#),
            ("city", "'=1", r#""=1""#),
            ("city", "'tis", r#""'tis""#),
            ("start_date", "2026-02-28", r#""2026-02-28""#),
            (
                "start_date",
                "2026-02-29",
                "`2026-02-29` - write a date as YYYY-MM-DD, such as 2026-03-15",
            ),
            ("start_date_status", "not_found", r#""not_found""#),
            ("start_date_status", "Confirmed", r#""confirmed""#),
            ("start_date_status", " NOT FOUND", r#""not_found""#),
            ("start_date_status", "sure", "write one of"),
            ("year", "1900", "1900"),
            ("year", "2101", "from 1900 to 2100"),
            ("year", "2026.0", "2026"),
            ("year", "+2026", "from 1900 to 2100"),
            ("h_index", "0", "0"),
            ("h_index", "007", "write a whole number"),
            ("h_index", "9007199254740992", "write a whole number"),
            ("sjr", "4.20", "4.2"),
            (
                "sjr",
                "4,2",
                "has a decimal comma; write a decimal point, `4.2`",
            ),
            ("sjr", "-1", "write a number from 0"),
            ("sjr", "NaN", "is not a number; leave the cell empty"),
            ("sjr", "1e999", "write a number from 0"),
            ("formats.oral", "TRUE", "true"),
            ("formats.oral", "false", "false"),
            ("formats.oral", "yes", "true"),
            ("formats.oral", "maybe", "write TRUE or FALSE"),
            ("publishing.access", "open", r#""open""#),
            ("publishing.access", "Hybrid", r#""hybrid""#),
            ("publishing.access", "gold", r#""open""#),
            (
                "publishing.access",
                "green",
                "`subscription`, `hybrid`, `open`",
            ),
            ("issn_print", "2434561x", r#""2434-561X""#),
            ("issn_online", "3785955", r#""0378-5955""#),
            ("issn_online", "24345610", r#""24345610""#),
            ("abbv", "2434561x", r#""2434561x""#),
            (
                "therapy_areas",
                "['a', \"b's\"]",
                "without brackets and quotes: `a; b's`",
            ),
            (
                "therapy_areas",
                r#"["a","b"]"#,
                "without brackets and quotes: `a; b`",
            ),
            ("therapy_areas", "['a']", "without brackets and quotes: `a`"),
            ("therapy_areas", "[a]", r#"["[a]"]"#),
            (
                "organizations",
                r#"["A","B"]"#,
                "without brackets and quotes: `A; B`",
            ),
            (
                "tags",
                "['T: A', 'T: B']",
                "without brackets and quotes: `T: A; T: B`",
            ),
            ("therapy_areas", "a; b", r#"["a","b"]"#),
            ("therapy_areas", "a;b", r#"["a;b"]"#),
            ("therapy_areas", "'+a; b", r#"["+a","b"]"#),
            ("therapy_areas", "a; ; b", "an item is empty"),
            ("therapy_areas", "a; ", "an item is empty"),
            ("tags", "Topic: A: B", "Tags([Label(\"Topic: A: B\")])"),
            ("organizations", "'-X", "Organizations([Label(\"-X\")])"),
        ];
        for (field, text, expected) in cases {
            let read = match ConferenceFields::table()
                .fields
                .iter()
                .any(|known| known.name == field)
            {
                true => shown::<ConferenceFields>(field, text),
                false => shown::<JournalFields>(field, text),
            };
            assert!(read.contains(expected), "{field} {text:?}: {read}");
        }
    }
}
