//! Checking all that a bucket holds: every entry's chain, every hash, and whether the rows come out as they should.

use std::ops::RangeInclusive;
use std::path::Path;

use super::load::{EndRule, Load, Loaded, check_format, commits_of, mark_at, place_of};
use super::log::{End, LogReader, Place, StateAt};
use super::trouble::Trouble;
use crate::replicate::entry::Entry;
use crate::replicate::layout;
use crate::store::file::replace::BackupReport;

/// What was looked at.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The slots of the states, the oldest first.
    pub states: Vec<u64>,
    /// The entries after the oldest state.
    pub entries: u64,
    /// The slots that are missing where the log was started over: no instant in them can be restored.
    pub given_up: Vec<RangeInclusive<u64>>,
    /// The last slot.
    pub slot: u64,
    /// The last seq.
    pub seq: u64,
    /// What the full check of the result looked at.
    pub result: BackupReport,
}

/// Replays the log from the oldest state that is kept to its end, compares what comes out with each later state, and checks
/// the result in full. Where the log was started over across missing entries, it goes on from there. Files are made beside
/// `path`, where a copy of the result is left.
///
/// # Errors
/// [`Trouble`]: the first thing that does not fit.
pub fn audit(log: &LogReader, path: &Path) -> Result<Audit, Trouble> {
    let mut states = log.state_slots()?;
    states.reverse();
    let Some(oldest) = states.first().copied() else { return Err(Trouble::Nothing(log.url())) };
    let load = Load { log, path, id: None, until: None, end: EndRule::Confirmed, go_on: &|| true };
    let missing = |name: String| Trouble::object(name, "it is not there");
    let manifest = |slot| log.manifest(slot)?.ok_or_else(|| missing(layout::state(slot)));
    let first = StateAt::of_manifest(manifest(oldest)?);
    let id = first.place.id;
    // The entry that the oldest state is of: replicas that stand there look for it.
    let name = layout::log(oldest);
    if log.entry(oldest)?.ok_or_else(|| missing(name.clone()))?.hash != first.place.hash {
        return Err(Trouble::object(name, "it is not the entry that the oldest state is of"));
    }
    let mut loaded = load.load(first)?;
    let (mut entries, mut given_up) = (0, Vec::new());
    let newest = states.last().copied().unwrap_or(oldest);
    loop {
        let here = place_of(&loaded.mark);
        let Some((slot, entry)) = next_entry(log, here, newest)? else { break };
        if slot > here.slot + 1 {
            given_up.push(here.slot + 1..=slot - 1);
        }
        let place = Place { slot: slot - 1, ..here }.check_next(&entry)?;
        match StateAt::of_entry(&entry.header, entry.hash) {
            Some(state) => loaded = load.load(state)?,
            None => {
                let name = layout::log(slot);
                check_format(&entry, loaded.schema)?;
                let mark = mark_at(log.url(), place, entry.header.digest);
                let applied = loaded.draft.apply(&commits_of(&entry), &mark);
                applied.map_err(|error| Trouble::of_apply(error, &name))?;
                loaded = Loaded { mark, head: entry.header.head(), ..loaded };
            }
        }
        entries += 1;
        if states.contains(&slot) {
            let state = StateAt::of_manifest(manifest(slot)?);
            let found = (state.place, state.head, state.digest);
            if found != (place_of(&loaded.mark), loaded.head, loaded.mark.digest) || state.place.id != id {
                return Err(Trouble::object(layout::state(slot), "it is not what the log comes to"));
            }
            log.parts(&state.parts, &mut |_, _| Ok(()))?;
        }
    }
    let result = loaded.draft.write_backup(path)?;
    Ok(Audit { states, entries, given_up, slot: loaded.mark.slot, seq: loaded.head.seq, result })
}

/// The entry after a position, and its slot: the next one, or where entries are missing the one that starts the log over.
/// `None` at the log's end, which is not before slot `newest`.
fn next_entry(log: &LogReader, here: Place, newest: u64) -> Result<Option<(u64, Entry)>, Trouble> {
    let slot = here.slot + 1;
    if let Some(entry) = log.entry(slot)? {
        return Ok(Some((slot, entry)));
    }
    for later in log.slots_after(here.slot)? {
        if let Some(entry) = log.entry(later)?.filter(|entry| entry.header.starts_over()) {
            return Ok(Some((later, entry)));
        }
    }
    if slot <= newest {
        return Err(Trouble::Missing { slot, later: newest });
    }
    match log.end_after(here)? {
        End::Confirmed => Ok(None),
        End::More => next_entry(log, here, newest),
        End::Before { .. } => Err(Trouble::object(layout::log(here.slot), "it was there a moment ago and is gone")),
    }
}
