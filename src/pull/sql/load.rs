//! Makes the records equal to those of an export, within one transaction.

use std::collections::VecDeque;

use sha2::{Digest as _, Sha256};

use super::database::{Database, Search};
use super::rows::{Writer, sweep_all};
use super::schema::Tables;
use crate::pull::error::PullError;
use crate::pull::export::Export;
use crate::pull::target::Events;

/// The number of records between two reports of progress.
const PROGRESS_EVERY: u64 = 1000;

/// The number of digests that are read at once: another program may have written any number of rows.
const DIGESTS_AT_ONCE: usize = 1000;

/// Writes the records of an export that differ, or all of them if `anew`, and removes the others. Returns the number of
/// records in the export.
pub fn load<D: Database>(
    database: &mut D,
    tables: &Tables,
    export: &mut Export<'_>,
    anew: bool,
    events: &dyn Events,
) -> Result<u64, PullError> {
    let dataset = tables.dataset;
    if anew {
        clear_links(database, tables)?;
    }
    let rebuilds = anew || !database.has(dataset.as_str(), "true")?;
    let mut writer = Writer::new(tables, if rebuilds { Search::Rebuilt } else { Search::Updated });
    let (mut held, mut came) = (Held::new(tables), 0);
    while let Some(entry) = export.next_record()? {
        remove_until(database, &mut held, &mut writer, entry.id - 1, events)?;
        let before = held.next_until(database, entry.id)?;
        let is_same = before.is_some_and(|(_, digest)| *digest == *Sha256::digest(entry.json.as_bytes()));
        if !is_same {
            events.change(dataset, &entry.json)?;
        }
        if !is_same || anew {
            writer.put(database, entry.id, entry.json)?;
        }
        came += 1;
        if came % PROGRESS_EVERY == 0 {
            events.progress(dataset, came, export.records);
        }
    }
    remove_until(database, &mut held, &mut writer, i64::MAX, events)?;
    writer.finish(database)?;
    events.progress(dataset, came, export.records);
    if anew {
        sweep_all(database)?;
    }
    if rebuilds {
        database.rebuild_search(dataset)?;
    }
    Ok(came)
}

/// Empties the link tables of a dataset, whatever they hold.
pub fn clear_links<D: Database>(database: &mut D, tables: &Tables) -> Result<(), PullError> {
    tables.links.iter().try_for_each(|links| database.batch(&format!("DELETE FROM {}", links.pairs.name)))
}

/// Removes the records up to an id, because the export does not have them.
fn remove_until<D: Database>(
    database: &mut D,
    held: &mut Held<'_>,
    writer: &mut Writer<'_>,
    last: i64,
    events: &dyn Events,
) -> Result<(), PullError> {
    while let Some((id, _)) = held.next_until(database, last)? {
        let tombstone = format!("{{\"id\":{id},\"deleted\":true,\"changed_at\":null}}");
        events.change(held.tables.dataset, &tombstone)?;
        writer.remove(database, id)?;
    }
    Ok(())
}

/// The records of a copy in the order of ids, each with the digest of its JSON.
struct Held<'a> {
    tables: &'a Tables,
    read: VecDeque<(i64, Vec<u8>)>,
    /// The first id that was not read yet; `None` after the last one.
    next: Option<i64>,
}

impl<'a> Held<'a> {
    fn new(tables: &'a Tables) -> Held<'a> {
        // Another program may have written ids that no service has, so reading begins with the smallest number.
        Held { tables, read: VecDeque::new(), next: Some(i64::MIN) }
    }

    /// Returns the next record if its id is not greater than `last`.
    fn next_until<D: Database>(&mut self, database: &mut D, last: i64) -> Result<Option<(i64, Vec<u8>)>, PullError> {
        if let Some(from) = self.next
            && self.read.is_empty()
        {
            self.read = database.digests(self.tables.dataset, from, DIGESTS_AT_ONCE)?.into();
            self.next = self.read.back().and_then(|(id, _)| id.checked_add(1));
        }
        Ok(self.read.pop_front_if(|(id, _)| *id <= last))
    }
}
