//! The copy in an SQL database, made for people: typed columns, link tables, a full-text index, and views.
//!
//! - [`tables`]: the tables and their columns; [`schema`] creates them with views, and replaces those of another version.
//! - [`database`]: the differences between SQLite and PostgreSQL.
//! - [`rows`]: writes records into all of their tables, and compares these with the records' JSON.

pub mod database;
pub mod rows;
pub mod schema;
pub mod tables;

use std::collections::BTreeSet;
use std::slice;

use database::{Database, Reader};
use rows::{RecordWriter, find_fault, list, listed, sweep};
use schema::{find_missing, renew, repair};
use sha2::{Digest as _, Sha256};
use tables::{DatasetTables, Type};

use crate::model::{Dataset, now};
use crate::pull::columns::Cell;
use crate::pull::error::Result;
use crate::pull::export::{Announced, ContentDigest, Entry, Export, FeedPage, Hasher};
use crate::pull::location::ServerUrl;
use crate::pull::target::{Changes, Events, Position, PullTarget, report, tombstone, verified_s};

/// Saves the address of the service.
const SET_SERVER: &str = "INSERT INTO copy (name, value) VALUES ('server', $1)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// A copy in a database. After a lost connection the next call connects again.
pub struct SqlCopy<D: Database> {
    address: D::Location,
    database: Option<D>,
    server: String,
    /// The datasets to load even if they have tokens.
    to_reload: Vec<Dataset>,
}

impl<D: Database> SqlCopy<D> {
    /// Opens the copy of a service's content, or creates one. With `reload`, everything is loaded again, and the copy
    /// may be that of another service. Leaves other files and databases untouched.
    pub fn open(address: D::Location, server: &ServerUrl, reload: bool) -> Result<SqlCopy<D>> {
        let mut copy = SqlCopy {
            address,
            database: None,
            server: server.to_string(),
            to_reload: if reload {
                Dataset::ALL.to_vec()
            } else {
                Vec::new()
            },
        };
        copy.connected()?;
        Ok(copy)
    }

    fn connected(&mut self) -> Result<&mut D> {
        let database = match self.database.take().filter(|database| !database.is_lost()) {
            Some(database) => database,
            None => self.connect()?,
        };
        Ok(self.database.insert(database))
    }

    fn connect(&self) -> Result<D> {
        let mut database = D::open(&self.address)?;
        if self.to_reload.len() == Dataset::ALL.len() && find_missing(&mut database).is_err() {
            repair(&mut database)?;
        }
        renew(&mut database)?;
        find_missing(&mut database)?;
        Ok(database)
    }

    /// The position, also if the export must be loaded.
    fn stored(&mut self, dataset: Dataset) -> Result<Option<Position>> {
        let server = Cell::from(self.server.as_str());
        let database = self.connected()?;
        let verified_at = D::read("verified_at", Type::Time);
        let query = format!(
            "SELECT token, records, {verified_at}, (SELECT value FROM copy WHERE name = 'server' AND value <> $2) FROM sync \
             WHERE dataset = $1"
        );
        let row = database
            .query(&query, &[dataset.as_str().into(), server])?
            .pop();
        let row = row.unwrap_or_default();
        let [
            Cell::Text(token),
            Cell::Integer(records),
            verified_at,
            other,
        ] = &row[..]
        else {
            return Ok(None);
        };
        Ok(Some(Position {
            token: token.clone(),
            records: records.unsigned_abs(),
            verified_at: verified_s(verified_at.text()),
            other_server: other.text().map(str::to_owned),
        }))
    }
}

impl<D: Database> PullTarget for SqlCopy<D> {
    fn position(&mut self, dataset: Dataset) -> Result<Option<Position>> {
        let is_reloaded = self.to_reload.contains(&dataset);
        let stored = self.stored(dataset)?;
        // A repair empties the token.
        Ok(stored.filter(|position| !is_reloaded && !position.token.is_empty()))
    }

    fn records(&mut self, dataset: Dataset) -> Result<Option<u64>> {
        let stored = self.stored(dataset)?;
        let own = stored.filter(|position| position.other_server.is_none());
        Ok(own.map(|position| position.records))
    }

    fn apply(&mut self, dataset: Dataset, page: &FeedPage, events: &dyn Events) -> Result<()> {
        let database = self.connected()?;
        database.in_transaction(|database| {
            let change = apply(database, DatasetTables::of(dataset), &page.entries, events)?;
            let save = "UPDATE sync SET token = $2, records = records + $3, checked_at = $4,
                changed_at = CASE WHEN $5 THEN $4 ELSE changed_at END WHERE dataset = $1";
            let time = now().to_string().into();
            let is_changed = Cell::Flag(!page.entries.is_empty());
            let saved = [
                dataset.as_str().into(),
                page.token.as_str().into(),
                Cell::Integer(change),
                time,
                is_changed,
            ];
            database.query(save, &saved).map(|_| ())
        })
    }

    fn load(
        &mut self,
        dataset: Dataset,
        export: &mut Export<'_>,
        events: &dyn Events,
    ) -> Result<()> {
        let server = Cell::from(self.server.as_str());
        let database = self.connected()?;
        database.in_transaction(|database| {
            remove_other_service(database, dataset, &server)?;
            load(database, DatasetTables::of(dataset), export, events)?;
            database.query(SET_SERVER, &[server])?;
            let save = "INSERT INTO sync (dataset, token, records, loaded_at, changed_at, checked_at, verified_at)
                VALUES ($1, $2, $3, $4, $4, $4, $4) ON CONFLICT (dataset) DO UPDATE SET
                token = excluded.token, records = excluded.records, loaded_at = excluded.loaded_at,
                changed_at = excluded.changed_at, checked_at = excluded.checked_at, verified_at = excluded.verified_at";
            let Announced { token, records, .. } = &export.announced;
            let saved = [
                dataset.as_str().into(),
                token.as_str().into(),
                Cell::Integer(records.cast_signed()),
                now().to_string().into(),
            ];
            database.query(save, &saved)
        })?;
        database.after_load(DatasetTables::of(dataset));
        self.to_reload.retain(|other| *other != dataset);
        Ok(())
    }

    fn clear(&mut self, dataset: Dataset, events: &dyn Events) -> Result<u64> {
        let database = self.connected()?;
        database.in_transaction(|database| {
            let mut held = Reader::new("id", dataset.as_str(), i64::MIN);
            let mut count = 0;
            while let Some(id) = held
                .next_until(database, i64::MAX)?
                .and_then(|row| row[0].integer())
            {
                events.change(dataset, &tombstone(id))?;
                count += 1;
            }
            clear(database, DatasetTables::of(dataset))?;
            sweep(database)?;
            Ok(count)
        })
    }

    fn digest(&mut self, dataset: Dataset) -> Result<ContentDigest> {
        let database = self.connected()?;
        let mut hasher = Hasher::default();
        let columns = format!("id, {}", D::read("json", Type::Json));
        let mut reader = Reader::new(&columns, dataset.as_str(), i64::MIN);
        while let Some(row) = reader.next_until(database, i64::MAX)? {
            hasher.add(row[1].bytes());
        }
        Ok(hasher.finish())
    }

    fn find_fault(&mut self, dataset: Dataset) -> Result<Option<String>> {
        let database = self.connected()?;
        find_fault(database, DatasetTables::of(dataset))
    }

    fn set_verified(&mut self, dataset: Dataset) -> Result<()> {
        let server = Cell::from(self.server.as_str());
        let database = self.connected()?;
        database.query(SET_SERVER, &[server])?;
        let note = "UPDATE sync SET verified_at = $1 WHERE dataset = $2";
        database
            .query(note, &[now().to_string().into(), dataset.as_str().into()])
            .map(|_| ())
    }

    fn check_location(&self) -> Result<()> {
        self.database.as_ref().map_or(Ok(()), D::check_location)
    }
}

/// Applies the entries of a page. Returns the change in the number of records.
fn apply<D: Database>(
    database: &mut D,
    tables: &'static DatasetTables,
    entries: &[Entry],
    events: &dyn Events,
) -> Result<i64> {
    let dataset = tables.dataset;
    let query = format!(
        "SELECT id FROM {dataset} WHERE id IN ({})",
        listed::<D>("$1", &[Type::Integer])
    );
    let ids = list(entries.iter().map(|entry| entry.id));
    let rows = database.query(&query, slice::from_ref(&ids))?;
    let mut held: BTreeSet<i64> = rows.iter().filter_map(|row| row[0].integer()).collect();
    database.unindex(dataset, &ids)?;
    let mut writer = RecordWriter::new(tables);
    let mut change = 0;
    let mut entries: Vec<&Entry> = entries.iter().collect();
    // The later of two entries of a record counts.
    entries.sort_by_key(|entry| entry.id);
    for entry in entries {
        let was_held = held.remove(&entry.id);
        // The copy may never have had the record of a tombstone.
        if entry.is_removal && !was_held {
            continue;
        }
        events.change(dataset, &entry.json)?;
        if !entry.is_removal {
            held.insert(entry.id);
        }
        change += i64::from(!entry.is_removal) - i64::from(was_held);
        writer.add(
            database,
            entry.id,
            (!entry.is_removal).then(|| entry.json.clone()),
        )?;
    }
    writer.finish(database)?;
    database.index(dataset, &ids)?;
    Ok(change)
}

/// Writes the records of an export, with all that is derived from them. Removes all other records.
fn load<D: Database>(
    database: &mut D,
    tables: &'static DatasetTables,
    export: &mut Export<'_>,
    events: &dyn Events,
) -> Result<()> {
    let dataset = tables.dataset;
    clear_links(database, tables)?;
    let mut writer = RecordWriter::new(tables);
    // Another program may have written invalid ids, so reading begins with the smallest number.
    let mut held = Reader::new(
        &format!("id, {}", D::JSON_OR_DIGEST),
        dataset.as_str(),
        i64::MIN,
    );
    let mut changes = Changes::new(dataset, events);
    loop {
        let entry = export.next_record()?;
        let last = entry.as_ref().map_or(i64::MAX, |entry| entry.id - 1);
        while let Some(row) = held.next_until(database, last)? {
            if let Some(id) = row[0].integer() {
                changes.add(&tombstone(id))?;
                writer.add(database, id, None)?;
            }
        }
        let Some(entry) = entry else { break };
        let before = held.next_until(database, entry.id)?;
        if before.is_none_or(|row| !is_json(&row[1], &entry.json)) {
            changes.add(&entry.json)?;
        }
        writer.add(database, entry.id, Some(entry.json))?;
        report(dataset, export, events);
    }
    writer.finish(database)?;
    sweep(database)?;
    database.rebuild_search(dataset)?;
    changes.send()
}

/// Whether a cell holds a JSON text or its SHA-256.
fn is_json(cell: &Cell, json: &str) -> bool {
    cell.bytes() == json.as_bytes() || *cell.bytes() == *Sha256::digest(json.as_bytes())
}

fn clear_links<D: Database>(database: &mut D, tables: &DatasetTables) -> Result<()> {
    tables
        .links
        .iter()
        .try_for_each(|links| database.batch(&format!("DELETE FROM {}", links.pairs.name)))
}

/// Removes the other datasets if the copy is that of another service.
fn remove_other_service<D: Database>(database: &mut D, kept: Dataset, server: &Cell) -> Result<()> {
    let foreign = "SELECT 1 FROM copy WHERE name = 'server' AND value <> $1";
    if database.query(foreign, slice::from_ref(server))?.is_empty() {
        return Ok(());
    }
    Dataset::ALL
        .into_iter()
        .filter(|dataset| *dataset != kept)
        .try_for_each(|dataset| clear(database, DatasetTables::of(dataset)))
}

/// Removes the records of a dataset and its position. Rows without links stay.
fn clear<D: Database>(database: &mut D, tables: &DatasetTables) -> Result<()> {
    let dataset = tables.dataset;
    clear_links(database, tables)?;
    database.batch(&format!(
        "DELETE FROM {dataset}; DELETE FROM sync WHERE dataset = '{dataset}'"
    ))?;
    database.rebuild_search(dataset)
}
