//! The copy as a target of the feed.

use std::fs::File;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::check;
use super::failure::failure;
use super::open::{identity, open};
use super::rows::{Mode, Rows, Statements, bytes_of};
use crate::model::time::now;
use crate::model::{Dataset, PerDataset};
use crate::pull::digest::{ContentDigest, Hasher};
use crate::pull::entry::{Entry, Page};
use crate::pull::error::PullError;
use crate::pull::export::Export;
use crate::pull::server_url::ServerUrl;
use crate::pull::tables::{linked, no_link};
use crate::pull::target::{Events, Position, Target};

/// How often progress is told, in records.
const PROGRESS_EVERY: u32 = 1000;

/// A copy in an SQLite file.
#[derive(Debug)]
pub struct SqliteCopy {
    path: PathBuf,
    connection: Connection,
    statements: PerDataset<Statements>,
    identity: (u64, u64),
    server: String,
    /// Datasets that are loaded before anything else, whatever token they have.
    to_reload: Vec<Dataset>,
    /// Whether the content is another service's until the first load.
    is_foreign: bool,
    _lock: File,
}

impl SqliteCopy {
    /// Opens the copy of a service's content, or makes one. With `reload` all is loaded anew, and the copy may have been
    /// another service's.
    ///
    /// # Errors
    /// When the file is something else, of a newer format, a copy of another service, or in use by another pull; it is left
    /// untouched then.
    pub fn open(path: &Path, server: &ServerUrl, reload: bool) -> Result<SqliteCopy, PullError> {
        let opened = open(path)?;
        let server = server.to_string();
        let is_foreign = opened.server.as_ref().is_some_and(|other| *other != server);
        if let Some(other) = opened.server.filter(|_| is_foreign && !reload) {
            return Err(PullError::Unusable(format!(
                "{} is a copy of {other}, not of {server}; give another path, or --reload to replace its content by what \
                 {server} has",
                path.display()
            )));
        }
        Ok(SqliteCopy {
            path: path.to_owned(),
            connection: opened.connection,
            statements: PerDataset::of(Statements::new),
            identity: opened.identity,
            server,
            to_reload: if reload { Dataset::ALL.to_vec() } else { Vec::new() },
            is_foreign,
            _lock: opened.lock,
        })
    }

    fn fail(&self, error: &rusqlite::Error) -> PullError {
        failure(&self.path, error)
    }
}

impl Target for SqliteCopy {
    fn position(&mut self, dataset: Dataset) -> Result<Option<Position>, PullError> {
        if self.to_reload.contains(&dataset) {
            return Ok(None);
        }
        let read = self.connection.query_row(
            "SELECT token, records, coalesce(unixepoch(verified_at), 0) FROM sync WHERE dataset = ?",
            [dataset.as_str()],
            |row| {
                let records: i64 = row.get(1)?;
                Ok(Position { token: row.get(0)?, records: records.unsigned_abs(), verified_at: row.get(2)? })
            },
        );
        read.optional().map_err(|error| self.fail(&error))
    }

    fn apply(&mut self, dataset: Dataset, page: &Page, events: &dyn Events) -> Result<(), PullError> {
        let statements = &self.statements[dataset];
        let transaction = begin(&self.path, &mut self.connection)?;
        let mut rows = Rows::new(&self.path, &transaction, statements, Mode::Keep);
        let mut change: i64 = 0;
        // The full-text index takes ids that rise in one go.
        let mut entries: Vec<&Entry> = page.entries.iter().collect();
        entries.sort_by_key(|entry| entry.id);
        for entry in entries {
            if entry.is_removal {
                // A tombstone may concern a record that the copy never had.
                if rows.remove(entry.id)? {
                    events.change(dataset, &entry.json)?;
                    change -= 1;
                }
            } else {
                events.change(dataset, &entry.json)?;
                change += i64::from(rows.put(entry.id, &entry.json)?);
            }
        }
        rows.sweep()?;
        let is_changed = !page.entries.is_empty();
        let save = transaction.execute(
            "UPDATE sync SET token = ?2, records = records + ?3, checked_at = ?4,
             changed_at = CASE WHEN ?5 THEN ?4 ELSE changed_at END WHERE dataset = ?1",
            (dataset.as_str(), &page.token, change, now().to_string(), is_changed),
        );
        save.and_then(|_| transaction.commit()).map_err(|error| failure(&self.path, &error))
    }

    fn load(
        &mut self,
        dataset: Dataset,
        export: &mut Export<'_>,
        anew: bool,
        events: &dyn Events,
    ) -> Result<(), PullError> {
        let statements = &self.statements[dataset];
        let path = &self.path;
        let is_foreign = self.is_foreign;
        let transaction = begin(path, &mut self.connection)?;
        let fail = |error: rusqlite::Error| failure(path, &error);
        if is_foreign {
            forget_others(&transaction, &self.statements, dataset).map_err(fail)?;
        }
        if anew {
            clear_links(&transaction, statements).map_err(fail)?;
        }
        let is_empty = !transaction
            .prepare(&format!("SELECT 1 FROM {dataset}"))
            .and_then(|mut any| any.exists([]))
            .map_err(fail)?;
        let makes_index = anew || is_empty;
        let mut rows = Rows::new(path, &transaction, statements, if makes_index { Mode::Anew } else { Mode::Keep });
        // Somebody else may have written ids that no service has, so all that the column can hold are looked at.
        let (mut next, mut came): (i64, u32) = (i64::MIN, 0);
        while let Some(entry) = export.next_record()? {
            remove_ids(&mut rows, dataset, next..=entry.id - 1, events)?;
            let before = if is_empty { None } else { rows.json(entry.id)? };
            let is_same = before.as_deref() == Some(entry.json.as_bytes());
            if !is_same {
                events.change(dataset, &entry.json)?;
            }
            if !is_same || anew {
                rows.put(entry.id, &entry.json)?;
            }
            (next, came) = (entry.id + 1, came + 1);
            if came % PROGRESS_EVERY == 0 {
                events.progress(dataset, came.into(), export.records);
            }
        }
        remove_ids(&mut rows, dataset, next..=i64::MAX, events)?;
        rows.sweep()?;
        events.progress(dataset, came.into(), export.records);
        // What was written anew is what was compared; what was left as it stood, was not in all of its tables.
        let time = now().to_string();
        let before = "SELECT verified_at FROM sync WHERE dataset = ?";
        let finish = || -> rusqlite::Result<()> {
            if anew {
                for kind in linked() {
                    let own = format!("{}.{}", kind.table, kind.own_key());
                    transaction.execute_batch(&format!(
                        "DELETE FROM {} WHERE true{}",
                        kind.table,
                        no_link(kind, &own)
                    ))?;
                }
            }
            if makes_index {
                let rebuild = format!("INSERT INTO {dataset}_search ({dataset}_search) VALUES ('rebuild')");
                transaction.execute_batch(&rebuild)?;
            }
            let verified_at = if anew {
                Some(time.clone())
            } else {
                transaction.query_row(before, [dataset.as_str()], |row| row.get(0)).optional()?.flatten()
            };
            transaction.execute("INSERT OR REPLACE INTO copy VALUES ('server', ?)", [&self.server])?;
            transaction.execute(
                "INSERT OR REPLACE INTO sync VALUES (?1, ?2, ?3, ?4, ?4, ?4, ?5)",
                (dataset.as_str(), &export.token, came, &time, verified_at),
            )?;
            Ok(())
        };
        finish().and_then(|()| transaction.commit()).map_err(fail)?;
        self.is_foreign = false;
        self.to_reload.retain(|other| *other != dataset);
        Ok(())
    }

    fn digest(&mut self, dataset: Dataset) -> Result<ContentDigest, PullError> {
        let read = || -> rusqlite::Result<ContentDigest> {
            let mut hasher = Hasher::default();
            let mut statement = self.connection.prepare(&format!("SELECT json FROM {dataset} ORDER BY id"))?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                hasher.add(bytes_of(row.get_ref(0)?));
            }
            Ok(hasher.finish())
        };
        read().map_err(|error| self.fail(&error))
    }

    fn find_fault(&mut self, dataset: Dataset) -> Result<Option<String>, PullError> {
        check::find_fault(&self.connection, &self.statements[dataset]).map_err(|error| self.fail(&error))
    }

    fn set_verified(&mut self, dataset: Dataset) -> Result<(), PullError> {
        let note = "UPDATE sync SET verified_at = ? WHERE dataset = ?";
        let noted = self.connection.execute(note, (now().to_string(), dataset.as_str()));
        noted.map(|_| ()).map_err(|error| self.fail(&error))
    }

    fn check_place(&self) -> Result<(), PullError> {
        if identity(&self.path)? == self.identity {
            return Ok(());
        }
        Err(PullError::Unusable(format!(
            "{}: another file has taken the copy's place meanwhile; run again to go on with that one",
            self.path.display()
        )))
    }
}

fn begin<'c>(path: &Path, connection: &'c mut Connection) -> Result<Transaction<'c>, PullError> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| failure(path, &error))
}

/// Removes the records in a range of ids, which an export does not have.
fn remove_ids(
    rows: &mut Rows<'_>,
    dataset: Dataset,
    ids: RangeInclusive<i64>,
    events: &dyn Events,
) -> Result<(), PullError> {
    let (mut from, until) = ids.into_inner();
    loop {
        let found = rows.ids_in(&(from..=until))?;
        let Some(last) = found.last() else { return Ok(()) };
        for id in &found {
            events.change(dataset, &format!("{{\"id\":{id},\"deleted\":true,\"changed_at\":null}}"))?;
            rows.remove(*id)?;
        }
        match last.checked_add(1) {
            Some(next) => from = next,
            None => return Ok(()),
        }
    }
}

/// Empties the link tables of a dataset, whatever stands in them.
fn clear_links(connection: &Connection, statements: &Statements) -> rusqlite::Result<()> {
    statements.links.iter().try_for_each(|(_, table)| connection.execute_batch(&format!("DELETE FROM {table}")))
}

/// Removes what another service said of the other datasets.
fn forget_others(connection: &Connection, statements: &PerDataset<Statements>, kept: Dataset) -> rusqlite::Result<()> {
    for other in statements.values().filter(|other| other.dataset != kept) {
        let dataset = other.dataset;
        clear_links(connection, other)?;
        connection.execute_batch(&format!(
            "DELETE FROM {dataset}; DELETE FROM sync WHERE dataset = '{dataset}';
             INSERT INTO {dataset}_search ({dataset}_search) VALUES ('rebuild')"
        ))?;
    }
    Ok(())
}
