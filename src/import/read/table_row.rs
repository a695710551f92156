//! A row of cells, as the values of a record.

use std::borrow::Cow;

use crate::import::read::address::address;
use crate::import::read::cells::{normalize, parse_flag};
use crate::import::read::column_name::column_letters;
use crate::import::read::columns::{ColumnMeaning, Columns};
use crate::import::read::mapped::{is_list, read_text, read_texts};
use crate::import::read::notation::Notation;
use crate::import::read::options::ReadOptions;
use crate::import::read::statement::Statement;
use crate::import::read::table_cell::TableCell;
use crate::import::report::faults::RowFaults;
use crate::import::rows::RowEdit;
use crate::model::field::Field;
use crate::model::id::NotAnId;
use crate::model::message::{Message, message};
use crate::model::value::{Json, ValueKind};
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
    let filled = cells.iter().rposition(|cell| !cell.is_blank()).map_or(0, |last| last + 1);
    if is_rectangular && (cells.len() < named || filled > width) {
        let actual = cells.len();
        let message = match filled {
            1 => message!("has one cell, but the header has {named}; if it is a note, leave an empty line above it"),
            _ => message!(
                "has {actual} cells, but the header has {named}; put cells that contain commas or line ends in quotes"
            ),
        };
        faults.push_row(None, message);
        return None;
    }
    for (at, cell) in cells.iter().enumerate() {
        let is_unnamed = columns.meanings.get(at).is_none_or(|column| *column == ColumnMeaning::Unnamed);
        if is_unnamed && !options.ignore_unknown && !cell.is_blank() {
            let letters = column_letters(at);
            let message = message!(
                "has a value in column {letters}, which has no name; name it, clear the cell, or read it with --map \
                 '={letters}=FIELD'"
            );
            faults.push_row(Some(&cell.text), message);
        }
    }
    let mut cells_of: Vec<(&ColumnMeaning, Vec<&TableCell<'_>>)> = Vec::with_capacity(columns.sources.len());
    for (meaning, at_columns) in &columns.sources {
        let found = at_columns.iter().filter_map(|at| cells.get(*at));
        let filled: Vec<&TableCell<'_>> = found.filter(|cell| at_columns.len() == 1 || !cell.is_blank()).collect();
        let is_joined = matches!(meaning, ColumnMeaning::Fields(fields) if fields.iter().all(|at| is_list(F::table().fields[*at].kind)));
        if let [first, rest @ ..] = &*filled
            && let Some(other) = rest.iter().find(|cell| !is_joined && cell.text != first.text)
        {
            let names: Vec<String> = at_columns.iter().map(|at| columns.name(*at)).collect();
            let message = message!(
                "the columns {} have one header, and differ here; ignore one of them, such as `HEADER#2`",
                names.join(" and ")
            );
            faults.push_row(Some(&other.text), message);
            return None;
        }
        cells_of.push((meaning, filled));
    }
    let none = TableCell::default();
    let cell_of = |wanted: &ColumnMeaning| {
        let (_, filled) = cells_of.iter().find(|(meaning, _)| *meaning == wanted)?;
        Some(filled.first().copied().unwrap_or(&none))
    };
    let is_deleted = cell_of(&ColumnMeaning::Deleted).is_some_and(|cell| read_deleted(cell, faults));
    // Without a column `id`, other fields identify the record. A row with an invalid id is read too, to report its other
    // faults.
    let id = cell_of(&ColumnMeaning::Id).map(|cell| read_id(cell, faults));
    if is_deleted {
        return (id != Some(None)).then(|| (id.flatten(), RowEdit::Remove));
    }
    let table = F::table();
    let mut statement = Box::new(Statement::new());
    let mut reader = statement.reader(faults);
    for (meaning, filled) in &cells_of {
        let ColumnMeaning::Fields(fields) = meaning else { continue };
        let field = &table.fields[fields[0]];
        let mut texts: Vec<Cow<'_, str>> = Vec::with_capacity(filled.len());
        for cell in filled {
            match cell_text(cell, field) {
                Ok(text) => texts.push(text),
                Err(message) => reader.faults.push_value(&field.column, &cell.text, message),
            }
        }
        if texts.len() < filled.len() {
            continue;
        }
        let notation = Notation { is_number: filled.first().is_some_and(|cell| cell.is_number), ..*notation };
        match &*texts {
            [] => fields.iter().for_each(|index| reader.set_null(*index)),
            texts => read_texts(fields, texts, filled, &notation, options, &mut reader),
        }
    }
    for (index, constant) in &columns.constants {
        if reader.is_empty(*index) {
            read_text(*index, constant, &Notation::default(), options, &mut reader);
        }
    }
    (id != Some(None)).then(|| (id.flatten(), RowEdit::Set(statement)))
}

/// Returns the text of a cell for a field, or the reason why it cannot be read.
fn cell_text<'c>(cell: &'c TableCell<'_>, field: &Field) -> Result<Cow<'c, str>, Message> {
    let (column, holds_text) = (field.column.as_str(), is_list(field.kind) || field.kind == ValueKind::Text);
    let is_nested = |item: &Json<'_>| matches!(item, Json::List(_) | Json::Object(_));
    if !is_list(field.kind) && cell.items.iter().flatten().any(is_nested) {
        return Err("is a list of lists or objects; ignore it, or map a list of texts".into());
    }
    let has_unit = cell.unit.as_ref().is_some_and(|unit| names_unit(column, unit));
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
        return Err(message!("is a number in the format `{format}`; format the cell as text, and enter what it shows"));
    }
    match &cell.link {
        Some(link) if column == "url" => address(&cell.text, link),
        _ => Ok(Cow::Borrowed(&cell.text)),
    }
}

/// Returns true if a word of the column name is the unit, such as `months` in `publishing_embargo_months`.
fn names_unit(column: &str, unit: &str) -> bool {
    let singular = |word: &str| word.strip_suffix('s').unwrap_or(word).to_lowercase();
    column.split('_').any(|word| singular(word) == singular(unit))
}

fn read_id(cell: &TableCell<'_>, faults: &mut RowFaults<'_>) -> Option<Id> {
    if let Some(fault) = &cell.fault {
        faults.push_value(&"id", &cell.text, fault.clone());
        return None;
    }
    let notation = Notation { is_number: cell.is_number, ..Notation::default() };
    match normalize(ValueKind::Integer, &cell.text, &notation) {
        Ok(text) if text.starts_with('0') && text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            let digits = text.trim_start_matches('0');
            faults.push_value(
                &"id",
                &cell.text,
                message!("begins with zeros, which ids do not have; write `{digits}`"),
            );
        }
        Ok(text) if text.is_empty() => faults.push(&"id", "is missing; give each row an id"),
        Ok(text) => match text.parse() {
            Ok(id) => return Some(id),
            Err(error @ NotAnId) => faults.push_value(&"id", &cell.text, message!("{error}")),
        },
        Err(message) => faults.push_value(&"id", &cell.text, message),
    }
    None
}

/// Parses the cell of the column `deleted`.
fn read_deleted(cell: &TableCell<'_>, faults: &mut RowFaults<'_>) -> bool {
    match parse_flag(&cell.text) {
        Some(is_deleted) if cell.fault.is_none() => is_deleted,
        None if cell.is_blank() => false,
        _ => {
            faults.push_value(&"deleted", &cell.text, "write TRUE to remove the row, or leave the cell empty");
            false
        }
    }
}
