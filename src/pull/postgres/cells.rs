//! Cells as parameters, in results, and as the JSON of many rows.

use std::error::Error;

use bytes::BytesMut;
use postgres::Row as Answer;
use postgres::types::{Format, IsNull, ToSql, Type as SqlType};
use serde_json::{Map, Value};

use super::session::Session;
use crate::pull::columns::Cell;
use crate::pull::sql::database::{Dialect, Row, Type};
use crate::pull::sql::schema::Table;

/// A parameter is sent as a text, and the server reads it as the type that the statement needs.
impl ToSql for Cell {
    fn to_sql(&self, _: &SqlType, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Cell::Null | Cell::Bytes(_) => return Ok(IsNull::Yes),
            Cell::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
            Cell::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
            Cell::Flag(flag) => out.extend_from_slice(flag.to_string().as_bytes()),
            Cell::Text(text) => out.extend_from_slice(text.as_bytes()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &SqlType) -> bool {
        true
    }

    fn encode_format(&self, _: &SqlType) -> Format {
        Format::Text
    }

    postgres::types::to_sql_checked!();
}

/// The cells of a row. A value of a type that no copy has is null.
pub fn cells(row: &Answer) -> Row {
    let cell = |(at, kind): (usize, SqlType)| match kind {
        SqlType::INT8 => row.try_get(at).ok().flatten().map(Cell::Integer),
        SqlType::BOOL => row.try_get(at).ok().flatten().map(Cell::Flag),
        SqlType::FLOAT8 => row.try_get(at).ok().flatten().map(Cell::Number),
        SqlType::BYTEA => row.try_get(at).ok().flatten().map(Cell::Bytes),
        _ => row.try_get(at).ok().flatten().map(Cell::Text),
    };
    let kinds = row.columns().iter().map(|column| column.type_().clone());
    kinds.enumerate().map(|column| cell(column).unwrap_or(Cell::Null)).collect()
}

/// The JSON of rows, for the statement that [`upsert`] returns.
pub fn json_of(table: &Table, rows: Vec<Row>) -> Cell {
    let object = |row: Row| -> Value {
        let names = table.columns.iter().map(|(name, _)| (*name).to_owned());
        names.zip(row.into_iter().map(json_of_cell)).collect::<Map<_, _>>().into()
    };
    Value::from_iter(rows.into_iter().map(object)).to_string().into()
}

fn json_of_cell(cell: Cell) -> Value {
    match cell {
        Cell::Null | Cell::Bytes(_) => Value::Null,
        Cell::Integer(number) => number.into(),
        Cell::Number(number) => number.into(),
        Cell::Flag(flag) => flag.into(),
        Cell::Text(text) => text.into(),
    }
}

/// A statement that writes the rows of a JSON array. Rows that do not change are left as they are.
pub fn upsert(table: &Table) -> String {
    let list = |text: &dyn Fn(&str, Type) -> String| {
        let items: Vec<String> = table.columns.iter().map(|(name, kind)| text(name, *kind)).collect();
        items.join(", ")
    };
    // The record's JSON comes as a text within JSON, so that it stays as it is.
    let record = list(&|name, kind| match kind {
        Type::Json => format!("{name} text"),
        _ => format!("{name} {}", Session::type_name(kind)),
    });
    let select = list(&|name, kind| if kind == Type::Json { format!("{name}::json") } else { name.to_owned() });
    let compared = |prefix: &str| {
        list(&|name, kind| {
            if kind == Type::Json { format!("{prefix}.{name}::text") } else { format!("{prefix}.{name}") }
        })
    };
    let sets: Vec<String> = table.values().iter().map(|(name, _)| format!("{name} = excluded.{name}")).collect();
    let keys: Vec<&str> = table.columns[..table.keys].iter().map(|(name, _)| *name).collect();
    let (name, names, keys) = (&table.name, table.names(), keys.join(", "));
    let action = if sets.is_empty() {
        "NOTHING".to_owned()
    } else {
        let (sets, old, new) = (sets.join(", "), compared(name), compared("excluded"));
        format!("UPDATE SET {sets} WHERE ({old}) IS DISTINCT FROM ({new})")
    };
    format!(
        "INSERT INTO {name} ({names}) SELECT {select} FROM json_to_recordset($1::text::json) AS r ({record}) ON CONFLICT \
         ({keys}) DO {action}"
    )
}
