//! Comparing everything that is derived from the records with them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use postgres::Row;
use serde_json::Value;

use super::rows::{Links, RowJson, Tables, linked_of, row_of};
use super::schema::cells;
use super::session::Session;
use crate::pull::error::PullError;
use crate::pull::tables::{no_link, one};

/// The first fault in what is derived from a dataset's records. The words of the full-text index are PostgreSQL's own: it
/// lets nobody write them.
///
/// # Errors
/// When the database cannot be read.
pub fn find_fault(session: &mut Session, tables: &Tables) -> Result<Option<String>, PullError> {
    session.in_transaction(|session| {
        let mut linked = vec![BTreeMap::new(); tables.links.len()];
        if let Some(fault) = find_in_rows(session, tables, &mut linked)? {
            return Ok(Some(fault));
        }
        for (links, expected) in tables.links.iter().zip(linked) {
            if let Some(fault) = find_in_linked(session, links, expected)? {
                return Ok(Some(fault));
            }
        }
        Ok(None)
    })
}

/// Compares the cells of every row and its links, and collects the linked rows that there must be.
fn find_in_rows(
    session: &mut Session,
    tables: &Tables,
    linked: &mut [BTreeMap<String, RowJson>],
) -> Result<Option<String>, PullError> {
    let dataset = tables.dataset;
    let names: Vec<&str> = cells(dataset).iter().map(|(name, _)| *name).filter(|name| *name != "json").collect();
    let query = format!(
        "SELECT id, json::text, (SELECT to_json(r)::text FROM (SELECT {}) r) FROM {dataset} ORDER BY id",
        names.join(", ")
    );
    let (mut from, mut fault) = (i64::MIN, None);
    session.read_all(&query, &mut |session, rows| {
        let mut expected = vec![BTreeSet::new(); tables.links.len()];
        for row in &rows {
            let id: i64 = row.get(0);
            let Ok(record) = serde_json::from_str::<Value>(row.get(1)) else {
                fault = Some(format!("the JSON of record {id} cannot be read"));
                return Ok(false);
            };
            if record["id"].as_i64() != Some(id) {
                fault = Some(format!("the id of record {id} does not fit its JSON"));
                return Ok(false);
            }
            if let Some(name) = difference(&row_of(tables.columns, id, &record), &found_in(row, 2)) {
                fault = Some(format!("the column `{name}` of record {id} does not fit its JSON"));
                return Ok(false);
            }
            for ((links, expected), linked) in tables.links.iter().zip(&mut expected).zip(&mut *linked) {
                for (key, row) in linked_of(tables.columns, links.kind, &record) {
                    expected.insert((id, key.clone()));
                    linked.insert(key, row);
                }
            }
        }
        let until = rows.last().map_or(i64::MAX, |row| row.get(0));
        fault = find_in_links(session, tables, from..=until, &expected)?;
        from = until.saturating_add(1);
        Ok(fault.is_none())
    })?;
    if fault.is_none() {
        fault = find_in_links(session, tables, from..=i64::MAX, &vec![BTreeSet::new(); tables.links.len()])?;
    }
    Ok(fault)
}

/// Compares the links of the records in a range of ids.
fn find_in_links(
    session: &mut Session,
    tables: &Tables,
    ids: RangeInclusive<i64>,
    expected: &[BTreeSet<(i64, String)>],
) -> Result<Option<String>, PullError> {
    let one = one(tables.dataset);
    for (links, expected) in tables.links.iter().zip(expected) {
        let (table, key) = (&links.table, links.kind.key);
        let query = format!("SELECT {one}_id, {key}::text FROM {table} WHERE {one}_id BETWEEN $1 AND $2");
        let found = session.query(&query, &[ids.start(), ids.end()])?;
        let found: BTreeSet<(i64, String)> = found.iter().map(|row| (row.get(0), row.get(1))).collect();
        if let Some((id, _)) = found.symmetric_difference(expected).next() {
            return Ok(Some(format!("`{table}` does not fit the JSON of record {id}")));
        }
    }
    Ok(None)
}

/// Compares linked rows with what the records tell of them. Both datasets may tell of one row; the one that was brought to the
/// present last has written it, and that is the one which is compared.
fn find_in_linked(
    session: &mut Session,
    links: &Links,
    mut expected: BTreeMap<String, RowJson>,
) -> Result<Option<String>, PullError> {
    let (table, own) = (links.kind.table, links.kind.own_key());
    let mut fault = None;
    session.read_all(&format!("SELECT {own}::text, to_json(r)::text FROM {table} r"), &mut |_, rows| {
        for row in &rows {
            let key: String = row.get(0);
            if expected.remove(&key).is_some_and(|expected| difference(&expected, &found_in(row, 1)).is_some()) {
                fault = Some(format!("`{table}` does not fit the records that link to `{key}`"));
            }
        }
        Ok(fault.is_none())
    })?;
    if let Some((key, _)) = expected.first_key_value().filter(|_| fault.is_none()) {
        fault = Some(format!("`{table}` lacks `{key}`"));
    }
    let stray = format!("SELECT 1 FROM {table} WHERE true{} LIMIT 1", no_link(links.kind, &format!("{table}.{own}")));
    if fault.is_none() && session.first(&stray, &[])?.is_some() {
        fault = Some(format!("`{table}` has a row that no record is linked to"));
    }
    Ok(fault)
}

fn found_in(row: &Row, column: usize) -> RowJson {
    serde_json::from_str(row.get(column)).unwrap_or_default()
}

/// The first column in which a row is not as expected. PostgreSQL writes a number without a fraction as a whole one.
fn difference<'a>(expected: &'a RowJson, found: &RowJson) -> Option<&'a str> {
    let is_same = |expected: &Value, found: &Value| {
        expected == found || (expected.is_f64() && expected.as_f64() == found.as_f64())
    };
    let differs = |(name, value): &(&String, &Value)| !found.get(*name).is_some_and(|found| is_same(value, found));
    expected.iter().find(differs).map(|(name, _)| name.as_str())
}
