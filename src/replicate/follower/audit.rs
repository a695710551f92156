//! Checking all objects in a bucket: the chain of entries, all hashes, and the resulting rows.

use std::ops::RangeInclusive;
use std::path::Path;

use super::error::FollowError;
use super::load::{LoadedState, StateLoader, commits_of, mark_at, position_of};
use super::log::{EndCheck, LogPosition, LogReader, WholeState};
use crate::replicate::entry::LogEntry;
use crate::replicate::layout;
use crate::store::file::replace::BackupReport;

/// The result of an audit.
#[allow(missing_docs, reason = "the names explain the other fields")]
#[derive(Clone, Debug)]
pub struct Audit {
    /// The slots of the states, oldest first.
    pub states: Vec<u64>,
    /// The entries after the oldest state.
    pub entries: u64,
    /// The missing slots before a whole state. Points in time within them cannot be restored.
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
pub fn audit(log: &LogReader, path: &Path) -> Result<Audit, FollowError> {
    let mut states = log.state_slots()?;
    states.reverse();
    // Replaying begins after an upgrade to this format.
    let is_older = |slot| matches!(log.manifest(slot), Err(FollowError::OlderSchema { .. }));
    let older = states.iter().take_while(|slot| is_older(**slot)).count();
    states.drain(..older.min(states.len().saturating_sub(1)));
    let Some(oldest) = states.first().copied() else { return Err(FollowError::Nothing(log.url())) };
    let load = StateLoader::new(log, path, &|| true);
    let missing = |name: String| FollowError::object(name, "it is missing");
    let manifest = |slot| log.manifest(slot)?.ok_or_else(|| missing(layout::state(slot)));
    let first = WholeState::of_manifest(manifest(oldest)?);
    let id = first.position.id;
    // Replicas at this position need the entry of the oldest state.
    let name = layout::log(oldest);
    if log.entry(oldest)?.ok_or_else(|| missing(name.clone()))?.hash != first.position.hash {
        return Err(FollowError::object(name, "it is not the entry that the oldest state names"));
    }
    let mut loaded = load.load(first)?;
    let (mut entries, mut given_up) = (0, Vec::new());
    let differs = |slot| FollowError::object(layout::state(slot), "it differs from the result of replaying the log");
    loop {
        let here = position_of(&loaded.mark);
        let Some((slot, entry)) = next_entry(log, here, &states)? else { break };
        let mut state = WholeState::of_entry(&entry.header, entry.hash);
        let mut before = here;
        if slot > here.slot + 1 {
            given_up.push(here.slot + 1..=slot - 1);
            before = LogPosition { slot: slot - 1, hash: entry.header.parent, ..here };
            if state.is_none() {
                state = Some(WholeState::of_manifest(manifest(slot)?));
            }
        }
        let position = before.check_next(&entry)?;
        match state {
            Some(state) if state.position != position => return Err(differs(slot)),
            Some(state) => loaded = load.load(state)?,
            None => {
                let name = layout::log(slot);
                let mark = mark_at(log.url(), position, entry.header.digest);
                let applied = loaded.draft.apply(&commits_of(&entry), &mark);
                applied.map_err(|error| FollowError::of_apply(error, &name))?;
                loaded = LoadedState { mark, head: entry.header.head(), ..loaded };
            }
        }
        entries += 1;
        if states.contains(&slot) {
            let state = WholeState::of_manifest(manifest(slot)?);
            let found = (state.position, state.head, state.digest);
            if found != (position_of(&loaded.mark), loaded.head, loaded.mark.digest) || state.position.id != id {
                return Err(differs(slot));
            }
            log.parts(&state.parts, &mut |_, _| Ok(()))?;
        }
    }
    let result = loaded.draft.write_backup(path)?;
    Ok(Audit { states, entries, given_up, slot: loaded.mark.slot, seq: loaded.head.seq, result })
}

/// Returns the next entry and its slot. After a gap, that is the first entry that starts the log over or has a state in
/// its slot. `None` at the end of the log, which is not before the last of `states`.
fn next_entry(log: &LogReader, here: LogPosition, states: &[u64]) -> Result<Option<(u64, LogEntry)>, FollowError> {
    let slot = here.slot + 1;
    if let Some(entry) = log.entry(slot)? {
        return Ok(Some((slot, entry)));
    }
    for later in log.slots_after(here.slot)? {
        let is_whole = |entry: &LogEntry| entry.header.starts_over() || states.contains(&later);
        if let Some(entry) = log.entry(later)?.filter(is_whole) {
            return Ok(Some((later, entry)));
        }
    }
    if let Some(newest) = states.last().filter(|newest| slot <= **newest) {
        return Err(FollowError::Missing { slot, later: *newest });
    }
    match log.end_after(here)? {
        EndCheck::Confirmed => Ok(None),
        EndCheck::More => next_entry(log, here, states),
        EndCheck::Before { .. } => {
            Err(FollowError::object(layout::log(here.slot), "it was there a moment ago and is gone"))
        }
    }
}
