//! A record's JSON as the cells of a flat table, with the columns of the CSV export (the contract, "GET /exports/{dataset}").

use std::sync::LazyLock;

use serde_json::Value;

use crate::model::{ConferenceFields, Dataset, Fields, JournalFields};

/// What separates the items of a list within a cell, as in the CSV export.
const ITEM_SEPARATOR: &str = "; ";

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Flag,
    /// A day, `YYYY-MM-DD`.
    Date,
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// A list of organizations; its cell has their names.
    Organizations,
    /// A list of tags; its cell has `Type: Name`.
    Tags,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The keys that lead to its value.
    pub path: Vec<String>,
    /// The type of its values.
    pub kind: Kind,
    /// Its meaning, in Markdown with backticks as the only markup.
    pub note: &'static str,
}

/// A value in a column.
#[derive(Clone, Debug, PartialEq)]
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
}

/// The columns of a dataset between `id` and `updated_at`.
pub fn columns(dataset: Dataset) -> &'static [Column] {
    static COLUMNS: LazyLock<[Vec<Column>; 2]> =
        LazyLock::new(|| [columns_of::<ConferenceFields>(), columns_of::<JournalFields>()]);
    &COLUMNS[dataset.index()]
}

fn columns_of<F: Fields>() -> Vec<Column> {
    let example = F::default();
    let kinds = example.values().into_iter().map(|value| match value.type_name() {
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "boolean" => Kind::Flag,
        "date" => Kind::Date,
        "list of strings" => Kind::Texts,
        "list of organizations" => Kind::Organizations,
        "list of tags" => Kind::Tags,
        _ => Kind::Text,
    });
    let fields = &F::table().fields;
    let path = |name: &str| name.split('.').map(str::to_owned).collect();
    let column = |(field, kind): (&'static crate::model::field::Field, Kind)| Column {
        name: field.column.clone(),
        path: path(&field.name),
        kind,
        note: &field.note,
    };
    fields.iter().zip(kinds).map(column).collect()
}

impl Column {
    /// The value that a record's JSON has for the column.
    pub fn value<'a>(&self, record: &'a Value) -> &'a Value {
        self.path.iter().fold(record, |object, key| &object[key.as_str()])
    }

    /// The cell of a record. What does not fit the column's type stands as its JSON text.
    pub fn cell(&self, record: &Value) -> Cell {
        let value = self.value(record);
        match (self.kind, value) {
            (_, Value::Null) => Cell::Null,
            (Kind::Flag, Value::Bool(flag)) => Cell::Flag(*flag),
            (Kind::Integer, Value::Number(number)) if number.is_i64() => {
                number.as_i64().map_or(Cell::Null, Cell::Integer)
            }
            (Kind::Number, Value::Number(number)) => number.as_f64().map_or(Cell::Null, Cell::Number),
            (_, Value::String(text)) => Cell::Text(text.clone()),
            (Kind::Texts | Kind::Organizations | Kind::Tags, Value::Array(items)) => {
                let labels: Vec<String> = items.iter().map(|item| self.label(item)).collect();
                if labels.is_empty() { Cell::Null } else { Cell::Text(labels.join(ITEM_SEPARATOR)) }
            }
            (_, other) => Cell::Text(other.to_string()),
        }
    }

    fn label(&self, item: &Value) -> String {
        let text = |key: &str| item[key].as_str().unwrap_or_default();
        match self.kind {
            Kind::Organizations => text("name").to_owned(),
            Kind::Tags => format!("{}: {}", text("type"), text("name")),
            _ => item.as_str().unwrap_or_default().to_owned(),
        }
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
            let column = columns(Dataset::Conferences).iter().find(|column| column.name == name).unwrap();
            assert_eq!(column.cell(&record), expected, "{name}");
        }
        let metric = columns(Dataset::Journals).iter().find(|column| column.name == "impact_factor").unwrap();
        assert_eq!(metric.cell(&json!({"impact_factor": 12})), Cell::Number(12.0));
    }
}
