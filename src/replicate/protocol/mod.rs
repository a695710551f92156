//! The protocol of the log, as one state machine for each publisher: no requests, files, clocks or messages.
//!
//! A publisher's loops send the requests that [`Knowledge::step`] asks for, and pass to it what they saw. [`following`]
//! decides for replicas, also when one of them becomes the origin. `search_tests` drives the same code through all
//! orders of requests and faults.
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
//! | own entry created | the end before it holds another entry | deletes its own; ends: fenced |
//! | heartbeat | the end holds another entry | ends: fenced |
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
pub use crate::replicate::entry::LastEntry;
use crate::replicate::frame::Hash;

/// An entry, compared with this publisher and its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FoundEntry {
    pub entry: LastEntry,
    pub parent: Hash,
    /// Whether the database contains its last commit.
    pub is_contained: bool,
    /// Whether it carries the name of this publisher's file.
    pub has_own_name: bool,
    /// The last commit of the database that a restore last replaced by this one.
    pub restored_over: Option<Head>,
}

/// The note next to the database, if it is of this database and log.
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
    /// The database no longer contains the commit of the end.
    EndIsGone {
        /// Whether it was restored over that commit.
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
    /// Delete the entry that this run created, unless its slot holds another one. Then end.
    TakeBack {
        own: LastEntry,
        /// The slot with the entry of another publisher, which fences this one.
        fenced_by: u64,
    },
}

/// Why a publisher must not continue the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Another publisher has continued to this slot.
    Fenced(u64),
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
    /// The end of the log; slot 0 before the first entry.
    pub end: LastEntry,
    /// Whether this run has created an entry. A request of an earlier run can only arrive before that.
    has_created: bool,
    question: Question,
}

impl Knowledge {
    /// Takes an observation; returns the next action.
    ///
    /// # Errors
    /// If this publisher must end, because the log is not its own.
    pub fn step(&mut self, observed: Observation) -> Result<Action, Refusal> {
        let question = std::mem::take(&mut self.question);
        Ok(match (question, observed) {
            (_, Observation::Start(found)) => self.start(&found)?,
            (_, Observation::EndIsGone { is_restored: true }) => Action::WriteState,
            (_, Observation::EndIsGone { .. }) => return Err(Refusal::Diverged { is_own: true }),
            (_, Observation::Due { is_heartbeat }) if applies(Rule::NextSlot) => {
                self.ask(Question::Next { is_heartbeat })
            }
            (_, Observation::Due { .. })
            | (Question::Next { is_heartbeat: true }, Observation::NextIsFree) => {
                self.ask(Question::End)
            }
            (_, Observation::Next(found)) => self.meet(&found)?,
            (_, Observation::Created(entry)) => {
                self.has_created = true;
                self.verify(entry)
            }
            (_, Observation::Heartbeat(slot))
                if slot > self.end.slot && applies(Rule::Announced) =>
            {
                return Err(Refusal::Fenced(slot));
            }
            (Question::End, Observation::Held(held)) => Action::WriteHeartbeat {
                is_end_lost: !self.check_end(held)?,
            },
            (Question::Previous(entry), Observation::Held(held)) => match self.check_end(held) {
                Ok(true) => self.accept(entry, false),
                Ok(false) => self.ask(Question::IsSlotDeleted(entry)),
                // The entry before was lost, and another publisher has used its slot. With the new entry, replicas could
                // not get past that slot.
                Err(_) if self.has_created && applies(Rule::TakeBackNext) => Action::TakeBack {
                    own: entry,
                    fenced_by: self.end.slot,
                },
                Err(refusal) => return Err(refusal),
            },
            (Question::IsSlotDeleted(entry), Observation::States(states)) => {
                check_states(entry, &states)?;
                self.accept(entry, self.continues(entry))
            }
            _ => Action::Continue,
        })
    }

    /// Returns what a run that has created no entry knows after this end.
    #[cfg(test)]
    pub fn after(end: LastEntry) -> Knowledge {
        Knowledge {
            end,
            ..Knowledge::default()
        }
    }

    fn start(&mut self, found: &AtStart) -> Result<Action, Refusal> {
        let noted = found
            .note
            .filter(|note| !note.is_fenced && applies(Rule::NoteSlot))
            .map_or(0, |note| note.slot);
        let announced = match applies(Rule::HeartbeatSlot) {
            true => found.announced,
            false => 0,
        };
        let known = noted.max(announced);
        self.end = found.end.map(|end| end.entry).unwrap_or_default();
        match &found.end {
            Some(end) if end.entry.slot >= known => {
                if found.start_over {
                    return Ok(Action::WriteState);
                }
                if end.is_contained {
                    return Ok(Action::Continue);
                }
                check_other_end(found.note, end).map(|()| Action::WriteState)
            }
            _ if found.start_over => Ok(Action::StartOver(known)),
            None if known == 0 => Ok(Action::WriteState),
            _ => Err(Refusal::Behind {
                known,
                is_announced: known == announced,
            }),
        }
    }

    /// Asks a question; returns the request that answers it.
    fn ask(&mut self, question: Question) -> Action {
        self.question = question;
        match question {
            Question::None => Action::Continue,
            Question::Next { .. } => Action::ReadNext(self.end.slot + 1),
            Question::End => Action::ReadHash(self.end.slot),
            Question::Previous(entry) => Action::ReadHash(entry.slot - 1),
            Question::IsSlotDeleted(entry) => Action::ReadStates(entry.slot),
        }
    }

    /// Decides whether the entry in the next slot is of an earlier run.
    fn meet(&mut self, found: &FoundEntry) -> Result<Action, Refusal> {
        let is_of_earlier_run = found.has_own_name || !applies(Rule::Name);
        let is_first = !self.has_created || !applies(Rule::FirstEntry);
        let is_contained = found.is_contained || !applies(Rule::NextContained);
        if is_of_earlier_run && is_first && is_contained {
            return Ok(self.verify(found.entry));
        }
        // The next entry follows another one than this run created in a gap, in the slot of one that was lost. With an
        // entry in the gap, nobody would notice that, and replicas could not get past it.
        let is_in_gap = found.parent != self.end.hash && found.parent != Hash::default();
        if is_in_gap && self.has_created && applies(Rule::TakeBack) {
            return Ok(Action::TakeBack {
                own: self.end,
                fenced_by: found.entry.slot,
            });
        }
        Err(Refusal::Fenced(found.entry.slot))
    }

    /// Checks an entry that was created or found in the next slot. A publisher that was suspended for weeks can find
    /// used slots free again, because old entries were deleted. Deletion follows the order of slots, so the slot is
    /// not a deleted one while the previous entry exists.
    fn verify(&mut self, entry: LastEntry) -> Action {
        if !applies(Rule::Previous) {
            return self.accept(entry, false);
        }
        self.ask(match entry.slot {
            1 => Question::IsSlotDeleted(entry),
            _ => Question::Previous(entry),
        })
    }

    /// Returns whether the slot of the end still holds something. Fails if that is another entry: the end may have been
    /// lost, and its slot used by another publisher.
    fn check_end(&self, held: Held) -> Result<bool, Refusal> {
        let end = self.end;
        match held {
            Held::Nothing => Ok(false),
            // After a start over, the entry before is unknown.
            Held::Entry(hash)
                if hash != end.hash && end.hash != Hash::default() && applies(Rule::Hash) =>
            {
                Err(Refusal::Fenced(end.slot))
            }
            Held::Entry(_) | Held::Unreadable => Ok(true),
        }
    }

    /// Whether an entry is in the slot after the end, whose entry was known.
    fn continues(&self, entry: LastEntry) -> bool {
        self.end.slot + 1 == entry.slot && self.end.hash != Hash::default()
    }

    fn accept(&mut self, entry: LastEntry, is_previous_lost: bool) -> Action {
        self.end = entry;
        Action::Accept { is_previous_lost }
    }
}

/// Fails if another publisher has written a state of the slot of `entry`, or of a later one.
fn check_states(entry: LastEntry, states: &[(u64, Option<Hash>)]) -> Result<(), Refusal> {
    let other = states.iter().find(|(slot, hash)| {
        // A manifest of this slot that is listed and not found is lost, or behind a proxy that answers 404.
        let is_of_other = *slot == entry.slot && hash.is_some_and(|hash| hash != entry.hash);
        *slot > entry.slot || is_of_other
    });
    other.map_or(Ok(()), |(slot, _)| Err(Refusal::Fenced(*slot)))
}

/// Fails if a database that does not contain the end of the log must not continue it: unless it was restored over an
/// end that it published.
fn check_other_end(note: Option<Noted>, end: &FoundEntry) -> Result<(), Refusal> {
    let is_fenced = note.is_some_and(|note| note.is_fenced) && applies(Rule::NotedTakeover);
    let is_noted =
        note.is_some_and(|note| (note.slot, note.hash) == (end.entry.slot, end.entry.hash));
    let is_own = end.has_own_name || is_noted;
    // Commits after an own entry may have been lost by the restore, but an entry of a replica that was promoted can
    // have a lower seq than they, too.
    let may_replace = is_own || !applies(Rule::OwnRestore);
    let head = end.entry.head;
    let is_restored =
        end.restored_over == Some(head) || may_replace && head.is_replaced(end.restored_over);
    if is_restored && !is_fenced || !applies(Rule::Contained) {
        Ok(())
    } else if is_fenced || (note.is_some() && !is_own) {
        // Another publisher wrote entries after the last one from here.
        Err(Refusal::Fenced(end.entry.slot))
    } else {
        Err(Refusal::Diverged { is_own })
    }
}
