//! Texts of files as values of fields: with the words and empty texts of a recipe, and with lists.

use std::borrow::Cow;

use crate::import::read::notation::Notation;
use crate::import::read::options::ReadOptions;
use crate::import::read::parts::split_parts;
use crate::import::read::statement::StatementReader;
use crate::import::read::table_cell::TableCell;
use crate::model::field::Field;
use crate::model::value::cell::{ITEM_SEPARATOR, split_at};
use crate::model::value::{Json, ValueKind};

/// Returns true if several columns with a field of this kind are joined.
pub(in crate::import) fn is_list(kind: ValueKind) -> bool {
    matches!(kind, ValueKind::Texts | ValueKind::Links(_))
}

/// Reads the cells of a row for `fields`: several fields share the first text, and a list joins all cells.
pub(in crate::import) fn read_texts(
    fields: &[usize],
    texts: &[Cow<'_, str>],
    cells: &[&TableCell<'_>],
    notation: &Notation,
    options: &ReadOptions,
    reader: &mut StatementReader<'_, '_>,
) {
    let (Some(index), Some(text)) = (fields.first(), texts.first()) else { return };
    let field = reader.field(*index);
    if fields.len() > 1 {
        let text = options.read_meaning(&field.column, text).unwrap_or_default();
        let parts: Vec<&Field> = fields.iter().map(|index| reader.field(*index)).collect();
        return match split_parts(&parts, text, notation.dates, options) {
            Ok(texts) => {
                for (index, text) in fields.iter().zip(texts) {
                    read_text(*index, &text, notation, options, reader);
                }
            }
            Err(message) => reader.faults.push_value(&field.column, text, message),
        };
    }
    let has_items = cells.iter().any(|cell| cell.items.is_some());
    let is_plain =
        texts.len() == 1 && options.list_separator.is_none() && options.words_of(&field.column).next().is_none();
    if !is_list(field.kind) || is_plain && !has_items {
        return read_text(*index, text, notation, options, reader);
    }
    let separator = options.list_separator.as_deref().unwrap_or(ITEM_SEPARATOR);
    let mut items: Vec<Json<'_>> = Vec::new();
    for (text, cell) in texts.iter().zip(cells) {
        match (&cell.items, split_at(text, separator)) {
            (Some(found), _) => items.extend(found.iter().cloned()),
            (None, Ok(found)) => items.extend(found.map(|item| Json::Text(item.trim().into()))),
            (None, Err(message)) => return reader.faults.push_value(&field.column, text, message),
        }
    }
    let meant = |item| match item {
        Json::Text(text) => Some(Json::Text(options.read_meaning(&field.column, &text)?.to_owned().into())),
        other => Some(other),
    };
    let items = items.into_iter().filter_map(meant).filter(|item| !item.is_empty()).collect();
    reader.read_json(*index, Json::List(items), &field.column);
}

/// Reads one text as one field.
pub(in crate::import) fn read_text(
    index: usize,
    text: &str,
    notation: &Notation,
    options: &ReadOptions,
    reader: &mut StatementReader<'_, '_>,
) {
    let field = reader.field(index);
    match options.read_meaning(&field.column, text) {
        Some(text) => {
            let notation = Notation { is_price: field.column.ends_with("_usd"), ..*notation };
            reader.read_csv(index, text, &notation, &field.column);
        }
        None => reader.set_null(index),
    }
}
