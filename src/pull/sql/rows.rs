//! Writing records into all of their tables, some at a time. A database writes each table in as few statements as it can.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::database::{Database, Dialect, Row, Search, Type};
use super::schema::{Links, Tables};
use crate::pull::columns::{Cell, Column, cell_of};
use crate::pull::error::PullError;
use crate::pull::tables::{items_of, linked, no_link};

/// The number of records that are written at once.
const WRITE_AT_ONCE: usize = 1000;

/// About how many bytes of JSON are written at once, if that is less.
const WRITE_BYTES: usize = 4 << 20;

/// The row of a record. `json` is the record's text.
pub fn row_of<D: Dialect>(tables: &Tables, id: i64, record: &Value, json: &str) -> Row {
    let mut row = vec![Cell::Integer(id)];
    row.extend(tables.columns.iter().map(|column| D::stored(column.kind.into(), cell_of(column, record))));
    let updated_at = record["updated_at"].as_str().map_or(Cell::Null, Cell::from);
    row.push(D::stored(Type::Time, updated_at));
    row.push(json.into());
    row
}

/// The rows that a record links to, by their keys as texts.
pub fn linked_of<D: Dialect>(columns: &[Column], links: &Links, record: &Value) -> BTreeMap<String, Row> {
    let text = |cell| D::stored(Type::Text, cell);
    let rows = items_of(columns, links.kind, record).filter_map(|item| {
        if links.kind.columns.is_empty() {
            return item.as_str().map(|name| vec![text(name.into())]);
        }
        let mut row = vec![Cell::Integer(item["id"].as_i64()?)];
        row.extend(links.kind.columns.iter().map(|name| match &item[*name] {
            Value::Null => Cell::Null,
            Value::String(value) => text(value.as_str().into()),
            other => text(other.to_string().into()),
        }));
        Some(row)
    });
    rows.map(|row| (key_of(&row[0]), row)).collect()
}

/// The key of a linked row as a text.
pub fn key_of(cell: &Cell) -> String {
    match cell {
        Cell::Integer(id) => id.to_string(),
        Cell::Text(name) => name.clone(),
        other => format!("{other:?}"),
    }
}

/// A query of the ids in a list, given as JSON by [`json_ids`] in the first parameter.
pub fn ids<D: Dialect>() -> String {
    keys::<D>(Type::Integer)
}

/// The JSON of a list of ids.
pub fn json_ids(ids: impl IntoIterator<Item = i64>) -> Cell {
    json_list(ids.into_iter().map(|id| vec![id]))
}

fn json_list<T: Into<Value>>(items: impl Iterator<Item = T>) -> Cell {
    Value::from_iter(items).to_string().into()
}

fn keys<D: Dialect>(kind: Type) -> String {
    format!("SELECT CAST(value ->> 0 AS {}) FROM {}($1)", D::type_name(kind), D::JSON_ITEMS)
}

/// Writes and removes records within one transaction.
#[derive(Debug)]
pub struct Writer<'a> {
    tables: &'a Tables,
    search: Search,
    /// The JSON of records to write; `None` for records to remove.
    waiting: BTreeMap<i64, Option<Box<str>>>,
    waiting_bytes: usize,
    /// The linked rows of each link table.
    linked: Vec<LinkedRows>,
}

/// The linked rows that a transaction has to do with.
#[derive(Clone, Debug, Default)]
struct LinkedRows {
    /// The rows that were written already, by key.
    written: BTreeMap<String, Row>,
    /// The keys that lost a link.
    unlinked: BTreeSet<String>,
}

/// The links of some records.
#[derive(Clone, Debug, Default)]
struct Found {
    pairs: Vec<(i64, Cell)>,
    rows: BTreeMap<String, Row>,
}

impl<'a> Writer<'a> {
    /// A writer of a dataset's tables.
    pub fn new(tables: &'a Tables, search: Search) -> Writer<'a> {
        let linked = vec![LinkedRows::default(); tables.links.len()];
        Writer { tables, search, waiting: BTreeMap::new(), waiting_bytes: 0, linked }
    }

    /// Writes a record, at once or with later ones.
    pub fn put<D: Database>(&mut self, database: &mut D, id: i64, json: Box<str>) -> Result<(), PullError> {
        self.waiting_bytes += json.len();
        self.add(database, id, Some(json))
    }

    /// Removes a record, at once or with later ones.
    pub fn remove<D: Database>(&mut self, database: &mut D, id: i64) -> Result<(), PullError> {
        self.add(database, id, None)
    }

    fn add<D: Database>(&mut self, database: &mut D, id: i64, json: Option<Box<str>>) -> Result<(), PullError> {
        self.waiting.insert(id, json);
        if self.waiting.len() < WRITE_AT_ONCE && self.waiting_bytes < WRITE_BYTES {
            return Ok(());
        }
        self.write(database)
    }

    /// Writes the rest, and removes linked rows that have lost their last link.
    pub fn finish<D: Database>(mut self, database: &mut D) -> Result<(), PullError> {
        self.write(database)?;
        for (links, linked) in self.tables.links.iter().zip(self.linked) {
            let (table, own) = (&links.rows.name, links.kind.own_key());
            let keys_of = keys::<D>(links.rows.columns[0].1);
            let no_link = no_link(links.kind, &format!("{table}.{own}"));
            let sweep = format!("DELETE FROM {table} WHERE {own} IN ({keys_of}){no_link}");
            if !linked.unlinked.is_empty() {
                database.query(&sweep, &[json_list(linked.unlinked.into_iter().map(|key| vec![key]))])?;
            }
        }
        Ok(())
    }

    fn write<D: Database>(&mut self, database: &mut D) -> Result<(), PullError> {
        let tables = self.tables;
        let touched = json_ids(self.waiting.keys().copied());
        let (mut records, mut found) = (BTreeMap::new(), vec![Found::default(); tables.links.len()]);
        for (id, json) in std::mem::take(&mut self.waiting) {
            let row = json.map(|json| read_record::<D>(tables, id, &json, &mut found)).transpose()?;
            records.insert(id, row);
        }
        self.waiting_bytes = 0;
        if records.is_empty() {
            return Ok(());
        }
        for ((links, found), linked) in tables.links.iter().zip(&found).zip(&mut self.linked) {
            let pairs = found.pairs.iter().map(|(id, key)| Value::from_iter([Value::from(*id), key_of(key).into()]));
            let gone = database.query(&unlink::<D>(links), &[touched.clone(), json_list(pairs)])?;
            linked.unlinked.extend(gone.iter().map(|row| key_of(&row[0])));
        }
        database.write_records(tables, records, self.search)?;
        for ((links, found), linked) in tables.links.iter().zip(found).zip(&mut self.linked) {
            let is_new = |(key, row): &(&String, &Row)| linked.written.get(*key) != Some(row);
            database.write_rows(&links.rows, found.rows.iter().filter(is_new).map(|(_, row)| row.clone()).collect())?;
            linked.written.extend(found.rows);
            let pairs = found.pairs.into_iter().map(|(id, key)| vec![Cell::Integer(id), key]);
            database.write_rows(&links.pairs, pairs.collect())?;
        }
        Ok(())
    }
}

/// Reads a record. Returns its row, and adds its links to those found.
fn read_record<D: Dialect>(tables: &Tables, id: i64, json: &str, found: &mut [Found]) -> Result<Row, PullError> {
    let record: Value = serde_json::from_str(json)
        .map_err(|error| PullError::failed(format!("the service sent a record that cannot be read ({error})")))?;
    for (links, found) in tables.links.iter().zip(found) {
        for (key, row) in linked_of::<D>(tables.columns, links, &record) {
            found.pairs.push((id, row[0].clone()));
            found.rows.insert(key, row);
        }
    }
    Ok(row_of::<D>(tables, id, &record, json))
}

/// A statement that removes the links of records (`$1`) except some (`$2`), and returns the keys of the removed links.
fn unlink<D: Dialect>(links: &Links) -> String {
    let (table, items) = (&links.pairs.name, D::JSON_ITEMS);
    let [(id, id_type), (key, key_type)] = [0, 1].map(|at| links.pairs.columns[at]);
    let (id_type, key_type) = (D::type_name(id_type), D::type_name(key_type));
    format!(
        "DELETE FROM {table} WHERE {id} IN ({}) AND ({id}, {key}) NOT IN (SELECT CAST(value ->> 0 AS {id_type}), \
         CAST(value ->> 1 AS {key_type}) FROM {items}($2)) RETURNING {key}",
        ids::<D>()
    )
}

/// Removes all linked rows without a link: rows of names that no record of the license has are not kept.
pub fn sweep_all<D: Database>(database: &mut D) -> Result<(), PullError> {
    linked().iter().try_for_each(|kind| {
        let own = format!("{}.{}", kind.table, kind.own_key());
        database.batch(&format!("DELETE FROM {} WHERE true{}", kind.table, no_link(kind, &own)))
    })
}
