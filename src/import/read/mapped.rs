//! Texts of files as values of fields: with the words and empty texts of a recipe, and with lists.

use crate::import::read::cells::normalize;
use crate::import::read::notation::Notation;
use crate::import::read::options::ReadOptions;
use crate::import::read::parts::split_parts;
use crate::import::read::statement::StatementReader;
use crate::model::field::{Field, FieldTable};
use crate::model::value::cell::ITEM_SEPARATOR;
use crate::model::value::{Json, ValueKind};

/// Returns true if several columns with this field are joined.
pub(in crate::import) fn is_list(field: &Field) -> bool {
    matches!(field.kind, ValueKind::Texts | ValueKind::Links(_))
}

/// Reads the texts of a row for `fields`: several fields share the first text, and a list joins all texts.
pub(in crate::import) fn read_texts(
    table: &'static FieldTable,
    fields: &[usize],
    texts: &[&str],
    notation: &Notation,
    options: &ReadOptions,
    reader: &mut StatementReader<'_, '_>,
) {
    let (Some(index), Some(text)) = (fields.first(), texts.first()) else { return };
    let field = &table.fields[*index];
    if fields.len() > 1 {
        let text = options.meaning_of(&field.column, text).unwrap_or_default();
        let parts: Vec<&Field> = fields.iter().map(|index| &table.fields[*index]).collect();
        return match split_parts(&parts, text, notation.dates, options) {
            Ok(texts) => {
                for (index, text) in fields.iter().zip(texts) {
                    read_text(table, *index, &text, notation, options, reader);
                }
            }
            Err(message) => reader.faults.push_value(&field.column, text, message),
        };
    }
    let is_plain = texts.len() == 1 && options.list_separator.is_none() && !options.changes(&field.column);
    if !is_list(field) || is_plain {
        return read_text(table, *index, text, notation, options, reader);
    }
    let mut items: Vec<Json<'_>> = Vec::new();
    for text in texts {
        match normalize(field.kind, text, notation) {
            Ok(_) => add_items(&mut items, &field.column, text, options),
            Err(message) => return reader.faults.push_value(&field.column, text, message),
        }
    }
    reader.read_json(*index, Json::List(items), notation, &field.column);
}

/// Adds the items of a text to a list, each once.
fn add_items<'t>(items: &mut Vec<Json<'t>>, column: &str, text: &'t str, options: &'t ReadOptions) {
    let separator = options.list_separator.as_deref().unwrap_or(ITEM_SEPARATOR);
    let texts = text.split(separator).map(str::trim).filter(|item| !item.is_empty());
    for item in texts.filter_map(|item| options.meaning_of(column, item)) {
        let item = Json::Text(item.into());
        if !items.contains(&item) {
            items.push(item);
        }
    }
}

/// Reads one text as one field.
pub(in crate::import) fn read_text(
    table: &'static FieldTable,
    index: usize,
    text: &str,
    notation: &Notation,
    options: &ReadOptions,
    reader: &mut StatementReader<'_, '_>,
) {
    let field = &table.fields[index];
    match options.meaning_of(&field.column, text) {
        Some(text) => {
            let notation = Notation { is_price: field.column.ends_with("_usd"), ..*notation };
            reader.read_csv(index, text, &notation, &field.column);
        }
        None => reader.set_null(index),
    }
}
