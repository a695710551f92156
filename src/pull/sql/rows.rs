//! Writes records into all of their tables, in batches, and compares the derived tables with the records' JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use super::database::{Database, Reader};
use super::tables::{DatasetTables, LinkTable, LinkedKind, Row, Type, linked};
use crate::model::Joined;
use crate::pull::columns::{Cell, cell_of};
use crate::pull::error::{PullError, Result};

/// The most records of a batch.
const WRITE_AT_ONCE: usize = 1000;

/// The approximate limit of a batch in bytes of JSON.
const WRITE_BYTES: usize = 4 << 20;

/// The links of some records to rows of one kind.
#[derive(Clone, Default)]
pub struct FoundLinks {
    /// Pairs of a record's id and the key of a linked row.
    pub pairs: BTreeSet<(i64, String)>,
    /// The linked rows by key.
    pub rows: BTreeMap<String, Row>,
}

/// The row of a record with the text `json`.
pub fn row_of<D: Database>(tables: &DatasetTables, id: i64, record: &Value, json: &str) -> Row {
    let mut row = vec![Cell::Integer(id)];
    row.extend(
        tables
            .columns
            .iter()
            .map(|column| D::stored(column.kind.into(), cell_of(column, record))),
    );
    let updated_at = record["updated_at"].as_str().map_or(Cell::Null, Cell::from);
    row.extend([D::stored(Type::Time, updated_at), json.into()]);
    row
}

/// Adds the links of a record to `found`, which has an item for each link table.
pub fn add_links<D: Database>(
    tables: &DatasetTables,
    id: i64,
    record: &Value,
    found: &mut [FoundLinks],
) {
    for (links, found) in tables.links.iter().zip(found) {
        for row in links
            .kind
            .items_of(tables.columns, record)
            .filter_map(|item| linked_row::<D>(links.kind, item))
        {
            let key = key_of(&row[0]);
            found.pairs.insert((id, key.clone()));
            found.rows.insert(key, row);
        }
    }
}

fn linked_row<D: Database>(kind: &LinkedKind, item: &Value) -> Option<Row> {
    let text = |value: &Value| match value {
        Value::Null => Cell::Null,
        Value::String(text) => D::stored(Type::Text, text.as_str().into()),
        other => D::stored(Type::Text, other.to_string().into()),
    };
    if kind.rows.values().is_empty() {
        return item.is_string().then(|| vec![text(item)]);
    }
    let key = Cell::Integer(item["id"].as_i64()?);
    Some(
        std::iter::once(key)
            .chain(
                kind.rows
                    .values()
                    .iter()
                    .map(|(name, _)| text(&item[*name])),
            )
            .collect(),
    )
}

/// The key of a linked row as a text.
pub fn key_of(cell: &Cell) -> String {
    match cell {
        Cell::Integer(id) => id.to_string(),
        Cell::Text(name) => name.clone(),
        other => format!("{other:?}"),
    }
}

/// A query of the rows in a parameter, a JSON array of arrays.
pub fn listed<D: Database>(parameter: &str, types: &[Type]) -> String {
    let column =
        |(at, kind): (usize, &Type)| format!("CAST(value ->> {at} AS {})", D::type_name(*kind));
    let columns = types.iter().enumerate().map(column).joined(", ");
    format!("SELECT {} FROM {}({parameter})", columns, D::JSON_ITEMS)
}

/// The parameter of [`listed`] for rows with one column.
pub fn list<T: Serialize>(items: impl IntoIterator<Item = T>) -> Cell {
    json!(items.into_iter().map(|item| [item]).collect::<Vec<_>>())
        .to_string()
        .into()
}

/// Writes and removes records within one transaction.
pub struct RecordWriter {
    tables: &'static DatasetTables,
    /// The JSON of records to write; `None` for records to remove.
    waiting: BTreeMap<i64, Option<Box<str>>>,
    waiting_bytes: usize,
    /// Whether links were removed, so that linked rows may have none.
    has_unlinked: bool,
}

impl RecordWriter {
    /// Writes to a dataset's tables, but not to its full-text index.
    pub fn new(tables: &'static DatasetTables) -> RecordWriter {
        RecordWriter {
            tables,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            has_unlinked: false,
        }
    }

    /// Adds a record to the batch, or the removal of an id. Writes a full batch.
    pub fn add<D: Database>(
        &mut self,
        database: &mut D,
        id: i64,
        json: Option<Box<str>>,
    ) -> Result<()> {
        self.waiting_bytes += json.as_ref().map_or(0, |json| json.len());
        self.waiting.insert(id, json);
        let is_full = self.waiting.len() >= WRITE_AT_ONCE || self.waiting_bytes >= WRITE_BYTES;
        if is_full {
            self.write(database)
        } else {
            Ok(())
        }
    }

    /// Writes the last batch, and removes linked rows without links.
    pub fn finish<D: Database>(mut self, database: &mut D) -> Result<()> {
        self.write(database)?;
        if self.has_unlinked {
            sweep(database)
        } else {
            Ok(())
        }
    }

    fn write<D: Database>(&mut self, database: &mut D) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        if waiting.is_empty() {
            return Ok(());
        }
        let touched = list(waiting.keys());
        let mut rows = Vec::with_capacity(waiting.len());
        let mut removed = Vec::new();
        let mut found = vec![FoundLinks::default(); self.tables.links.len()];
        for (id, json) in waiting {
            let Some(json) = json else {
                removed.push(id);
                continue;
            };
            let record = parse(&json)?;
            add_links::<D>(self.tables, id, &record, &mut found);
            rows.push(row_of::<D>(self.tables, id, &record, &json));
        }
        for (links, found) in self.tables.links.iter().zip(&mut found) {
            let held = pairs_of(database, links, &touched)?;
            let gone: Vec<&(i64, String)> = held.difference(&found.pairs).collect();
            if !gone.is_empty() {
                database.query(&unlink::<D>(links), &[json!(gone).to_string().into()])?;
                self.has_unlinked = true;
            }
            found.pairs.retain(|pair| !held.contains(pair));
        }
        database.write_rows(&self.tables.records, rows)?;
        if !removed.is_empty() {
            let ids = listed::<D>("$1", &[Type::Integer]);
            let delete = format!("DELETE FROM {} WHERE id IN ({ids})", self.tables.dataset);
            database.query(&delete, &[list(removed)])?;
        }
        for (links, FoundLinks { pairs, rows }) in self.tables.links.iter().zip(found) {
            let pairs = pairs
                .iter()
                .map(|(id, key)| vec![Cell::Integer(*id), rows[key][0].clone()])
                .collect();
            database.write_rows(&links.kind.rows, rows.into_values().collect())?;
            database.write_rows(&links.pairs, pairs)?;
        }
        Ok(())
    }
}

fn parse(json: &str) -> Result<Value> {
    serde_json::from_str(json).map_err(|error| {
        PullError::failed(format!(
            "the service sent a record that cannot be read ({error})"
        ))
    })
}

/// Reads the links of records. `ids` is a list of their ids.
pub fn pairs_of<D: Database>(
    database: &mut D,
    links: &LinkTable,
    ids: &Cell,
) -> Result<BTreeSet<(i64, String)>> {
    let table = &links.pairs.name;
    let names = links.pairs.names();
    let (id, id_type) = links.pairs.columns[0];
    let query = format!(
        "SELECT {names} FROM {table} WHERE {id} IN ({})",
        listed::<D>("$1", &[id_type])
    );
    let rows = database.query(&query, std::slice::from_ref(ids))?;
    Ok(rows
        .iter()
        .filter_map(|row| Some((row[0].integer()?, key_of(&row[1]))))
        .collect())
}

/// A statement that removes links.
fn unlink<D: Database>(links: &LinkTable) -> String {
    let types = [0, 1].map(|at| links.pairs.columns[at].1);
    format!(
        "DELETE FROM {} WHERE ({}) IN ({})",
        links.pairs.name,
        links.pairs.names(),
        listed::<D>("$1", &types)
    )
}

/// Removes all linked rows without links.
pub fn sweep<D: Database>(database: &mut D) -> Result<()> {
    database.batch(
        &linked()
            .iter()
            .map(|kind| {
                let table = &kind.rows.name;
                format!(
                    "DELETE FROM {table} WHERE true{};",
                    kind.no_link(&format!("{table}.{}", kind.own_key().0))
                )
            })
            .collect::<String>(),
    )
}

/// Returns the first fault in the tables that are derived from a dataset's records.
pub fn find_fault<D: Database>(database: &mut D, tables: &DatasetTables) -> Result<Option<String>> {
    database.check_storage()?;
    let mut expected = vec![FoundLinks::default(); tables.links.len()];
    if let Some(fault) = find_in_records(database, tables, &mut expected)? {
        return Ok(Some(fault));
    }
    for (links, expected) in tables.links.iter().zip(expected) {
        if let Some(fault) = find_in_linked(database, tables, links, expected.rows)? {
            return Ok(Some(fault));
        }
    }
    database.find_search_fault(tables.dataset)
}

/// Compares the row and the links of each record. Adds the linked rows to `expected`.
fn find_in_records<D: Database>(
    database: &mut D,
    tables: &DatasetTables,
    expected: &mut [FoundLinks],
) -> Result<Option<String>> {
    let columns = tables
        .records
        .columns
        .iter()
        .map(|(name, kind)| D::read(name, *kind))
        .joined(", ");
    let mut reader = Reader::new(&columns, &tables.records.name, i64::MIN);
    loop {
        let rows = reader.some(database)?;
        if rows.is_empty() {
            return Ok(None);
        }
        expected
            .iter_mut()
            .for_each(|expected| expected.pairs.clear());
        for row in &rows {
            if let Err(fault) = check_row::<D>(tables, row, expected) {
                return Ok(Some(fault));
            }
        }
        let ids = list(rows.iter().filter_map(|row| row[0].integer()));
        for (links, expected) in tables.links.iter().zip(&*expected) {
            let found = pairs_of(database, links, &ids)?;
            if let Some((id, _)) = found.symmetric_difference(&expected.pairs).next() {
                return Ok(Some(format!(
                    "`{}` does not fit the JSON of record {id}",
                    links.pairs.name
                )));
            }
        }
    }
}

/// Compares a record's row with its JSON. Adds its links to `expected`. Returns a fault as the error.
fn check_row<D: Database>(
    tables: &DatasetTables,
    row: &Row,
    expected: &mut [FoundLinks],
) -> Result<(), String> {
    let id = row[0].integer().unwrap_or_default();
    let Some(Cell::Text(json)) = row.last() else {
        return Err(format!("the JSON of record {id} is not text"));
    };
    let record: Value = serde_json::from_str(json)
        .map_err(|_| format!("the JSON of record {id} cannot be read"))?;
    if record["id"].as_i64() != Some(id) {
        return Err(format!("the id of record {id} does not fit its JSON"));
    }
    let wanted = row_of::<D>(tables, id, &record, json);
    if let Some(at) = (0..wanted.len()).find(|at| row[*at] != wanted[*at]) {
        let name = tables.records.columns[at].0;
        return Err(format!(
            "the column `{name}` of record {id} does not fit its JSON"
        ));
    }
    add_links::<D>(tables, id, &record, expected);
    Ok(())
}

/// Compares the linked rows with `expected`, and finds rows and links that belong to no record. If both datasets link
/// to one row, it comes from the dataset that was updated last.
fn find_in_linked<D: Database>(
    database: &mut D,
    tables: &DatasetTables,
    links: &LinkTable,
    mut expected: BTreeMap<String, Row>,
) -> Result<Option<String>> {
    let pairs = &links.pairs.name;
    let table = &links.kind.rows.name;
    let id = links.pairs.columns[0].0;
    let dangling = format!(
        "NOT EXISTS (SELECT 1 FROM {} WHERE id = {pairs}.{id})",
        tables.records.name
    );
    if database.finds(pairs, &dangling)? {
        return Ok(Some(format!("`{pairs}` has a link of a missing record")));
    }
    for row in database.query(
        &format!("SELECT {} FROM {table}", links.kind.rows.names()),
        &[],
    )? {
        let key = key_of(&row[0]);
        if expected
            .remove(&key)
            .is_some_and(|expected| expected != row)
        {
            return Ok(Some(format!(
                "`{table}` does not fit the records that link to `{key}`"
            )));
        }
    }
    if let Some(key) = expected.keys().next() {
        return Ok(Some(format!("`{table}` lacks `{key}`")));
    }
    let stray = format!(
        "true{}",
        links
            .kind
            .no_link(&format!("{table}.{}", links.kind.own_key().0))
    );
    Ok(database
        .finds(table, &stray)?
        .then(|| format!("`{table}` has a row that no record links to")))
}
