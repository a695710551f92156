//! Reading the end of the log.

use std::fmt::Display;

use super::error::PublishError;
use super::patience::Patience;
use crate::bucket::{Bucket, Listed};
use crate::model::{Head, RowDigest};
use crate::replicate::entry::{self, Header};
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::replicate::state::{Manifest, PartRef};

/// How often the newest state is looked for anew when another publisher sweeps meanwhile.
const TRIES: usize = 5;

/// Where the log ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    pub slot: u64,
    pub hash: Hash,
    pub head: Head,
    pub digest: RowDigest,
}

impl End {
    pub fn of(header: &Header, hash: Hash) -> End {
        End { slot: header.slot, hash, head: header.head(), digest: header.digest }
    }
}

/// The end of the log, and what stands since the newest state.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub header: Header,
    pub hash: Hash,
    /// The newest state; `None` when the log's first entry was put and its manifest was not.
    pub manifest: Option<Manifest>,
    pub growth: Growth,
    /// A part of the newest state that is not there.
    pub lost_part: Option<String>,
}

/// How much log there is since the newest state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Growth {
    /// Entries after the newest state.
    pub entries: u64,
    /// Their bytes in the store.
    pub bytes: u64,
    /// The state's bytes in the store.
    pub state_bytes: u64,
}

impl Found {
    pub fn end(&self) -> End {
        End::of(&self.header, self.hash)
    }

    /// The parts of the last entry's state, if that has no manifest yet.
    pub fn lacks_manifest(&self) -> bool {
        self.header.state.is_some() && self.manifest.as_ref().is_none_or(|newest| newest.slot < self.header.slot)
    }
}

/// What is wrong with an object.
pub(super) fn unusable(bucket: &Bucket, name: &str, detail: impl ToString) -> PublishError {
    PublishError::Object { url: bucket.url().to_string(), name: name.to_owned(), detail: detail.to_string() }
}

/// The error of an entry that cannot be decoded.
pub(super) fn unusable_entry(bucket: &Bucket, name: &str, error: impl Display) -> PublishError {
    let detail =
        format!("{error}. Find out who wrote it: put back the entry that belongs there, or delete it if none does");
    unusable(bucket, name, detail)
}

/// The error of an entry that is missing although later ones exist.
fn lost(bucket: &Bucket, name: &str) -> PublishError {
    PublishError::Missing { url: bucket.url().to_string(), name: name.to_owned() }
}

/// Reads an entry; `None` if there is none.
pub(super) fn read_entry(
    bucket: &Bucket,
    patience: &mut Patience,
    slot: u64,
) -> Result<Option<(Header, Hash)>, PublishError> {
    let name = layout::log(slot);
    let Some(found) = patience.ask(|| bucket.get(&name))? else { return Ok(None) };
    let read = entry::decode(&found.bytes).map_err(|error| unusable_entry(bucket, &name, error))?;
    if read.header.slot != slot {
        return Err(unusable(bucket, &name, format!("it is of slot {}", read.header.slot)));
    }
    Ok(Some((read.header, read.hash)))
}

/// Reads a manifest; `None` if there is none.
pub(super) fn read_manifest(
    bucket: &Bucket,
    patience: &mut Patience,
    slot: u64,
) -> Result<Option<Manifest>, PublishError> {
    let name = layout::state(slot);
    let Some(found) = patience.ask(|| bucket.get(&name))? else { return Ok(None) };
    let (manifest, _) = Manifest::decode(&found.bytes).map_err(|error| unusable(bucket, &name, error))?;
    if manifest.slot != slot {
        return Err(unusable(bucket, &name, format!("it is of slot {}", manifest.slot)));
    }
    Ok(Some(manifest))
}

/// The slots of all manifests, ascending.
pub(super) fn list_states(bucket: &Bucket, patience: &mut Patience) -> Result<Vec<(u64, Listed)>, PublishError> {
    let listed = patience.ask(|| bucket.list(layout::STATES, None))?;
    Ok(listed.into_iter().filter_map(|object| Some((layout::state_slot(&object.name)?, object))).collect())
}

/// Reads the end of the log; `None` if there is no log.
///
/// # Errors
/// [`PublishError::Object`] for a log that lacks an entry or a state, and what the bucket says.
pub(super) fn read_end(bucket: &Bucket, patience: &mut Patience) -> Result<Option<Found>, PublishError> {
    for _ in 0..TRIES {
        let newest = list_states(bucket, patience)?.last().map(|(slot, _)| *slot);
        let manifest = match newest {
            None => None,
            Some(slot) => match read_manifest(bucket, patience, slot)? {
                Some(manifest) => Some(manifest),
                // It was swept meanwhile, so there are newer ones.
                None => continue,
            },
        };
        return read_after(bucket, patience, manifest);
    }
    let name = layout::STATES;
    Err(unusable(bucket, name, "the newest state is listed and cannot be read; look at the store's health"))
}

fn read_after(
    bucket: &Bucket,
    patience: &mut Patience,
    manifest: Option<Manifest>,
) -> Result<Option<Found>, PublishError> {
    let state_slot = manifest.as_ref().map(|manifest| manifest.slot);
    let entries = list_log(bucket, patience, state_slot.map(|slot| slot.saturating_sub(1)))?;
    let first = entries.first().map(|(slot, _)| *slot);
    let Some(mut slot) = state_slot.or(first) else { return Ok(None) };
    let mut growth = Growth::default();
    for (expected, (found, bytes)) in (slot..).zip(&entries) {
        if *found != expected {
            return Err(lost(bucket, &layout::log(expected)));
        }
        slot = *found;
        if Some(slot) != state_slot {
            growth.entries += 1;
            growth.bytes += bytes;
        }
    }
    let Some(mut last) = read_entry(bucket, patience, slot)? else { return Err(lost(bucket, &layout::log(slot))) };
    // What was put since the list was made.
    while let Some(next) = read_entry(bucket, patience, last.0.slot + 1)? {
        growth.entries += 1;
        last = next;
    }
    let (header, hash) = last;
    let mut lost_part = None;
    if let Some(manifest) = &manifest {
        check_fit(bucket, &header, hash, manifest)?;
        let state = StateObjects::of(manifest.slot, &manifest.parts);
        let listed = state.list(bucket, patience)?;
        growth.state_bytes = listed.iter().map(|part| part.bytes).sum();
        lost_part = state.lost_of(&listed);
    }
    Ok(Some(Found { header, hash, manifest, growth, lost_part }))
}

/// The slots of the entries after one, ascending, and their bytes in the store.
pub(super) fn list_log(
    bucket: &Bucket,
    patience: &mut Patience,
    after: Option<u64>,
) -> Result<Vec<(u64, u64)>, PublishError> {
    let after = after.map(layout::log);
    let listed = patience.ask(|| bucket.list(layout::LOG, after.as_deref()))?;
    Ok(listed.iter().filter_map(|object| Some((layout::log_slot(&object.name)?, object.bytes))).collect())
}

/// The slots of the states from a slot on, ascending.
pub(super) fn later_states(bucket: &Bucket, patience: &mut Patience, slot: u64) -> Result<Vec<u64>, PublishError> {
    let states = list_states(bucket, patience)?;
    Ok(states.into_iter().map(|(slot, _)| slot).filter(|later| *later >= slot).collect())
}

/// The last slot that the bucket lists an entry or a state of; 0 if there is none. Entries before it may be missing.
pub(super) fn last_listed(bucket: &Bucket, patience: &mut Patience) -> Result<u64, PublishError> {
    let entry = list_log(bucket, patience, None)?.last().map(|(slot, _)| *slot);
    let state = list_states(bucket, patience)?.last().map(|(slot, _)| *slot);
    Ok(entry.max(state).unwrap_or_default())
}

/// The objects of a whole state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateObjects {
    /// The slot after which the state is.
    pub slot: u64,
    /// The names of its parts.
    parts: Vec<String>,
}

impl StateObjects {
    pub fn of(slot: u64, parts: &[PartRef]) -> StateObjects {
        StateObjects { slot, parts: parts.iter().map(|part| part.name.clone()).collect() }
    }

    /// The parts that the bucket lists.
    fn list(&self, bucket: &Bucket, patience: &mut Patience) -> Result<Vec<Listed>, PublishError> {
        let Some((folder, _)) = self.parts.first().and_then(|part| part.rsplit_once('/')) else {
            return Ok(Vec::new());
        };
        Ok(patience.ask(|| bucket.list(folder, None))?)
    }

    /// A part that the bucket does not list; `None` if all are there.
    pub fn lost_part(&self, bucket: &Bucket, patience: &mut Patience) -> Result<Option<String>, PublishError> {
        Ok(self.lost_of(&self.list(bucket, patience)?))
    }

    fn lost_of(&self, listed: &[Listed]) -> Option<String> {
        let is_lost = |part: &&String| listed.iter().all(|listed| listed.name != **part);
        self.parts.iter().find(is_lost).cloned()
    }
}

/// Fails unless the last entry and the newest state are of one log.
fn check_fit(bucket: &Bucket, header: &Header, hash: Hash, manifest: &Manifest) -> Result<(), PublishError> {
    let fits = manifest.id == header.id && (manifest.slot != header.slot || manifest.entry_hash == hash);
    if fits {
        return Ok(());
    }
    let detail = "it does not belong to the newest state: two logs are mixed here; publish to another prefix";
    Err(unusable(bucket, &layout::log(header.slot), detail))
}
