//! Compares everything that is derived from the records with them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::database::{Database, Dialect, Row};
use super::rows::{key_of, linked_of, row_of};
use super::schema::{Links, Tables};
use crate::pull::columns::Cell;
use crate::pull::error::PullError;
use crate::pull::tables::no_link;

/// The content of a link table and its linked rows that the records ask for.
#[derive(Clone, Debug, Default)]
struct Expected {
    /// The links of the records that were read last.
    pairs: BTreeSet<(i64, String)>,
    /// The linked rows of all records, by key.
    rows: BTreeMap<String, Row>,
}

/// Returns the first fault in the tables that are derived from a dataset's records.
pub fn find_fault<D: Database>(database: &mut D, tables: &Tables) -> Result<Option<String>, PullError> {
    database.check_storage()?;
    let mut expected = vec![Expected::default(); tables.links.len()];
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

/// Compares the row and the links of every record, and collects the linked rows.
fn find_in_records<D: Database>(
    database: &mut D,
    tables: &Tables,
    expected: &mut [Expected],
) -> Result<Option<String>, PullError> {
    let mut fault = None;
    let columns = tables.records.read::<D>();
    database.read_all(&columns, &tables.records.name, i64::MIN, &mut |database, rows| {
        expected.iter_mut().for_each(|expected| expected.pairs.clear());
        let mut ids = BTreeSet::new();
        for row in &rows {
            let id = row[0].integer().unwrap_or_default();
            ids.insert(id);
            fault = find_in_row::<D>(tables, id, row, expected);
            if fault.is_some() {
                return Ok(false);
            }
        }
        for (links, expected) in tables.links.iter().zip(&*expected) {
            fault = fault.take().or(find_in_links(database, links, &ids, &expected.pairs)?);
        }
        Ok(fault.is_none())
    })?;
    Ok(fault)
}

/// Compares a record's row with its JSON, and collects the record's links.
fn find_in_row<D: Dialect>(tables: &Tables, id: i64, row: &Row, expected: &mut [Expected]) -> Option<String> {
    let Some(json) = row.last().and_then(Cell::text) else {
        return Some(format!("the JSON of record {id} is no text"));
    };
    let Ok(record) = serde_json::from_str::<Value>(json) else {
        return Some(format!("the JSON of record {id} cannot be read"));
    };
    if record["id"].as_i64() != Some(id) {
        return Some(format!("the id of record {id} does not fit its JSON"));
    }
    let wanted = row_of::<D>(tables, id, &record, json);
    if let Some(at) = (0..wanted.len()).find(|at| row[*at] != wanted[*at]) {
        let name = tables.records.columns[at].0;
        return Some(format!("the column `{name}` of record {id} does not fit its JSON"));
    }
    for (links, expected) in tables.links.iter().zip(expected) {
        for (key, row) in linked_of::<D>(tables.columns, links, &record) {
            expected.pairs.insert((id, key.clone()));
            expected.rows.insert(key, row);
        }
    }
    None
}

/// Compares the links of some records.
fn find_in_links<D: Database>(
    database: &mut D,
    links: &Links,
    ids: &BTreeSet<i64>,
    expected: &BTreeSet<(i64, String)>,
) -> Result<Option<String>, PullError> {
    let (Some(first), Some(last)) = (ids.first(), ids.last()) else { return Ok(None) };
    let (table, id) = (&links.pairs.name, links.pairs.columns[0].0);
    let query = format!("SELECT {} FROM {table} WHERE {id} BETWEEN $1 AND $2", links.pairs.names());
    let rows = database.query(&query, &[Cell::Integer(*first), Cell::Integer(*last)])?;
    let found = rows.iter().filter_map(|row| Some((row[0].integer()?, key_of(&row[1]))));
    let found: BTreeSet<(i64, String)> = found.filter(|(id, _)| ids.contains(id)).collect();
    let difference = found.symmetric_difference(expected).next();
    Ok(difference.map(|(id, _)| format!("`{table}` does not fit the JSON of record {id}")))
}

/// Compares linked rows with those of the records, and finds rows and links that belong to no record. Both datasets may
/// link to one row. The dataset that was updated last has written it, and its `expected` is the one that is compared.
fn find_in_linked<D: Database>(
    database: &mut D,
    tables: &Tables,
    links: &Links,
    mut expected: BTreeMap<String, Row>,
) -> Result<Option<String>, PullError> {
    let (pairs, table) = (&links.pairs.name, &links.rows.name);
    let id = links.pairs.columns[0].0;
    let dangling = format!("NOT EXISTS (SELECT 1 FROM {} WHERE id = {pairs}.{id})", tables.records.name);
    if database.has(pairs, &dangling)? {
        return Ok(Some(format!("`{pairs}` has a link of a record that is not there")));
    }
    for row in database.query(&format!("SELECT {} FROM {table}", links.rows.names()), &[])? {
        let key = key_of(&row[0]);
        if expected.remove(&key).is_some_and(|expected| expected != row) {
            return Ok(Some(format!("`{table}` does not fit the records that link to `{key}`")));
        }
    }
    if let Some(key) = expected.keys().next() {
        return Ok(Some(format!("`{table}` lacks `{key}`")));
    }
    let stray = format!("true{}", no_link(links.kind, &format!("{table}.{}", links.kind.own_key())));
    Ok(database.has(table, &stray)?.then(|| format!("`{table}` has a row that no record is linked to")))
}
