//! Loading: a whole state and the entries after it, into a draft. Nothing has the file's name before it has caught up.

use std::path::Path;

use super::log::{End, LogReader, Place, StateAt};
use super::trouble::Trouble;
use crate::model::{DatabaseId, Head, Timestamp};
use crate::replicate::entry::Entry;
use crate::replicate::layout;
use crate::store::replication::{ApplyError, CommitChanges, LoadedDraft, ReplicaDraft, ReplicaMark, SCHEMA};

/// A load that is to be made.
#[derive(Clone, Copy)]
pub struct Load<'a> {
    /// The log.
    pub log: &'a LogReader,
    /// The file that will take the name, or beside which the draft stands.
    pub path: &'a Path,
    /// The database that it must be; `None` takes any.
    pub id: Option<DatabaseId>,
    /// Only commits up to this time; `None` takes all.
    pub until: Option<Timestamp>,
    /// How certain the end of the log must be.
    pub end: EndRule,
    /// Asked between objects: false ends the load.
    pub go_on: &'a dyn Fn() -> bool,
}

/// How certain the end of the log must be where a load finds no further entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndRule {
    /// The log ends there: no later entry is listed, and the sign of life agrees.
    Confirmed,
    /// No later entry is listed or named. Without a sign of life the replica waits for one before it answers.
    Follow,
    /// Nothing: entries may be missing, of which [`Loaded::doubt`] speaks.
    Partial,
}

/// Why entries are not applied any further.
enum Reached {
    /// There is no further entry.
    End,
    /// The next commit is later than the time that is asked for.
    Instant,
    /// The next entry is a whole state.
    State(StateAt),
}

/// A state that has caught up and has no name yet.
#[derive(Debug)]
pub struct Loaded {
    /// Its file.
    pub draft: LoadedDraft,
    /// Where in the log it is.
    pub mark: ReplicaMark,
    /// Its last commit.
    pub head: Head,
    /// The format of its rows.
    pub schema: u32,
    /// Why it may not be the newest state, where [`EndRule::Partial`] accepts that.
    pub doubt: Option<String>,
}

impl Loaded {
    fn place(&self) -> Place {
        place_of(&self.mark)
    }
}

/// Where in the log a mark stands.
pub(super) fn place_of(mark: &ReplicaMark) -> Place {
    Place { id: mark.id, slot: mark.slot, hash: mark.hash }
}

/// The mark of a file that stands at a place of the log.
pub(super) fn mark_at(url: String, place: Place, digest: crate::model::RowDigest) -> ReplicaMark {
    ReplicaMark { url, id: place.id, slot: place.slot, hash: place.hash, digest }
}

/// The commits of an entry, as files apply them.
pub(super) fn commits_of(entry: &Entry) -> Vec<CommitChanges<'_>> {
    entry.header.commits.iter().copied().zip(entry.changes.iter().map(AsRef::as_ref)).collect()
}

/// Fails unless the changes of an entry are of a format. Where the format changes, the log holds a whole state.
pub(super) fn check_format(entry: &Entry, schema: u32) -> Result<(), Trouble> {
    let found = entry.header.schema;
    match found == schema {
        true => Ok(()),
        false => Err(Trouble::object(
            layout::log(entry.header.slot),
            format!("its changes are of format {found}, not {schema}"),
        )),
    }
}

impl Load<'_> {
    /// Loads the newest state that can be read and is not too late, and all that follows.
    ///
    /// # Errors
    /// [`Trouble`]: of states that cannot be read, the newest one's.
    pub fn newest(&self) -> Result<Loaded, Trouble> {
        let slots = self.log.state_slots()?;
        // What a killed publisher left without its manifest: the first entry holds a state.
        let slots = if slots.is_empty() { vec![1] } else { slots };
        // The end of the log is not before any state that is known.
        let newest = slots.first().copied().unwrap_or_default();
        let (mut first_trouble, mut oldest, mut too_early) = (None, None, None);
        for slot in &slots {
            let loaded = match self.state_after(*slot) {
                Ok(Some((state, at))) if self.until.is_none_or(|until| at <= until) => self.from_state(state, newest),
                Ok(found) => {
                    oldest = found.map(|(state, _)| state).or(oldest);
                    continue;
                }
                Err(trouble) => Err(trouble),
            };
            match loaded {
                Err(trouble @ Trouble::Object { .. }) => {
                    tracing::warn!(%trouble, slot, "a state cannot be loaded; trying an older one");
                    first_trouble.get_or_insert(trouble);
                }
                // A clock that was ahead made its last commit later than the state itself.
                Err(trouble @ Trouble::TooEarly { .. }) => too_early = Some(trouble),
                loaded => return loaded,
            }
        }
        match (first_trouble, oldest, too_early) {
            (Some(trouble), ..) | (None, _, Some(trouble)) => Err(trouble),
            // Its last commit may be older than the time at which it was put.
            (None, Some(oldest), None) => self.from_state(oldest, newest),
            (None, None, None) => Err(Trouble::Nothing(self.log.url())),
        }
    }

    /// The state after a slot, by its manifest or else its entry, and when it was written.
    fn state_after(&self, slot: u64) -> Result<Option<(StateAt, Timestamp)>, Trouble> {
        let found = match self.log.manifest(slot)? {
            Some(manifest) => {
                let at = manifest.at;
                Some((StateAt::of_manifest(manifest), at))
            }
            None => self
                .log
                .entry(slot)?
                .and_then(|entry| Some((StateAt::of_entry(&entry.header, entry.hash)?, entry.header.at))),
        };
        match (&found, self.id) {
            (Some((state, _)), Some(expected)) if state.place.id != expected => {
                Err(Trouble::OtherDatabase { expected, found: state.place.id })
            }
            _ => Ok(found),
        }
    }

    /// Loads a state, and what follows, to a slot at least, or up to the time that is asked for.
    ///
    /// # Errors
    /// [`Trouble`]; [`Trouble::TooEarly`] when the state is of a later time.
    pub fn from_state(&self, mut state: StateAt, at_least: u64) -> Result<Loaded, Trouble> {
        let mut before = None;
        loop {
            tracing::info!(slot = state.place.slot, parts = state.parts.len(), "loading a whole state");
            let mut loaded = self.load(state)?;
            // When its last commit was made only its rows tell.
            let committed = loaded.draft.head()?.time;
            if self.until.is_some_and(|until| committed > until) {
                return before.ok_or(Trouble::TooEarly { oldest: committed });
            }
            let next = loop {
                match self.catch_up(&mut loaded, at_least)? {
                    Reached::Instant => return Ok(loaded),
                    Reached::State(next) => break next,
                    Reached::End if self.is_end(&mut loaded)? => return Ok(loaded),
                    Reached::End => {}
                }
            };
            // Keep this state only if the one that replaces it may be of a later time than is asked for.
            (state, before) = (next, self.until.map(|_| loaded));
        }
    }

    /// Whether the log ends after what was loaded; false when another entry has come.
    fn is_end(&self, loaded: &mut Loaded) -> Result<bool, Trouble> {
        let found = match self.log.end_after(loaded.place()) {
            // The entry was read a moment ago and is gone.
            Ok(End::Before { slot, seq }) => Err(Trouble::Behind { slot, end: seq, here: loaded.head.seq }),
            found => found,
        };
        match found {
            Ok(found) => Ok(found == End::Confirmed),
            Err(Trouble::Unconfirmed(..)) if self.end == EndRule::Follow => Ok(true),
            Err(trouble) if self.end == EndRule::Partial && trouble.is_of_log() => {
                loaded.doubt = Some(trouble.to_string());
                Ok(true)
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Loads a state alone.
    pub(super) fn load(&self, state: StateAt) -> Result<Loaded, Trouble> {
        // A replica answers from what it loads; a backup of it is upgraded.
        if self.end == EndRule::Follow && state.schema != SCHEMA {
            return Err(Trouble::OlderSchema { found: state.schema, known: SCHEMA });
        }
        let mut draft = ReplicaDraft::beside(self.path, state.schema)?;
        self.log.parts(&state.parts, &mut |part, changes| {
            if !(self.go_on)() {
                return Err(Trouble::Stopped);
            }
            draft.add_part(&changes).map_err(of_load(&part.name))
        })?;
        let mark = mark_at(self.log.url(), state.place, state.digest);
        let draft = draft.finish(&mark, state.head).map_err(of_load(&layout::state(state.place.slot)))?;
        Ok(Loaded { draft, mark, head: state.head, schema: state.schema, doubt: None })
    }

    /// Applies the entries after a loaded state.
    fn catch_up(&self, loaded: &mut Loaded, at_least: u64) -> Result<Reached, Trouble> {
        loop {
            if !(self.go_on)() {
                return Err(Trouble::Stopped);
            }
            let slot = loaded.mark.slot + 1;
            let name = layout::log(slot);
            let Some(entry) = self.log.entry(slot)? else {
                return match slot <= at_least && self.end != EndRule::Partial {
                    true => Err(Trouble::Missing { slot, later: at_least }),
                    false => Ok(Reached::End),
                };
            };
            let next = loaded.place().check_next(&entry).map_err(|trouble| match trouble {
                Trouble::Parted(detail) => Trouble::object(&name, detail),
                other => other,
            })?;
            if let Some(state) = StateAt::of_entry(&entry.header, entry.hash) {
                return Ok(Reached::State(state));
            }
            check_format(&entry, loaded.schema)?;
            let mut commits = commits_of(&entry);
            let in_time = |at: Timestamp| self.until.is_none_or(|until| at <= until);
            commits.truncate(entry.header.commits.iter().take_while(|commit| in_time(commit.time)).count());
            let is_whole = commits.len() == entry.header.commits.len();
            if let Some((last, _)) = commits.last() {
                let place = if is_whole { next } else { loaded.place() };
                let mark = mark_at(self.log.url(), place, last.digest);
                loaded.draft.apply(&commits, &mark).map_err(of_load(&name))?;
                (loaded.mark, loaded.head) = (mark, last.head());
            }
            if !is_whole {
                return Ok(Reached::Instant);
            }
        }
    }
}

/// A state that cannot be loaded is its objects' fault, whatever does not fit.
fn of_load(name: &str) -> impl Fn(ApplyError) -> Trouble {
    move |error| match error {
        ApplyError::Store(error) => Trouble::Store(error),
        ApplyError::OtherVersion => Trouble::OtherFields,
        other => Trouble::object(name, other),
    }
}
