//! Loading a whole state and the entries after it into a draft. The draft gets its name only when it has caught up.
//!
//! **Formats.** Each entry and state names the format of its rows. An upgraded origin publishes a whole state of the
//! new format as its next entry. A replica of the new release replaces its older file by it. It reads no entry or
//! state of another format. So its replicas need the old release until the origin is upgraded. `check --from` begins
//! at the first state of this format.

use std::cell::Cell;
use std::path::Path;

use super::log::{LogReader, check_next, check_schema};
use super::{ReplicaError, Result};
use crate::model::{DatabaseId, Head, Timestamp};
use crate::replicate::entry::LogEntry;
use crate::replicate::layout;
use crate::replicate::state::Manifest;
use crate::store::replication::{
    ApplyError, CommitChanges, LoadedDraft, ReplicaDraft, ReplicaMark,
};

/// The settings of a load.
pub struct StateLoader<'a> {
    /// The log.
    pub log: &'a LogReader,
    /// The path of the file. The draft is created next to it.
    pub path: &'a Path,
    /// The required database; `None` for any.
    pub id: Option<DatabaseId>,
    /// The time of the last commit to apply; `None` for all.
    pub until: Option<Timestamp>,
    /// Whether the heartbeat must agree with the end of the log. Without it the replica waits for one before it
    /// responds.
    pub must_confirm: bool,
    /// The newest instant that was reached before an error, if any.
    pub reached: Cell<Option<Timestamp>>,
    /// Called between objects; returns false to cancel the load.
    pub keep_going: &'a dyn Fn() -> bool,
}

/// A loaded state that has caught up. Its file has no name yet.
#[allow(missing_docs, reason = "the names explain the other fields")]
#[derive(Debug)]
pub struct LoadedState {
    pub draft: LoadedDraft,
    /// Its position in the log.
    pub mark: ReplicaMark,
    pub head: Head,
}

pub(super) fn commits_of(entry: &LogEntry) -> Vec<CommitChanges<'_>> {
    entry
        .header
        .commits
        .iter()
        .copied()
        .zip(entry.changes.iter().map(AsRef::as_ref))
        .collect()
}

impl<'a> StateLoader<'a> {
    /// Returns a loader of the newest state of any database.
    pub fn new(
        log: &'a LogReader,
        path: &'a Path,
        keep_going: &'a dyn Fn() -> bool,
    ) -> StateLoader<'a> {
        StateLoader {
            log,
            path,
            id: None,
            until: None,
            must_confirm: false,
            reached: Cell::new(None),
            keep_going,
        }
    }

    /// Loads the newest valid state that is not too late, and the entries after it.
    ///
    /// # Errors
    /// If no state is valid, the error of the newest one.
    pub fn newest(&self) -> Result<LoadedState> {
        let slots = self.log.needed_state_slots()?;
        // The log does not end before its newest state.
        let newest = slots.first().copied().unwrap_or_default();
        let mut states = slots
            .into_iter()
            .filter_map(|slot| self.state_after(slot).transpose())
            .peekable();
        let is_late = |found: &Result<Manifest>| match (found, self.until) {
            (Ok(state), Some(until)) => state.at > until,
            _ => false,
        };
        let mut first_error = None;
        let mut too_early = None;
        while let Some(found) = states.next() {
            // It was written later than its last commit was made. So only the first of these may be early enough.
            if is_late(&found) && states.peek().is_some_and(is_late) {
                continue;
            }
            match found.and_then(|state| self.load_with_entries(state, newest)) {
                // A state of another history is at odds with the entries after it, or with the heartbeat.
                Err(error @ (ReplicaError::Object { .. } | ReplicaError::Diverged(_))) => {
                    tracing::warn!(%error, "a state cannot be loaded; trying an older one");
                    first_error.get_or_insert(error);
                }
                Err(error @ ReplicaError::TooEarly { .. }) => too_early = Some(error),
                loaded => return loaded,
            }
        }
        Err(first_error
            .or(too_early)
            .unwrap_or_else(|| ReplicaError::Nothing(self.log.url())))
    }

    /// Reads the manifest of the state after a slot, which must be of the required database.
    fn state_after(&self, slot: u64) -> Result<Option<Manifest>> {
        let found = self.log.manifest(slot)?;
        match (self.id, &found) {
            (Some(expected), Some(state)) if state.id != expected => {
                Err(ReplicaError::OtherDatabase {
                    expected,
                    found: state.id,
                })
            }
            _ => Ok(found),
        }
    }

    /// Loads a state and the entries after it, at least up to slot `at_least`.
    ///
    /// # Errors
    /// [`ReplicaError::TooEarly`] if the state is later than [`StateLoader::until`].
    fn load_with_entries(&self, mut state: Manifest, at_least: u64) -> Result<LoadedState> {
        let mut before = None;
        loop {
            tracing::info!(
                slot = state.slot,
                parts = state.parts.len(),
                "loading a whole state"
            );
            let mut loaded = self.load(state)?;
            // The time of the last commit is known only from the rows.
            let committed = loaded.draft.replica.head()?.time;
            if let Some(until) = self.until.filter(|until| committed > *until) {
                let before = before.ok_or(ReplicaError::TooEarly { oldest: committed })?;
                return self.before_state(before, &loaded, until);
            }
            match self.catch_up(&mut loaded, at_least) {
                Ok(Some(next)) => state = next,
                Ok(None) => return Ok(loaded),
                Err(error) => return self.before_error(loaded, error),
            }
            // Keep this state: the next one may be later than the requested time.
            before = self.until.map(|_| loaded);
        }
    }

    /// Returns `before`, whose next entry is the state `next`, which is too late. Commits within that state, or
    /// replaced by its restore, have no changes in the log, so the database is not known as it was after one of them.
    fn before_state(
        &self,
        before: LoadedState,
        next: &LoadedState,
        until: Timestamp,
    ) -> Result<LoadedState> {
        let base = before.draft.replica.head()?;
        let after = next.draft.replica.head()?.time;
        match next.draft.may_skip_commit(base, until)? {
            true => Err(ReplicaError::WithinState {
                until,
                before: base.time,
                after,
            }),
            false => Ok(before),
        }
    }

    /// Returns what was loaded before an error of the log, if its last commit is of the requested time. Otherwise notes
    /// that time, and returns the error.
    fn before_error(&self, loaded: LoadedState, error: ReplicaError) -> Result<LoadedState> {
        if error.is_of_log() {
            let reached = Some(loaded.draft.replica.head()?.time);
            if self.until == reached {
                return Ok(loaded);
            }
            self.reached.set(self.reached.get().max(reached));
        }
        Err(error)
    }

    /// Reads the entry after a state; `None` at the end of the log, which is not before slot `at_least`.
    pub(super) fn next_entry(
        &self,
        loaded: &LoadedState,
        at_least: u64,
    ) -> Result<Option<LogEntry>> {
        let slot = loaded.mark.slot + 1;
        loop {
            if !(self.keep_going)() {
                return Err(ReplicaError::Stopped);
            }
            if let Some(entry) = self.log.entry(slot)? {
                return Ok(Some(entry));
            }
            if slot <= at_least {
                let later = at_least;
                return Err(ReplicaError::Missing { slot, later });
            }
            match self.log.ends_after(&loaded.mark, loaded.head.seq) {
                Ok(false) => {}
                Err(ReplicaError::Unconfirmed(..)) if !self.must_confirm => return Ok(None),
                ends => return ends.map(|_| None),
            }
        }
    }

    /// Loads a state without the entries after it.
    pub(super) fn load(&self, state: Manifest) -> Result<LoadedState> {
        check_schema(state.schema)?;
        let mut draft = ReplicaDraft::create_for(self.path)?;
        self.log.parts(&state.parts, |part, changes| {
            if !(self.keep_going)() {
                return Err(ReplicaError::Stopped);
            }
            draft.add_part(&changes).map_err(of_load(&part.name))
        })?;
        let head = state.head();
        let mark = ReplicaMark {
            url: self.log.url(),
            id: state.id,
            slot: state.slot,
            hash: state.entry_hash,
            digest: state.digest,
        };
        let draft = draft
            .finish(&mark, head)
            .map_err(of_load(&layout::state(mark.slot)))?;
        Ok(LoadedState { draft, mark, head })
    }

    /// Applies the entries after a state, up to the end of the log or to [`StateLoader::until`]. Returns the next state
    /// that must be loaded, if any.
    fn catch_up(&self, loaded: &mut LoadedState, at_least: u64) -> Result<Option<Manifest>> {
        while let Some(entry) = self.next_entry(loaded, at_least)? {
            let next = check_next(&loaded.mark, &entry).map_err(|error| match error {
                ReplicaError::Diverged(detail) => {
                    ReplicaError::object(layout::log(entry.header.slot), detail)
                }
                other => other,
            })?;
            if entry.header.replaces(loaded.head, loaded.mark.digest) {
                return self.log.state_of(&entry).map(Some);
            }
            if !self.apply(loaded, &entry, next)? {
                break;
            }
        }
        Ok(None)
    }

    /// Applies the commits of the next entry, up to [`StateLoader::until`]. Returns whether these are all. `next` is
    /// the mark after the entry.
    pub(super) fn apply(
        &self,
        loaded: &mut LoadedState,
        entry: &LogEntry,
        next: ReplicaMark,
    ) -> Result<bool> {
        let mut commits = commits_of(entry);
        let all = commits.len();
        if let Some(until) = self.until {
            commits.retain(|(commit, _)| commit.time <= until);
        }
        let is_whole = commits.len() == all;
        let mut mark = loaded.mark.clone();
        let mut head = loaded.head;
        if let Some((last, _)) = commits.last() {
            mark.digest = last.digest;
            head = last.head();
        }
        if is_whole {
            mark = next;
        }
        loaded
            .draft
            .replica
            .apply(&commits, &mark)
            .map_err(of_load(&layout::log(entry.header.slot)))?;
        loaded.mark = mark;
        loaded.head = head;
        Ok(is_whole)
    }
}

/// Converts an error of loading. Rows that do not fit are a defect of the object.
fn of_load(name: &str) -> impl Fn(ApplyError) -> ReplicaError {
    move |error| match error {
        ApplyError::Store(error) => ReplicaError::Store(error),
        ApplyError::OtherVersion => ReplicaError::OtherFields,
        other => ReplicaError::object(name, other),
    }
}
