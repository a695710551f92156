//! Drives the protocol through all orders of requests, kills and faults, breadth first. A rule that is switched off
//! must lead to a fault.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::thread::{self, available_parallelism};

use parking_lot::{Mutex, MutexGuard};

use super::Rule;
use super::rules::without;
use super::world_tests::{Event, World};

struct Found {
    states: usize,
    /// The fault that was found, and the steps to it.
    wrong: Option<(&'static str, Vec<Event>)>,
}

/// The bytes of a world. The hash of a package is optimized in tests, one of this crate is not. Slots, seqs and lengths
/// are small, and each name (a hash or a lineage) is one byte that is repeated.
#[derive(Default)]
struct WorldBytes(Vec<u8>);

impl Hasher for WorldBytes {
    fn write(&mut self, name: &[u8]) {
        self.0.push(name[0]);
    }

    fn write_u8(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn write_u64(&mut self, number: u64) {
        let number = u16::try_from(number).expect("slots and seqs are small");
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn write_usize(&mut self, length: usize) {
        self.write_u64(length as u64);
    }

    fn write_isize(&mut self, variant: isize) {
        self.write_u64(variant.cast_unsigned() as u64);
    }

    fn finish(&self) -> u64 {
        let hash = blake3::hash(&self.0);
        u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"))
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut bytes = WorldBytes::default();
    value.hash(&mut bytes);
    bytes.finish()
}

/// Hashes of worlds, for several threads.
#[derive(Default)]
struct Hashes([Mutex<HashSet<u64>>; 16]);

impl Hashes {
    fn part(&self, hash: u64) -> MutexGuard<'_, HashSet<u64>> {
        self.0[usize::from(hash.to_le_bytes()[0] % 16)].lock()
    }
}

/// Returns the fault of a world after an event, now or after its faults have stopped. Most worlds have become equal once
/// their pending requests are done, so `well` keeps those that are known to end well. A publisher that did one request
/// comes to the same world at rest as before it, if it is the first to do the rest.
fn wrong(world: &World, event: Event, well: &Hashes) -> Option<&'static str> {
    if let Some(violation) = world.violation() {
        return Some(violation);
    }
    for (order, world) in world.at_rest(event) {
        let hash = hash_of(&(order[0], &world));
        if well.part(hash).contains(&hash) {
            continue;
        }
        if let Some(wrong) = world.wrong_in_the_end(order) {
            return Some(wrong);
        }
        well.part(hash).insert(hash);
    }
    None
}

/// A world that was reached by an event after the world with this index.
struct Reached {
    before: usize,
    event: Event,
    world: World,
    wrong: Option<&'static str>,
}

/// The new worlds after these.
fn after(worlds: &[(usize, World)], seen: &Hashes, well: &Hashes) -> Vec<Reached> {
    let mut reached = Vec::new();
    for (before, world) in worlds {
        for event in world.events() {
            let mut world = world.clone();
            world.happen(event);
            let hash = hash_of(&world);
            if seen.part(hash).insert(hash) {
                reached.push(Reached {
                    before: *before,
                    event,
                    wrong: wrong(&world, event, well),
                    world,
                });
            }
        }
    }
    reached
}

/// Searches all worlds after `first` without a rule, until something is wrong that is not wrong with it.
fn search(first: &World, rule: Option<Rule>) -> Found {
    let threads = available_parallelism().map_or(1, usize::from);
    let well = Hashes::default();
    let seen = Hashes::default();
    let hash = hash_of(first);
    seen.part(hash).insert(hash);
    let mut steps: Vec<(usize, Option<Event>)> = vec![(0, None)];
    let mut worlds = vec![(0, first.clone())];
    while !worlds.is_empty() {
        let reached: Vec<Vec<Reached>> = thread::scope(|scope| {
            let parts = worlds.chunks(worlds.len().div_ceil(threads));
            let search = |part| without(rule, || after(part, &seen, &well));
            let running: Vec<_> = parts
                .map(|part| scope.spawn(move || search(part)))
                .collect();
            let done = running.into_iter().map(|thread| thread.join().unwrap());
            done.collect()
        });
        worlds.clear();
        for reached in reached.into_iter().flatten() {
            let index = steps.len();
            steps.push((reached.before, Some(reached.event)));
            let Some(wrong) = reached.wrong else {
                worlds.push((index, reached.world));
                continue;
            };
            let path = path(&steps, index);
            if rule.is_none() || goes_well(first, &path) {
                return Found {
                    states: steps.len(),
                    wrong: Some((wrong, path)),
                };
            }
        }
    }
    Found {
        states: steps.len(),
        wrong: None,
    }
}

/// Whether these steps lead to no fault, by all rules.
fn goes_well(first: &World, steps: &[Event]) -> bool {
    let mut world = first.clone();
    let well = Hashes::default();
    steps.iter().all(|event| {
        world.happen(*event);
        wrong(&world, *event, &well).is_none()
    })
}

fn path(steps: &[(usize, Option<Event>)], mut index: usize) -> Vec<Event> {
    let mut events = Vec::new();
    while let (parent, Some(event)) = steps[index] {
        events.push(event);
        index = parent;
    }
    events.reverse();
    events
}

/// A promotion and the origin are about to create the entry of slot 2, and the origin may commit once more.
fn raced() -> World {
    use Event::{Commit, Load, Poll, Promote, Publish};
    let events = [Load, Poll, Promote, Commit(0), Publish(0)];
    World::published(1, 1, true)
        .after(&events)
        .with_bounds(2, 3)
}

/// Rules, with a world that needs them.
fn needed() -> Vec<(Rule, World)> {
    use Event::{Commit, Load, Move, Poll, Publish, Sleep};
    let alone = |faults| World::new(faults, false);
    let after = |commits, faults| World::published(commits, faults, false);
    let followed = |commits, faults| World::published(commits, faults, true);
    // A publisher sleeps right before it creates the entry of slot 2.
    let asleep = [Load, Poll, Move, Commit(0), Publish(0), Sleep(0)];
    vec![
        (Rule::Contained, alone(1)),
        (Rule::NextSlot, alone(1)),
        (Rule::NextContained, alone(1)),
        (Rule::Previous, alone(1)),
        (Rule::Hash, alone(1)),
        (Rule::TakeBack, alone(1)),
        (Rule::OwnRestore, alone(2)),
        (Rule::NotedTakeover, alone(2)),
        (Rule::Announced, alone(2)),
        (Rule::NoteSlot, after(2, 2)),
        (Rule::HeartbeatSlot, after(2, 3)),
        (Rule::Follows, followed(1, 1)),
        (Rule::Successor, followed(1, 1)),
        (Rule::NeverBack, followed(2, 1)),
        (
            Rule::Confirmed,
            followed(1, 1).after(&asleep).with_bounds(4, 7),
        ),
        (Rule::OwnPromotion, followed(1, 0).after(&[Load, Poll])),
        (Rule::TakeBackNext, raced()),
        (Rule::PromotionGap, raced()),
    ]
}

fn assert_well(case: &str, world: &World) {
    let found = search(world, None);
    eprintln!("{case}: {} states", found.states);
    assert_eq!(found.wrong, None, "{case}");
}

#[test]
fn nothing_goes_wrong_with_two_publishers() {
    assert_well("two publishers, one fault", &World::new(1, false));
}

#[test]
fn nothing_goes_wrong_with_a_replica() {
    assert_well(
        "two publishers and a replica, no fault",
        &World::new(0, true),
    );
    assert_well("a promotion in a race, one fault", &raced());
}

#[test]
#[ignore = "takes a quarter of an hour and 4 GB; run it with --release"]
fn nothing_goes_wrong_in_the_whole_space() {
    assert_well(
        "two publishers and a replica, one fault",
        &World::new(1, true),
    );
}

/// Without a rule, the search finds steps that lead to a fault. With it, the same steps do not.
#[test]
fn rules_are_needed() {
    for (rule, first) in needed() {
        let found = search(&first, Some(rule));
        let Some((wrong, steps)) = found.wrong else {
            panic!("{rule:?} is not needed in {} states", found.states);
        };
        eprintln!("{rule:?}: {wrong} after {} steps: {steps:?}", steps.len());
    }
}
