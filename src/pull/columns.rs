//! A record's JSON as the cells of a flat table, with the columns of the CSV export (the contract, "GET
//! /exports/{dataset}").

use serde::Serialize;
use serde_json::Value;

pub use crate::model::field::Field as Column;
use crate::model::{Dataset, Joined, ReferenceKind, ValueKind, parse_date};

/// The separator of list items within a cell, as in the CSV export.
const ITEM_SEPARATOR: &str = "; ";

/// A value in a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// No value.
    Null,
    /// A whole number.
    Integer(i64),
    /// Any number.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// A text.
    Text(String),
    /// Bytes that are not UTF-8. Only damaged databases return them.
    Bytes(Vec<u8>),
}

impl Cell {
    /// The whole number of the cell, if it is one.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Cell::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The text of the cell, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes of a text or of bytes; empty for other cells.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Cell::Text(text) => text.as_bytes(),
            Cell::Bytes(bytes) => bytes,
            _ => &[],
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::Text(text.into())
    }
}

/// The columns of a dataset between `id` and `updated_at`.
pub fn columns(dataset: Dataset) -> &'static [Column] {
    &dataset.table().fields
}

/// The value that a record's JSON has for a column.
pub fn value_of<'a>(column: &Column, record: &'a Value) -> &'a Value {
    column
        .name
        .split('.')
        .fold(record, |object, key| &object[key])
}

/// The cell of a record. A value whose type differs from the column's becomes null.
pub fn cell_of(column: &Column, record: &Value) -> Cell {
    let value = value_of(column, record);
    let cell = match column.kind {
        ValueKind::Flag => value.as_bool().map(Cell::Flag),
        ValueKind::Integer | ValueKind::Year => value.as_i64().map(Cell::Integer),
        ValueKind::Number => value.as_f64().map(Cell::Number),
        ValueKind::Date => value
            .as_str()
            .filter(|text| parse_date(text).is_ok())
            .map(Cell::from),
        ValueKind::Text | ValueKind::Choice(_) | ValueKind::DateStatus(_) => {
            value.as_str().map(Cell::from)
        }
        ValueKind::Texts | ValueKind::Links(_) => value
            .as_array()
            .filter(|items| !items.is_empty())
            .map(|items| {
                let labels = items
                    .iter()
                    .map(|item| label(column, item))
                    .joined(ITEM_SEPARATOR);
                Cell::Text(labels)
            }),
    };
    cell.unwrap_or(Cell::Null)
}

fn label(column: &Column, item: &Value) -> String {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    match column.kind {
        ValueKind::Links(ReferenceKind::Organization) => text("name").to_owned(),
        ValueKind::Links(ReferenceKind::Tag) => format!("{}: {}", text("type"), text("name")),
        _ => item.as_str().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_have_the_types_of_their_columns() {
        let record = json!({
            "id": 1, "name": "A", "year": 2026, "start_date": "2026-03-01", "therapy_areas": ["X", "Y"],
            "organizations": [{"id": 3, "name": "O"}], "tags": [{"id": 4, "type": "T", "name": "N"}],
            "formats": {"oral": true}, "city": null,
        });
        let cases = [
            ("name", Cell::Text("A".to_owned())),
            ("year", Cell::Integer(2026)),
            ("start_date", Cell::Text("2026-03-01".to_owned())),
            ("therapy_areas", Cell::Text("X; Y".to_owned())),
            ("organizations", Cell::Text("O".to_owned())),
            ("tags", Cell::Text("T: N".to_owned())),
            ("formats_oral", Cell::Flag(true)),
            ("formats_encore", Cell::Null),
            ("city", Cell::Null),
        ];
        for (name, expected) in cases {
            let mut column = columns(Dataset::Conferences).iter();
            let column = column.find(|column| column.column == name).unwrap();
            assert_eq!(cell_of(column, &record), expected, "{name}");
        }
        let mistyped = json!({
            "name": 5, "year": "2026", "start_date": "soon", "therapy_areas": "X", "organizations": {}, "formats": {"oral": 1},
        });
        assert!(
            columns(Dataset::Conferences)
                .iter()
                .all(|column| cell_of(column, &mistyped) == Cell::Null)
        );
        let metric = columns(Dataset::Journals)
            .iter()
            .find(|column| column.column == "impact_factor")
            .unwrap();
        assert_eq!(
            cell_of(metric, &json!({"impact_factor": 12})),
            Cell::Number(12.0)
        );
        assert_eq!(
            cell_of(metric, &json!({"impact_factor": 0})),
            Cell::Number(0.0)
        );
    }
}
