//! Checking all objects in a bucket: the chain of entries, all hashes, and the resulting rows.

use std::ops::RangeInclusive;
use std::path::Path;

use super::load::{LoadedState, StateLoader};
use super::log::{LogReader, check_next};
use super::{ReplicaError, Result};
use crate::replicate::entry::LogEntry;
use crate::replicate::layout;
use crate::store::file::replace::BackupReport;

/// The result of an audit.
#[allow(missing_docs, reason = "the names explain the other fields")]
#[derive(Debug)]
pub struct Audit {
    /// The slots of the states, oldest first.
    pub states: Vec<u64>,
    /// The entries after the oldest state.
    pub entries: u64,
    /// The slots before a whole state that lack an entry or its whole state. Points in time within them cannot be
    /// restored.
    pub given_up: Vec<RangeInclusive<u64>>,
    pub slot: u64,
    pub seq: u64,
    pub result: BackupReport,
}

/// Replays the log from the oldest state to its end, compares the result with each later state, and checks it in full.
/// Continues after a gap with the next whole state. The draft is next to `path`, which becomes a copy of the result.
///
/// # Errors
/// The first problem that was found.
pub fn audit(log: &LogReader, path: &Path) -> Result<Audit> {
    let mut states = log.needed_state_slots()?;
    let newest = states[0];
    states.reverse();
    let load = StateLoader {
        must_confirm: true,
        ..StateLoader::new(log, path, &|| true)
    };
    let mut loaded = loop {
        // Replicas at this position need the entry of the oldest state.
        let name = layout::log(states[0]);
        let first = log
            .entry(states[0])?
            .ok_or_else(|| ReplicaError::object(name, "it is missing"))?;
        match log.state_of(&first).and_then(|state| load.load(state)) {
            // Replaying begins after an upgrade to this format, or to these fields.
            Err(ReplicaError::OlderSchema(_) | ReplicaError::OtherFields) if states.len() > 1 => {
                states.remove(0)
            }
            loaded => break loaded?,
        };
    };
    let mut entries = 0;
    let mut given_up = Vec::new();
    while let Some(entry) = or_later_state(load.next_entry(&loaded, newest), log, &loaded)? {
        let slot = entry.header.slot;
        let mut before = loaded.mark.clone();
        if slot > before.slot + 1 {
            given_up.push(before.slot + 1..=slot - 1);
            before.slot = slot - 1;
            before.hash = entry.header.parent;
        }
        let next = check_next(&before, &entry)?;
        if before != loaded.mark || entry.header.replaces(loaded.head, loaded.mark.digest) {
            loaded = load.load(log.state_of(&entry)?)?;
        } else {
            load.apply(&mut loaded, &entry, next)?;
            // The rows have the digest of the entry. So they are those of a state that has it too.
            if states.contains(&slot) {
                log.parts(&log.state_of(&entry)?.parts, |_, _| Ok(()))?;
            }
        }
        entries += 1;
    }
    let result = loaded.draft.write_backup(path)?;
    Ok(Audit {
        states,
        entries,
        given_up,
        slot: loaded.mark.slot,
        seq: loaded.head.seq,
        result,
    })
}

/// Returns the next entry. If it is missing, or its state is needed and missing, returns the first later entry that has
/// a state, if there is one.
fn or_later_state(
    next: Result<Option<LogEntry>>,
    log: &LogReader,
    loaded: &LoadedState,
) -> Result<Option<LogEntry>> {
    let needs_state = match &next {
        Ok(Some(entry)) => entry.header.replaces(loaded.head, loaded.mark.digest),
        next => matches!(next, Err(ReplicaError::Missing { .. })),
    };
    if needs_state {
        for later in log.slots_after(loaded.mark.slot)? {
            if log.manifest(later)?.is_some()
                && let Some(entry) = log.entry(later)?
            {
                return Ok(Some(entry));
            }
        }
    }
    next
}
