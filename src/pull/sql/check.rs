//! Compares the derived tables with the records' JSON.

use std::collections::BTreeMap;

use serde_json::Value;

use super::database::{Database, Reader};
use super::rows::{FoundLinks, add_links, key_of, list, pairs_of, row_of};
use super::tables::{DatasetTables, LinkTable, Row};
use crate::model::Joined;
use crate::pull::columns::Cell;
use crate::pull::error::Result;

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
