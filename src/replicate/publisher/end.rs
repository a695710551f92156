//! Reading the end of the log.

use std::fmt::Display;

use super::error::PublishError;
use super::retry::Retry;
use crate::bucket::{Bucket, ListedObject};
use crate::model::{Head, RowDigest};
use crate::replicate::entry::{self, EntryHeader};
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::replicate::state::{Manifest, PartRef};

/// The maximum number of attempts to read the newest state while another publisher deletes states.
const TRIES: usize = 5;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LastEntry {
    pub slot: u64,
    pub hash: Hash,
    pub head: Head,
    pub digest: RowDigest,
}

impl LastEntry {
    pub fn of(header: &EntryHeader, hash: Hash) -> LastEntry {
        LastEntry { slot: header.slot, hash, head: header.head(), digest: header.digest }
    }
}

#[derive(Clone, Debug)]
pub(super) struct FoundLog {
    pub header: EntryHeader,
    pub hash: Hash,
    /// The newest state; `None` if a publisher died between the first entry and its manifest.
    pub manifest: Option<Manifest>,
    pub growth: Growth,
    /// The name of a missing part of the newest state.
    pub lost_part: Option<String>,
}

/// The size of the log since the newest state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Growth {
    /// Entries after the newest state.
    pub entries: u64,
    /// Their bytes in the store.
    pub bytes: u64,
    /// The state's bytes in the store.
    pub state_bytes: u64,
}

impl FoundLog {
    pub fn end(&self) -> LastEntry {
        LastEntry::of(&self.header, self.hash)
    }

    /// Whether the last entry is a whole state without a manifest.
    pub fn lacks_manifest(&self) -> bool {
        self.header.state.is_some() && self.manifest.as_ref().is_none_or(|newest| newest.slot < self.header.slot)
    }
}

pub(super) fn unusable(bucket: &Bucket, name: &str, detail: impl ToString) -> PublishError {
    PublishError::Object { url: bucket.url().to_string(), name: name.to_owned(), detail: detail.to_string() }
}

pub(super) fn unusable_entry(bucket: &Bucket, name: &str, error: impl Display) -> PublishError {
    let detail = format!("{error}. Find out who wrote it. Put back the right entry, or delete it if there is none");
    unusable(bucket, name, detail)
}

/// Returns the error for an entry that is missing although later ones exist.
fn lost(bucket: &Bucket, name: &str) -> PublishError {
    PublishError::Missing { url: bucket.url().to_string(), name: name.to_owned() }
}

pub(super) fn read_entry(
    bucket: &Bucket,
    retry: &mut Retry,
    slot: u64,
) -> Result<Option<(EntryHeader, Hash)>, PublishError> {
    let name = layout::log(slot);
    let Some(found) = retry.run(|| bucket.get(&name))? else { return Ok(None) };
    let read = entry::decode(&found.bytes).map_err(|error| unusable_entry(bucket, &name, error))?;
    if read.header.slot != slot {
        return Err(unusable(bucket, &name, format!("it is of slot {}", read.header.slot)));
    }
    Ok(Some((read.header, read.hash)))
}

pub(super) fn read_manifest(bucket: &Bucket, retry: &mut Retry, slot: u64) -> Result<Option<Manifest>, PublishError> {
    let name = layout::state(slot);
    let Some(found) = retry.run(|| bucket.get(&name))? else { return Ok(None) };
    let (manifest, _) = Manifest::decode(&found.bytes).map_err(|error| unusable(bucket, &name, error))?;
    if manifest.slot != slot {
        return Err(unusable(bucket, &name, format!("it is of slot {}", manifest.slot)));
    }
    Ok(Some(manifest))
}

/// Lists the manifests, by ascending slot.
pub(super) fn list_states(bucket: &Bucket, retry: &mut Retry) -> Result<Vec<(u64, ListedObject)>, PublishError> {
    let listed = retry.run(|| bucket.list(layout::STATES, None))?;
    Ok(listed.into_iter().filter_map(|object| Some((layout::state_slot(&object.name)?, object))).collect())
}

/// Reads the end of the log; `None` if there is no log.
pub(super) fn read_end(bucket: &Bucket, retry: &mut Retry) -> Result<Option<FoundLog>, PublishError> {
    for _ in 0..TRIES {
        let newest = list_states(bucket, retry)?.last().map(|(slot, _)| *slot);
        let manifest = match newest {
            None => None,
            Some(slot) => match read_manifest(bucket, retry, slot)? {
                Some(manifest) => Some(manifest),
                // It was deleted since the list was read, so there are newer ones.
                None => continue,
            },
        };
        return read_after(bucket, retry, manifest);
    }
    let name = layout::STATES;
    Err(unusable(bucket, name, "the newest state is listed but cannot be read; check the health of the store"))
}

fn read_after(
    bucket: &Bucket,
    retry: &mut Retry,
    manifest: Option<Manifest>,
) -> Result<Option<FoundLog>, PublishError> {
    let state_slot = manifest.as_ref().map(|manifest| manifest.slot);
    let entries = list_log(bucket, retry, state_slot.map(|slot| slot.saturating_sub(1)))?;
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
    let Some(mut last) = read_entry(bucket, retry, slot)? else { return Err(lost(bucket, &layout::log(slot))) };
    // Entries that were created since the list was read.
    while let Some(next) = read_entry(bucket, retry, last.0.slot + 1)? {
        growth.entries += 1;
        last = next;
    }
    let (header, hash) = last;
    let mut lost_part = None;
    if let Some(manifest) = &manifest {
        check_fit(bucket, &header, hash, manifest)?;
        let state = StateObjects::of(manifest.slot, &manifest.parts);
        let listed = state.list(bucket, retry)?;
        growth.state_bytes = listed.iter().map(|part| part.bytes).sum();
        lost_part = state.lost_of(&listed);
    }
    Ok(Some(FoundLog { header, hash, manifest, growth, lost_part }))
}

/// Lists the entries after a slot, ascending: slot and bytes in the store.
pub(super) fn list_log(
    bucket: &Bucket,
    retry: &mut Retry,
    after: Option<u64>,
) -> Result<Vec<(u64, u64)>, PublishError> {
    let after = after.map(layout::log);
    let listed = retry.run(|| bucket.list(layout::LOG, after.as_deref()))?;
    Ok(listed.iter().filter_map(|object| Some((layout::log_slot(&object.name)?, object.bytes))).collect())
}

/// Returns the slots of the states from a slot on, ascending.
pub(super) fn later_states(bucket: &Bucket, retry: &mut Retry, slot: u64) -> Result<Vec<u64>, PublishError> {
    let states = list_states(bucket, retry)?;
    Ok(states.into_iter().map(|(slot, _)| slot).filter(|later| *later >= slot).collect())
}

/// Returns the last slot with a listed entry or state; 0 if there is none. Entries before it may be missing.
pub(super) fn last_listed(bucket: &Bucket, retry: &mut Retry) -> Result<u64, PublishError> {
    let entry = list_log(bucket, retry, None)?.last().map(|(slot, _)| *slot);
    let state = list_states(bucket, retry)?.last().map(|(slot, _)| *slot);
    Ok(entry.max(state).unwrap_or_default())
}

/// The names of a whole state's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateObjects {
    /// The slot after which the state is.
    pub slot: u64,
    parts: Vec<String>,
}

impl StateObjects {
    pub fn of(slot: u64, parts: &[PartRef]) -> StateObjects {
        StateObjects { slot, parts: parts.iter().map(|part| part.name.clone()).collect() }
    }

    fn list(&self, bucket: &Bucket, retry: &mut Retry) -> Result<Vec<ListedObject>, PublishError> {
        let Some((folder, _)) = self.parts.first().and_then(|part| part.rsplit_once('/')) else {
            return Ok(Vec::new());
        };
        Ok(retry.run(|| bucket.list(folder, None))?)
    }

    pub fn lost_part(&self, bucket: &Bucket, retry: &mut Retry) -> Result<Option<String>, PublishError> {
        Ok(self.lost_of(&self.list(bucket, retry)?))
    }

    fn lost_of(&self, listed: &[ListedObject]) -> Option<String> {
        let is_lost = |part: &&String| listed.iter().all(|listed| listed.name != **part);
        self.parts.iter().find(is_lost).cloned()
    }
}

/// Fails unless the last entry and the newest state belong to one log.
fn check_fit(bucket: &Bucket, header: &EntryHeader, hash: Hash, manifest: &Manifest) -> Result<(), PublishError> {
    let fits = manifest.id == header.id && (manifest.slot != header.slot || manifest.entry_hash == hash);
    if fits {
        return Ok(());
    }
    let detail = "it does not belong to the newest state: two logs are mixed here; publish to another prefix";
    Err(unusable(bucket, &layout::log(header.slot), detail))
}
