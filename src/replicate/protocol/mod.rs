//! The protocol of the log, as one state machine for each publisher: no requests, files, clocks or messages.
//!
//! A publisher's loops send the requests that [`Knowledge::step`] asks for, and pass to it what they saw. `search_tests`
//! drives the same machine through all orders of requests and faults.
//!
//! | question | observed | consequence |
//! | --- | --- | --- |
//! | start | the log ends before a slot that the note or the heartbeat names | ends: behind, or emptied |
//! | | the database contains the end | continues after it |
//! | | this file published the end, and was restored over it | a whole state follows |
//! | | the note is of an earlier entry, or names a takeover | ends: fenced |
//! | | anything else | ends: diverged |
//! | next entry | the database no longer contains the end, without a restore | ends: diverged |
//! | next slot | empty | the log may be written to, and its heartbeat |
//! | | an entry of an earlier run: same name, a commit from here, and none created yet | continues after it |
//! | | an entry that follows another one than the last, which this run created | deletes its own; ends: fenced |
//! | | any other entry | ends: fenced |
//! | heartbeat | it names a later slot | ends: fenced |
//! | own entry created | the one before is the same as it was | it is published |
//! | own entry created, or heartbeat | the end before it holds another entry | ends: fenced |
//! | own entry missing | no heartbeat of a later slot | it is lost, and a whole state follows |
//! | own entry created | the one before is missing | it is published, and a whole state follows |
//! | | a later state, or one of another entry of its slot | ends: fenced; the slot had been deleted |

pub mod following;
mod rules;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod world_tests;

use self::rules::{Rule, applies};
use crate::model::Head;
use crate::replicate::entry::EntryHeader;
use crate::replicate::frame::Hash;

/// An entry at the end of the log.
#[allow(missing_docs, reason = "the names explain the fields")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LastEntry {
    pub slot: u64,
    pub hash: Hash,
    pub head: Head,
}

impl LastEntry {
    pub(super) fn of(header: &EntryHeader, hash: Hash) -> LastEntry {
        LastEntry {
            slot: header.slot,
            hash,
            head: header.head(),
        }
    }
}

/// An entry, compared with this publisher and its database.
#[allow(missing_docs, reason = "the names explain the other fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FoundEntry {
    pub entry: LastEntry,
    pub parent: Hash,
    /// Whether the database contains its last commit.
    pub is_contained: bool,
    /// Whether it carries the name of this publisher's file.
    pub has_own_name: bool,
    /// Whether the database was last restored over its last commit.
    pub is_last_restored: bool,
    /// Whether the database was restored over its last commit or a later one.
    pub is_restored: bool,
}

/// The note next to the database, if it is of this database and log.
#[allow(missing_docs, reason = "the names explain the fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Noted {
    pub slot: u64,
    pub hash: Hash,
    pub is_fenced: bool,
}

/// The log as a publisher finds it at its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AtStart {
    /// The last entry of the log; `None` if there is none, or none that can be continued.
    pub end: Option<FoundEntry>,
    /// The note.
    pub note: Option<Noted>,
    /// The slot in the heartbeat; 0 without one.
    pub announced: u64,
    /// Whether the log is to be continued in any case.
    pub start_over: bool,
}

/// An observation of a publisher.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Observation {
    /// The publisher starts.
    Start(AtStart),
    /// The database, before the next entry is written.
    Database {
        /// Whether it contains the commit of the end.
        holds_end: bool,
        /// Whether it was restored over that commit since.
        is_restored: bool,
    },
    /// It is time to look for other publishers, and perhaps to write the heartbeat.
    Due {
        /// Whether the heartbeat is due.
        is_heartbeat: bool,
    },
    /// The slot after the end is empty.
    NextIsFree,
    /// The slot after the end holds an entry.
    Next(FoundEntry),
    /// The store has confirmed this publisher's entry.
    Created(LastEntry),
    /// The slot that was asked for.
    Held(Held),
    /// The slot in the heartbeat.
    Heartbeat(u64),
    /// The states that were asked for: slot, and hash of the entry; `None` if the manifest is listed and not found.
    States(Vec<(u64, Option<Hash>)>),
}

/// The content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Held {
    /// It is empty.
    Nothing,
    /// The entry with this hash.
    Entry(Hash),
    /// An object that cannot be decoded.
    Unreadable,
}

/// The next action of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Read the entry in this slot.
    ReadNext(u64),
    /// Read the hash of the entry in this slot.
    ReadHash(u64),
    /// List and read the manifests from this slot on.
    ReadStates(u64),
    /// Continue as before.
    Continue,
    /// Continue after the entry that was created or found: it is the end.
    Accept {
        /// Whether the entry before it was lost, so that a whole state must follow.
        is_previous_lost: bool,
    },
    /// Write the heartbeat, unless the one that is there names a later slot.
    WriteHeartbeat {
        /// Whether the last entry is missing. Then the heartbeat must be read before, and a whole state must follow.
        is_end_lost: bool,
    },
    /// Write a whole state after the end.
    WriteState,
    /// Write a whole state after all slots that are known, the greatest of which may be this one.
    StartOver(u64),
    /// Delete the entry that this publisher created, unless its slot holds another one. Then end: fenced.
    TakeBack(LastEntry),
    /// End.
    End(Refusal),
}

/// Why a publisher must not continue the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The entry that was found is another publisher's.
    Fenced,
    /// Another publisher has written a state of this slot.
    Overtaken(u64),
    /// The log ends before slot `known`, or is empty.
    Behind {
        /// The last slot that was published.
        known: u64,
        /// Whether the heartbeat names it.
        is_announced: bool,
    },
    /// The database does not contain the end of the log.
    Diverged {
        /// Whether this file published it.
        is_own: bool,
    },
}

/// The question that must be answered before the publisher continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Question {
    #[default]
    None,
    /// Whether the next slot is free.
    Next { is_heartbeat: bool },
    /// Whether the last entry still exists.
    End,
    /// Whether the entry before this new one exists.
    Previous(LastEntry),
    /// Whether the slot of this new entry had been deleted by another publisher.
    IsSlotDeleted(LastEntry),
}

/// The knowledge of a publisher about the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Knowledge {
    /// The end of the log; `None` before the first entry.
    pub end: Option<LastEntry>,
    /// Whether this run has created an entry. A request of an earlier run can only arrive before that.
    has_created: bool,
    question: Question,
}

/// The facts that decide whose the log is.
enum Evidence<'a> {
    Start(&'a AtStart, &'a FoundEntry),
    Next(&'a FoundEntry),
    /// The hash of the entry in the slot of this one.
    Held(LastEntry, Hash),
    /// The states from the slot of this entry on.
    States(LastEntry, &'a [(u64, Option<Hash>)]),
}

impl Knowledge {
    /// Takes an observation; returns the next action.
    pub fn step(&mut self, observed: Observation) -> Action {
        let question = std::mem::take(&mut self.question);
        match (question, observed) {
            (_, Observation::Start(found)) => self.start(&found),
            (
                _,
                Observation::Database {
                    holds_end: true, ..
                },
            ) => Action::Continue,
            (
                _,
                Observation::Database {
                    is_restored: true, ..
                },
            ) => Action::WriteState,
            (_, Observation::Database { .. }) => Action::End(Refusal::Diverged { is_own: true }),
            (_, Observation::Due { is_heartbeat }) => self.look(is_heartbeat),
            (Question::Next { is_heartbeat: true }, Observation::NextIsFree) => {
                self.find(Question::End, self.slot())
            }
            (_, Observation::Next(found)) => match self.refusal(&Evidence::Next(&found)) {
                None => self.verify(found.entry),
                Some(refusal) => match self.end.filter(|end| self.is_in_gap(*end, found.parent)) {
                    Some(end) => Action::TakeBack(end),
                    None => Action::End(refusal),
                },
            },
            (_, Observation::Created(entry)) => {
                self.has_created = true;
                self.verify(entry)
            }
            (_, Observation::Heartbeat(slot)) if slot > self.slot() && applies(Rule::Announced) => {
                Action::End(Refusal::Overtaken(slot))
            }
            (Question::End, Observation::Held(held)) => {
                let end = self.end.unwrap_or_default();
                self.compare(end, held, Action::WriteHeartbeat { is_end_lost: false })
                    .unwrap_or(Action::WriteHeartbeat { is_end_lost: true })
            }
            (Question::Previous(entry), Observation::Held(held)) => {
                let end = self.end.unwrap_or_default();
                let accept = Action::Accept {
                    is_previous_lost: false,
                };
                match self.compare(end, held, accept) {
                    None => self.read_states(entry),
                    Some(action) if action == accept => self.accept(entry, false),
                    Some(action) => action,
                }
            }
            (Question::IsSlotDeleted(entry), Observation::States(states)) => {
                match self.refusal(&Evidence::States(entry, &states)) {
                    None => self.accept(entry, self.continues(entry)),
                    Some(refusal) => Action::End(refusal),
                }
            }
            _ => Action::Continue,
        }
    }

    /// Returns what a run that has created no entry knows after this end.
    #[cfg(test)]
    pub fn after(end: LastEntry) -> Knowledge {
        Knowledge {
            end: Some(end),
            ..Knowledge::default()
        }
    }

    fn slot(&self) -> u64 {
        self.end.map_or(0, |end| end.slot)
    }

    fn start(&mut self, found: &AtStart) -> Action {
        let noted = found
            .note
            .filter(|note| !note.is_fenced && applies(Rule::NoteSlot))
            .map_or(0, |note| note.slot);
        let announced = if applies(Rule::HeartbeatSlot) {
            found.announced
        } else {
            0
        };
        let known = noted.max(announced);
        match &found.end {
            Some(end) if end.entry.slot >= known => {
                self.end = Some(end.entry);
                match self.refusal(&Evidence::Start(found, end)) {
                    Some(refusal) => Action::End(refusal),
                    None if end.is_contained && !found.start_over => Action::Continue,
                    None => Action::WriteState,
                }
            }
            _ if found.start_over => Action::StartOver(known),
            None if known == 0 => Action::WriteState,
            _ => Action::End(Refusal::Behind {
                known,
                is_announced: known == announced,
            }),
        }
    }

    fn look(&mut self, is_heartbeat: bool) -> Action {
        if !applies(Rule::NextSlot) {
            return self.find(Question::End, self.slot());
        }
        self.question = Question::Next { is_heartbeat };
        Action::ReadNext(self.slot() + 1)
    }

    fn find(&mut self, question: Question, slot: u64) -> Action {
        self.question = question;
        Action::ReadHash(slot)
    }

    /// Checks an entry that was created or found in the next slot. A publisher that was suspended for weeks can find
    /// used slots free again, because old entries were deleted. Deletion follows the order of slots, so the slot is
    /// not a deleted one while the previous entry exists.
    fn verify(&mut self, entry: LastEntry) -> Action {
        if !applies(Rule::Previous) {
            return self.accept(entry, false);
        }
        if entry.slot > 1 {
            self.find(Question::Previous(entry), entry.slot - 1)
        } else {
            self.read_states(entry)
        }
    }

    /// Returns `action` if the slot of an entry holds it, and the end of this publisher if it holds another one;
    /// `None` if it holds nothing. The entry may have been lost, and its slot used by another publisher.
    fn compare(&self, expected: LastEntry, held: Held, action: Action) -> Option<Action> {
        match held {
            Held::Nothing => None,
            Held::Unreadable => Some(action),
            Held::Entry(hash) => match self.refusal(&Evidence::Held(expected, hash)) {
                None => Some(action),
                Some(refusal) => Some(Action::End(refusal)),
            },
        }
    }

    fn read_states(&mut self, entry: LastEntry) -> Action {
        self.question = Question::IsSlotDeleted(entry);
        Action::ReadStates(entry.slot)
    }

    /// Whether an entry is in the slot after the end, whose entry was known.
    fn continues(&self, entry: LastEntry) -> bool {
        self.end
            .is_some_and(|end| end.slot + 1 == entry.slot && end.hash != Hash::default())
    }

    /// Whether this run created its last entry in a gap: the next entry follows another one of its slot, which was lost.
    /// With an entry in the gap, nobody would notice that, and replicas could not get past it.
    fn is_in_gap(&self, end: LastEntry, next_parent: Hash) -> bool {
        let is_in_gap = next_parent != end.hash && next_parent != Hash::default();
        self.has_created && is_in_gap && applies(Rule::TakeBack)
    }

    fn accept(&mut self, entry: LastEntry, is_previous_lost: bool) -> Action {
        self.end = Some(entry);
        Action::Accept { is_previous_lost }
    }

    /// Returns why the log is not this publisher's; `None` if it is.
    fn refusal(&self, evidence: &Evidence<'_>) -> Option<Refusal> {
        match evidence {
            Evidence::Start(at_start, _) if at_start.start_over => None,
            Evidence::Start(_, end) if end.is_contained || !applies(Rule::Contained) => None,
            Evidence::Start(at_start, end) => refusal_of_other_end(at_start.note, end),
            Evidence::Next(found) => {
                let is_of_earlier_run = found.has_own_name || !applies(Rule::Name);
                let is_first = !self.has_created || !applies(Rule::FirstEntry);
                let is_contained = found.is_contained || !applies(Rule::NextContained);
                let is_own = is_of_earlier_run && is_first && is_contained;
                (!is_own).then_some(Refusal::Fenced)
            }
            // After a start over, the entry before is unknown.
            Evidence::Held(expected, hash) => {
                let is_other = *hash != expected.hash && expected.hash != Hash::default();
                (is_other && applies(Rule::Hash)).then_some(Refusal::Overtaken(expected.slot))
            }
            Evidence::States(entry, states) => states
                .iter()
                .filter(|(slot, _)| *slot >= entry.slot)
                // A manifest of this slot that is listed and not found is lost, or behind a proxy that answers 404.
                .find(|(slot, hash)| {
                    *slot > entry.slot || hash.is_some_and(|hash| hash != entry.hash)
                })
                .map(|(slot, _)| Refusal::Overtaken(*slot)),
        }
    }
}

/// Returns why a database that does not contain the end of the log must not continue it; `None` if it was restored
/// over an end that it published.
fn refusal_of_other_end(note: Option<Noted>, end: &FoundEntry) -> Option<Refusal> {
    let is_fenced = note.is_some_and(|note| note.is_fenced) && applies(Rule::NotedTakeover);
    let is_noted =
        note.is_some_and(|note| (note.slot, note.hash) == (end.entry.slot, end.entry.hash));
    let is_own = end.has_own_name || is_noted;
    // Commits after an own entry may have been lost by the restore, but an entry of a replica that was promoted can
    // have a lower seq than they, too.
    let may_replace = is_own || !applies(Rule::OwnRestore);
    if (end.is_last_restored || may_replace && end.is_restored) && !is_fenced {
        return None;
    }
    // Another publisher wrote entries after the last one from here.
    if is_fenced || (note.is_some() && !is_own) {
        return Some(Refusal::Fenced);
    }
    Some(Refusal::Diverged { is_own })
}
