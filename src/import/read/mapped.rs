//! Texts of files as values of fields: with the words and empty texts of a recipe, and with lists.

use crate::import::read::notation::Notation;
use crate::import::read::options::ReadOptions;
use crate::import::read::parts::split_parts;
use crate::import::read::statement::StatementReader;
use crate::model::field::Field;
use crate::model::value::cell::{ITEM_SEPARATOR, split_at};
use crate::model::value::{Json, ValueKind};

/// Returns true if several columns with this field are joined.
pub(in crate::import) fn is_list(field: &Field) -> bool {
    matches!(field.kind, ValueKind::Texts | ValueKind::Links(_))
}

/// Reads the texts of a row for `fields`: several fields share the first text, and a list joins all texts.
pub(in crate::import) fn read_texts(
    fields: &[usize],
    texts: &[&str],
    notation: &Notation,
    options: &ReadOptions,
    reader: &mut StatementReader<'_, '_>,
) {
    let (Some(index), Some(text)) = (fields.first(), texts.first()) else { return };
    let field = reader.field(*index);
    if fields.len() > 1 {
        let text = options.meaning_of(&field.column, text).unwrap_or_default();
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
    let is_plain = texts.len() == 1 && options.list_separator.is_none() && !options.changes(&field.column);
    if !is_list(field) || is_plain {
        return read_text(*index, text, notation, options, reader);
    }
    let separator = options.list_separator.as_deref().unwrap_or(ITEM_SEPARATOR);
    let mut items: Vec<Json<'_>> = Vec::new();
    for text in texts {
        let found = match split_at(text, separator) {
            Ok(found) => found.map(str::trim).filter(|item| !item.is_empty()),
            Err(message) => return reader.faults.push_value(&field.column, text, message),
        };
        for item in found.filter_map(|item| options.meaning_of(&field.column, item)) {
            let item = Json::Text(item.into());
            if !items.contains(&item) {
                items.push(item);
            }
        }
    }
    reader.read_json(*index, Json::List(items), notation, &field.column);
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
    match options.meaning_of(&field.column, text) {
        Some(text) => {
            let notation = Notation { is_price: field.column.ends_with("_usd"), ..*notation };
            reader.read_csv(index, text, &notation, &field.column);
        }
        None => reader.set_null(index),
    }
}
