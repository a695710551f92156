//! A row of cells, as the values of a record: with the words and empty texts of a recipe, and with lists. Several fields
//! may share a cell (`shared_cells`).

use std::borrow::Cow;

use serde_json::Value;

use super::cells::{normalize, parse_flag};
use super::columns::{ColumnMeaning, Columns};
use super::currency::names_other_currency;
use super::loose::listed;
use super::options::{ISSN_COLUMNS, OptionEffect, ReadOptions};
use super::statement::Statement;
use super::table_cell::{Container, Notation, TableCell};
use crate::import::row_faults::RowFaults;
use crate::import::rows::RowEdit;
use crate::model::message::{Message, message};
use crate::model::value::json::is_empty;
use crate::model::value::text::{ITEM_SEPARATOR, split_at, split_items};
use crate::model::value::{JsonType, ValueKind};
use crate::model::{Fields, Id};

/// Reads the cells of a row.
pub(in crate::import) struct RowReader<'r, 'f, F> {
    pub(super) options: &'r ReadOptions,
    pub(super) notation: Notation,
    pub(super) statement: Box<Statement<F>>,
    /// The year of a start that is not fixed.
    pub(super) open_year: Option<i16>,
    pub(super) faults: &'r mut RowFaults<'f>,
}

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
        cells: &[TableCell],
    ) -> Option<(Option<Id>, RowEdit<F>)> {
        self.compare_equal_columns(columns, cells)?;
        let cell_of = |wanted: ColumnMeaning| {
            let mut sources = columns.sources.iter();
            let (_, at_columns) = sources.find(|(meaning, _)| *meaning == wanted)?;
            filled_cells(cells, at_columns).next()
        };
        let deleted = cell_of(ColumnMeaning::Deleted);
        let is_deleted = deleted.is_some_and(|cell| self.read_deleted(cell));
        // Without an id, other fields identify the record. A row with an invalid id is read too, to report its other
        // faults.
        let none = TableCell::default();
        let cell = cell_of(ColumnMeaning::Id).unwrap_or(&none);
        let id = read_id(cell);
        if let Err(message) = &id {
            self.faults.push_value(&"id", &cell.text, message.clone());
        }
        if is_deleted && id != Ok(None) {
            let edit = RowEdit {
                is_removal: true,
                statement: self.statement.into(),
            };
            return Some((id.ok()?, edit));
        }
        self.read_fields(columns, cells);
        let edit = RowEdit {
            is_removal: is_deleted,
            statement: self.statement.into(),
        };
        Some((id.ok()?, edit))
    }

    /// Reads the fields of a row. Constants fill those without a value.
    fn read_fields(&mut self, columns: &Columns<'_>, cells: &[TableCell]) {
        let mut found = Vec::new();
        for (meaning, at_columns) in &columns.sources {
            found.clear();
            found.extend(filled_cells(cells, at_columns));
            match meaning {
                ColumnMeaning::Fields(fields) => {
                    let field = &F::table().fields[fields[0]].column;
                    if !columns.pass_filters(Some(field), cells) {
                        if found.iter().any(|cell| !cell.is_blank()) {
                            self.faults.count(OptionEffect::Unmet(field.clone()));
                        }
                        found.clear();
                    }
                    self.read_cells(fields, &found);
                }
                ColumnMeaning::Object(fields) => {
                    self.read_object(fields, &columns.names[at_columns[0]], &found);
                }
                _ => {}
            }
        }
        self.set_open_year();
        self.notation = self.options.notation();
        for (index, text) in &columns.constants {
            // Without the metric, its year says nothing.
            let is_year = F::table().fields[*index].column == "impact_factor_year";
            let metric = columns.metric.filter(|_| is_year);
            let lacks_metric = metric.is_some_and(|metric| self.statement.is_null(metric));
            if self.statement.is_null(*index) && !lacks_metric {
                self.statement.mark_constant(*index);
                self.read_text(*index, text);
            }
        }
    }

    /// Empties the fields of an object that is null.
    fn read_object(&mut self, fields: &[usize], path: &str, cells: &[&TableCell]) {
        for cell in cells {
            if cell.json.is_none() && cell.text.is_empty() {
                fields
                    .iter()
                    .for_each(|index| self.statement.set_null(*index));
            } else {
                let found = cell.json_type().unwrap_or(JsonType::Text);
                let message = message!("is {found}; write an object");
                self.faults.push_value(&path, &cell.text, message);
            }
        }
    }

    /// Reports columns of one header that differ in the row, unless they are joined to a list.
    fn compare_equal_columns(&mut self, columns: &Columns<'_>, cells: &[TableCell]) -> Option<()> {
        let several = columns.sources.iter().filter(|(_, at)| at.len() > 1);
        for (meaning, at_columns) in several {
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

    /// Reads the cell of the column `deleted`.
    fn read_deleted(&mut self, cell: &TableCell) -> bool {
        let is_flag = match &cell.json {
            Some(json) => json.is_boolean(),
            None => cell.fault.is_none() && self.notation.container != Container::Json,
        };
        match parse_flag(&cell.text) {
            Some(is_deleted) if is_flag => is_deleted,
            None if cell.is_blank() && cell.json.is_none() => false,
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
    pub(super) fn read_cells(&mut self, fields: &[usize], cells: &[&TableCell]) {
        let field = &F::table().fields[fields[0]];
        let Some(first) = cells.first() else {
            return fields
                .iter()
                .for_each(|index| self.statement.set_null(*index));
        };
        self.notation.is_number = first.is_number;
        if fields.len() == 1 && field.kind.is_list() {
            return self.read_list(fields[0], cells);
        }
        match (self.text_of(first, fields), fields) {
            (None, _) => {}
            (Some(_), [index, url]) if names_link::<F>(fields) => {
                self.read_linked(*index, *url, first);
            }
            (Some(text), [index]) => self.read_text(*index, &text),
            (Some(text), _) => self.read_parts(fields, &text),
        }
    }

    /// Returns the text of a cell for `fields`, or reports its fault.
    fn text_of<'c>(&mut self, cell: &'c TableCell, fields: &[usize]) -> Option<Cow<'c, str>> {
        let field = &F::table().fields[fields[0]];
        let mut words = self.options.words_of(&field.column);
        let fault = cell
            .type_fault(field.kind, fields.len() > 1)
            .filter(|_| !words.any(|word| word.is(&cell.text)));
        let is_open = self.notation.is_loose && field.kind == ValueKind::Date;
        let text = match (fault, &cell.part_of_date) {
            (Some(fault), _) => Err(fault),
            (None, Some(part)) if is_open => Ok(part.into()),
            _ => cell.text_for(field),
        };
        text.map_err(|message| self.faults.push_value(&field.column, &cell.text, message))
            .ok()
    }

    /// Returns the items of a text that is a list as in a program, if the file may have such texts.
    pub(super) fn listed(&self, text: &str) -> Option<Vec<String>> {
        listed(text).filter(|_| self.notation.is_loose)
    }

    /// Sets the year of a start that is not fixed, if the row has no other.
    pub(super) fn set_open_year(&mut self) {
        if let Some(year) = self.open_year
            && let Some(index) = F::table().index_of("year")
            && self.statement.is_null(index)
        {
            self.read_text(index, &year.to_string());
        }
    }

    /// Adds a warning about a value that is not taken as it stands.
    pub(super) fn warn(&mut self, index: usize, value: &str, message: impl Into<Message>) {
        let column = &F::table().fields[index].column;
        self.faults.warn_value(column, value, message);
    }

    /// Reads the items of all cells as a list.
    fn read_list(&mut self, index: usize, cells: &[&TableCell]) {
        let column = &F::table().fields[index].column;
        let mut items: Vec<Value> = Vec::new();
        for cell in cells {
            let Some(text) = self.text_of(cell, &[index]) else {
                return;
            };
            match self.items_of(column, cell, &text) {
                Ok(found) => items.extend(found),
                Err(message) => return self.faults.push_value(column, &text, message),
            }
        }
        let items = items.into_iter().filter_map(|item| match item {
            Value::String(text) => Some(self.meaning_of(column, &text)?.into()),
            other => Some(other),
        });
        let items: Vec<Value> = items.filter(|item| !is_empty(item)).collect();
        self.statement
            .read(index, column, self.faults, |field, reader| {
                field.read_json(Value::Array(items), reader);
            });
    }

    /// Returns the items of a cell with this text. Blanks around a separator of the source belong to no item. In the lists
    /// of an export they do.
    fn items_of(&self, column: &str, cell: &TableCell, text: &str) -> Result<Vec<Value>, Message> {
        let separator = self.options.list_separator.as_deref();
        Ok(match (&cell.json, self.listed(text), separator) {
            _ if text.is_empty() => Vec::new(),
            (Some(Value::Array(items)), ..) => items.clone(),
            (Some(other), ..) => vec![other.clone()],
            (None, Some(items), _) => items.into_iter().map(Value::from).collect(),
            (.., Some(separator)) => {
                let items = split_at(text, separator)?;
                items.map(|item| item.trim().into()).collect()
            }
            // A word may mean that an item is empty.
            _ if self.options.words_of(column).next().is_some() => {
                split_at(text, ITEM_SEPARATOR)?.map(Value::from).collect()
            }
            _ => split_items(text)?.map(Value::from).collect(),
        })
    }

    /// Reads one text as one field.
    pub(super) fn read_text(&mut self, index: usize, text: &str) {
        let field = &F::table().fields[index];
        let plain = match self.meaning_of(&field.column, text) {
            Some(text) => self.normalize(index, text),
            None => Some(Cow::Borrowed("")),
        };
        let Some(plain) = plain else { return };
        if plain.is_empty() {
            return self.statement.set_null(index);
        }
        let is_json = self.notation.container == Container::Json;
        self.statement
            .read(index, &field.column, self.faults, |value, reader| {
                if is_json && field.kind == ValueKind::Text {
                    value.read_json(Value::String(plain.into_owned()), reader);
                } else {
                    value.read_csv(&plain, reader);
                }
            });
    }

    /// Returns the [`meaning_of`](ReadOptions::meaning_of) a text, and counts it if it is empty.
    pub(super) fn meaning_of<'t>(&mut self, column: &str, text: &'t str) -> Option<&'t str>
    where
        'r: 't,
    {
        let meaning = self.options.meaning_of(column, text);
        if meaning.is_none() {
            let effect = OptionEffect::Emptied(column.to_owned(), text.trim().to_owned());
            self.faults.count(effect);
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
        let notation = self.notation.of_field(field);
        if notation.is_price && notation.container == Container::OldSheet && !text.is_empty() {
            let message = "the currency of a price in an .xls or .ods file is not known; save the file as .xlsx";
            self.faults.push_value(&field.column, text, message);
            return None;
        }
        if is_loose && notation.is_price && names_other_currency(text) {
            self.warn(index, text, "names another currency, so it counts as empty");
            return Some(Cow::Borrowed(""));
        }
        let normalized = match field.kind {
            ValueKind::Date if is_loose => self.read_date(index, text).map(Cow::Owned),
            kind => normalize(kind, text, &notation),
        };
        normalized
            .map_err(|message| self.faults.push_value(&field.column, text, message))
            .ok()
    }
}

/// Reads the cell of an id. An empty one is `None`.
fn read_id(cell: &TableCell) -> Result<Option<Id>, Message> {
    let notation = Notation {
        is_number: cell.is_number,
        ..Notation::default()
    };
    let fault = cell.fault.clone();
    if let Some(fault) = fault.or_else(|| cell.type_fault(ValueKind::Integer, false)) {
        return Err(fault);
    }
    let text = normalize(ValueKind::Integer, &cell.text, &notation)?;
    if text.is_empty() {
        return Ok(None);
    }
    let id = text.parse::<Id>();
    id.map(Some)
        .map_err(|error| message!("{error}, without zeros before it"))
}

/// Returns the cells of columns: of one column its cell, and of several those that are not blank.
fn filled_cells<'c>(
    cells: &'c [TableCell],
    columns: &'c [usize],
) -> impl Iterator<Item = &'c TableCell> {
    columns
        .iter()
        .filter_map(|at| cells.get(*at))
        .filter(|cell| columns.len() == 1 || !cell.is_blank())
}

pub(super) fn is_issn(column: &str) -> bool {
    ISSN_COLUMNS.contains(&column)
}

/// Returns true if a column has a text and its link: `["name", "url"]`.
pub(super) fn names_link<F: Fields>(fields: &[usize]) -> bool {
    let last = fields.last().map(|index| &F::table().fields[*index]);
    fields.len() == 2 && last.is_some_and(|field| field.column == "url")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::findings::{FilePosition, Findings};

    use crate::model::{ConferenceFields, Fields, JournalFields};

    /// Returns the value that a cell gives a field, as JSON or as links, or the messages of its faults.
    fn shown<F: Fields>(name: &str, cell: &str) -> String {
        let position = FilePosition::new("f".into(), 1);
        let mut bad = Findings::default();
        let mut index = F::table().fields.iter();
        let index = index.position(|field| field.name == name).unwrap();
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
        let cases = cases![
            "city", "", "null";
            "city", " a ", r#"" a ""#;
            "city", "'=1", r#""=1""#;
            "city", "'tis", r#""'tis""#;
            "start_date", "2026-02-28", r#""2026-02-28""#;
            "start_date", "2026-02-29", "`2026-02-29` - write a date as YYYY-MM-DD, such as 2026-03-15";
            "start_date_status", "not_found", r#""not_found""#;
            "start_date_status", "Confirmed", r#""confirmed""#;
            "start_date_status", " NOT FOUND", r#""not_found""#;
            "start_date_status", "sure", "write one of";
            "year", "1900", "1900";
            "year", "2101", "from 1900 to 2100";
            "year", "2026.0", "2026";
            "year", "+2026", "from 1900 to 2100";
            "h_index", "0", "0";
            "h_index", "007", "write a whole number";
            "h_index", "9007199254740992", "write a whole number";
            "sjr", "4.20", "4.2";
            "sjr", "4,2", "has a decimal comma; write a decimal point, `4.2`";
            "sjr", "-1", "write a number from 0";
            "sjr", "NaN", "is not a number; leave the cell empty";
            "sjr", "1e999", "write a number from 0";
            "formats.oral", "TRUE", "true";
            "formats.oral", "false", "false";
            "formats.oral", "yes", "true";
            "formats.oral", "maybe", "write TRUE or FALSE";
            "publishing.access", "open", r#""open""#;
            "publishing.access", "Hybrid", r#""hybrid""#;
            "publishing.access", "gold", r#""open""#;
            "publishing.access", "green", "`subscription`, `hybrid`, `open`";
            "issn_print", "2434561x", r#""2434-561X""#;
            "issn_online", "3785955", r#""0378-5955""#;
            "issn_online", "24345610", r#""24345610""#;
            "abbv", "2434561x", r#""2434561x""#;
            "therapy_areas", "['a', \"b's\"]", "without brackets and quotes: `a; b's`";
            "therapy_areas", r#"["a","b"]"#, "without brackets and quotes: `a; b`";
            "therapy_areas", "['a']", "without brackets and quotes: `a`";
            "therapy_areas", "[a]", r#"["[a]"]"#;
            "organizations", r#"["A","B"]"#, "without brackets and quotes: `A; B`";
            "tags", "['T: A', 'T: B']", "without brackets and quotes: `T: A; T: B`";
            "therapy_areas", "a; b", r#"["a","b"]"#;
            "therapy_areas", "a;b", r#"["a;b"]"#;
            "therapy_areas", "'+a; b", r#"["+a","b"]"#;
            "therapy_areas", "a; ; b", "an item is empty";
            "therapy_areas", "a; ", "an item is empty";
            "tags", "Topic: A: B", "Tags([Label(\"Topic: A: B\")])";
            "organizations", "'-X", "Organizations([Label(\"-X\")])";
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
