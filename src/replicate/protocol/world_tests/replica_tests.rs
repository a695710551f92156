//! The replica of a world, as the protocol of replicas decides for it.

use std::convert::Infallible;

use super::{Entry, LastEntry, Machine, Noted, World};
use crate::model::Head;
use crate::replicate::protocol::following::{
    EndCheck, compare, follows, is_contradicted, is_in_gap, is_promoted, is_shown_at_once,
    may_replace,
};

/// A replica. A poll of it reads one slot, and what it needs to decide about that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Replica {
    pub last: LastEntry,
    /// Whether the end was confirmed within 12 hours.
    pub is_confirmed: bool,
    pub is_shown: bool,
    /// The seq that was shown last; 0 for none.
    pub shown: u64,
}

impl World {
    /// Returns the fault of the replica at rest. It may be ahead of a log that has lost commits: then it says so.
    pub(super) fn wrong_of_replica(&self) -> Option<&'static str> {
        let replica = self.replica?;
        let is_published = self.machines.iter().any(|machine| machine.run.is_some());
        let (_, end) = self.log.last_key_value().filter(|_| is_published)?;
        let is_behind = end.last.head.seq < replica.last.head.seq;
        let has_end = replica.last == end.last && replica.is_shown;
        (!has_end && !is_behind).then_some("the replica does not come to the last commit")
    }

    /// Loads the newest state that leads to the end of the log. A running replica does not go back.
    pub(super) fn load(&mut self) {
        let slots = self.states.keys().rev().copied();
        let loaded = slots.into_iter().find_map(|slot| self.loaded_from(slot));
        let here = self.replica;
        let is_later = |last: &LastEntry| {
            here.is_none_or(|here| may_replace(here.last.head.seq, last.head.seq))
        };
        if let Some(last) = loaded.filter(is_later) {
            self.replica = Some(Replica {
                last,
                is_confirmed: here.is_some_and(|here| here.is_confirmed),
                is_shown: false,
                shown: here.map_or(0, |here| here.shown),
            });
        }
    }

    fn loaded_from(&self, state: u64) -> Option<LastEntry> {
        let first = self.log.get(&state)?;
        let mut last = (self.states.get(&state) == Some(&first.last.hash)).then_some(first.last)?;
        for (slot, entry) in self.log.range(state + 1..) {
            let is_next = *slot == last.slot + 1 && follows(last.hash, entry.link());
            last = is_next.then_some(entry.last)?;
        }
        Some(last)
    }

    pub(super) fn poll(&mut self) {
        let Some(replica) = self.replica else { return };
        let Some(next) = self.log.get(&(replica.last.slot + 1)).copied() else {
            self.confirm(replica);
            return;
        };
        let after = self.log.get(&(next.last.slot + 1)).map(Entry::link);
        if !follows(replica.last.hash, next.link()) || is_contradicted(next.last.hash, after) {
            self.load();
            return;
        }
        let is_shown = is_shown_at_once(replica.is_confirmed);
        if next.is_state && next.last.head != replica.last.head {
            self.replica = Some(Replica {
                is_shown,
                ..replica
            });
            self.load();
            return;
        }
        if !next.is_state && next.base != replica.last.head {
            self.violation = Some("a replica mixes two histories");
        }
        self.show(Replica {
            last: next.last,
            is_shown,
            ..replica
        });
    }

    /// Compares the replica's position with the heartbeat.
    fn confirm(&mut self, replica: Replica) {
        let is_listed = self.log.range(replica.last.slot + 1..).next().is_some();
        if self.heartbeat.slot == 0 || is_listed {
            self.load();
            return;
        }
        let read =
            |slot| Ok::<_, Infallible>(self.log.get(&slot).map(|entry: &Entry| entry.last.hash));
        if compare(&replica.last, &self.heartbeat, read) == Ok(EndCheck::Confirmed) {
            self.show(Replica {
                is_confirmed: true,
                is_shown: true,
                ..replica
            });
        } else {
            self.load();
        }
    }

    fn show(&mut self, replica: Replica) {
        let last = replica.last;
        let shown = replica.shown;
        self.replica = Some(replica);
        if !replica.is_shown {
            return;
        }
        self.replica = Some(Replica {
            shown: last.head.seq,
            ..replica
        });
        let after = self.log.get(&(last.slot + 1));
        if last.head.seq < shown {
            self.violation = Some("a replica shows an older commit than before");
        } else if last.slot <= self.freed {
            self.violation = Some("a replica shows an entry of a freed slot");
        } else if after.is_some_and(|after| after.parent != last.hash && !after.link().starts_over)
        {
            self.violation = Some("a replica shows an entry that the next one does not follow");
        }
    }

    /// Whether the replica can be promoted: there is no second publisher yet, and new replicas can follow the log.
    pub(super) fn is_promotable(&self) -> bool {
        let Some(replica) = self.replica else {
            return false;
        };
        let end = self.log.last_key_value();
        let newest = self.states.keys().next_back().copied().unwrap_or_default();
        end.is_some_and(|(slot, end)| end.last == replica.last && *slot < self.max_slot)
            && replica.is_shown
            && self.machines[1].name == 0
            && self.has_path_to(newest, replica.last.slot)
            && self.history_of_replica().is_some()
    }

    /// Returns the commits that the replica has, if the origin has all but the last one.
    fn history_of_replica(&self) -> Option<Vec<Head>> {
        let last = self.replica?.last;
        let base = self.log.get(&last.slot)?.base;
        let origin = &self.machines[0].history;
        let count_to = |head: Head| origin.iter().position(|here| *here == head);
        if let Some(at) = count_to(last.head) {
            return Some(origin[..=at].to_vec());
        }
        let mut history = origin[..=count_to(base)?].to_vec();
        history.push(last.head);
        Some(history)
    }

    /// Prepares the entry of a promotion.
    pub(super) fn prepare_promotion(&mut self) {
        let Some(Replica { last, .. }) = self.replica else {
            return;
        };
        let hash = [self.number(); 32];
        let lineage = [self.number(); 16];
        let seq = last.head.seq + 50;
        let entry = Entry {
            last: LastEntry {
                slot: last.slot + 1,
                hash,
                head: Head { seq, lineage },
            },
            parent: last.hash,
            base: last.head,
            name: 2,
            is_state: false,
        };
        self.promotion = Some((entry, false));
    }

    /// Does the next request of a promotion. If the process is killed then, the file is still a replica.
    pub(super) fn promote(&mut self, is_killed: bool) {
        let Some((entry, was_created)) = self.promotion.take() else {
            return;
        };
        let slot = entry.last.slot;
        if !was_created {
            let is_own = *self.log.entry(slot).or_insert(entry) == entry;
            if is_killed || !is_promoted(is_own) {
                return;
            }
            if !is_own {
                self.violation = Some("a replica was promoted without an entry in the log");
            }
            self.promotion = Some((entry, true));
            return;
        }
        if is_killed {
            return;
        }
        let after = self.log.get(&(slot + 1)).map(Entry::link);
        if is_in_gap(entry.last.hash, after) {
            self.log.remove(&slot);
            return;
        }
        let Some(mut history) = self.history_of_replica() else {
            return;
        };
        history.push(entry.last.head);
        self.replica = None;
        self.machines[1] = Machine {
            may_start: true,
            name: 2,
            history,
            note: Some(Noted {
                slot: entry.last.slot,
                hash: entry.last.hash,
                is_fenced: false,
            }),
            acknowledged: Some(entry.last.head),
            ..Machine::default()
        };
    }
}
