//! Writing a batch of records into all of their tables, in as many statements as there are tables.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::schema::{cells, key_type};
use super::session::Session;
use crate::model::Dataset;
use crate::model::time::{parse_date, parse_time};
use crate::model::value::ValueKind;
use crate::pull::columns::{Cell, Column, cell_of, columns};
use crate::pull::entry::Entry;
use crate::pull::error::PullError;
use crate::pull::tables::{Linked, items_of, links, no_link, one};

/// A row as JSON, by column.
pub type RowJson = Map<String, Value>;

/// The statements of a dataset.
#[derive(Debug)]
pub struct Tables {
    /// The dataset.
    pub dataset: Dataset,
    /// Its columns.
    pub columns: &'static [Column],
    /// The kinds of rows that its records link to.
    pub links: Vec<Links>,
    /// Writes records, of a JSON array of rows.
    upsert: String,
}

/// The statements of a link table, and of the table that it links to.
#[derive(Debug)]
pub struct Links {
    /// The kind of rows that it links to.
    pub kind: &'static Linked,
    /// Its name.
    pub table: String,
    /// Removes the links of records (`$1`) but for those that are given (`$2` and `$3`); returns the keys.
    unlink: String,
    /// Writes linked rows, of a JSON array of rows.
    upsert: String,
    /// Writes links (`$1` and `$2`).
    link: String,
    /// Removes linked rows (`$1`) that have no link.
    sweep: String,
}

impl Tables {
    /// Those of a dataset.
    pub fn new(dataset: Dataset) -> Tables {
        let links = links(dataset).into_iter().map(|(kind, table)| Links::new(dataset, kind, table)).collect();
        let cells = cells(dataset);
        let names: Vec<&str> = cells.iter().map(|(name, _)| *name).collect();
        Tables { dataset, columns: columns(dataset), links, upsert: upsert(dataset.as_str(), &cells, &names[1..]) }
    }
}

impl Links {
    fn new(dataset: Dataset, kind: &'static Linked, table: String) -> Links {
        let (one, key, key_type, own) = (one(dataset), kind.key, key_type(kind), kind.own_key());
        let mut cells = vec![(own, key_type)];
        cells.extend(kind.columns.iter().map(|name| (*name, "text")));
        Links {
            kind,
            unlink: format!(
                "DELETE FROM {table} l WHERE {one}_id = ANY($1::bigint[]) AND NOT EXISTS (SELECT 1 FROM \
                 unnest($2::bigint[], $3::text[]) n (one, key) WHERE n.one = l.{one}_id AND n.key::{key_type} = l.{key}) \
                 RETURNING {key}::text"
            ),
            upsert: upsert(kind.table, &cells, &kind.columns),
            link: format!(
                "INSERT INTO {table} SELECT one, key::{key_type} FROM unnest($1::bigint[], $2::text[]) n (one, key) ON \
                 CONFLICT DO NOTHING"
            ),
            sweep: format!(
                "DELETE FROM {0} WHERE {own} = ANY($1::text[]::{key_type}[]){1}",
                kind.table,
                no_link(kind, &format!("{}.{own}", kind.table))
            ),
            table,
        }
    }
}

/// A statement that writes rows of a JSON array, the first column being the key. Rows that are there already are left as they
/// are where nothing differs.
fn upsert(table: &str, cells: &[(&str, &str)], values: &[&str]) -> String {
    let names: Vec<&str> = cells.iter().map(|(name, _)| *name).collect();
    // The record's JSON comes as a text within JSON, so that it stays as it is.
    let read = |(name, sql_type): &(&str, &str)| match *sql_type {
        "json" => format!("{name} text"),
        _ => format!("{name} {sql_type}"),
    };
    let select: Vec<String> = cells
        .iter()
        .map(|(name, kind)| if *kind == "json" { format!("{name}::json") } else { (*name).to_owned() })
        .collect();
    let action = if values.is_empty() {
        "NOTHING".to_owned()
    } else {
        let sets: Vec<String> = values.iter().map(|name| format!("{name} = excluded.{name}")).collect();
        let compared: Vec<String> = cells
            .iter()
            .map(|(name, kind)| if *kind == "json" { format!("{name}::text") } else { (*name).to_owned() })
            .collect();
        let prefixed = |prefix: &str| {
            let all: Vec<String> = compared.iter().map(|name| format!("{prefix}.{name}")).collect();
            all.join(", ")
        };
        format!(
            "UPDATE SET {} WHERE ({}) IS DISTINCT FROM ({})",
            sets.join(", "),
            prefixed(table),
            prefixed("excluded")
        )
    };
    format!(
        "INSERT INTO {table} ({}) SELECT {} FROM json_to_recordset($1::text::json) AS r ({}) ON CONFLICT ({}) DO {action}",
        names.join(", "),
        select.join(", "),
        cells.iter().map(read).collect::<Vec<_>>().join(", "),
        names[0]
    )
}

/// The cells of a record as its row has them, but for `json`. What does not fit a column's type is null there.
pub fn row_of(columns: &[Column], id: i64, record: &Value) -> RowJson {
    let mut row = Map::new();
    row.insert("id".to_owned(), id.into());
    for column in columns {
        let value = match (column.kind, cell_of(column, record)) {
            (ValueKind::Integer | ValueKind::Year, Cell::Integer(number)) => number.into(),
            (ValueKind::Number, Cell::Number(number)) => number.into(),
            (ValueKind::Flag, Cell::Flag(flag)) => flag.into(),
            (ValueKind::Date, Cell::Text(text)) if parse_date(&text).is_ok() => text.into(),
            (ValueKind::Integer | ValueKind::Year | ValueKind::Number | ValueKind::Flag | ValueKind::Date, _) => {
                Value::Null
            }
            (ValueKind::Text | ValueKind::Choice(_) | ValueKind::DateStatus(_), Cell::Text(text))
            | (ValueKind::Texts | ValueKind::Links(_), Cell::Text(text)) => storable(&text).into(),
            (_, Cell::Null | Cell::Integer(_) | Cell::Number(_) | Cell::Flag(_)) => Value::Null,
        };
        row.insert(column.column.clone(), value);
    }
    // As PostgreSQL words it in JSON, so that it can be compared.
    let updated_at = record["updated_at"].as_str().and_then(|text| parse_time(text).ok());
    let updated_at = updated_at.map(|time| time.to_string().replace('Z', "+00:00"));
    row.insert("updated_at".to_owned(), updated_at.into());
    row
}

/// The linked rows that a record names, by their keys as texts.
pub fn linked_of(columns: &[Column], kind: &Linked, record: &Value) -> BTreeMap<String, RowJson> {
    let rows = items_of(columns, kind, record).filter_map(|item| {
        let key =
            if kind.columns.is_empty() { item.as_str().map(storable)?.into() } else { item["id"].as_i64()?.into() };
        let text = match &key {
            Value::String(name) => name.clone(),
            number => number.to_string(),
        };
        let mut row = Map::new();
        row.insert(kind.own_key().to_owned(), key);
        for name in &kind.columns {
            let value = match &item[*name] {
                Value::Null => Value::Null,
                Value::String(text) => storable(text).into(),
                other => storable(&other.to_string()).into(),
            };
            row.insert((*name).to_owned(), value);
        }
        Some((text, row))
    });
    rows.collect()
}

/// A text without NUL, the one character that PostgreSQL cannot keep.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A record's JSON, read.
pub fn read(json: &str) -> Result<Value, PullError> {
    serde_json::from_str(json)
        .map_err(|error| PullError::failed(format!("the service sent a record that cannot be read ({error})")))
}

/// Writes batches within one transaction.
#[derive(Debug)]
pub struct Writer<'a> {
    tables: &'a Tables,
    /// Keys that lost a link, for each of the tables' links.
    unlinked: Vec<BTreeSet<String>>,
}

impl<'a> Writer<'a> {
    /// A writer of the tables.
    pub fn new(tables: &'a Tables) -> Writer<'a> {
        Writer { tables, unlinked: vec![BTreeSet::new(); tables.links.len()] }
    }

    /// Writes some records and removes others; no id stands twice.
    ///
    /// # Errors
    /// When a record cannot be read, or the database fails.
    pub fn write(&mut self, session: &mut Session, puts: &[&Entry], removed: &[i64]) -> Result<(), PullError> {
        if puts.is_empty() && removed.is_empty() {
            return Ok(());
        }
        let (dataset, columns) = (self.tables.dataset, self.tables.columns);
        let records = puts.iter().map(|entry| read(&entry.json)).collect::<Result<Vec<_>, _>>()?;
        let rows = puts.iter().zip(&records).map(|(entry, record)| {
            let mut row = row_of(columns, entry.id, record);
            row.insert("json".to_owned(), (*entry.json).into());
            row
        });
        write_rows(session, &self.tables.upsert, rows.collect())?;
        let touched: Vec<i64> = puts.iter().map(|entry| entry.id).chain(removed.iter().copied()).collect();
        for (links, unlinked) in self.tables.links.iter().zip(&mut self.unlinked) {
            let (mut ids, mut keys, mut linked) = (Vec::new(), Vec::new(), BTreeMap::new());
            for (entry, record) in puts.iter().zip(&records) {
                for (key, row) in linked_of(columns, links.kind, record) {
                    ids.push(entry.id);
                    keys.push(key.clone());
                    linked.insert(key, row);
                }
            }
            let gone = session.query(&links.unlink, &[&touched, &ids, &keys])?;
            unlinked.extend(gone.iter().map(|row| row.get::<_, String>(0)));
            if !keys.is_empty() {
                write_rows(session, &links.upsert, linked.into_values().collect())?;
                session.execute(&links.link, &[&ids, &keys])?;
            }
        }
        if !removed.is_empty() {
            session.execute(&format!("DELETE FROM {dataset} WHERE id = ANY($1)"), &[&removed])?;
        }
        Ok(())
    }

    /// Removes linked rows that have lost their last link: what no record of the license carries is not kept.
    ///
    /// # Errors
    /// When the database fails.
    pub fn sweep(self, session: &mut Session) -> Result<(), PullError> {
        for (links, unlinked) in self.tables.links.iter().zip(self.unlinked) {
            if !unlinked.is_empty() {
                session.execute(&links.sweep, &[&Vec::from_iter(unlinked)])?;
            }
        }
        Ok(())
    }
}

fn write_rows(session: &mut Session, statement: &str, rows: Vec<RowJson>) -> Result<(), PullError> {
    if rows.is_empty() {
        return Ok(());
    }
    let rows = Value::from_iter(rows).to_string();
    session.execute(statement, &[&rows])
}
