//! Drives the protocol through all orders of requests, kills and faults, breadth first. A rule that is switched off
//! must lead to a fault.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use super::Rule;
use super::rules::without;
use super::world_tests::{Event, World};

struct Found {
    states: usize,
    /// The fault that was found, and the steps to it.
    wrong: Option<(&'static str, Vec<Event>)>,
}

/// The bytes of a world. The hash of a package is optimized in tests, one of this crate is not.
#[derive(Default)]
struct WorldBytes(Vec<u8>);

impl Hasher for WorldBytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
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

/// Returns the fault of a world, now or after its faults have stopped. Most worlds have become equal once their pending
/// requests are done, so `well` keeps those that are known to end well.
fn wrong(world: &World, well: &mut HashSet<u64>) -> Option<&'static str> {
    if let Some(violation) = world.violation() {
        return Some(violation);
    }
    for at_rest in world.at_rest() {
        let hash = hash_of(&at_rest);
        if well.contains(&hash) {
            continue;
        }
        let (order, world) = at_rest;
        if let Some(wrong) = world.wrong_in_the_end(order) {
            return Some(wrong);
        }
        well.insert(hash);
    }
    None
}

/// Searches all worlds after `first` without a rule, until something is wrong that is not wrong with it.
fn search(first: &World, rule: Option<Rule>) -> Found {
    let mut well = HashSet::new();
    let mut steps: Vec<(usize, Option<Event>)> = vec![(0, None)];
    let mut seen = HashSet::from([hash_of(first)]);
    let mut worlds = vec![(0, first.clone())];
    while !worlds.is_empty() {
        let mut next = Vec::new();
        for (parent, world) in &worlds {
            for event in world.events() {
                let mut after = world.clone();
                without(rule, || after.happen(event));
                if !seen.insert(hash_of(&after)) {
                    continue;
                }
                steps.push((*parent, Some(event)));
                let index = steps.len() - 1;
                let Some(wrong) = without(rule, || wrong(&after, &mut well)) else {
                    next.push((index, after));
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
        worlds = next;
    }
    Found {
        states: steps.len(),
        wrong: None,
    }
}

/// Whether these steps lead to no fault, by all rules.
fn goes_well(first: &World, steps: &[Event]) -> bool {
    let mut world = first.clone();
    let mut well = HashSet::new();
    steps.iter().all(|event| {
        world.happen(*event);
        wrong(&world, &mut well).is_none()
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

/// Rules, with a world that needs them.
fn needed() -> Vec<(Rule, World)> {
    use Event::{Commit, Load, Move, Poll, Promote, Publish, Sleep};
    let alone = |faults| World::new(faults, false);
    let after = |commits, faults| World::published(commits, faults, false);
    let followed = |commits, faults| World::published(commits, faults, true);
    // A promotion and a publisher are about to create the entry of slot 2.
    let promoting = [Load, Poll, Promote, Commit(0), Publish(0)];
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
        (
            Rule::TakeBackNext,
            followed(1, 1).after(&promoting).with_bounds(2, 3),
        ),
        (
            Rule::PromotionGap,
            followed(1, 1).after(&promoting).with_bounds(2, 3),
        ),
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
    use Event::{Commit, Load, Poll, Promote, Publish};
    assert_well(
        "two publishers and a replica, no fault",
        &World::new(0, true),
    );
    // A replica follows one commit, may be promoted, and either publisher may commit once more.
    let followed = World::published(1, 1, true).after(&[Load, Poll]);
    let promoted = followed.clone().with_bounds(1, 4);
    assert_well("a replica may be promoted, one fault", &promoted);
    // The origin publishes two commits meanwhile.
    let raced = followed.after(&[Promote, Commit(0), Publish(0)]);
    assert_well("a promotion in a race, one fault", &raced.with_bounds(2, 3));
}

#[test]
#[ignore = "takes an hour and 16 GB; run it alone, with --release and --nocapture"]
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
