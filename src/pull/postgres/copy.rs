//! The copy as a target of the feed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::Path;

use super::address::Address;
use super::check;
use super::open::open;
use super::rows::{Tables, Writer};
use super::session::Session;
use crate::model::time::now;
use crate::model::{Dataset, PerDataset};
use crate::pull::digest::{ContentDigest, Hasher};
use crate::pull::entry::{Entry, Page};
use crate::pull::error::PullError;
use crate::pull::export::Export;
use crate::pull::server_url::ServerUrl;
use crate::pull::tables::{linked, no_link};
use crate::pull::target::{Events, Position, Target};

/// How many records of an export are written at once.
const BATCH: usize = 1000;

/// About how many bytes of JSON are written at once, where that is less.
const BATCH_BYTES: usize = 4 << 20;

/// A copy in PostgreSQL. A connection that broke is made anew by the next call.
#[derive(Debug)]
pub struct PostgresCopy {
    address: Address,
    session: Option<Session>,
    tables: PerDataset<Tables>,
    server: String,
    /// Datasets that are loaded before anything else, whatever token they have.
    to_reload: Vec<Dataset>,
    /// Whether the content may be another service's, and is replaced by the first load.
    replaces: bool,
}

impl PostgresCopy {
    /// Opens the copy of a service's content, or makes one. With `reload` all is loaded anew, and the copy may have been
    /// another service's. Certificates are checked against `ca_file`, unless the address names a file itself.
    ///
    /// # Errors
    /// When the schema holds something else, a copy of a newer format or of another service, or is in use by another pull; it
    /// is left untouched then. When the server cannot be reached, or refuses.
    pub fn open(
        mut address: Address,
        server: &ServerUrl,
        ca_file: Option<&Path>,
        reload: bool,
    ) -> Result<PostgresCopy, PullError> {
        address.trust(ca_file);
        let mut copy = PostgresCopy {
            address,
            session: None,
            tables: PerDataset::of(Tables::new),
            server: server.to_string(),
            to_reload: if reload { Dataset::ALL.to_vec() } else { Vec::new() },
            replaces: reload,
        };
        copy.connected()?;
        Ok(copy)
    }

    /// The session and the tables; connects anew where that is needed.
    fn connected(&mut self) -> Result<(&mut Session, &PerDataset<Tables>), PullError> {
        let session = match self.session.take().filter(|session| !session.is_lost()) {
            Some(session) => session,
            None => {
                let (session, held) = open(&self.address)?;
                if let Some(other) = held.filter(|held| *held != self.server && !self.replaces) {
                    let server = &self.server;
                    return Err(PullError::Unusable(format!(
                        "{} is a copy of {other}, not of {server}; name another schema (?schema=NAME), or give --reload to \
                         replace its content by what {server} has",
                        self.address.shown()
                    )));
                }
                session
            }
        };
        Ok((self.session.insert(session), &self.tables))
    }
}

impl Target for PostgresCopy {
    fn position(&mut self, dataset: Dataset) -> Result<Option<Position>, PullError> {
        let is_reloaded = self.to_reload.contains(&dataset);
        let (session, _) = self.connected()?;
        let query =
            "SELECT token, records, coalesce(extract(epoch FROM verified_at)::bigint, 0) FROM sync WHERE dataset = $1";
        let row = session.first(query, &[&dataset.as_str()])?.filter(|_| !is_reloaded);
        Ok(row.map(|row| {
            let records: i64 = row.get(1);
            Position { token: row.get(0), records: records.unsigned_abs(), verified_at: row.get(2) }
        }))
    }

    fn apply(&mut self, dataset: Dataset, page: &Page, events: &dyn Events) -> Result<(), PullError> {
        let (session, tables) = self.connected()?;
        session.in_transaction(|session| {
            let ids: Vec<i64> = page.entries.iter().map(|entry| entry.id).collect();
            let held = session.query(&format!("SELECT id FROM {dataset} WHERE id = ANY($1)"), &[&ids])?;
            let before: BTreeSet<i64> = held.iter().map(|row| row.get(0)).collect();
            let mut after = before.clone();
            // A record that stands twice in a page ends as its last entry says.
            let mut puts: BTreeMap<i64, &Entry> = BTreeMap::new();
            for entry in &page.entries {
                if entry.is_removal {
                    puts.remove(&entry.id);
                    // A tombstone may concern a record that the copy never had.
                    if after.remove(&entry.id) {
                        events.change(dataset, &entry.json)?;
                    }
                } else {
                    events.change(dataset, &entry.json)?;
                    after.insert(entry.id);
                    puts.insert(entry.id, entry);
                }
            }
            let removed: Vec<i64> = before.difference(&after).copied().collect();
            let mut writer = Writer::new(&tables[dataset]);
            writer.write(session, &puts.into_values().collect::<Vec<_>>(), &removed)?;
            writer.sweep(session)?;
            let change = count(after.len()) - count(before.len());
            session.execute(
                "UPDATE sync SET token = $2, records = records + $3, checked_at = $4::text::timestamptz,
                 changed_at = CASE WHEN $5 THEN $4::text::timestamptz ELSE changed_at END WHERE dataset = $1",
                &[&dataset.as_str(), &page.token, &change, &now().to_string(), &!page.entries.is_empty()],
            )
        })
    }

    fn load(
        &mut self,
        dataset: Dataset,
        export: &mut Export,
        anew: bool,
        events: &dyn Events,
    ) -> Result<(), PullError> {
        let server = self.server.clone();
        let (session, tables) = self.connected()?;
        session.in_transaction(|session| {
            forget_others(session, tables, dataset, &server)?;
            let tables = &tables[dataset];
            if anew {
                clear_links(session, tables)?;
            }
            let mut writer = Writer::new(tables);
            let mut came = 0;
            // Somebody else may have written ids that no service has, so all that the column can hold are looked at.
            let mut from = i64::MIN;
            loop {
                let (batch, is_last) = next_batch(export)?;
                let until = batch.last().filter(|_| !is_last).map_or(i64::MAX, |entry| entry.id);
                let mut held = digests(session, dataset, from..=until)?;
                let (mut puts, mut removed) = (Vec::new(), Vec::new());
                for entry in &batch {
                    let kept = held.split_off(&entry.id);
                    removed.extend(tell_removal(dataset, std::mem::replace(&mut held, kept), events)?);
                    let is_same = held.remove(&entry.id).is_some_and(|held| held == sha256(&entry.json));
                    if !is_same {
                        events.change(dataset, &entry.json)?;
                    }
                    if !is_same || anew {
                        puts.push(entry);
                    }
                }
                removed.extend(tell_removal(dataset, held, events)?);
                writer.write(session, &puts, &removed)?;
                came += batch.len();
                events.progress(dataset, came as u64, export.records);
                from = until.saturating_add(1);
                if is_last {
                    break;
                }
            }
            writer.sweep(session)?;
            // What was written anew is what was compared; what was left as it stood, was not in all of its tables.
            if anew {
                for kind in linked() {
                    let own = format!("{}.{}", kind.table, kind.own_key());
                    session.batch(&format!("DELETE FROM {} WHERE true{}", kind.table, no_link(kind, &own)))?;
                }
            }
            session.execute(
                "INSERT INTO copy VALUES ('server', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                &[&server],
            )?;
            session.execute(
                "INSERT INTO sync AS s VALUES ($1, $2, $3, $4::text::timestamptz, $4::text::timestamptz, $4::text::timestamptz,
                 CASE WHEN $5 THEN $4::text::timestamptz END) ON CONFLICT (dataset) DO UPDATE SET token = excluded.token,
                 records = excluded.records, loaded_at = excluded.loaded_at, changed_at = excluded.changed_at,
                 checked_at = excluded.checked_at, verified_at = coalesce(excluded.verified_at, s.verified_at)",
                &[&dataset.as_str(), &export.token, &count(came), &now().to_string(), &anew],
            )
        })?;
        // So that queries are planned well from the first one on. They work without, and the server does so by itself later.
        let links = &tables[dataset].links;
        let others: String = links.iter().map(|links| format!(", {}, {}", links.table, links.kind.table)).collect();
        let _ = session.batch(&format!("ANALYZE {dataset}{others}"));
        self.replaces = false;
        self.to_reload.retain(|other| *other != dataset);
        Ok(())
    }

    fn digest(&mut self, dataset: Dataset) -> Result<ContentDigest, PullError> {
        let (session, _) = self.connected()?;
        let mut hasher = Hasher::default();
        session.in_transaction(|session| {
            session.read_all(&format!("SELECT json::text FROM {dataset} ORDER BY id"), &mut |_, rows| {
                rows.iter().for_each(|row| hasher.add(row.get::<_, &str>(0).as_bytes()));
                Ok(true)
            })
        })?;
        Ok(hasher.finish())
    }

    fn find_fault(&mut self, dataset: Dataset) -> Result<Option<String>, PullError> {
        let (session, tables) = self.connected()?;
        check::find_fault(session, &tables[dataset])
    }

    fn set_verified(&mut self, dataset: Dataset) -> Result<(), PullError> {
        let (session, _) = self.connected()?;
        let note = "UPDATE sync SET verified_at = $1::text::timestamptz WHERE dataset = $2";
        session.execute(note, &[&now().to_string(), &dataset.as_str()])
    }

    /// The server keeps the copy's place; each new connection looks at what stands there.
    fn check_place(&self) -> Result<(), PullError> {
        Ok(())
    }
}

fn count(records: usize) -> i64 {
    i64::try_from(records).unwrap_or(i64::MAX)
}

/// The next records of an export, and whether they are the last ones.
fn next_batch(export: &mut Export) -> Result<(Vec<Entry>, bool), PullError> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while batch.len() < BATCH && bytes < BATCH_BYTES {
        let Some(entry) = export.next_record()? else { return Ok((batch, true)) };
        bytes += entry.json.len();
        batch.push(entry);
    }
    Ok((batch, false))
}

/// The digests of the JSON of the records in a range of ids.
fn digests(
    session: &mut Session,
    dataset: Dataset,
    ids: RangeInclusive<i64>,
) -> Result<BTreeMap<i64, Vec<u8>>, PullError> {
    let query = format!("SELECT id, sha256(convert_to(json::text, 'UTF8')) FROM {dataset} WHERE id BETWEEN $1 AND $2");
    Ok(session.query(&query, &[ids.start(), ids.end()])?.iter().map(|row| (row.get(0), row.get(1))).collect())
}

fn sha256(json: &str) -> Vec<u8> {
    use sha2::Digest as _;
    sha2::Sha256::digest(json.as_bytes()).to_vec()
}

/// Tells of records that an export does not have; returns their ids.
fn tell_removal(
    dataset: Dataset,
    gone: BTreeMap<i64, Vec<u8>>,
    events: &dyn Events,
) -> Result<impl Iterator<Item = i64>, PullError> {
    for id in gone.keys() {
        events.change(dataset, &format!("{{\"id\":{id},\"deleted\":true,\"changed_at\":null}}"))?;
    }
    Ok(gone.into_keys())
}

/// Empties the link tables of a dataset, whatever stands in them.
fn clear_links(session: &mut Session, tables: &Tables) -> Result<(), PullError> {
    tables.links.iter().try_for_each(|links| session.batch(&format!("DELETE FROM {}", links.table)))
}

/// Removes what another service said of the other datasets, if the content is another one's.
fn forget_others(
    session: &mut Session,
    all: &PerDataset<Tables>,
    kept: Dataset,
    server: &str,
) -> Result<(), PullError> {
    let foreign = "SELECT 1 FROM copy WHERE name = 'server' AND value <> $1";
    if session.first(foreign, &[&server])?.is_none() {
        return Ok(());
    }
    for tables in all.values().filter(|tables| tables.dataset != kept) {
        let dataset = tables.dataset;
        clear_links(session, tables)?;
        session.batch(&format!("DELETE FROM {dataset}; DELETE FROM sync WHERE dataset = '{dataset}'"))?;
    }
    Ok(())
}
