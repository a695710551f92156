//! Converts cells to parameters and JSON, and results to cells.

use std::collections::BTreeMap;
use std::error::Error;

use bytes::BytesMut;
use postgres::Row as Answer;
use postgres::types::{Format, IsNull, ToSql, Type as SqlType};
use serde_json::json;

use super::session::Session;
use crate::pull::columns::Cell;
use crate::pull::sql::database::Database;
use crate::pull::sql::tables::{Row, SqlTable, Type};

/// Parameters are sent as text. The server converts them to the types of the statement.
impl ToSql for Cell {
    fn to_sql(&self, _: &SqlType, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Cell::Null => return Ok(IsNull::Yes),
            Cell::Text(text) => out.extend_from_slice(text.as_bytes()),
            other => out.extend_from_slice(json!(other).to_string().as_bytes()),
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

/// The cells of a row. Values of unknown types become null.
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
pub fn json_of(table: &SqlTable, rows: &[Row]) -> Cell {
    let names = || table.columns.iter().map(|(name, _)| *name);
    let objects: Vec<BTreeMap<&str, &Cell>> = rows.iter().map(|row| names().zip(row).collect()).collect();
    json!(objects).to_string().into()
}

/// A statement that writes the rows of a JSON array. Does not touch rows that are equal.
pub fn upsert(table: &SqlTable) -> String {
    let list = |columns: &[(&str, Type)], spell: &dyn Fn(&str, &str) -> String| {
        let spelled = columns.iter().map(|(name, kind)| spell(name, Session::type_name(*kind)));
        spelled.collect::<Vec<String>>().join(", ")
    };
    // A record's JSON is a string within the JSON, to keep its bytes.
    let read = |name: &str, kind: &str| format!("{name} {}", if kind == "json" { "text" } else { kind });
    let compared =
        |prefix: &str, name: &str, kind: &str| format!("{prefix}.{name}{}", if kind == "json" { "::text" } else { "" });
    let (name, names, all) = (&table.name, table.names(), &table.columns);
    let action = if table.values().is_empty() {
        "NOTHING".to_owned()
    } else {
        let sets = list(table.values(), &|name, _| format!("{name} = excluded.{name}"));
        let old = list(all, &|column, kind| compared(name, column, kind));
        let new = list(all, &|column, kind| compared("excluded", column, kind));
        format!("UPDATE SET {sets} WHERE ({old}) IS DISTINCT FROM ({new})")
    };
    format!(
        "INSERT INTO {name} ({names}) SELECT {} FROM json_to_recordset($1::text::json) AS r ({}) ON CONFLICT ({}) DO {action}",
        list(all, &|name, kind| format!("{name}::{kind}")),
        list(all, &read),
        list(&all[..table.keys], &|name, _| name.to_owned())
    )
}
