//! The properties that a world must have after each step, and after its faults have stopped.

use super::{Event, Machine, SLOTS, World};
use crate::model::Head;
use crate::replicate::frame::Hash;
use crate::replicate::protocol::Observation;

impl World {
    /// Returns this world after its faults have stopped and all pending requests are done, for each order in which the
    /// publishers can do them. Leaves out what is the same as before an event.
    pub(in crate::replicate::protocol) fn at_rest(&self, event: Event) -> Vec<([usize; 2], World)> {
        let is_alone = self.machines[1].name == 0 && self.promotion.is_none();
        let orders: &[[usize; 2]] = match is_alone {
            true => &[[0, 1]],
            false => &[[0, 1], [1, 0]],
        };
        orders
            .iter()
            .filter(|order| event != Event::Proceed(order[0]))
            .map(|order| (*order, self.rested(*order)))
            .collect()
    }

    fn rested(&self, order: [usize; 2]) -> World {
        let mut world = self.clone();
        world.faults = 0;
        world.commits = 0;
        world.late = None;
        match world.promotion {
            Some((_, true)) => world.promote(false),
            _ => world.promotion = None,
        }
        for m in order {
            let machine = &mut world.machines[m];
            machine.is_asleep = false;
            if machine.name != 0 && machine.run.is_none() {
                world.start(m);
            }
            world.settle(m);
            world.machines[m].may_start = false;
        }
        world.rename();
        world
    }

    /// Returns the fault that remains after all publishers have published what they have.
    pub(in crate::replicate::protocol) fn wrong_in_the_end(
        &self,
        order: [usize; 2],
    ) -> Option<&'static str> {
        let mut world = self.clone();
        for round in 0..5 {
            for m in order {
                if round == 0 && world.machines[m].run.is_some() {
                    world.commit(m);
                }
                let is_pending = world.machines[m].run.is_some_and(|run| {
                    run.is_state_due
                        || Some(run.known.end.head) != world.machines[m].history.last().copied()
                });
                if is_pending {
                    world.publish(m, false);
                    world.finish_entry(m);
                    world.settle(m);
                }
                if world.machines[m].run.is_some() {
                    world.observe(m, Observation::Due { is_heartbeat: true });
                    world.settle(m);
                }
            }
        }
        world
            .violation
            .or_else(|| world.wrong_at_rest())
            .or_else(|| {
                for _ in 0..2 * SLOTS {
                    world.poll();
                }
                world.violation.or_else(|| world.wrong_of_replica())
            })
    }

    fn wrong_at_rest(&self) -> Option<&'static str> {
        let running: Vec<&Machine> = self
            .machines
            .iter()
            .filter(|machine| machine.run.is_some())
            .collect();
        let [machine] = running[..] else {
            return (running.len() > 1).then_some("two publishers continue");
        };
        let head = machine.history.last().copied().unwrap_or_default();
        if machine
            .acknowledged
            .is_some_and(|acknowledged| !machine.history.contains(&acknowledged))
        {
            return Some("an acknowledged commit is gone, and its publisher continues");
        }
        let is_followed = self
            .states
            .iter()
            .any(|(slot, hash)| self.leads_to(*slot, *hash, head));
        (!is_followed).then_some("the log cannot be followed to the last commit")
    }

    /// Whether the log leads from a state to a commit. Replicas take the hash of its entry from its manifest, and try
    /// an older state after one that does not lead to the end.
    fn leads_to(&self, state: u64, hash: Hash, head: Head) -> bool {
        let mut before = hash;
        let mut is_chain = self.log.contains_key(&state);
        for (slot, (found, entry)) in (state + 1..).zip(self.log.range(state + 1..)) {
            is_chain &= *found == slot && entry.parent == before;
            before = entry.last.hash;
        }
        let last = self.log.last_key_value();
        is_chain && last.is_some_and(|(_, last)| last.last.hash == before && last.last.head == head)
    }

    pub(in crate::replicate::protocol) fn violation(&self) -> Option<&'static str> {
        self.violation
    }
}
