//! The copy as a target of the feed.

use std::collections::BTreeSet;

use super::database::{Database, Row, Search, Type};
use super::layout::value_of;
use super::rows::{Writer, ids, json_ids};
use super::schema::Tables;
use super::{check, load};
use crate::model::time::now;
use crate::model::{Dataset, PerDataset};
use crate::pull::columns::Cell;
use crate::pull::digest::{ContentDigest, Hasher};
use crate::pull::entry::{Entry, Page};
use crate::pull::error::PullError;
use crate::pull::export::Export;
use crate::pull::server_url::ServerUrl;
use crate::pull::target::{Events, Position, Target};

/// A copy in a database. After a lost connection the next call connects again.
#[derive(Debug)]
pub struct SqlCopy<D: Database> {
    address: D::Address,
    database: Option<D>,
    tables: PerDataset<Tables>,
    server: String,
    /// The datasets to load before anything else, whatever tokens they have.
    to_reload: Vec<Dataset>,
    /// Whether the first load may replace the content of another service.
    replaces: bool,
}

impl<D: Database> SqlCopy<D> {
    /// Opens the copy of a service's content, or creates one. With `reload`, all is loaded again, and the copy may have been
    /// another service's.
    ///
    /// # Errors
    /// When the place holds something else, a copy of a newer format or of another service, or a copy that another pull is at
    /// work on. It is left untouched then.
    pub fn at(address: D::Address, server: &ServerUrl, reload: bool) -> Result<SqlCopy<D>, PullError> {
        let mut copy = SqlCopy {
            address,
            database: None,
            tables: PerDataset::of(Tables::new),
            server: server.to_string(),
            to_reload: if reload { Dataset::ALL.to_vec() } else { Vec::new() },
            replaces: reload,
        };
        copy.connected()?;
        Ok(copy)
    }

    /// The database and the tables. Connects if that is necessary.
    fn connected(&mut self) -> Result<(&mut D, &PerDataset<Tables>), PullError> {
        let database = match self.database.take().filter(|database| !database.is_lost()) {
            Some(database) => database,
            None => self.connect()?,
        };
        Ok((self.database.insert(database), &self.tables))
    }

    fn connect(&self) -> Result<D, PullError> {
        let mut database = D::open(&self.address)?;
        let (other, server) = (value_of(&mut database, "server")?, &self.server);
        match other.filter(|other| other != server && !self.replaces) {
            None => Ok(database),
            Some(other) => Err(PullError::Unusable(format!(
                "{} is a copy of {other}, not of {server}; {} --reload to replace its content by what {server} has",
                database.shown(),
                D::OTHER_PLACE
            ))),
        }
    }
}

impl<D: Database> Target for SqlCopy<D> {
    fn position(&mut self, dataset: Dataset) -> Result<Option<Position>, PullError> {
        let is_reloaded = self.to_reload.contains(&dataset);
        let (database, _) = self.connected()?;
        let query = format!("SELECT token, records, coalesce({}, 0) FROM sync WHERE dataset = $1", D::VERIFIED_S);
        let row = database.first(&query, &[dataset.as_str().into()])?;
        Ok(row.filter(|_| !is_reloaded).and_then(position_of))
    }

    fn apply(&mut self, dataset: Dataset, page: &Page, events: &dyn Events) -> Result<(), PullError> {
        let (database, tables) = self.connected()?;
        let tables = &tables[dataset];
        database.in_transaction(|database| {
            let change = apply_entries(database, tables, &page.entries, events)?;
            database.query(
                "UPDATE sync SET token = $2, records = records + $3, checked_at = $4,
                 changed_at = CASE WHEN $5 THEN $4 ELSE changed_at END WHERE dataset = $1",
                &[
                    dataset.as_str().into(),
                    page.token.as_str().into(),
                    Cell::Integer(change),
                    now().to_string().into(),
                    Cell::Flag(!page.entries.is_empty()),
                ],
            )?;
            Ok(())
        })
    }

    fn load(
        &mut self,
        dataset: Dataset,
        export: &mut Export<'_>,
        anew: bool,
        events: &dyn Events,
    ) -> Result<(), PullError> {
        let server = self.server.clone();
        let (database, tables) = self.connected()?;
        database.in_transaction(|database| {
            forget_others(database, tables, dataset, &server)?;
            let records = load::load(database, &tables[dataset], export, anew, events)?;
            note_load(database, dataset, &export.token, records, anew)?;
            let note = "INSERT INTO copy VALUES ('server', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            database.query(note, &[server.into()])
        })?;
        database.after_load(&tables[dataset]);
        self.replaces = false;
        self.to_reload.retain(|other| *other != dataset);
        Ok(())
    }

    fn digest(&mut self, dataset: Dataset) -> Result<ContentDigest, PullError> {
        let (database, _) = self.connected()?;
        let mut hasher = Hasher::default();
        let columns = format!("id, {}", D::read("json", Type::Json));
        database.read_all(&columns, dataset.as_str(), i64::MIN, &mut |_, rows| {
            rows.iter().for_each(|row| hasher.add(bytes_of(&row[1])));
            Ok(true)
        })?;
        Ok(hasher.finish())
    }

    fn find_fault(&mut self, dataset: Dataset) -> Result<Option<String>, PullError> {
        let (database, tables) = self.connected()?;
        check::find_fault(database, &tables[dataset])
    }

    fn set_verified(&mut self, dataset: Dataset) -> Result<(), PullError> {
        let (database, _) = self.connected()?;
        let note = "UPDATE sync SET verified_at = $1 WHERE dataset = $2";
        database.query(note, &[now().to_string().into(), dataset.as_str().into()]).map(|_| ())
    }

    fn check_place(&self) -> Result<(), PullError> {
        self.database.as_ref().map_or(Ok(()), D::check_place)
    }
}

/// Reads a row of `sync`. A row that another program has damaged is no position.
fn position_of(row: Row) -> Option<Position> {
    let records = row[1].integer()?.unsigned_abs();
    Some(Position { token: row[0].text()?.to_owned(), records, verified_at: row[2].integer()? })
}

fn bytes_of(cell: &Cell) -> &[u8] {
    match cell {
        Cell::Text(text) => text.as_bytes(),
        Cell::Bytes(bytes) => bytes,
        _ => &[],
    }
}

/// Applies the entries of a page; returns the change of the number of records.
fn apply_entries<D: Database>(
    database: &mut D,
    tables: &Tables,
    entries: &[Entry],
    events: &dyn Events,
) -> Result<i64, PullError> {
    let dataset = tables.dataset;
    let query = format!("SELECT id FROM {dataset} WHERE id IN ({})", ids::<D>());
    let rows = database.query(&query, &[json_ids(entries.iter().map(|entry| entry.id))])?;
    let mut held: BTreeSet<i64> = rows.iter().filter_map(|row| row[0].integer()).collect();
    let before = held.len();
    let mut writer = Writer::new(tables, Search::Updated);
    // Rising ids suit the full-text index of SQLite. Of two entries of one record, the later one counts.
    let mut entries: Vec<&Entry> = entries.iter().collect();
    entries.sort_by_key(|entry| entry.id);
    for entry in entries {
        if !entry.is_removal {
            events.change(dataset, &entry.json)?;
            held.insert(entry.id);
            writer.put(database, entry.id, entry.json.clone())?;
        } else if held.remove(&entry.id) {
            // A tombstone of a record that the copy never had is skipped.
            events.change(dataset, &entry.json)?;
            writer.remove(database, entry.id)?;
        }
    }
    writer.finish(database)?;
    Ok(count(held.len() as u64) - count(before as u64))
}

fn count(records: u64) -> i64 {
    i64::try_from(records).unwrap_or(i64::MAX)
}

/// Saves the token of an export that was loaded. A load that did not write all tables again proves nothing.
fn note_load<D: Database>(
    database: &mut D,
    dataset: Dataset,
    token: &str,
    records: u64,
    anew: bool,
) -> Result<(), PullError> {
    let time = Cell::from(now().to_string());
    let verified_at = if anew { time.clone() } else { Cell::Null };
    database.query(
        "INSERT INTO sync AS s VALUES ($1, $2, $3, $4, $4, $4, $5) ON CONFLICT (dataset) DO UPDATE SET
         token = excluded.token, records = excluded.records, loaded_at = excluded.loaded_at,
         changed_at = excluded.changed_at, checked_at = excluded.checked_at,
         verified_at = coalesce(excluded.verified_at, s.verified_at)",
        &[dataset.as_str().into(), token.into(), Cell::Integer(count(records)), time, verified_at],
    )?;
    Ok(())
}

/// Removes the records of the other datasets, if they are another service's.
fn forget_others<D: Database>(
    database: &mut D,
    all: &PerDataset<Tables>,
    kept: Dataset,
    server: &str,
) -> Result<(), PullError> {
    let foreign = "SELECT 1 FROM copy WHERE name = 'server' AND value <> $1";
    if database.first(foreign, &[server.into()])?.is_none() {
        return Ok(());
    }
    for tables in all.values().filter(|tables| tables.dataset != kept) {
        let dataset = tables.dataset;
        load::clear_links(database, tables)?;
        database.batch(&format!("DELETE FROM {dataset}; DELETE FROM sync WHERE dataset = '{dataset}'"))?;
        database.rebuild_search(dataset)?;
    }
    Ok(())
}
