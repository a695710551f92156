//! Checking all that a bucket holds: every entry's chain, every hash, and whether the rows come out as they should.

use std::path::Path;

use super::load::{Load, Loaded, commits_of, mark_at, place_of};
use super::log::{LogReader, StateAt};
use super::trouble::Trouble;
use crate::replicate::layout;
use crate::store::file::replace::BackupReport;

/// What was looked at.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The slots of the states, the oldest first.
    pub states: Vec<u64>,
    /// The entries after the oldest state.
    pub entries: u64,
    /// The last slot.
    pub slot: u64,
    /// The last seq.
    pub seq: u64,
    /// What the full check of the result looked at.
    pub result: BackupReport,
}

/// Replays the log from the oldest state that is kept to its end, compares what comes out with each later state, and checks
/// the result in full. Files are made beside `path`, where a copy of the result is left.
///
/// # Errors
/// [`Trouble`]: the first thing that does not fit.
pub fn audit(log: &LogReader, path: &Path) -> Result<Audit, Trouble> {
    let mut states = log.state_slots()?;
    states.reverse();
    let Some(oldest) = states.first().copied() else { return Err(Trouble::Nothing(log.url())) };
    let load = Load { log, path, id: None, until: None, go_on: &|| true };
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
    let mut entries = 0;
    let newest = states.last().copied().unwrap_or(oldest);
    loop {
        let slot = loaded.mark.slot + 1;
        let name = layout::log(slot);
        let Some(entry) = log.entry(slot)? else {
            if slot <= newest {
                return Err(missing(name));
            }
            break;
        };
        let place = place_of(&loaded.mark).check_next(&entry)?;
        match StateAt::of_entry(&entry.header, entry.hash) {
            Some(state) => loaded = load.load(state)?,
            None => {
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
    Ok(Audit { states, entries, slot: loaded.mark.slot, seq: loaded.head.seq, result })
}
