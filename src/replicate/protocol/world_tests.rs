//! The world that the search drives: two publishers and a replica, as the protocol decides for them.
//!
//! It has a bucket, an origin, and perhaps a second publisher: a copy of the origin, with or without the files next to
//! the database, or a replica that was promoted. A step is one request, or one event. After each step that reaches a new
//! world, the faults stop: all publishers start again, commit, and publish. Then at most one is left, and the log can be
//! followed to its last commit. A publisher that acknowledged a commit has it still, or has ended with a refusal. The
//! replica shows commits of one history in their order, never an older one than before, and no entry of a freed slot; in
//! the end it shows the last commit.

mod end_tests;
mod replica_tests;

use std::collections::BTreeMap;

use self::replica_tests::Replica;
use super::following::Link;
use super::{
    Action, AtStart, FoundEntry, Held, Knowledge, LastEntry, Noted, Observation, Question, Refusal,
};
use crate::model::Head;
use crate::replicate::frame::Hash;

const COMMITS: u8 = 2;
const SLOTS: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Entry {
    last: LastEntry,
    parent: Hash,
    base: Head,
    name: u8,
    is_state: bool,
}

impl LastEntry {
    fn each_name(&mut self, visit: &mut dyn FnMut(&mut [u8])) {
        visit(&mut self.hash);
        visit(&mut self.head.lineage);
    }
}

impl Entry {
    fn link(&self) -> Link {
        let starts_over = self.last.slot > 1 && self.parent == Hash::default() && self.is_state;
        Link {
            parent: self.parent,
            starts_over,
        }
    }

    fn each_name(&mut self, visit: &mut dyn FnMut(&mut [u8])) {
        self.last.each_name(visit);
        visit(&mut self.parent);
        visit(&mut self.base.lineage);
    }
}

/// The next request of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Request {
    /// None: the publisher waits for a commit or for the time of its heartbeat.
    None,
    /// The log is read at the start, after the heartbeat, which named this slot.
    ReadLog(u64),
    Ask(Action),
    Create(Entry),
    CreateManifest,
    Note,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Run {
    known: Knowledge,
    request: Request,
    is_state_due: bool,
    /// The slot of the newest state that it knows; 0 for none.
    state: u64,
    /// The state whose entry was created last; 0 for none.
    unfinished: u64,
    /// Whether its start decided to write a state, which it does before anything else.
    is_starting: bool,
    /// Whether its last entry followed a commit that it does not know.
    has_dropped: bool,
    /// Whether it read the heartbeat before it last wrote it. It does so every other time, unless its end is missing.
    has_read_heartbeat: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Machine {
    run: Option<Run>,
    may_start: bool,
    is_asleep: bool,
    name: u8,
    history: Vec<Head>,
    restored_over: Option<Head>,
    /// The commits that a restore replaced.
    replaced: Vec<Head>,
    note: Option<Noted>,
    /// The last commit that was acknowledged as published.
    acknowledged: Option<Head>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    log: BTreeMap<u64, Entry>,
    states: BTreeMap<u64, Hash>,
    heartbeat: LastEntry,
    max_commits: u8,
    max_slot: u64,
    has_replica: bool,
    replica: Option<Replica>,
    /// The last slot that was freed.
    freed: u64,
    machines: [Machine; 2],
    /// An entry that a killed publisher had sent.
    late: Option<Entry>,
    /// The entry of a promotion, and whether it was created.
    promotion: Option<(Entry, bool)>,
    commits: u8,
    numbers: u8,
    faults: u8,
    violation: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum Event {
    Commit(usize),
    Start(usize),
    Publish(usize),
    WriteState(usize),
    Heartbeat(usize),
    /// The pending request is done.
    Proceed(usize),
    /// The copy is made from the database alone.
    Move,
    /// The late entry arrives.
    Arrives,
    Wake(usize),
    /// Old objects are deleted, while the other publisher sleeps. More than 12 hours have passed.
    Sweep(usize),
    /// The replica loads a state.
    Load,
    Poll,
    /// The promotion of the replica prepares its entry.
    Promote,
    /// The entry is created; or, with the next slot read, the replica becomes the second publisher.
    Promoted,
    // Faults:
    /// The promotion is killed after its entry was created.
    KillPromotion,
    CopyFolder,
    LoseResponse(usize),
    Kill(usize),
    /// The request arrives later.
    KillSending(usize),
    Sleep(usize),
    Restore(usize),
    /// The database is replaced by an older copy.
    Exchange(usize),
    LoseNote(usize),
    LoseEntry(u64),
    LoseManifest(u64),
    LoseHeartbeat,
    /// The bucket is put back to the time before its last entry.
    GoBack,
}

impl Event {
    /// Faults are listed last.
    fn is_fault(self) -> bool {
        self >= Event::KillPromotion
    }
}

impl World {
    pub(super) fn new(faults: u8, has_replica: bool) -> World {
        let mut world = World {
            log: BTreeMap::new(),
            states: BTreeMap::new(),
            heartbeat: LastEntry::default(),
            max_commits: COMMITS,
            max_slot: SLOTS,
            has_replica,
            replica: None,
            freed: 0,
            machines: Default::default(),
            late: None,
            promotion: None,
            commits: 0,
            numbers: 0,
            faults,
            violation: None,
        };
        world.machines[0].may_start = true;
        world.machines[0].name = 1;
        world.commit(0);
        world.commits = 0;
        world
    }

    /// Returns a world in which a publisher has published so many commits, one after the other.
    pub(super) fn published(commits: u8, faults: u8, has_replica: bool) -> World {
        let mut world = World::new(faults, has_replica);
        world.start(0);
        world.settle(0);
        for commit in 0..commits {
            if commit > 0 {
                world.commit(0);
            }
            world.publish(0, false);
            world.finish_entry(0);
            world.settle(0);
        }
        world.change(Event::Heartbeat(0));
        world.settle(0);
        world.rename();
        world
    }

    /// Returns the world with larger bounds.
    pub(super) fn with_bounds(mut self, commits: u8, slots: u64) -> World {
        self.max_commits = commits;
        self.max_slot = slots;
        self
    }

    /// Returns the world after these events.
    pub(super) fn after(mut self, events: &[Event]) -> World {
        for event in events {
            self.happen(*event);
        }
        self
    }

    fn number(&mut self) -> u8 {
        self.numbers += 1;
        self.numbers
    }

    /// Numbers lineages and hashes anew, in the order of their places. So worlds that differ in names only are one.
    fn rename(&mut self) {
        let mut names = [0; 256];
        let mut count = 0;
        self.each_name(&mut |name| {
            let old = usize::from(name[0]);
            if old == 0 {
                return;
            }
            if names[old] == 0 {
                count += 1;
                names[old] = count;
            }
            name.fill(names[old]);
        });
        self.numbers = count;
    }

    fn each_name(&mut self, visit: &mut dyn FnMut(&mut [u8])) {
        for entry in self
            .log
            .values_mut()
            .chain(&mut self.late)
            .chain(self.promotion.iter_mut().map(|(entry, _)| entry))
        {
            entry.each_name(visit);
        }
        for hash in self.states.values_mut() {
            visit(hash);
        }
        self.heartbeat.each_name(visit);
        if let Some(replica) = &mut self.replica {
            replica.last.each_name(visit);
        }
        for machine in &mut self.machines {
            let heads = machine.history.iter_mut().chain(&mut machine.replaced);
            for head in heads
                .chain(&mut machine.restored_over)
                .chain(&mut machine.acknowledged)
            {
                visit(&mut head.lineage);
            }
            if let Some(note) = &mut machine.note {
                visit(&mut note.hash);
            }
            let Some(run) = &mut machine.run else {
                continue;
            };
            run.known.end.each_name(visit);
            if let Question::Previous(entry) | Question::IsSlotDeleted(entry) =
                &mut run.known.question
            {
                entry.each_name(visit);
            }
            if let Request::Create(entry) = &mut run.request {
                entry.each_name(visit);
            }
        }
    }

    fn commit(&mut self, m: usize) {
        let lineage = [self.number(); 16];
        let history = &mut self.machines[m].history;
        let seq = history.last().map_or(1, |last| last.seq + 1);
        history.push(Head { seq, lineage });
        self.commits += 1;
    }

    /// The events that can happen now.
    pub(super) fn events(&self) -> Vec<Event> {
        use Event::*;
        let mut events = Vec::new();
        let has_copy = self.machines[1].name != 0 || self.promotion.is_some();
        for (m, machine) in self
            .machines
            .iter()
            .enumerate()
            .filter(|(_, machine)| machine.name != 0)
        {
            if machine.is_asleep {
                events.push(Wake(m));
                continue;
            }
            let is_fenced = machine.note.is_some_and(|note| note.is_fenced);
            if self.commits < self.max_commits && !is_fenced {
                events.push(Commit(m));
            }
            match &machine.run {
                None if machine.may_start => events.push(Start(m)),
                None => {}
                Some(run) if run.request == Request::None => {
                    events.push(Heartbeat(m));
                    let end = run.known.end;
                    let is_free = end.slot < self.max_slot;
                    let is_pending = Some(end.head) != machine.history.last().copied();
                    if is_free && (is_pending || run.is_state_due) {
                        events.push(Publish(m));
                    } else if is_free
                        && self.machines[1 - m].is_asleep
                        && end.slot > 0
                        && !self.states.contains_key(&end.slot)
                    {
                        events.push(WriteState(m));
                    }
                    if self.machines[1 - m].is_asleep && self.states.len() > 2 {
                        events.push(Sweep(m));
                    }
                }
                Some(run) => {
                    events.push(Proceed(m));
                    if matches!(run.request, Request::Create(_)) {
                        events.extend([LoseResponse(m), KillSending(m)]);
                    }
                }
            }
            if machine.run.is_some() {
                events.extend([Kill(m), Sleep(m)]);
            }
            // A publisher reads the database anew for its next entry, and holds it open until that is created.
            let is_at_rest = machine
                .run
                .is_none_or(|run| run.request == Request::None && !run.is_starting);
            if machine.history.len() > 1 && is_at_rest {
                events.extend([Restore(m), Exchange(m)]);
            }
            if machine.note.is_some() {
                events.push(LoseNote(m));
            }
        }
        if !has_copy && self.machines[0].note.is_some() {
            events.extend([Move, CopyFolder]);
        }
        if self.late.is_some() {
            events.push(Arrives);
        }
        events.extend(self.log.keys().map(|slot| LoseEntry(*slot)));
        events.extend(self.states.keys().map(|slot| LoseManifest(*slot)));
        if self.has_replica {
            match self.replica {
                Some(_) => events.push(Poll),
                None if !self.states.is_empty() => events.push(Load),
                None => {}
            }
        }
        if self.promotion.is_some() {
            events.extend([Promoted, KillPromotion]);
        } else if self.is_promotable() {
            events.push(Promote);
        }
        if self.heartbeat.slot > 0 {
            events.push(LoseHeartbeat);
        }
        if self.log.len() > 1 {
            events.push(GoBack);
        }
        events.retain(|event| !event.is_fault() || self.faults > 0);
        events
    }

    /// Lets an event happen, and what follows it at once.
    pub(super) fn happen(&mut self, event: Event) {
        self.faults -= u8::from(event.is_fault());
        self.change(event);
        for m in 0..2 {
            self.finish_entry(m);
        }
        self.rename();
    }

    fn change(&mut self, event: Event) {
        match event {
            Event::Commit(m) => self.commit(m),
            Event::Start(m) => self.start(m),
            Event::Publish(m) => self.publish(m, false),
            Event::WriteState(m) => self.publish(m, true),
            Event::Heartbeat(m) => self.observe(m, Observation::Due { is_heartbeat: true }),
            Event::Proceed(m) => self.request(m),
            Event::Move => self.copy(2, None),
            Event::CopyFolder => self.copy(1, self.machines[0].note),
            Event::Arrives => {
                if let Some(entry) = self.late.take() {
                    self.log.entry(entry.last.slot).or_insert(entry);
                }
            }
            Event::Wake(m) => self.machines[m].is_asleep = false,
            Event::Sleep(m) => self.machines[m].is_asleep = true,
            Event::Sweep(_) => {
                let first = self.states.keys().rev().nth(1).copied().unwrap_or_default();
                self.states.retain(|slot, _| *slot >= first);
                self.log.retain(|slot, _| *slot >= first);
                self.freed = first.saturating_sub(1);
                if let Some(replica) = &mut self.replica {
                    replica.is_confirmed = false;
                }
            }
            Event::LoseResponse(m) => {
                if let Some(Request::Create(entry)) = self.machines[m].run.map(|run| run.request) {
                    self.log.entry(entry.last.slot).or_insert(entry);
                }
            }
            Event::Kill(m) => self.kill(m),
            Event::KillSending(m) => {
                if let Some(Request::Create(entry)) = self.machines[m].run.map(|run| run.request) {
                    self.late = Some(entry);
                }
                self.kill(m);
            }
            Event::Restore(m) => self.restore(m),
            Event::Exchange(m) => {
                self.machines[m].history.pop();
                self.machines[m].may_start = true;
            }
            Event::LoseNote(m) => self.machines[m].note = None,
            Event::LoseEntry(slot) => drop(self.log.remove(&slot)),
            Event::LoseManifest(slot) => drop(self.states.remove(&slot)),
            Event::LoseHeartbeat => self.heartbeat = LastEntry::default(),
            Event::GoBack => {
                if let Some((slot, _)) = self.log.pop_last() {
                    self.states.remove(&slot);
                    if self.heartbeat.slot >= slot {
                        self.heartbeat = self
                            .log
                            .last_key_value()
                            .map_or_else(LastEntry::default, |(_, entry)| entry.last);
                    }
                }
            }
            Event::Load => self.load(),
            Event::Poll => self.poll(),
            Event::Promote => self.prepare_promotion(),
            Event::Promoted => self.promote(false),
            Event::KillPromotion => self.promote(true),
        }
    }

    fn kill(&mut self, m: usize) {
        self.machines[m].run = None;
        self.machines[m].may_start = true;
    }

    fn copy(&mut self, name: u8, note: Option<Noted>) {
        let origin = &self.machines[0];
        self.machines[1] = Machine {
            may_start: true,
            name,
            history: origin.history.clone(),
            restored_over: origin.restored_over,
            replaced: origin.replaced.clone(),
            note,
            ..Machine::default()
        };
    }

    fn restore(&mut self, m: usize) {
        let lineage = [self.number(); 16];
        let machine = &mut self.machines[m];
        let Some(last) = machine.history.pop() else {
            return;
        };
        machine.restored_over = Some(last);
        machine.replaced.push(last);
        machine.acknowledged = machine.acknowledged.filter(|head| *head != last);
        machine.history.push(Head {
            seq: last.seq + 100,
            lineage,
        });
        machine.may_start = true;
    }

    fn start(&mut self, m: usize) {
        self.machines[m].may_start = false;
        self.machines[m].run = Some(Run {
            known: Knowledge::default(),
            request: Request::ReadLog(self.heartbeat.slot),
            is_state_due: false,
            state: 0,
            unfinished: 0,
            is_starting: false,
            has_dropped: false,
            has_read_heartbeat: false,
        });
    }

    /// Passes an observation to the protocol, and takes its action for the next request.
    fn observe(&mut self, m: usize, observed: Observation) {
        let machine = &mut self.machines[m];
        let Some(run) = &mut machine.run else { return };
        let is_start = matches!(observed, Observation::Start(_));
        let action = match run.known.step(observed) {
            Ok(action) => action,
            Err(refusal) => return self.end(m, refusal),
        };
        run.request = match action {
            Action::Continue | Action::StartOver(_) => Request::None,
            Action::WriteState => {
                run.is_state_due = true;
                run.is_starting = is_start;
                Request::None
            }
            Action::Accept { is_previous_lost } => {
                run.is_state_due |= is_previous_lost;
                Request::Note
            }
            action => Request::Ask(action),
        };
    }

    fn end(&mut self, m: usize, refusal: Refusal) {
        let machine = &mut self.machines[m];
        let Some(run) = machine.run.take() else {
            return;
        };
        let end = run.known.end;
        let noted = machine.note.unwrap_or(Noted {
            slot: end.slot,
            hash: end.hash,
            is_fenced: false,
        });
        let is_fenced = matches!(
            refusal,
            Refusal::Fenced(_) | Refusal::Diverged { is_own: false }
        );
        if is_fenced {
            machine.note = Some(Noted {
                is_fenced: true,
                ..noted
            });
        }
    }

    fn found(&self, m: usize, entry: &Entry) -> FoundEntry {
        let machine = &self.machines[m];
        let head = entry.last.head;
        FoundEntry {
            entry: entry.last,
            parent: entry.parent,
            is_contained: machine.history.contains(&head),
            has_own_name: entry.name == machine.name,
            restored_over: machine.restored_over,
        }
    }

    fn read_log(&mut self, m: usize, announced: u64) {
        let newest = self.states.keys().next_back().copied();
        let first = newest.or(self.log.keys().next().copied()).unwrap_or(1);
        let has_gap = self
            .log
            .keys()
            .filter(|slot| **slot >= first)
            .zip(first..)
            .any(|(slot, expected)| *slot != expected);
        let last = self.log.values().next_back().copied();
        let ends_early =
            newest.is_some_and(|newest| last.is_none_or(|last| last.last.slot < newest));
        let is_mixed = last.is_some_and(|last| {
            let of_state = self.states.get(&last.last.slot);
            of_state.is_some_and(|hash| *hash != last.last.hash)
        });
        if has_gap || ends_early || is_mixed {
            self.machines[m].run = None;
            return;
        }
        let found = AtStart {
            end: last.map(|last| self.found(m, &last)),
            note: self.machines[m].note,
            announced,
            start_over: false,
        };
        self.observe(m, Observation::Start(found));
        let Some(run) = &mut self.machines[m].run else {
            return;
        };
        run.state = newest.unwrap_or_default();
        run.is_state_due |= newest.is_none()
            || last.is_some_and(|last| last.is_state && newest != Some(last.last.slot));
        if !run.is_state_due {
            run.request = Request::Note;
        }
    }

    fn publish(&mut self, m: usize, is_state: bool) {
        let machine = &self.machines[m];
        let Some(run) = machine.run else { return };
        let end = run.known.end;
        if end.slot > 0 {
            let is_restored = end.head.is_replaced(machine.restored_over);
            let holds_end = machine.history.contains(&end.head);
            if !run.is_starting && !holds_end {
                self.observe(m, Observation::EndIsGone { is_restored });
            }
        }
        let Some(run) = self.machines[m].run else {
            return;
        };
        let hash = [self.number(); 32];
        let machine = &mut self.machines[m];
        let end = run.known.end;
        let entry = Entry {
            last: LastEntry {
                slot: end.slot + 1,
                hash,
                head: machine.history.last().copied().unwrap_or_default(),
            },
            parent: end.hash,
            base: end.head,
            name: machine.name,
            is_state: is_state || run.is_state_due || end.slot == 0,
        };
        machine.run = Some(Run {
            request: Request::Create(entry),
            is_starting: false,
            ..run
        });
    }

    fn request(&mut self, m: usize) {
        let Some(run) = self.machines[m].run else {
            return;
        };
        match run.request {
            Request::None => {}
            Request::ReadLog(announced) => self.read_log(m, announced),
            Request::Ask(Action::ReadNext(slot)) => match self.log.get(&slot) {
                None => self.observe(m, Observation::NextIsFree),
                Some(entry) => self.meet(m, *entry),
            },
            Request::Ask(Action::ReadHash(slot)) => {
                let held = self
                    .log
                    .get(&slot)
                    .map_or(Held::Nothing, |entry| Held::Entry(entry.last.hash));
                self.observe(m, Observation::Held(held));
            }
            Request::Ask(Action::ReadStates(first)) => {
                let states = self
                    .states
                    .range(first..)
                    .map(|(slot, hash)| (*slot, Some(*hash)));
                self.observe(m, Observation::States(states.collect()));
            }
            Request::Ask(Action::WriteHeartbeat { is_end_lost }) => {
                if is_end_lost || !run.has_read_heartbeat {
                    self.observe(m, Observation::Heartbeat(self.heartbeat.slot));
                }
                let Some(run) = self.machines[m].run else {
                    return;
                };
                self.heartbeat = run.known.end;
                let is_state_due = run.is_state_due
                    || is_end_lost
                    || !self.has_path_to(run.state, self.heartbeat.slot);
                self.machines[m].run = Some(Run {
                    request: Request::None,
                    is_state_due,
                    has_read_heartbeat: !run.has_read_heartbeat,
                    ..run
                });
            }
            Request::Ask(Action::TakeBack { own, fenced_by }) => {
                if self
                    .log
                    .get(&own.slot)
                    .is_some_and(|entry| entry.last == own)
                {
                    self.log.remove(&own.slot);
                }
                self.end(m, Refusal::Fenced(fenced_by));
            }
            Request::Ask(_) => {
                self.machines[m].run = Some(Run {
                    request: Request::None,
                    ..run
                })
            }
            Request::Create(entry) => match self.log.get(&entry.last.slot) {
                Some(found) if *found != entry => self.meet(m, *found),
                _ => self.create(m, entry),
            },
            Request::CreateManifest => {
                let end = run.known.end;
                if *self.states.entry(end.slot).or_insert(end.hash) != end.hash {
                    self.machines[m].run = None;
                    return;
                }
                self.machines[m].run = Some(Run {
                    request: Request::Note,
                    is_state_due: false,
                    state: end.slot,
                    unfinished: 0,
                    ..run
                });
            }
            Request::Note => {
                let end = run.known.end;
                if run.has_dropped && self.has_unknown_before(m, end.slot) {
                    self.violation = Some("a commit was dropped that no restore replaced");
                }
                let machine = &self.machines[m];
                if !machine.history.contains(&end.head) && !machine.replaced.contains(&end.head) {
                    self.violation = Some("a commit is noted as published that the database lacks");
                }
                let machine = &mut self.machines[m];
                machine.note = Some(Noted {
                    slot: end.slot,
                    hash: end.hash,
                    is_fenced: false,
                });
                if machine.history.contains(&end.head) {
                    machine.acknowledged = Some(end.head);
                }
                machine.run = Some(Run {
                    request: Request::None,
                    ..run
                });
            }
        }
    }

    /// Whether the entry before a slot has a commit that a publisher does not know.
    fn has_unknown_before(&self, m: usize, slot: u64) -> bool {
        let machine = &self.machines[m];
        self.log.get(&(slot - 1)).is_some_and(|before| {
            let head = before.last.head;
            !machine.history.contains(&head) && !machine.replaced.contains(&head)
        })
    }

    /// Takes an entry that was found in the next slot.
    fn meet(&mut self, m: usize, entry: Entry) {
        let found = self.found(m, &entry);
        self.observe(m, Observation::Next(found));
        if let Some(run) = &mut self.machines[m].run {
            run.is_state_due |= entry.is_state;
        }
    }

    fn create(&mut self, m: usize, entry: Entry) {
        let has_dropped = self.has_unknown_before(m, entry.last.slot);
        self.log.insert(entry.last.slot, entry);
        if let Some(run) = &mut self.machines[m].run {
            run.has_dropped = has_dropped;
            run.unfinished = if entry.is_state { entry.last.slot } else { 0 };
        }
        self.observe(m, Observation::Created(entry.last));
    }

    fn finish_entry(&mut self, m: usize) {
        let Some(run) = &mut self.machines[m].run else {
            return;
        };
        if run.request == Request::Note && run.known.end.slot == run.unfinished {
            run.request = Request::CreateManifest;
        }
    }

    fn has_path_to(&self, state: u64, end: u64) -> bool {
        let newest = self.states.range(..=end).next_back().map(|(slot, _)| *slot);
        self.states.contains_key(&state)
            && newest.is_some_and(|first| (first..=end).all(|slot| self.log.contains_key(&slot)))
    }

    /// Lets a publisher do all requests until it waits.
    fn settle(&mut self, m: usize) {
        while self.machines[m]
            .run
            .is_some_and(|run| run.request != Request::None)
        {
            self.request(m);
            self.finish_entry(m);
        }
    }
}
